package h2_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"millrace/internal/web/express/h2"
)

// TestWaiting: handlers that wait hold up nobody, whatever they wait for, and hear that their clients have gone.
func TestWaiting(t *testing.T) {
	t.Parallel()
	const waiting = 90
	for name, wait := range map[string]func(r *http.Request, free chan struct{}){
		"for their context": func(r *http.Request, free chan struct{}) {
			select {
			case <-r.Context().Done():
			case <-free:
			}
		},
		"for what nobody knows of": func(_ *http.Request, free chan struct{}) { <-free },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			free := make(chan struct{})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v/wait" {
					wait(r, free)
				}
				_, _ = io.WriteString(w, r.URL.RawQuery)
			})
			o := h2.Options{}
			if name == "for their context" {
				o.Moment = time.Hour // nobody has to look
			}
			c := dial(t, serve(t, o, h, h))
			var ids []uint32
			for range waiting {
				ids = append(ids, c.ask("GET", "/v/wait?late", true))
			}
			status, body, _, _ := c.ends(c.ask("GET", "/v/now?soon", true))
			if status != "200" || string(body) != "soon" {
				t.Errorf("another stream: %q, %q", status, body)
			}
			close(free)
			left := map[uint32]bool{}
			for _, id := range ids {
				left[id] = true
			}
			_, closed := c.until(func(f http2.Frame) bool {
				if d, ok := f.(*http2.DataFrame); ok && d.StreamEnded() {
					delete(left, d.StreamID)
				}
				return len(left) == 0
			})
			if closed {
				t.Errorf("%d have no response", len(left))
			}
		})
	}
}

// TestPreface: the server's SETTINGS come first, also where a request came with the end of the handshake.
func TestPreface(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(echo)
	s := serve(t, h2.Options{}, h, h)
	for range 20 {
		c := dial(t, s)
		c.ask("GET", "/v/short", true)
		f, err := c.framer.ReadFrame()
		if err != nil || f.Header().Type != http2.FrameSettings {
			t.Errorf("first %v, %v", f, err)
		}
		_ = c.Close()
	}
}

// TestLeaving: the context of a request ends with its stream, and with its connection.
func TestLeaving(t *testing.T) {
	t.Parallel()
	begun, gone := make(chan struct{}, 4), make(chan error, 4)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		begun <- struct{}{}
		<-ctx.Done()
		gone <- ctx.Err()
	})
	c := dial(t, serve(t, h2.Options{Moment: time.Hour}, h, h))
	first, second := c.ask("GET", "/v/x", true), c.ask("POST", "/x", false)
	<-begun
	<-begun
	for _, id := range []uint32{first, second} {
		_ = c.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		if err := <-gone; err == nil {
			t.Error("the context has not ended")
		}
	}
	c.ask("GET", "/v/x", true)
	c.ask("GET", "/x", true)
	<-begun
	<-begun
	_ = c.Close()
	for range 2 {
		if err := <-gone; err == nil {
			t.Error("the context has not ended")
		}
	}
}

// TestSlowStream: what a client does not take of one stream holds up no other.
func TestSlowStream(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "large") {
			_, _ = w.Write(make([]byte, 4<<20))
			return
		}
		_, _ = io.WriteString(w, "small")
	})
	s := serve(t, h2.Options{Moment: time.Hour}, h, h)
	for _, way := range []string{"/v/", "/"} {
		c := dial(t, s) // windows of 64 KiB
		_ = c.framer.WriteWindowUpdate(0, 1<<20)
		slow := []uint32{c.ask("GET", way+"large", true), c.ask("GET", way+"large", true)}
		for range 50 {
			status, body, _, _ := c.ends(c.ask("GET", way+"small", true))
			if status != "200" || string(body) != "small" {
				t.Fatalf("%s: %q, %q", way, status, body)
			}
		}
		for _, id := range slow {
			_ = c.framer.WriteWindowUpdate(id, 8<<20)
		}
		_ = c.framer.WriteWindowUpdate(0, 16<<20)
		ended := 0
		if _, closed := c.until(func(f http2.Frame) bool {
			if d, ok := f.(*http2.DataFrame); ok && d.StreamEnded() {
				ended++
			}
			return ended == len(slow)
		}); closed {
			t.Errorf("%s: %d have ended", way, ended)
		}
	}
}

