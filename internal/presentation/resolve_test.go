package presentation

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// counted counts how often the database is asked.
type counted struct {
	asked int
	err   error
}

func (c *counted) Resolve(_ context.Context, p id.Playback) (playbackid.Object, error) {
	c.asked++
	return playbackid.Object{ID: public(p), Kind: playbackid.OfAsset, ObjectID: "asset"}, c.err
}

// TestResolveAsksSeldom: those who ask again and again, as players do for licences, cost one read a second, and none is
// needed while the database is away.
func TestResolveAsksSeldom(t *testing.T) {
	t.Parallel()
	rows, now := &counted{}, time.Now()
	p := New(Options{Access: rows, Now: func() time.Time { return now }})
	ask := func(times int) {
		t.Helper()
		for range times {
			if o, err := p.Resolve(t.Context(), "played"); err != nil || o.ObjectID != "asset" {
				t.Errorf("%+v, %v", o, err)
			}
		}
	}
	ask(100)
	if rows.asked != 1 {
		t.Errorf("asked %d times at once", rows.asked)
	}
	now = now.Add(fresh)
	ask(100)
	if rows.asked != 2 {
		t.Errorf("asked %d times in a second", rows.asked)
	}
	now, rows.err = now.Add(time.Minute), fault.New(fault.Unavailable, "the database is away")
	ask(1)
	rows.err = fault.New(fault.NotFound, "deleted")
	now = now.Add(fresh)
	if _, err := p.Resolve(t.Context(), "played"); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleted: %v", err)
	}
}
