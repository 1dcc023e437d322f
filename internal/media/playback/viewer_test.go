package playback

import (
	"net/http"
	"testing"
)

func TestViewer(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.7:4711": "192.0.2.7", "[::ffff:192.0.2.7]:1": "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:443": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":          "fe80::/64", "@": "", "": "",
	} {
		if got := Viewer((&Handler{}).withViewer(&http.Request{RemoteAddr: remote})); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
	if got := Viewer(t.Context()); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
