package h2_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"millrace/internal/web/express/h2"
)

// begin begins a block of header fields.
func begin(c *client) {
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.fields(":method", "GET")})
}

// TestFloods: who makes a connection work in vain is told ENHANCE_YOUR_CALM and loses it.
func TestFloods(t *testing.T) {
	t.Parallel()
	const many = 20000
	for name, tt := range map[string]struct {
		send func(c *client, n int) // the n-th time
		want http2.ErrCode
	}{
		"rapid reset": {func(c *client, _ int) {
			id := c.ask("GET", "/wait", true)
			_ = c.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}, http2.ErrCodeEnhanceYourCalm},
		"rapid reset of players": {func(c *client, _ int) {
			id := c.ask("GET", "/v/wait", true)
			_ = c.framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}, http2.ErrCodeEnhanceYourCalm},
		"the server made to reset": {func(c *client, _ int) {
			id := c.ask("GET", "/wait", true)
			_ = c.framer.WriteWindowUpdate(id, 0)
		}, http2.ErrCodeEnhanceYourCalm},
		"windows that overflow": {func(c *client, _ int) {
			id := c.ask("GET", "/wait", true)
			_ = c.framer.WriteWindowUpdate(id, 1<<31-1)
		}, http2.ErrCodeEnhanceYourCalm},
		"malformed requests": {func(c *client, _ int) {
			c.ask("GET", "/wait", true, "Capital", "x")
		}, http2.ErrCodeEnhanceYourCalm},
		"refused streams": {func(c *client, _ int) {
			c.ask("GET", "/wait", true)
		}, http2.ErrCodeEnhanceYourCalm},
		"SETTINGS": {func(c *client, _ int) {
			_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 5})
		}, http2.ErrCodeEnhanceYourCalm},
		"acknowledged SETTINGS": {func(c *client, _ int) {
			_ = c.framer.WriteSettingsAck()
		}, http2.ErrCodeEnhanceYourCalm},
		"PING": {func(c *client, _ int) { _ = c.framer.WritePing(false, [8]byte{}) }, http2.ErrCodeEnhanceYourCalm},
		"PONG": {func(c *client, _ int) { _ = c.framer.WritePing(true, [8]byte{}) }, http2.ErrCodeEnhanceYourCalm},
		"PRIORITY": {func(c *client, _ int) {
			_ = c.framer.WritePriority(7, http2.PriorityParam{})
		}, http2.ErrCodeEnhanceYourCalm},
		"unknown frames": {func(c *client, _ int) {
			_ = c.framer.WriteRawFrame(99, 0, 0, nil)
		}, http2.ErrCodeEnhanceYourCalm},
		"WINDOW_UPDATE": {
			func(c *client, _ int) { _ = c.framer.WriteWindowUpdate(0, 1) }, http2.ErrCodeEnhanceYourCalm,
		},
		"RST_STREAM of the closed": {func(c *client, n int) {
			if n == 0 {
				c.ask("GET", "/v/nothing", true)
			}
			_ = c.framer.WriteRSTStream(1, http2.ErrCodeCancel)
		}, http2.ErrCodeEnhanceYourCalm},
		"empty DATA": {func(c *client, n int) {
			if n == 0 {
				c.ask("POST", "/wait", false)
			}
			_ = c.framer.WriteData(1, false, nil)
		}, http2.ErrCodeEnhanceYourCalm},
		"DATA for the closed": {func(c *client, n int) {
			if n == 0 {
				c.ask("GET", "/v/nothing", true)
			}
			_ = c.framer.WriteData(1, false, []byte("x"))
		}, http2.ErrCodeEnhanceYourCalm},
		"empty CONTINUATION": {func(c *client, n int) {
			if n == 0 {
				begin(c)
			}
			_ = c.framer.WriteContinuation(1, false, nil)
		}, http2.ErrCodeEnhanceYourCalm},
		"CONTINUATION": {func(c *client, n int) {
			if n == 0 {
				begin(c)
			}
			_ = c.framer.WriteContinuation(1, false, c.fields("x", strings.Repeat("y", 8000)))
		}, http2.ErrCodeEnhanceYourCalm},
		"pushes": {func(c *client, _ int) {
			_ = c.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, http2.ErrCodeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var running, most atomic.Int64
			h := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				defer running.Add(-1)
				now := running.Add(1)
				for had := most.Load(); now > had; had = most.Load() {
					most.CompareAndSwap(had, now)
				}
				if strings.HasSuffix(r.URL.Path, "/wait") {
					<-r.Context().Done()
				}
			})
			c := dial(t, serve(t, h2.Options{}, h, h))
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				for n := range many {
					tt.send(c, n)
				}
			}()
			code, closed := c.until(func(http2.Frame) bool { return false })
			_ = c.Close()
			<-sent
			if !closed || code != tt.want {
				t.Errorf("ended with %v", code)
			}
			if most.Load() > 100 {
				t.Errorf("%d handlers at a time", most.Load())
			}
		})
	}
}

