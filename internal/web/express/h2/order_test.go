package h2_test

import (
	"io"
	"net/http"
	"testing"

	"golang.org/x/net/http2"

	"millrace/internal/web/express/h2"
)

// TestClosedByResponse: a stream is closed when its response's end has been read, whether or not its handler has
// returned: another one may be opened in its place, and it may not be opened again (RFC 9113 section 5.1).
func TestClosedByResponse(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v/x", "/x"} {
		for _, body := range []string{"body", ""} {
			t.Run(path+" "+body, func(t *testing.T) {
				t.Parallel()
				free := make(chan struct{})
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, body)
					w.(interface{ End() }).End()
					if r.URL.RawQuery == "stays" {
						<-free
					}
				})
				s := serve(t, h2.Options{Streams: 1}, h, h)
				defer close(free)
				c := dial(t, s)
				first := c.ask("GET", path+"?stays", true)
				if _, _, code, whole := c.ends(first); !whole || code != http2.ErrCodeNo {
					t.Fatalf("the first one: %v, %v", code, whole)
				}
				if _, _, code, whole := c.ends(c.ask("GET", path, true)); !whole || code != http2.ErrCodeNo {
					t.Fatalf("one in its place: %v, %v", code, whole)
				}
				c.next = first
				c.ask("GET", path, true)
				code, closed := c.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream })
				if !closed || code != http2.ErrCodeStreamClosed {
					t.Errorf("opened again: %v, closed %v", code, closed)
				}
			})
		}
	}
}

// TestAcknowledged: SETTINGS are acknowledged before what they allow is sent, RFC 9113 section 6.5.3.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) })
	s := serve(t, h2.Options{}, h, h)
	for range 10 {
		for _, path := range []string{"/v/x", "/x"} {
			acknowledges(t, dial(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}), path)
		}
	}
}

// acknowledges has a window opened by SETTINGS, byte by byte.
func acknowledges(t *testing.T, c *client, path string) {
	t.Helper()
	const times = 300
	c.ask("GET", path, true)
	asked, acknowledged, data := uint32(0), -1, 0 // the first acknowledgement is for the settings of dial
	_, closed := c.until(func(f http2.Frame) bool {
		switch f := f.(type) {
		case *http2.MetaHeadersFrame:
		case *http2.SettingsFrame:
			if !f.IsAck() {
				return false
			}
			acknowledged++
		case *http2.DataFrame:
			if data += int(f.Length); data > acknowledged {
				t.Fatalf("%s: %d bytes of DATA, %d SETTINGS acknowledged", path, data, acknowledged)
			}
		default:
			return false
		}
		if asked == times {
			return data == times
		}
		if int(asked) == data && int(asked) == max(acknowledged, 0) {
			asked++
			_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: asked})
		}
		return false
	})
	if closed {
		t.Errorf("%s: closed after %d", path, asked)
	}
}
