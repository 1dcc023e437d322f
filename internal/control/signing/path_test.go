package signing_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
)

func TestPath(t *testing.T) {
	t.Parallel()
	store := newMemory()
	a, b := signing.New(signing.Options{Store: store}), signing.New(signing.Options{Store: store})
	want := signing.Path{
		Use: "v", Key: "key1", Restriction: "r1", Modifiers: "asset_start_time=3&low_latency=false",
		Until: noon.Add(time.Hour),
	}
	text, until, err := a.SignPath(t.Context(), "pb1", want, noon)
	if err != nil || !until.Equal(want.Until) || strings.ContainsAny(text, "/?#%& ") {
		t.Fatalf("%s until %v, %v", text, until, err)
	}
	for name, s := range map[string]*signing.Service{"this node": a, "another node": b} {
		if got, err := s.OpenPath(t.Context(), "pb1", text, noon.Add(59*time.Minute)); err != nil ||
			!got.Until.Equal(want.Until) || got.Key != want.Key || got.Modifiers != want.Modifiers ||
			got.Restriction != "r1" || got.Use != "v" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	again, _, _ := b.SignPath(t.Context(), "pb1", want, noon.Add(time.Minute))
	later := want
	later.Until = noon.Add(time.Hour + 50*time.Second)
	if shared, _, _ := b.SignPath(t.Context(), "pb1", later, noon.Add(10*time.Second)); again != text ||
		shared != text {
		t.Errorf("viewers of nearly the same time have %s, %s and %s", text, again, shared)
	}
	parts := strings.Split(text, ".")
	with := func(i int, v string) string {
		p := append([]string{}, parts...)
		p[i] = v
		return strings.Join(p, ".")
	}
	for name, forged := range map[string]string{
		"empty": "", "prefix": "signed-", "dots": "signed-......", "short": strings.Join(parts[:6], "."),
		"long": text + ".x", "use": with(0, "signed-s"),
		"secret": with(1, "0"), "secret before": with(1, "688"), "secret in the form of": with(1, "+"+parts[1]),
		"expiry": with(2, "1999999999"),
		"key":    with(3, "key2"), "restriction": with(4, ""), "modifiers": with(5, ""),
		"other modifiers": with(5, base64.RawURLEncoding.EncodeToString([]byte("x=1"))),
		"no MAC":          with(6, ""), "MAC of zeroes": with(6, strings.Repeat("A", 22)),
		"MAC with padding": text + "==", "short MAC": text[:len(text)-1],
		"spare bits of the MAC": text[:len(text)-1] + next(text[len(text)-1]), "upper case": strings.ToUpper(text),
		"line feed":     text + "\n",
		"borders moved": with(3, "key1r1") + "", "huge": text + strings.Repeat("A", 4000),
		"not ours": "Signed-" + text[7:],
	} {
		if got, err := a.OpenPath(t.Context(), "pb1", forged, noon); !fault.Is(err, fault.Denied) {
			t.Errorf("%s (%s): %+v, %v", name, forged, got, err)
		}
	}
	for _, p := range []id.Playback{"pb2", "pb", "pb1/", "", id.Playback(strings.Repeat("p", 300))} {
		if _, err := a.OpenPath(t.Context(), p, text, noon); !fault.Is(err, fault.Denied) {
			t.Errorf("of playback ID %q: %v", p, err)
		}
	}
	if _, err := a.OpenPath(t.Context(), "pb1", text, want.Until); !fault.Is(err, fault.Denied) ||
		!strings.Contains(err.Error(), "expired") {
		t.Errorf("expired: %v", err)
	}
	want.Modifiers = strings.Repeat("m", 600)
	if _, _, err := a.SignPath(t.Context(), "pb1", want, noon); !fault.Is(err, fault.Invalid) {
		t.Errorf("long modifiers: %v", err)
	}
}

// next is another character of the alphabet whose first two bits are the same: the other four are spare in the last one
// of a MAC.
func next(c byte) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return string(alphabet[strings.IndexByte(alphabet, c)|1])
}

// TestPathSecrets: two are good at a time, a path ends with its secret, and what was never there is not asked for again
// and again.
func TestPathSecrets(t *testing.T) {
	t.Parallel()
	store := newMemory()
	s := signing.New(signing.Options{Store: store})
	const secretPeriod = 30 * 24 * time.Hour
	text, until, err := s.SignPath(t.Context(), "pb1", signing.Path{
		Use: "v", Key: "k", Until: noon.Add(10 * 365 * 24 * time.Hour),
	}, noon)
	if left := until.Sub(noon); err != nil || left < secretPeriod || left > 2*secretPeriod {
		t.Fatalf("good for %v, %v", left, err)
	}
	if _, err = s.OpenPath(t.Context(), "pb1", text, until.Add(-time.Second)); err != nil {
		t.Errorf("at its end: %v", err)
	}
	if _, _, err = s.SignPath(t.Context(), "pb1", signing.Path{Use: "v", Key: "k", Until: until.Add(time.Hour)},
		until.Add(-time.Hour)); err != nil || len(store.secrets) != 2 {
		t.Errorf("%d secrets, %v", len(store.secrets), err)
	}
	fresh := newMemory()
	other := signing.New(signing.Options{Store: fresh})
	for range 10 {
		if _, err = other.OpenPath(t.Context(), "pb1", text, until.Add(-time.Second)); !fault.Is(err, fault.Denied) {
			t.Errorf("of another installation: %v", err)
		}
	}
	if fresh.asked != 1 {
		t.Errorf("asked %d times", fresh.asked)
	}
}

func TestPathAllocations(t *testing.T) { //nolint:paralleltest // counts everybody's allocations
	s := signing.New(signing.Options{Store: newMemory()})
	text, _, err := s.SignPath(t.Context(), "pb1", signing.Path{
		Use: "v", Key: "key1", Until: noon.Add(time.Hour),
	}, noon)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	open := func() { _, err = s.OpenPath(ctx, "pb1", text, noon) }
	const dropped = 4 // by a sync.Pool, which forgets at random under the race detector; else there are none
	if n := testing.AllocsPerRun(100, open); n > dropped || err != nil {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func BenchmarkOpenPath(b *testing.B) {
	s := signing.New(signing.Options{Store: newMemory()})
	text, _, err := s.SignPath(b.Context(), "pb1", signing.Path{
		Use: "v", Key: "key1", Until: noon.Add(time.Hour),
	}, noon)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err = s.OpenPath(b.Context(), "pb1", text, noon); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzOpenPath(f *testing.F) {
	s := signing.New(signing.Options{Store: newMemory()})
	good, _, err := s.SignPath(f.Context(), "pb1", signing.Path{
		Use: "v", Key: "key1", Until: noon.Add(time.Hour),
	}, noon)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("signed-v.1.2.3.4.5.6")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := s.OpenPath(t.Context(), "pb1", text, noon); err == nil && text != good {
			t.Errorf("%q is taken for %+v", text, got)
		} else if err != nil && !fault.Is(err, fault.Denied) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
