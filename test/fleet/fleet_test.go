package main

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/storage/db/dbtest"
)

// TestFleet runs a small fleet: it does what it says, in the database too.
func TestFleet(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	p := plan{
		nodes: 2, first: 100, streams: 100, viewers: 4, spread: 2, rest: 5 * time.Second, window: 5 * time.Second,
		bound: time.Hour,
	}
	var out strings.Builder
	steps, err := p.measure(t.Context(), url, &out)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || !strings.Contains(out.String(), "\n100 400 | ") {
		t.Fatalf("measured %+v:\n%s", steps, &out)
	}
	s := steps[0]
	for _, kind := range []string{"renewal", "playback ID", "owner", "request"} {
		if q := s.Timing[kind]; q.Count == 0 || q.P50 <= 0 || q.P99 < q.P50 {
			t.Errorf("%s: %+v", kind, q)
		}
	}
	if s.Cost.Transactions <= 0 || s.Cost.Written <= 0 || s.Cost.WAL <= 0 || s.Cost.Nodes <= 0 || s.Puts == 0 {
		t.Errorf("cost %+v, %d objects", s.Cost, s.Puts)
	}
	d := dbtest.Open(t, url)
	nodes, err := d.Nodes().Nodes(t.Context())
	if err != nil || len(nodes) != 2 {
		t.Errorf("nodes %+v, %v", nodes, err)
	}
	all, err := d.Events(t.Context(), env, time.Time{}, 10_000)
	counts := map[string]int{}
	for _, e := range all {
		counts[e.Type]++
	}
	if err != nil || counts["video.live_stream.connected"] != 100 || counts["video.live_stream.active"] == 0 {
		t.Errorf("events %v, %v", counts, err)
	}
}

// TestKnee: a fleet that is slower than it may be says so, and gets no more streams.
func TestKnee(t *testing.T) {
	t.Parallel()
	p := plan{
		nodes: 1, first: 2, streams: 100, viewers: 1, spread: 1, rest: time.Second, window: 2 * time.Second, bound: 1,
	}
	var out strings.Builder
	steps, err := p.measure(t.Context(), dbtest.Postgres(t), &out)
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 1 || len(steps[0].Over) == 0 ||
		!strings.Contains(out.String(), "the knee is below 2 streams: ") {
		t.Errorf("measured %+v:\n%s", steps, &out)
	}
}