// TestBodies beside playback on one connection: each comes whole.
func TestBodies(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(bytes.Repeat([]byte("v"), 100000))
			return
		}
		_, _ = io.Copy(w, r.Body) // both ways at the same time
	})
	s := serve(t, h2.Options{}, h, h)
	var wg sync.WaitGroup
	for n := range 20 {
		body := strings.Repeat(string(rune('a'+n)), 300000+n)
		wg.Go(func() {
			if _, got, err := ask(t.Context(), t, s, "POST", "/x", strings.NewReader(body)); err != nil || got != body {
				t.Errorf("%d bytes of %d, %v", len(got), len(body), err)
			}
		})
		wg.Go(func() {
			if _, got, err := ask(t.Context(), t, s, "GET", "/v/x", nil); err != nil || len(got) != 100000 {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
	wg.Wait()
}

// TestUnreadBody: a body that nobody reads comes as far as its window, which is not opened again; one that is longer
// than announced, or shorter, is an error, and what comes beyond a window as well.
func TestUnreadBody(t *testing.T) {
	t.Parallel()
	read := make(chan error, 1)
	h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/read":
			_, err := io.Copy(io.Discard, r.Body)
			read <- err
		case "/deadline":
			_, err := r.Body.Read(make([]byte, 1))
			read <- err
		case "/wait":
			<-r.Context().Done()
		}
	})
	s := serve(t, h2.Options{ReadTimeout: 100 * time.Millisecond}, h, h)
	frame := make([]byte, 16384)
	c := dial(t, s)
	id := c.ask("POST", "/wait", false)
	for range 64 {
		_ = c.framer.WriteData(id, false, frame)
	}
	_ = c.framer.WriteData(id, false, frame[:1])
	if end, closed := c.until(func(http2.Frame) bool { return false }); !closed || end != http2.ErrCodeFlowControl {
		t.Errorf("beyond the window: %v, %v", end, closed)
	}
	c = dial(t, s)
	id = c.ask("POST", "/read", false, "content-length", "10")
	_ = c.framer.WriteData(id, false, frame[:11])
	if _, _, code, _ := c.ends(id); code != http2.ErrCodeProtocol {
		t.Errorf("longer than announced: %v", code)
	}
	if err := <-read; err == nil {
		t.Error("longer than announced, and no error")
	}
	id = c.ask("POST", "/read", false, "content-length", "10")
	_ = c.framer.WriteData(id, true, frame[:9])
	if _, _, code, _ := c.ends(id); code != http2.ErrCodeProtocol {
		t.Errorf("shorter than announced: %v", code)
	}
	if err := <-read; err == nil {
		t.Error("shorter than announced, and no error")
	}
	c.ask("POST", "/deadline", false)
	if err := <-read; !os.IsTimeout(err) {
		t.Errorf("a body that does not come: %v", err)
	}
	if status, _, code, _ := c.ends(c.ask("POST", "/nothing", false)); status != "200" || code != http2.ErrCodeNo {
		t.Errorf("a body that is not wanted: %q, %v", status, code)
	}
}

// TestShutdown: what has begun ends, and nothing begins any more.
func TestShutdown(t *testing.T) {
	t.Parallel()
	begun, free := make(chan struct{}, 1), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		select {
		case <-free:
			_, _ = io.WriteString(w, "whole")
		case <-r.Context().Done():
		}
	})
	s := serve(t, h2.Options{}, h, h)
	idle, c := dial(t, s), dial(t, s)
	if _, closed := idle.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }); closed {
		t.Fatal("closed")
	}
	id := c.ask("GET", "/v/x", true)
	<-begun
	down := make(chan error, 1)
	go func() { down <- s.Config.Shutdown(context.WithoutCancel(t.Context())) }()
	for _, from := range []*client{idle, c} {
		away := func(f http2.Frame) bool { return f.Header().Type == http2.FrameGoAway }
		if _, closed := from.until(away); closed {
			t.Error("closed without a word")
		}
	}
	if _, closed := idle.until(func(http2.Frame) bool { return false }); !closed {
		t.Error("an idle connection is open")
	}
	c.ask("GET", "/v/x", true) // too late
	close(free)
	if status, body, _, _ := c.ends(id); status != "200" || string(body) != "whole" {
		t.Errorf("%q, %q", status, body)
	}
	if _, closed := c.until(func(f http2.Frame) bool { return f.Header().StreamID != 0 }); !closed {
		t.Error("a stream was opened, or the connection is")
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
}

// TestFlush: what a handler has flushed comes before it has returned.
func TestFlush(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		_ = http.NewResponseController(w).Flush()
		<-read
		_, _ = io.WriteString(w, "second")
	})
	c := dial(t, serve(t, h2.Options{}, h, h))
	id := c.ask("GET", "/events", true)
	var got string
	if _, closed := c.until(func(f http2.Frame) bool {
		if d, ok := f.(*http2.DataFrame); ok {
			got = string(d.Data())
		}
		return got != ""
	}); closed || got != "first" {
		t.Errorf("closed %v, %q", closed, got)
	}
	close(read)
	if _, body, _, _ := c.ends(id); string(body) != "second" {
		t.Errorf("%q", body)
	}
}
