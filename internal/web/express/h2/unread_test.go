package h2_test

import (
	"io"
	"net/http"
	"runtime"
	"testing"

	"golang.org/x/net/http2"

	"millrace/internal/clientaddr"
	"millrace/internal/unsent"
	"millrace/internal/web/express/h2"
)

// TestUnread: what streams keep in memory that nobody reads counts against its budget until the end. Who is beyond a
// limit is told so, and who does not read even that loses the connection.
func TestUnread(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		connection, address int64 // streams
		want                map[string]int
		closed              bool
	}{
		"within limits":         {100, 100, map[string]int{"200": 100}, false},
		"beyond a limit":        {10, 1000, map[string]int{"200": 10, "429": 90}, false},
		"beyond what is a no's": {10, 80, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := unsent.New(unsent.Limits{
				All: 1 << 30, Address: tt.address * unsent.Stream, Connection: tt.connection * unsent.Stream,
			})
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.RawQuery == "short" { // it waits to be sent when this has returned
					_, _ = io.WriteString(w, "short")
					return
				}
				w.Header().Set("Content-Length", "100000")
				_, _ = w.Write(make([]byte, 100000))
			})
			s := serve(t, h2.Options{}, unsent.Streams(b, clientaddr.Finder{}, h),
				unsent.Handler(b, clientaddr.Finder{}, h))
			c := dial(t, s, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for n := range 100 {
				c.ask("GET", []string{"/v/x", "/v/x?short", "/x", "/x?short"}[n%4], true)
			}
			got := map[string]int{}
			heard := 0
			_, closed := c.until(func(f http2.Frame) bool {
				if m, ok := f.(*http2.MetaHeadersFrame); ok {
					got[m.PseudoValue("status")]++
					heard++
				}
				return heard == 100
			})
			for status, n := range tt.want {
				if got[status] != n {
					t.Errorf("%v, want %v", got, tt.want)
				}
			}
			if closed != tt.closed {
				t.Errorf("closed %v: %v", closed, got)
			}
			if held := b.Held(); !closed && held != tt.connection*unsent.Stream {
				t.Errorf("%d bytes are held", held)
			}
			_ = c.Close()
			for b.Held() > 0 {
				runtime.Gosched()
			}
		})
	}
}
