package metering

import (
	"sync"
	"testing"
	"time"
)

func TestTierOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		width, height int
		want          Tier
	}{
		{0, 0, AudioOnly},
		{320, 180, Tier720},
		{1280, 720, Tier720},
		{720, 1280, Tier720},
		{1282, 720, Tier1080},
		{1920, 1080, Tier1080},
		{2048, 2048, Tier1440},
		{2560, 1440, Tier1440},
		{2562, 1640, Tier2160},
		{3840, 2160, Tier2160},
	} {
		if got := TierOf(tt.width * tt.height); got != tt.want {
			t.Errorf("%dx%d: %d, want %d", tt.width, tt.height, got, tt.want)
		}
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	film, talk := Asset{"film", "env", ""}, Asset{"talk", "env", "stream"}
	for _, tt := range []struct {
		name       string
		pixels     int
		sent, size int64
		want       Lengths
	}{
		{"all", 1280 * 720, 1000, 1000, Lengths{Tier720: 6 * time.Second}},
		{"half", 1920 * 1080, 500, 1000, Lengths{Tier1080: 3 * time.Second}},
		{"sound", 0, 1000, 1000, Lengths{AudioOnly: 6 * time.Second}},
		{"nothing", 1280 * 720, 0, 1000, Lengths{}},
		{"of nothing", 1280 * 720, 0, 0, Lengths{}},
		{"too much", 3840 * 2160, 2000, 1000, Lengths{Tier2160: 6 * time.Second}},
	} {
		var m Meter
		Delivery{m.Counter(film), 6 * time.Second, tt.pixels}.Sent(tt.sent, tt.size)
		Delivery{m.Counter(talk), time.Second, 0}.Sent(1, 1)
		got := m.Take()
		if got[film] != tt.want || got[talk] != (Lengths{AudioOnly: time.Second}) {
			t.Errorf("%s: %v", tt.name, got)
		}
		if len(m.Take()) != 0 {
			t.Errorf("%s: counted twice", tt.name)
		}
	}
	Delivery{}.Sent(1, 1)
	Delivery{(*Meter)(nil).Counter(film), time.Second, 0}.Sent(1, 1)
}

// TestNothingIsLost adds from several sides while somebody takes all the time, with counters that go quiet and come
// back.
func TestNothingIsLost(t *testing.T) {
	t.Parallel()
	const adders, additions = 4, 20_000
	var m Meter
	a := Asset{ID: "film"}
	shared := m.Counter(a)
	var adding sync.WaitGroup
	for range adders {
		own := m.Counter(a)
		adding.Go(func() {
			for range additions {
				shared.Add(Tier720, 1)
				own.Add(Tier1080, 1)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		adding.Wait()
		close(done)
	}()
	var got Lengths
	take := func() {
		sum := m.Take()[a]
		for tier := range got {
			got[tier] += sum[tier]
		}
	}
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		take()
	}
	if want := (Lengths{Tier720: adders * additions, Tier1080: adders * additions}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.active) != 0 {
		t.Errorf("%d counters are kept of which nothing was sent", len(m.active))
	}
}

func TestNoAllocation(t *testing.T) { //nolint:paralleltest // AllocsPerRun
	var m Meter
	s := Delivery{m.Counter(Asset{ID: "film"}), 6 * time.Second, 1280 * 720}
	if n := testing.AllocsPerRun(1000, func() { s.Sent(900, 1000) }); n != 0 {
		t.Errorf("%v allocations for a response", n)
	}
}

func BenchmarkSent(b *testing.B) {
	var m Meter
	s := Delivery{m.Counter(Asset{ID: "film"}), 6 * time.Second, 1280 * 720}
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			s.Sent(900, 1000)
		}
	})
}
