package fetch_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"millrace/internal/fault"
	"millrace/internal/fetch"
)

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	strict := fetch.New(fetch.Options{})
	t.Cleanup(strict.Close)
	for _, tt := range []struct{ addr, reason string }{
		{"8.8.8.8", ""},
		{"1.1.1.1", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"192.0.1.1", ""},
		{"198.17.255.255", ""},
		{"198.20.0.0", ""},
		{"223.255.255.255", ""},
		{"2606:4700:4700::1111", ""},
		{"2a00:1450:4001::8a", ""},
		{"::ffff:8.8.8.8", ""},
		{"64:ff9b::808:808", ""},

		{"0.0.0.0", "unspecified address"},
		{"0.1.2.3", "this network"},
		{"10.0.0.1", "private network"},
		{"10.255.255.255", "private network"},
		{"100.64.0.1", "carrier-grade NAT"},
		{"100.127.255.255", "carrier-grade NAT"},
		{"100.100.100.200", "cloud metadata"},
		{"127.0.0.1", "loopback"},
		{"127.255.255.254", "loopback"},
		{"168.63.129.16", "cloud metadata"},
		{"169.254.0.1", "link-local"},
		{"169.254.169.254", "cloud metadata"},
		{"169.254.170.2", "cloud metadata"},
		{"172.16.0.1", "private network"},
		{"172.31.255.255", "private network"},
		{"192.0.0.1", "protocol assignments"},
		{"192.0.0.192", "cloud metadata"},
		{"192.0.2.1", "documentation"},
		{"192.88.99.1", "6to4 relay"},
		{"192.168.1.1", "private network"},
		{"198.18.0.1", "benchmarking"},
		{"198.19.255.255", "benchmarking"},
		{"198.51.100.7", "documentation"},
		{"203.0.113.9", "documentation"},
		{"224.0.0.1", "multicast"},
		{"239.255.255.255", "multicast"},
		{"240.0.0.1", "reserved"},
		{"255.255.255.255", "broadcast"},

		{"::", "unspecified address"},
		{"::1", "loopback"},
		{"::7f00:1", "IPv4-compatible address"},
		{"::ffff:10.0.0.1", "private network"},
		{"::ffff:127.0.0.1", "loopback"},
		{"::ffff:169.254.169.254", "cloud metadata"},
		{"::ffff:0:7f00:1", "IPv4-translated address"},
		{"64:ff9b::a00:1", "private network within NAT64"},
		{"64:ff9b::a9fe:a9fe", "cloud metadata within NAT64"},
		{"64:ff9b:1::1", "local NAT64"},
		{"100::1", "discard-only"},
		{"2001:0:4136:e378:8000:63bf:f5ff:fffe", "Teredo tunnel"},
		{"2001:2::1", "benchmarking"},
		{"2001:10::1", "protocol assignments"},
		{"2001:db8::1", "documentation"},
		{"2002:7f00:1::1", "6to4 tunnel"},
		{"2002:808:808::1", "6to4 tunnel"},
		{"2606:4700::5efe:a00:1", "private network within ISATAP"},
		{"2606:4700::200:5efe:7f00:1", "loopback within ISATAP"},
		{"3fff::1", "documentation"},
		{"4000::1", "not a public address"},
		{"5f00::1", "segment routing"},
		{"fc00::1", "unique local network"},
		{"fd12:3456::1", "unique local network"},
		{"fd00:ec2::254", "cloud metadata"},
		{"fe80::1", "link-local"},
		{"fe80::1%eth0", "link-local"},
		{"fec0::1", "site-local"},
		{"ff02::1", "multicast"},
	} {
		err := strict.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(tt.addr), 443))
		if tt.reason == "" {
			if err != nil {
				t.Errorf("%s: %v, want allowed", tt.addr, err)
			}
			continue
		}
		if fault.KindOf(err) != fault.Invalid ||
			!strings.Contains(err.Error(), ": "+tt.reason+"; add it with --fetch-allow") {
			t.Errorf("%s: %v, want %q", tt.addr, err, tt.reason)
		}
	}
	if err := strict.CheckAddr(netip.MustParseAddrPort("8.8.8.8:0")); fault.KindOf(err) != fault.Invalid {
		t.Errorf("port 0: %v", err)
	}
	if err := strict.CheckAddr(netip.AddrPort{}); err == nil {
		t.Error("no address at all is allowed")
	}
	want := "address 10.0.0.1 is not allowed: private network; add it with --fetch-allow"
	if err := strict.CheckAddr(netip.MustParseAddrPort("[::ffff:10.0.0.1]:80")); err == nil || err.Error() != want {
		t.Errorf("message %q, want %q", err, want)
	}
}

