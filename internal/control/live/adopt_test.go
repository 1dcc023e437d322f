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
			s := w.on(tt.from) // with a lease of a minute
			_, err := w.Adopt(w.ctx(), s.ID, s.Epoch, "other", time.Minute, w.now())
			w.wantKind(err, fault.Conflict) // the owner lives
			_, err = w.Adopt(w.ctx(), s.ID, s.Epoch+1, "node", time.Minute, w.now())
			w.wantKind(err, fault.Conflict)
			w.clock = s.LeaseUntil
			got, err := w.Adopt(w.ctx(), s.ID, s.Epoch, "other", time.Minute, w.clock)
			w.must(err)
			away := s.LeaseUntil.Add(-time.Minute)
			if !s.DisconnectedAt.IsZero() {
				away = s.DisconnectedAt
			}
			if got.State != tt.to || got.Node != "other" || !got.LeaseUntil.Equal(w.clock.Add(time.Minute)) || !got.DisconnectedAt.Equal(away) ||
				got.Protocol != "" || got.ActiveAsset != s.ActiveAsset || got.Epoch != s.Epoch {
				t.Errorf("adopted %+v, away since %v wanted", got, away)
			}
			w.events(tt.events...)
			_, err = w.Renew(w.ctx(), s.ID, s.Epoch, "node", w.now(), 0)
			w.wantKind(err, fault.Conflict)
			_, err = w.Adopt(w.ctx(), s.ID, s.Epoch, "other", time.Minute, w.now()) // in a new life, its own lease does not stand in the way
			w.must(err)
			w.events()
		})
	}
}

func TestAdoptToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	w.must(w.Delete(w.ctx(), env, s.ID, w.now()))
	w.events("deleted")
	got, err := w.Adopt(w.ctx(), s.ID, s.Epoch, "other", time.Minute, s.LeaseUntil)
	w.must(err)
	if got.EndWanted != live.EndDelete || got.Node != "other" {
		t.Errorf("adopted %+v", got)
	}
	_, err = w.End(w.ctx(), s.ID, s.Epoch, got.EndWanted, s.LeaseUntil)
	w.must(err)
	w.events()
}

func TestAdoptRace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.on(live.Active)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			_, errs[i] = w.Adopt(t.Context(), s.ID, s.Epoch, id.Node(fmt.Sprint("n", i)), time.Minute, s.LeaseUntil)
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
