package playback

import (
	"net/http/httptest"
	"net/netip"
	"testing"

	"millrace/internal/media/watching"
)

func TestWatcher(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ remote, forwarded, want string }{
		{"192.0.2.7:4711", "", "192.0.2.7"},
		{"192.0.2.7:4711", "198.51.100.1", "192.0.2.7"}, // it is no proxy of ours
		{"127.0.0.1:4711", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.2:4711", "203.0.113.9, 198.51.100.1", "198.51.100.1"},
		{"[::1]:4711", "2001:db8::1", "2001:db8::1"},
		{"[::ffff:10.0.0.2]:4711", "198.51.100.1", "198.51.100.1"},
		{"127.0.0.1:4711", "unknown", "127.0.0.1"},
		{"127.0.0.1:4711", "", "127.0.0.1"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.RemoteAddr = tt.remote
		r.Header.Set("User-Agent", "player")
		if tt.forwarded != "" {
			r.Header.Add("X-Forwarded-For", "192.0.2.250")
			r.Header.Add("X-Forwarded-For", tt.forwarded)
		}
		if (&Handler{}).watcher(r) != watching.ViewerOf(netip.MustParseAddr(tt.want), "player") {
			t.Errorf("%s for %q is not %s", tt.remote, tt.forwarded, tt.want)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	r.RemoteAddr = "@"
	_ = (&Handler{}).watcher(r) // a socket without addresses
}
