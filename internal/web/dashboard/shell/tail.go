package shell

import (
	"context"
	"encoding/json"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/web/follow"
)

const (
	eventBatch = 100
	maxKept    = 4 * eventBatch // happenings that are kept for pages that have not looked at them yet
)

// Change is what pages look at of an event.
type Change struct {
	Sequence     int64
	environment  id.Environment
	Stream       id.LiveStream // the one that it is about; empty: none
	Own          bool          // the stream itself has changed, not one of its recordings
	Asset        id.Asset      // the one that it is about; empty: none
	Type, Object string        // of the event
}

// digest finds out which live stream and asset an event is about: itself, that of one of its parts, or that of a
// recording.
func digest(e event.Event) Change {
	h := Change{Sequence: e.Sequence, environment: e.Environment, Type: e.Type, Object: e.ObjectID}
	switch e.ObjectKind {
	case live.EventObject:
		h.Stream, h.Own = id.LiveStream(e.ObjectID), true
	case live.EventTargetObject:
		h.Stream, h.Own = id.LiveStream(e.Resource), true
	case asset.EventTrackObject, asset.EventFileObject:
		h.Asset = id.Asset(e.Resource)
	case asset.EventObject:
		h.Asset = id.Asset(e.ObjectID)
		var of struct {
			Stream id.LiveStream `json:"live_stream_id"`
		}
		if json.Unmarshal(e.Data, &of) == nil { // what is no recording has none
			h.Stream = of.Stream
		}
	}
	return h
}

// tail is what happened last, read once for all pages that are open. Nothing runs for it: the first one that looks
// reads, and the others find what was read.
type tail struct {
	log  EventLog
	lock follow.Lock
	news <-chan struct{}
	at   time.Time // when it was last read
	kept []Change
	// first is the sequence behind which all happenings are kept, last that of the newest event.
	first, last int64
}

func newTail(log EventLog) *tail { return &tail{log: log, lock: follow.NewLock()} }

// look is what there is behind a sequence.
type look struct {
	found []Change // not to be changed
	last  int64    // the sequence of the newest event
	all   bool     // found are all; else too many have happened
	news  <-chan struct{}
}

// since gives what has happened behind a sequence.
func (t *tail) since(ctx context.Context, sequence int64) (look, error) {
	if err := t.lock.Lock(ctx); err != nil {
		return look{}, err
	}
	defer t.lock.Unlock()
	if err := t.read(ctx); err != nil {
		t.news = nil
		return look{}, err
	}
	from := len(t.kept)
	for from > 0 && t.kept[from-1].Sequence > sequence {
		from--
	}
	return look{found: t.kept[from:len(t.kept):len(t.kept)], last: t.last, all: sequence >= t.first, news: t.news}, nil
}

// read reads what is new. That nothing is said to be new holds for the time between two heartbeats.
func (t *tail) read(ctx context.Context) error {
	if t.news != nil && time.Since(t.at) < Heartbeat {
		select {
		case <-t.news:
		default:
			return nil
		}
	}
	t.news, t.at = t.log.News(), time.Now()
	if t.last == 0 {
		return t.jump(ctx)
	}
	for range maxKept / eventBatch {
		found, err := t.log.ListEvents(ctx, event.Query{After: t.last, Limit: eventBatch})
		if err != nil {
			return err
		}
		for _, e := range found {
			t.keep(digest(e))
		}
		if len(found) < eventBatch {
			return nil
		}
	}
	return t.jump(ctx) // nobody has looked for long
}

// keep adds a happening, and lets the oldest go. What has been given away stays as it is.
func (t *tail) keep(h Change) {
	t.last = h.Sequence
	if len(t.kept) == maxKept {
		t.first = t.kept[maxKept/2-1].Sequence
		t.kept = append(make([]Change, 0, maxKept), t.kept[maxKept/2:]...)
	}
	t.kept = append(t.kept, h)
}

// jump goes to the newest event without looking at those before: pages show all of themselves again.
func (t *tail) jump(ctx context.Context) (err error) {
	if t.last, err = t.log.LastEvent(ctx); err == nil {
		t.first, t.kept = t.last, nil
	}
	return err
}