func TestAllow(t *testing.T) {
	t.Parallel()
	c := fetch.New(fetch.Options{Allow: []netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("::ffff:192.168.0.0/120"),
		netip.MustParsePrefix("fe80::/10"),
	}})
	t.Cleanup(c.Close)
	for addr, ok := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "192.168.0.9": true, "fe80::1%lo": true,
		"10.2.0.1": false, "192.168.1.1": false, "127.0.0.1": false, "64:ff9b::a01:203": false, "::1": false,
	} {
		if err := c.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(addr), 80)); (err == nil) != ok {
			t.Errorf("%s: %v, want allowed %t", addr, err, ok)
		}
	}
}

func TestDialContext(t *testing.T) {
	t.Parallel()
	strict := fetch.New(fetch.Options{})
	t.Cleanup(strict.Close)
	for _, tt := range []struct{ network, address string }{
		{"unix", "/run/docker.sock"},
		{"ip4:icmp", "8.8.8.8"},
		{"tcp", "127.0.0.1:80"},
		{"udp", "127.0.0.1:53"},
		{"tcp", "localhost:80"},
		{"tcp", "[::1]:80"},
		{"tcp", "[::ffff:127.0.0.1]:80"},
		{"tcp", "0.0.0.0:80"},
		{"tcp", ":80"},
	} {
		conn, err := strict.DialContext(t.Context(), tt.network, tt.address)
		if err == nil {
			_ = conn.Close()
		}
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s %s: %v, want refused", tt.network, tt.address, err)
		}
	}
	srv := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	conn, err := newClient(t).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}

// names is a resolver that responds from a function, asked again for each lookup.
func names(t *testing.T, lookup func(name string) []netip.Addr) *net.Resolver {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		running.Go(func() {
			defer func() { _ = ours.Close() }()
			for err := error(nil); err == nil; {
				err = serveOne(ours, lookup)
			}
		})
		return theirs, nil
	}}
}

// serveOne speaks DNS over a stream: two bytes of length before each message.
func serveOne(conn net.Conn, lookup func(name string) []netip.Addr) error {
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	buf := make([]byte, int(size[0])<<8|int(size[1]))
	if _, err := io.ReadFull(conn, buf); err != nil {
		return err
	}
	var m dnsmessage.Message
	if err := m.Unpack(buf); err != nil {
		return err
	}
	q := m.Questions[0]
	m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
	addrs := lookup(strings.TrimSuffix(q.Name.String(), "."))
	if addrs == nil {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, a := range addrs {
		h := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
		switch {
		case a.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: h, Body: &dnsmessage.AResource{A: a.As4()}})
		case a.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{
				Header: h, Body: &dnsmessage.AAAAResource{AAAA: a.As16()},
			})
		}
	}
	out, err := m.Pack()
	if err != nil {
		return err
	}
	_, err = conn.Write(append([]byte{byte(len(out) >> 8), byte(len(out))}, out...))
	return err
}

func addrs(list ...string) []netip.Addr {
	var out []netip.Addr
	for _, s := range list {
		out = append(out, netip.MustParseAddr(s))
	}
	return out
}

func TestNames(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(srv.Close)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	table := map[string][]netip.Addr{
		"metadata.example": addrs("169.254.169.254"),
		"mapped.example":   addrs("::ffff:10.0.0.1"),
		"inner.example":    addrs("10.0.0.1", "fd00::1"),
		"good.example":     addrs("127.0.0.1"),
		"both.example":     addrs("10.0.0.1", "127.0.0.1"),
	}
	c := newClient(t, func(o *fetch.Options) {
		o.Resolver = names(t, func(name string) []netip.Addr { return table[name] })
	})
	inside := func(host string) string {
		return "host " + host + " can't be found, or its address is not public (--fetch-allow adds addresses)"
	}
	for host, want := range map[string][2]string{ // said to the caller, and in the log alone
		"good.example":     {},
		"both.example":     {},
		"metadata.example": {inside("metadata.example"), "169.254.169.254 is not allowed: cloud metadata"},
		"mapped.example":   {inside("mapped.example"), "10.0.0.1 is not allowed: private network"},
		"inner.example":    {inside("inner.example"), ""},
		"nowhere.example":  {inside("nowhere.example"), "no such host"},
	} {
		_, _, err := c.Get(t.Context(), "http://"+host+":"+port+"/x?token=sesame", 100)
		switch {
		case want[0] == "" && err != nil:
			t.Errorf("%s: %v", host, err)
		case want[0] != "" &&
			(fault.KindOf(err) != fault.Invalid || strings.Join(fault.Messages(err), " ") != want[0] ||
				!strings.Contains(err.Error(), want[1])):
			t.Errorf("%s: %v, want %q", host, err, want)
		case err != nil && strings.Contains(err.Error(), "sesame"):
			t.Errorf("%s: the error holds the query", host)
		}
	}
}

