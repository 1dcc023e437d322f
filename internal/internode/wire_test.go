package internode_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"millrace/internal/internode"
)

// TestClocks has two clocks differ by a minute: both nodes say by how much, the caller signed by the other one.
func TestClocks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ahead        time.Duration
		said, logged string
	}{
		"ahead":  {time.Minute, "its clock is 1m0s behind this machine's", "its_clock_ahead_by=1m0s"},
		"behind": {-time.Minute, "its clock is 1m0s ahead of this machine's", "its_clock_ahead_by=-1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := start(t, "a", key(1), internode.Spoken()), start(t, "b", key(1), internode.Spoken())
			a.clock.ahead.Store(int64(tt.ahead + 200*time.Millisecond)) // on its way it may take a while
			_, err := a.client.Hello(t.Context(), b.peer())
			e, ok := errors.AsType[*internode.Error](err)
			if !ok || e.Code != internode.Clock || !e.Proven || e.Node != "b" ||
				!strings.Contains(err.Error(), tt.said) {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(b.log.String(), tt.logged) || !strings.Contains(b.log.String(), "node=a") {
				t.Errorf("the node that was called says %s", b.log.String())
			}
			if !strings.Contains(a.log.String(), "the clocks of two nodes differ") {
				t.Errorf("the caller says %s", a.log.String())
			}
			if !a.client.ClockDiffers() || b.client.ClockDiffers() {
				t.Error("whose clock differs is the caller's business to show")
			}
		})
	}
}

// TestStrangers calls what is no node.
func TestStrangers(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	page := http.RedirectHandler("/there", http.StatusFound)
	serve := func(h http.Handler, secure bool, h2 bool) string {
		s := httptest.NewUnstartedServer(h)
		s.Config.Protocols = &http.Protocols{}
		s.Config.Protocols.SetHTTP1(!h2)
		s.Config.Protocols.SetUnencryptedHTTP2(h2)
		if s.Start(); secure {
			s.Close()
			s = httptest.NewUnstartedServer(h)
			s.EnableHTTP2 = h2
			s.StartTLS()
		}
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(s.Close)
		return s.URL
	}
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closes.Close() }()
	go func() {
		for c, err := closes.Accept(); err == nil; c, err = closes.Accept() {
			_ = c.Close()
		}
	}()
	unproven := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Millrace-Signature", strings.Repeat("0", 64))
		_, _ = io.WriteString(w, `{"node":"a","run":"run of a","version":"1.2.3","speaks":{"oldest":1,"newest":1}}`)
	})
	invented := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Millrace-Refused", "invented")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"code":"invented","node":"b"}`)
	})
	a := start(t, "a", key(1), internode.Spoken())
	secure := strings.Replace(serve(page, true, true), "https", "http", 1)
	for name, tt := range map[string]struct {
		url  string
		want internode.Code
		says string
	}{
		"another service":            {serve(page, false, true), internode.NotMillrace, "status 302"},
		"HTTP/1.1":                   {serve(page, false, false), internode.NotMillrace, "over HTTP/2 all the way"},
		"TLS":                        {secure, internode.Unreachable, "https"},
		"unknown authority":          {serve(page, true, true), internode.Certificate, "internal-tls-ca"},
		"HTTP/1.1 over TLS":          {serve(page, true, false), internode.NotMillrace, "over HTTP/2 all the way"},
		"closes":                     {"http://" + closes.Addr().String(), internode.Unreachable, " the node runs"},
		"another's signature":        {serve(unproven, false, true), internode.Unproven, "look who is between"},
		"a refusal that is not ours": {serve(invented, false, true), internode.NotMillrace, "status 401"},
	} {
		err := a.client.Check(ctx, tt.url)
		if internode.CodeOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q %v", name, internode.CodeOf(err), err)
		}
	}
}

// TestLargeHeaders sends more than a head may have.
func TestLargeHeaders(t *testing.T) {
	t.Parallel()
	b := start(t, "b", key(1), internode.Spoken())
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err = io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err = f.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range [][2]string{
		{":method", "GET"},
		{":path", "/internode/hello"},
		{":scheme", "http"},
		{":authority", "b"},
		{"x", strings.Repeat("~", 15<<10)},
		{"y", strings.Repeat("~", 2<<10)},
	} {
		if err = e.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}); err != nil {
			t.Fatal(err)
		}
	}
	first := block.Next(16 << 10)
	err = f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: first, EndStream: true, EndHeaders: block.Len() == 0,
	})
	if err != nil {
		t.Fatal(err)
	}
	if block.Len() > 0 {
		if err = f.WriteContinuation(1, true, block.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatalf("no response: %v", err)
		}
		if h, ok := frame.(*http2.MetaHeadersFrame); ok {
			if got := h.PseudoValue("status"); got != "431" {
				t.Errorf("status %s", got)
			}
			return
		}
	}
}

// TestVanishedPeer has a peer's machine lose its power while a request waits: the connection says nothing more.
func TestVanishedPeer(t *testing.T) {
	t.Parallel()
	a, b := start(t, "a", key(1), internode.Spoken()), start(t, "b", key(1), internode.Spoken())
	asked := make(chan struct{})
	b.Handle("GET /wait", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var gone sync.WaitGroup
	var silent sync.RWMutex // held for writing: nothing passes
	pass := func(to, from net.Conn) {
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			silent.RLock()
			_, _ = to.Write(b[:n])
			silent.RUnlock()
		}
	}
	gone.Go(func() {
		in, err := ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
		if err != nil {
			t.Error(err)
			return
		}
		gone.Go(func() { pass(out, in); _ = out.Close() })
		pass(in, out)
		_ = in.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		res, err := a.client.Do(ctx, internode.Peer{Node: "b", URL: "http://" + ln.Addr().String()}, get(t, "/wait"))
		if err == nil {
			_ = res.Body.Close()
		}
		ended <- err
	}()
	<-asked
	silent.Lock()
	if err := <-ended; internode.CodeOf(err) != internode.Unreachable || ctx.Err() != nil {
		t.Errorf("got %v", err)
	}
	silent.Unlock()
	_ = ln.Close()
	gone.Wait()
}

// TestNoProxy has a proxy in the environment, which would see what nodes say to each other.
func TestNoProxy(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://"+nobody(t))
	t.Setenv("NO_PROXY", "")
	a, b := start(t, "a", key(1), internode.Spoken()), start(t, "b", key(1), internode.Spoken())
	if _, err := a.client.Hello(t.Context(), b.peer()); err != nil {
		t.Error(err)
	}
}

// TestBounds looks at requests that are not sent.
func TestBounds(t *testing.T) {
	t.Parallel()
	a := start(t, "a", key(1), internode.Spoken())
	for name, to := range map[string]internode.Peer{
		"no URL": {Node: "b"}, "no name": {URL: a.url}, "no host": {Node: "b", URL: "http:///x"},
		"no scheme": {Node: "b", URL: "ftp://x"},
	} {
		if _, err := a.client.Do(t.Context(), to, get(t, "/")); err == nil {
			t.Errorf("%s: is sent", name)
		}
	}
	large := bytes.NewReader(make([]byte, internode.MaxBody+1))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "/", large)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = a.client.Do(t.Context(), a.peer(), r); err == nil || internode.CodeOf(err) != "" {
		t.Errorf("a large body: %v", err)
	}
}
