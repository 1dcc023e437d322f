package internode

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// rig is a Server with the key 1 and the name "b", and what signs requests to it.
type rig struct {
	*Server
	key    *signer
	calls  int
	gotten string // body of the last request that was served
	speaks string // who sends requests; empty: they don't say
}

func newRig(log io.Writer) *rig {
	r := &rig{key: newSigner(Key{1}), speaks: "1-3"}
	r.Server = NewServer(ServerOptions{
		Key: Key{1}, Self: Greeting{Node: "b", Run: "run", Speaks: Range{2, 3}}, Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	r.Handle("/edge/", http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		r.calls++
		b, _ := io.ReadAll(q.Body)
		r.gotten = string(b)
	}))
	return r
}

// ask serves a request with a signature for another one.
func (r *rig) ask(ctx context.Context, method, target, body, authorization string) *http.Response {
	q := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if body == "" {
		q.Body, q.ContentLength = http.NoBody, 0
	}
	if authorization != "" {
		q.Header.Set("Authorization", authorization)
	}
	if r.speaks != "" {
		q.Header.Set(speaksHeader, r.speaks)
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, q)
	return w.Result()
}

func fresh() signature {
	return signature{at: time.Now(), nonce: newNonce(), from: "a", to: "b", digest: noBody}
}

// refusedAs reads why a request was refused; empty: it was not.
func refusedAs(t *testing.T, res *http.Response) Code {
	t.Helper()
	defer func() { _ = res.Body.Close() }()
	code := Code(res.Header.Get(refusedHeader))
	if code == "" {
		return ""
	}
	var r refusal
	err := json.NewDecoder(res.Body).Decode(&r)
	if err != nil || r.Code != code || r.Node != "b" || res.StatusCode != statuses[code] {
		t.Errorf("%s: %d %+v, %v", code, res.StatusCode, r, err)
	}
	return code
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	const target = "/edge/4?part=1&of=2"
	for name, tt := range map[string]struct {
		change         func(*signature)
		header         func(string) string // of what is right
		by             *signer
		method, target string // that are sent; empty: those that were signed
		signed, body   string
		want           Code
	}{
		"right":          {},
		"right, a body":  {signed: "x", body: "x"},
		"without":        {header: func(string) string { return "" }, want: Unsigned},
		"another scheme": {header: func(string) string { return "Basic YTpi" }, want: Unsigned},
		"short":          {header: func(h string) string { return h[:len(h)-1] }, want: Unsigned},
		"long":           {header: func(h string) string { return h + strings.Repeat("0", 600) }, want: Unsigned},
		"two":            {header: func(h string) string { return h + ":x" }, want: Unsigned},
		"newer": {
			header: func(h string) string { return strings.Replace(h, " 1:", " 2:", 1) }, want: Protocol,
		},
		"foreign": {by: newSigner(Key{2}), want: ForeignKey},
		"no MAC of ours": {
			header: func(h string) string { return h[:len(h)-64] + strings.Repeat("0", 64) }, want: Altered,
		},
		"other node":   {change: func(s *signature) { s.to = "c" }, want: OtherNode},
		"old":          {change: func(s *signature) { s.at = s.at.Add(-16 * time.Second) }, want: Clock},
		"a minute off": {change: func(s *signature) { s.at = s.at.Add(time.Minute) }, want: Clock},
		"still valid":  {change: func(s *signature) { s.at = s.at.Add(-14 * time.Second) }},
		"other query":  {target: "/edge/4?part=2&of=2", want: Altered},
		"more query":   {target: target + "&x", want: Altered},
		"other path":   {target: "/edge/5?part=1&of=2", want: Altered},
		"other method": {method: "DELETE", want: Altered},
		"other body":   {signed: "x", body: "y", want: Altered},
		"body added":   {body: "y", want: Altered},
		"body dropped": {signed: "x", want: Altered},
		"large body": {
			signed: strings.Repeat("x", MaxBody+1), body: strings.Repeat("x", MaxBody+1), want: TooLarge,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(io.Discard)
				time.Sleep(time.Minute) // it began long ago
				sig := fresh()
				sig.digest = digest([]byte(tt.signed))
				if tt.change != nil {
					tt.change(&sig)
				}
				method := http.MethodGet
				if tt.signed != "" || tt.body != "" {
					method = http.MethodPost
				}
				by := r.key
				if tt.by != nil {
					by = tt.by
				}
				header := by.sign(sig, method, target)
				if tt.header != nil {
					header = tt.header(header)
				}
				res := r.ask(t.Context(), cmp.Or(tt.method, method), cmp.Or(tt.target, target), tt.body, header)
				if got := refusedAs(t, res); got != tt.want {
					t.Errorf("%q, want %q", got, tt.want)
				}
				if served := r.calls == 1; served != (tt.want == "") || served && r.gotten != tt.body {
					t.Errorf("served %d times, with the body %q", r.calls, r.gotten)
				}
			})
		})
	}
}