// TestNamesOfConnections says the same of a name that leads inside and of one that does not exist, also to who brings a
// protocol of their own.
func TestNamesOfConnections(t *testing.T) {
	t.Parallel()
	table := map[string][]netip.Addr{"inner.example": addrs("10.0.0.1")}
	c := newClient(t, func(o *fetch.Options) {
		o.Resolver = names(t, func(name string) []netip.Addr { return table[name] })
	})
	for host, cause := range map[string]string{
		"inner.example": "10.0.0.1 is not allowed: private network", "nowhere.example": "no such host",
	} {
		want := "host " + host + " can't be found, or its address is not public (--fetch-allow adds addresses)"
		_, dialed := c.DialContext(t.Context(), "tcp", host+":1935")
		_, resolved := c.Resolve(t.Context(), "udp", host+":9000")
		for how, err := range map[string]error{"dial": dialed, "resolve": resolved} {
			if !fault.Permanent(err) || strings.Join(fault.Messages(err), " ") != want ||
				!strings.Contains(err.Error(), cause) {
				t.Errorf("%s %s: %v, want %q for %q", how, host, err, want, cause)
			}
		}
	}
}

// TestRebinding changes a name's address between two connections, as an attacker's name server would after a check.
func TestRebinding(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
		}
	}))
	t.Cleanup(srv.Close)
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var lookups []time.Time
	c := newClient(t, func(o *fetch.Options) {
		o.Resolver = names(t, func(string) []netip.Addr {
			mu.Lock()
			defer mu.Unlock()
			lookups = append(lookups, time.Now())
			if len(lookups) <= 2 { // A and AAAA of the first connection
				return addrs("127.0.0.1")
			}
			return addrs("127.0.0.2")
		})
	})
	_, _, err = c.Get(t.Context(), "http://rebind.example:"+port+"/a", 100)
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "127.0.0.2 is not allowed: loopback") {
		t.Errorf("second connection: %v, want refused", err)
	}
	if said := strings.Join(fault.Messages(err), " "); strings.Contains(said, "127") {
		t.Errorf("it is said where the name led: %s", said)
	}
}

// TestOwnAddresses holds the door shut to what this host serves under addresses that are public by themselves.
func TestOwnAddresses(t *testing.T) {
	t.Parallel()
	own := netip.MustParseAddr("8.8.4.4")
	for name, tt := range map[string]struct {
		options fetch.Options
		addr    string
		want    string
	}{
		"an interface's": {fetch.Options{}, "8.8.4.4", "this host"},
		"mapped":         {fetch.Options{}, "::ffff:8.8.4.4", "this host"},
		"behind a NAT": {
			fetch.Options{Public: []netip.Addr{netip.MustParseAddr("1.0.0.1")}}, "1.0.0.1", "this host",
		},
		"another's":       {fetch.Options{}, "8.8.8.8", ""},
		"one that may be": {fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("8.8.4.4/32")}}, "8.8.4.4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := fetch.New(tt.options)
			t.Cleanup(c.Close)
			c.InterfacesBy(func() ([]netip.Addr, error) { return []netip.Addr{own}, nil })
			err := c.CheckAddr(netip.AddrPortFrom(netip.MustParseAddr(tt.addr), 443))
			if tt.want == "" && err != nil ||
				tt.want != "" && (fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	found, err := fetch.HostAddresses()
	if err != nil || !slices.Contains(found, netip.MustParseAddr("127.0.0.1")) {
		t.Errorf("this host has %v, %v", found, err)
	}
}
