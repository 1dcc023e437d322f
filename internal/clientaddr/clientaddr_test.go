package clientaddr

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	strict := Finder{Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")}}
	for name, tt := range map[string]struct {
		finder       Finder
		remote       string
		said         []string
		want, shared string
	}{
		"direct":                        {Finder{}, "203.0.113.7:999", nil, "203.0.113.7", "203.0.113.7"},
		"a stranger's word":             {Finder{}, "203.0.113.7:999", []string{"198.51.100.1"}, "203.0.113.7", "203.0.113.7"},
		"a proxy here":                  {Finder{}, "127.0.0.1:999", []string{"6.6.6.6, 203.0.113.7"}, "203.0.113.7", "203.0.113.7"},
		"a proxy here that says twice":  {Finder{}, "127.0.0.1:999", []string{"6.6.6.6", "203.0.113.7"}, "203.0.113.7", "203.0.113.7"},
		"a proxy in the network":        {Finder{}, "[fd00::1]:999", []string{"2001:db8:1:2:3::4"}, "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		"a proxy that says nothing":     {Finder{}, "10.1.1.1:999", nil, "10.1.1.1", "10.1.1.1"},
		"a proxy that says nonsense":    {Finder{}, "10.1.1.1:999", []string{"unknown"}, "10.1.1.1", "10.1.1.1"},
		"IPv4 in IPv6":                  {Finder{}, "[::ffff:203.0.113.7]:999", nil, "203.0.113.7", "203.0.113.7"},
		"a zone":                        {Finder{}, "[fe80::1%eth0]:999", nil, "fe80::1%eth0", "fe80::/64"},
		"no address":                    {Finder{}, "@", []string{"6.6.6.6"}, "invalid IP", ""},
		"a network that is not trusted": {strict, "127.0.0.1:999", []string{"203.0.113.7"}, "127.0.0.1", "127.0.0.1"},
		"a network that is trusted":     {strict, "192.0.2.3:999", []string{"203.0.113.7"}, "203.0.113.7", "203.0.113.7"},
		"none is trusted":               {Finder{Proxies: []netip.Prefix{}}, "127.0.0.1:9", []string{"203.0.113.7"}, "127.0.0.1", "127.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: tt.remote, Header: http.Header{"X-Forwarded-For": tt.said}}
		got := tt.finder.Of(r)
		if got.String() != tt.want || Network(got) != tt.shared {
			t.Errorf("%s: %s in %q, want %s in %q", name, got, Network(got), tt.want, tt.shared)
		}
	}
}
