package live_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
)

func TestAdopt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from, to live.State
		events   []string
	}{
		{live.Connected, live.Waiting, []string{"disconnected"}},
		{live.Recording, live.Waiting, []string{"disconnected"}},
		{live.Active, live.Reconnecting, []string{"disconnected"}},
		{live.Waiting, live.Waiting, nil},
		{live.Reconnecting, live.Reconnecting, nil},
	} {
		t.Run(string(tt.from), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(tt.from)
			seen := w.now()
			w.must(w.See(w.ctx(), s.Owner, seen))
			_, err := w.Adopt(w.ctx(), s.ID, s.Writer(), run("other"), w.now())
			w.wantKind(err, fault.Conflict) // the owner lives
			later := s.Writer()
			later.Epoch++
			_, err = w.Adopt(w.ctx(), s.ID, later, s.Owner, w.now())
			w.wantKind(err, fault.Conflict)
			w.nodes.kill(s.Owner)
			got, err := w.Adopt(w.ctx(), s.ID, s.Writer(), run("other"), seen.Add(time.Minute))
			w.must(err)
			away := seen
			if !s.DisconnectedAt.IsZero() {
				away = s.DisconnectedAt
			}
			if got.State != tt.to || got.Owner != run("other") || got.Generation != s.Generation+1 ||
				!got.DisconnectedAt.Equal(away) ||
				got.Protocol != "" || got.ActiveAsset != s.ActiveAsset || got.Epoch != s.Epoch {
				t.Errorf("adopted %+v, away since %v wanted", got, away)
			}
			w.events(tt.events...)
			_, _, err = w.Hold(w.ctx(), s.ID, s.Writer())
			w.wantKind(err, fault.Conflict)
			again := live.Owner{Node: "other", Run: "later"} // whose row is valid still, of the run before
			got, err = w.Adopt(w.ctx(), s.ID, got.Writer(), again, w.now())
			w.must(err)
			if got.Owner != again {
				t.Errorf("adopted %+v", got)
			}
			w.events()
		})
	}
}

// TestAdoptSinceWhen has the encoder away since its owner was heard of last, within the broadcast.
func TestAdoptSinceWhen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		seen time.Duration // after the broadcast's beginning; never: not at all
		want time.Duration
	}{
		"before the broadcast": {-time.Minute, 0},
		"in it":                {20 * time.Second, 20 * time.Second},
		"by a clock ahead":     {time.Hour, time.Minute},
		"never":                {-1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.on(live.Active)
			if tt.seen != -1 {
				w.must(w.See(w.ctx(), s.Owner, s.StartedAt.Add(tt.seen)))
			}
			w.nodes.kill(s.Owner)
			got, err := w.Adopt(w.ctx(), s.ID, s.Writer(), run("other"), s.StartedAt.Add(time.Minute))
			w.must(err)
			if d := got.DisconnectedAt.Sub(s.StartedAt); d != tt.want {
				t.Errorf("away since %v after the beginning, want %v", d, tt.want)
			}
		})
	}
}

func TestAdoptToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	w.must(w.Delete(w.ctx(), env, s.ID, w.now()))
	w.events("deleted")
	w.nodes.kill(s.Owner)
	got, err := w.Adopt(w.ctx(), s.ID, s.Writer(), run("other"), w.now())
	w.must(err)
	if got.EndWanted != live.EndDelete || got.Node != "other" {
		t.Errorf("adopted %+v", got)
	}
	_, err = w.End(w.ctx(), s.ID, got.Writer(), got.EndWanted, w.now())
	w.must(err)
	w.events()
}

func TestAdoptRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	w.nodes.kill(s.Owner)
	errs, now := make([]error, 8), w.now()
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = w.Adopt(t.Context(), s.ID, s.Writer(), run(id.Node(fmt.Sprint("n", i))), now)
		})
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			w.wantKind(err, fault.Conflict)
		}
	}
	if won != 1 {
		t.Errorf("%d nodes adopted it, want 1", won)
	}
}