// TestBombs: header fields that are large when they are unpacked are refused, and are not kept.
func TestBombs(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(echo)
	c := dial(t, serve(t, h2.Options{}, h, h))
	large := strings.Repeat("x", 3000)
	fields := []string{"large", large} // in the table from the first time on
	for range 1000 {
		fields = append(fields, "large", large)
	}
	for range 3 { // the connection goes on
		if status, _, _, _ := c.ends(c.ask("GET", "/v/request", true, fields...)); status != "431" {
			t.Errorf("a bomb: %q", status)
		}
	}
	if status, _, _, _ := c.ends(c.ask("GET", "/v/short", true)); status != "200" {
		t.Errorf("behind it: %q", status)
	}
}

// TestStalledStreams: a stream that a client takes nothing of, or hardly anything, has its response broken off, and the
// others go on.
func TestStalledStreams(t *testing.T) {
	t.Parallel()
	for name, drip := range map[string]bool{"a window of zero": false, "a window that grows byte by byte": true} {
		for _, path := range []string{"/v/large", "/large"} {
			t.Run(name+path, func(t *testing.T) {
				t.Parallel()
				over := make(chan error, 1)
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if !strings.HasSuffix(r.URL.Path, "large") {
						return
					}
					_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
					over <- err
				})
				s := serve(t, h2.Options{StallTimeout: 300 * time.Millisecond}, h, h)
				c := dial(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				id := c.ask("GET", path, true)
				if status, _, _, _ := c.ends(c.ask("GET", "/v/other", true)); status != "200" {
					t.Errorf("another stream: %q", status)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for drip {
						select {
						case <-tick.C:
							_ = c.framer.WriteWindowUpdate(id, 1)
						case err := <-over:
							over <- err
							return
						}
					}
				}()
				_, _, code, whole := c.ends(id)
				if err := <-over; err == nil || !whole || code != http2.ErrCodeInternal {
					t.Errorf("%v: reset with %v, %v", err, code, whole)
				}
				over <- nil
				<-ended
				if status, _, _, _ := c.ends(c.ask("GET", "/v/other", true)); status != "200" {
					t.Errorf("another stream afterwards: %q", status)
				}
			})
		}
	}
}

// TestFrameTimeout: a frame or a block of header fields that does not end ends the connection, and so does nothing.
func TestFrameTimeout(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(echo)
	for name, begin := range map[string]func(c *client){
		"a frame": func(c *client) { _, _ = c.Write([]byte{0, 0, 9, 0}) },
		"a block": begin,
		"nothing": func(*client) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := h2.Options{FrameTimeout: 200 * time.Millisecond, IdleTimeout: time.Hour}
			if name == "nothing" {
				o.FrameTimeout, o.IdleTimeout = o.IdleTimeout, o.FrameTimeout
			}
			c := dial(t, serve(t, o, h, h))
			begin(c)
			told := false
			if _, closed := c.until(func(f http2.Frame) bool {
				_, away := f.(*http2.GoAwayFrame)
				told = told || away
				return false
			}); !closed || !told {
				t.Errorf("closed %v, told %v", closed, told)
			}
		})
	}
}
