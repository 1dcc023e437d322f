package ingest_test

import (
	"net/netip"
	"testing"

	"millrace/internal/media/ingest"
)

func TestLimiter(t *testing.T) {
	t.Parallel()
	at := netip.MustParseAddrPort
	l := &ingest.Limiter{Max: 4, PerOrigin: 2}
	for i, tt := range []struct {
		remote string
		leave  bool
		want   bool
	}{
		{"192.0.2.1:1", false, true},
		{"[::ffff:192.0.2.1]:2", false, true}, // the same one
		{"192.0.2.1:3", false, false},
		{"192.0.2.2:1", false, true},
		{"[2001:db8::1]:1", false, true},
		{"[2001:db8::2]:1", false, false}, // full
		{"192.0.2.1:1", true, true},
		{"[2001:db8:0:0:1::]:1", false, true}, // the same /64
		{"192.0.2.2:1", true, true},
		{"[2001:db8::3]:1", false, false},
		{"[2001:db8:0:1::]:1", false, true},
	} {
		if tt.leave {
			l.Release(at(tt.remote))
			continue
		}
		if got := l.Acquire(at(tt.remote)); got != tt.want {
			t.Errorf("step %d: %s enters: %t", i, tt.remote, got)
		}
	}
	if n, total := l.Count(at("[2001:db8:0:1::9]:1")); n != 1 || total != 4 {
		t.Errorf("%d connections from there of %d", n, total)
	}
}