// TestOfOtherVersions: a program that speaks no version of the protocol that the server does, or does not say which, is
// told hello and nothing else.
func TestOfOtherVersions(t *testing.T) {
	t.Parallel()
	for speaks, want := range map[string]Code{
		"1-1": Protocol, "4-9": Protocol, "": Protocol, "2": Protocol, "2-": Protocol, "2-2-2": Protocol,
		"02-3": Protocol, "+2-3": Protocol, "3-2": Protocol, "-1-3": Protocol, "0-3": Protocol,
		"2-99999999999999999999": Protocol,
		"1-2":                    "", "2-3": "", "3-3": "", "1-99": "",
	} {
		r := newRig(io.Discard)
		r.speaks = speaks
		for _, target := range []string{"/edge/4", helloPath} {
			want := want
			if target == helloPath {
				want = ""
			}
			sig := fresh()
			res := r.ask(t.Context(), http.MethodGet, target, "", r.key.sign(sig, http.MethodGet, target))
			if got := refusedAs(t, res); got != want {
				t.Errorf("%q, %s: %q, want %q", speaks, target, got, want)
			}
			if got := res.Header.Get(speaksHeader); got != "2-3" {
				t.Errorf("%q: it says that it speaks %q", speaks, got)
			}
			if want != "" && res.Header.Get(answerHeader) == "" {
				t.Errorf("%q: the refusal is not signed", speaks)
			}
		}
		if served := r.calls == 1; served != (want == "") {
			t.Errorf("%q: served %d times", speaks, r.calls)
		}
	}
}

// TestRange: nodes speak the newest version that both know.
func TestRange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b Range
		want int
	}{
		{Range{1, 1}, Range{1, 1}, 1},
		{Range{1, 2}, Range{1, 1}, 1},
		{Range{1, 3}, Range{2, 4}, 3},
		{Range{1, 2}, Range{3, 4}, 0},
		{Range{}, Range{1, 1}, 0},
		{Range{}, Range{}, 0},
		{Range{-3, 5}, Range{-2, -1}, 0},
		{Range{2, 1}, Range{1, 3}, 0},
	} {
		if got, back := tt.a.With(tt.b), tt.b.With(tt.a); got != tt.want || back != tt.want {
			t.Errorf("%v with %v: %d and %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
	if s := Spoken(); s.Oldest < 1 || s.With(s) != s.Newest || parseRange(s.String()) != s {
		t.Errorf("it speaks %v", s)
	}
}

// TestLargeBody sends more than it may, and does not say how much beforehand.
func TestLargeBody(t *testing.T) {
	t.Parallel()
	q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/edge/",
		strings.NewReader(strings.Repeat("x", MaxBody+1)))
	q.ContentLength = -1
	if got := readBody(q, noBody); got != TooLarge {
		t.Errorf("got %q", got)
	}
}

// TestOnce sends what has been sent before: a GET changes nothing, and anything else is taken once, also by a process
// that was started since.
func TestOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(io.Discard)
		time.Sleep(time.Minute)
		header := r.key.sign(fresh(), "GET", "/edge/")
		for range 3 {
			if got := refusedAs(t, r.ask(t.Context(), "GET", "/edge/", "", header)); got != "" {
				t.Errorf("GET again: %s", got)
			}
		}
		sig := fresh()
		sig.at = sig.at.Add(window) // of a clock that is ahead
		header = r.key.sign(sig, "POST", "/edge/")
		if got := refusedAs(t, r.ask(t.Context(), "POST", "/edge/", "", header)); got != "" {
			t.Errorf("POST: %s", got)
		}
		for range 3 {
			time.Sleep(9 * time.Second)
			if got := refusedAs(t, r.ask(t.Context(), "POST", "/edge/", "", header)); got != Replayed {
				t.Errorf("POST again: %q", got)
			}
		}
		time.Sleep(4 * time.Second)
		if got := refusedAs(t, r.ask(t.Context(), "POST", "/edge/", "", header)); got != Clock {
			t.Errorf("POST after 31 s: %q", got)
		}
		header = r.key.sign(fresh(), "POST", "/edge/")
		time.Sleep(time.Second)
		if got := refusedAs(t, newRig(io.Discard).ask(t.Context(), "POST", "/edge/", "", header)); got != Replayed {
			t.Errorf("POST to a process that has just begun: %q", got)
		}
	})
}

