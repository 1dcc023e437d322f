package clientaddr

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestOf(t *testing.T) {
	t.Parallel()
	type lists []string
	usual := Finder{}
	strict := Finder{Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/28")}}
	none := Finder{Proxies: []netip.Prefix{}}
	for name, tt := range map[string]struct {
		finder               Finder
		remote               string
		xForwarded, standard lists
		want                 string
	}{
		"direct": {usual, "203.0.113.7:999", nil, nil, "203.0.113.7"},
		"a stranger's word": {
			usual, "203.0.113.7:999", lists{"198.51.100.1"}, lists{"for=1.2.3.4"}, "203.0.113.7",
		},
		"a proxy here":                  {usual, "127.0.0.1:999", lists{"6.6.6.6, 203.0.113.7"}, nil, "203.0.113.7"},
		"a proxy here that says twice":  {usual, "127.0.0.1:999", lists{"6.6.6.6", "203.0.113.7"}, nil, "203.0.113.7"},
		"a proxy in the network":        {usual, "[fd00::1]:999", lists{"2001:db8:1:2:3::4"}, nil, "2001:db8:1:2:3::4"},
		"a client in the network":       {usual, "127.0.0.1:999", lists{"6.6.6.6, 10.0.0.7"}, nil, "10.0.0.7"},
		"a proxy that says nothing":     {usual, "10.1.1.1:999", nil, nil, "10.1.1.1"},
		"a proxy that says nonsense":    {usual, "10.1.1.1:999", lists{"unknown"}, nil, "10.1.1.1"},
		"nonsense behind an address":    {usual, "10.1.1.1:999", lists{"6.6.6.6, unknown"}, nil, "10.1.1.1"},
		"IPv4 in IPv6":                  {usual, "[::ffff:203.0.113.7]:999", nil, nil, "203.0.113.7"},
		"a zone":                        {usual, "[fe80::1%eth0]:999", nil, nil, "fe80::1%eth0"},
		"no address":                    {usual, "@", lists{"6.6.6.6"}, nil, "invalid IP"},
		"a network that is not trusted": {strict, "127.0.0.1:999", lists{"203.0.113.7"}, nil, "127.0.0.1"},
		"a network that is trusted":     {strict, "192.0.2.3:999", lists{"203.0.113.7"}, nil, "203.0.113.7"},
		"none is trusted":               {none, "127.0.0.1:9", lists{"203.0.113.7"}, nil, "127.0.0.1"},
		"two proxies": {
			strict, "192.0.2.3:9", lists{"6.6.6.6, 203.0.113.7, 192.0.2.4"}, nil, "203.0.113.7",
		},
		"two proxies, two headers": {
			strict, "192.0.2.3:9", lists{"6.6.6.6, 203.0.113.7", "192.0.2.4"}, nil, "203.0.113.7",
		},
		"nobody but proxies": {strict, "192.0.2.3:9", lists{"192.0.2.5, 192.0.2.4"}, nil, "192.0.2.5"},
		"Forwarded": {
			usual, "10.1.1.1:9", nil, lists{"for=6.6.6.6, for=203.0.113.7;proto=https"}, "203.0.113.7",
		},
		"Forwarded, with a port": {
			usual, "10.1.1.1:9", nil, lists{`by=_x; For="203.0.113.7:4711"`}, "203.0.113.7",
		},
		"Forwarded, IPv6":              {usual, "10.1.1.1:9", nil, lists{`for="[2001:db8::7]"`}, "2001:db8::7"},
		"Forwarded, IPv6, with a port": {usual, "10.1.1.1:9", nil, lists{`for="[2001:db8::7]:4711"`}, "2001:db8::7"},
		"Forwarded, of two proxies": {
			strict, "192.0.2.3:9", nil, lists{"for=203.0.113.7, for=192.0.2.4"}, "203.0.113.7",
		},
		"Forwarded, hidden":    {usual, "10.1.1.1:9", nil, lists{"for=6.6.6.6, for=_hidden"}, "10.1.1.1"},
		"Forwarded, of nobody": {usual, "10.1.1.1:9", nil, lists{"proto=https"}, "10.1.1.1"},
		"both say the same": {
			usual, "10.1.1.1:9", lists{"203.0.113.7"}, lists{"for=203.0.113.7"}, "203.0.113.7",
		},
		"one is the client's": {usual, "10.1.1.1:9", lists{"203.0.113.7"}, lists{"for=6.6.6.6"}, "10.1.1.1"},
		"one is the client's nonsense": {
			usual, "10.1.1.1:9", lists{"203.0.113.7"}, lists{"for=unknown"}, "203.0.113.7",
		},
		"the other is": {usual, "10.1.1.1:9", lists{"nonsense"}, lists{"for=6.6.6.6"}, "10.1.1.1"},
	} {
		header := http.Header{"X-Forwarded-For": tt.xForwarded, "Forwarded": tt.standard}
		got := tt.finder.Of(&http.Request{RemoteAddr: tt.remote, Header: header})
		if got.String() != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestNetwork(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", "::ffff:203.0.113.7": "203.0.113.7", "": "",
		"2001:db8:1:2:3::4": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		a, _ := netip.ParseAddr(address)
		if got := Network(a); got != want {
			t.Errorf("%s is in %q, want %q", address, got, want)
		}
	}
}

// FuzzOf: whatever a header says, an address is found, and no stranger's word is believed.
func FuzzOf(f *testing.F) {
	f.Add("6.6.6.6, 203.0.113.7", `for="[2001:db8::7]:4711";by=x, for=_hidden`)
	f.Add(",,", `for="`)
	f.Fuzz(func(t *testing.T, said, forwarded string) {
		header := http.Header{"X-Forwarded-For": {said}, "Forwarded": {forwarded}}
		r := &http.Request{RemoteAddr: "203.0.113.9:1", Header: header}
		if got := (Finder{}).Of(r); got.String() != "203.0.113.9" {
			t.Fatalf("a stranger is taken for %s", got)
		}
		r.RemoteAddr = "127.0.0.1:1"
		if got := (Finder{}).Of(r); !got.IsValid() || got.Zone() != "" {
			t.Fatalf("a proxy's client is %s", got)
		}
	})
}
