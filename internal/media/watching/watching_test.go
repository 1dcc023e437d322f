package watching

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestViewerOf(t *testing.T) {
	t.Parallel()
	of := func(address, player string) Viewer { return ViewerOf(netip.MustParseAddr(address), player) }
	a := of("192.0.2.1", "A")
	for name, tt := range map[string]struct {
		other Viewer
		same  bool
	}{
		"the same":                     {of("192.0.2.1", "A"), true},
		"IPv4 in IPv6":                 {of("::ffff:192.0.2.1", "A"), true},
		"another address":              {of("192.0.2.2", "A"), false},
		"another player":               {of("192.0.2.1", "B"), false},
		"no address":                   {ViewerOf(netip.Addr{}, "A"), false},
		"an address that is no player": {of("192.0.2.1", ""), false},
	} {
		if (a == tt.other) != tt.same {
			t.Errorf("%s: %x and %x", name, a, tt.other)
		}
	}
	if of("2001:db8::1", "A") != of("2001:db8::ffff:1%eth0", "A") ||
		of("2001:db8::1", "A") == of("2001:db8:0:1::1", "A") {
		t.Error("a customer of IPv6 is not a /64")
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	var r Register
	count := func(p string, at time.Time) int { return r.Now(at)[Key(p)].Count() }
	r.Saw("p", 1, time.Second, noon)
	r.Saw("p", 1, time.Second, noon)
	r.Saw("p", 2, 30*time.Second, noon)
	r.Saw("q", 1, time.Second, noon)
	for _, tt := range []struct {
		after time.Duration
		p, q  int
	}{{0, 2, 1}, {still - 1, 2, 1}, {still, 1, 0}, {time.Minute, 1, 0}, {2 * time.Minute, 0, 0}} {
		if p, q := count("p", noon.Add(tt.after)), count("q", noon.Add(tt.after)); p != tt.p || q != tt.q {
			t.Errorf("after %s: %d and %d, want %d and %d", tt.after, p, q, tt.p, tt.q)
		}
		if n := r.Count(noon.Add(tt.after)); n != tt.p+tt.q {
			t.Errorf("after %s: %d in all", tt.after, n)
		}
	}
	for i := range 1_000_000 {
		r.Saw("p", Viewer(i), 0, noon.Add(time.Hour))
	}
	views := 0
	for i := range r.shards {
		views += len(r.shards[i].until)
	}
	if views != shards*most {
		t.Errorf("%d views are kept", views)
	}
	r.Saw("q", 1, 0, noon.Add(2*time.Hour))
	if q := count("q", noon.Add(2*time.Hour)); q != 1 {
		t.Errorf("%d viewers when the others have gone", q)
	}
	(*Register)(nil).Saw("p", 1, 0, noon)
	if n := (*Register)(nil).Count(noon); n != 0 {
		t.Errorf("none has %d viewers", n)
	}
}

func TestNoAllocation(t *testing.T) { //nolint:paralleltest // AllocsPerRun
	var r Register
	address := netip.MustParseAddr("192.0.2.1")
	r.Saw("playback", ViewerOf(address, "player"), time.Second, noon)
	if n := testing.AllocsPerRun(1000, func() {
		r.Saw("playback", ViewerOf(address, "player"), time.Second, noon)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSaw(b *testing.B) {
	var r Register
	address := netip.MustParseAddr("192.0.2.1")
	players := make([]string, 1000)
	for i := range players {
		players[i] = fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "+
			"Chrome/140.0.0.%d Safari/537.36", i)
	}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for i := 0; p.Next(); i++ {
			r.Saw("hKf8j4mFZ9Wn2wZ1b3n5b7c9d1e3f5a7", ViewerOf(address, players[i%1000]), time.Second, noon)
		}
	})
}