// TestNonces fills the memory of requests that may come once: more are refused until those are no longer valid.
func TestNonces(t *testing.T) {
	t.Parallel()
	n, now := newNonces(3), time.Unix(0, 0)
	until := now.Add(2 * window)
	for i, want := range []admission{admitted, admitted, admitted, noRoom} {
		if got := n.admit(fmt.Sprint(i), until, now); got != want {
			t.Errorf("%d: %d", i, got)
		}
	}
	if got := n.admit("2", until, until); got != seenBefore {
		t.Errorf("again: %d", got)
	}
	now = until.Add(time.Millisecond)
	for i := range 100 {
		if got := n.admit(fmt.Sprint("later", i), now, now.Add(time.Duration(i)*time.Second)); got != admitted {
			t.Errorf("later: %d", got)
		}
	}
	if len(n.seen) > 3 || len(n.order) > 6 {
		t.Errorf("%d are remembered, of %d", len(n.seen), len(n.order))
	}
}

// TestRefusalsAreLoggedOnce has strangers send as much as they like.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newRig(&log)
	for range 50 {
		_ = refusedAs(t, r.ask(t.Context(), "GET", "/edge/", "", ""))
	}
	if got := strings.Count(log.String(), "\n"); got != 1 {
		t.Errorf("%d lines:\n%s", got, log.String())
	}
}

// TestAnswersAreSigned looks that what a node says of itself is for one request alone.
func TestAnswersAreSigned(t *testing.T) {
	t.Parallel()
	r := newRig(io.Discard)
	for name, sig := range map[string]signature{"hello": fresh(), "refusal": func() signature {
		s := fresh()
		s.at = s.at.Add(-time.Hour)
		return s
	}()} {
		res := r.ask(t.Context(), "GET", helloPath, "", r.key.sign(sig, "GET", helloPath))
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		got := res.Header.Get(answerHeader)
		if got != r.key.mac(answerText(sig.nonce, res.StatusCode, body)) ||
			got == r.key.mac(answerText(newNonce(), res.StatusCode, body)) {
			t.Errorf("%s: %q", name, got)
		}
	}
	res := r.ask(t.Context(), "GET", helloPath, "", newSigner(Key{2}).sign(fresh(), "GET", helloPath))
	if res.Header.Get(answerHeader) != "" {
		t.Error("a stranger has something signed")
	}
}

func FuzzSignature(f *testing.F) {
	s := newSigner(Key{1})
	sig := signature{at: time.UnixMilli(1), nonce: newNonce(), from: "a", to: "b", digest: noBody}
	f.Add(s.sign(sig, "GET", "/"))
	sig.digest = digest([]byte("x"))
	f.Add(s.sign(sig, "PUT", "/"))
	f.Add(scheme + " 1:::::::")
	f.Add(scheme + " 2:x")
	f.Add(strings.Replace(s.sign(sig, "PUT", "/"), ":1:", ":01:", 1))
	f.Add("")
	f.Fuzz(func(t *testing.T, header string) {
		sig, err := parseSignature(header)
		if err == nil && sig.header() != header {
			t.Errorf("%q is read as %+v", header, sig)
		}
	})
}

// BenchmarkAuthenticate is what the signature of a GET costs who serves it.
func BenchmarkAuthenticate(b *testing.B) {
	r := newRig(io.Discard)
	q := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/edge/1234/segment/17/part/3", http.NoBody)
	q.Header.Set("Authorization", r.key.sign(fresh(), "GET", q.RequestURI))
	b.ReportAllocs()
	for b.Loop() {
		if _, code := r.authenticate(q); code != "" && code != Clock {
			b.Fatal(code)
		}
	}
}
