package shell

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
)

// eventLog has events with the sequences from 1 on, and counts how often they are read.
type eventLog struct {
	mu    sync.Mutex
	all   []event.Event
	news  chan struct{}
	reads int
	err   error
}

func (e *eventLog) add(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range n {
		sequence := int64(len(e.all) + 1)
		e.all = append(e.all, event.Event{
			Sequence: sequence, ObjectKind: live.EventObject, ObjectID: fmt.Sprint(sequence),
		})
	}
	if e.news != nil {
		close(e.news)
		e.news = nil
	}
}

func (e *eventLog) ListEvents(_ context.Context, q event.Query) ([]event.Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reads++
	found := e.all[min(q.After, int64(len(e.all))):]
	return found[:min(len(found), q.Limit)], e.err
}

func (e *eventLog) Standings(
	context.Context, id.Environment, []event.Event,
) (map[int64][]webhook.Standing, error) {
	return nil, e.err
}

func (e *eventLog) LastEvent(context.Context) (int64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int64(len(e.all)), nil
}

func (e *eventLog) News() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.news == nil {
		e.news = make(chan struct{})
	}
	return e.news
}

// TestTail: what happens is read once for all who look, in order and without holes; who looks too seldom is told so.
func TestTail(t *testing.T) {
	t.Parallel()
	log := &eventLog{}
	log.add(1000) // before anybody looked
	tail := newTail(log)
	see := func(sequence int64, want int, all bool) look {
		t.Helper()
		l, err := tail.since(t.Context(), sequence)
		if err != nil || len(l.found) != want || l.all != all || l.last != int64(len(log.all)) {
			t.Fatalf("behind %d: %d of %d, last %d, all %t, %v", sequence, len(l.found), want, l.last, l.all, err)
		}
		for i, h := range l.found {
			if h.Sequence != l.last-int64(len(l.found)-1-i) {
				t.Fatalf("behind %d: sequence %d at %d", sequence, h.Sequence, i)
			}
		}
		return l
	}
	now := see(math.MaxInt64, 0, true)
	log.add(2)
	<-now.news
	for range 100 {
		see(1000, 2, true)
	}
	if log.reads != 1 {
		t.Errorf("read %d times for 100 pages", log.reads)
	}
	for range 300 { // it forgets the oldest
		log.add(3)
		see(int64(len(log.all)-3), 3, true)
	}
	see(int64(len(log.all)-maxKept/2), maxKept/2, true)
	if l, err := tail.since(t.Context(), 1000); err != nil || l.all || len(l.found) > maxKept {
		t.Errorf("far behind: %d, all %t, %v", len(l.found), l.all, err)
	}
	was := log.reads
	log.add(5000)
	if see(1902, 0, false); log.reads-was > maxKept/eventBatch {
		t.Errorf("nobody looked for long: read %d times", log.reads-was)
	}
}

// TestTailFails: who can't read does not keep others from it.
func TestTailFails(t *testing.T) {
	t.Parallel()
	log := &eventLog{}
	log.add(1)
	tail := newTail(log)
	if _, err := tail.since(t.Context(), math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	log.add(1)
	log.err = errors.New("away")
	if _, err := tail.since(t.Context(), 1); !errors.Is(err, log.err) {
		t.Fatalf("error %v", err)
	}
	log.err = nil
	if l, err := tail.since(t.Context(), 1); err != nil || len(l.found) != 1 {
		t.Fatalf("then %d, %v", len(l.found), err)
	}
	_ = tail.lock.Lock(t.Context()) // somebody reads
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tail.since(gone, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("who has gone: %v", err)
	}
}

// TestPace: all open pages together are looked at as often as a few of them.
func TestPace(t *testing.T) {
	t.Parallel()
	for pages, want := range map[int]time.Duration{
		0: 250 * time.Millisecond, 10: 250 * time.Millisecond, 100: 2 * time.Second,
	} {
		if got := paceOf(pages); got != want {
			t.Errorf("%d pages: %s, want %s", pages, got, want)
		}
	}
}

// TestDigest: an event is about its live stream, that of its target, or that of its recording.
func TestDigest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		event event.Event
		want  Change
	}{
		"its own": {event.Event{ObjectKind: "live_stream", ObjectID: "s"}, Change{Stream: "s", Own: true}},
		"target": {
			event.Event{ObjectKind: "simulcast_target", ObjectID: "t", Resource: "s"},
			Change{Stream: "s", Own: true},
		},
		"recording": {
			event.Event{ObjectKind: "asset", ObjectID: "a", Data: []byte(`{"live_stream_id":"s"}`)},
			Change{Stream: "s", Asset: "a"},
		},
		"asset":  {event.Event{ObjectKind: "asset", ObjectID: "a", Data: []byte(`{"id":"a"}`)}, Change{Asset: "a"}},
		"track":  {event.Event{ObjectKind: "track", ObjectID: "t", Resource: "a"}, Change{Asset: "a"}},
		"file":   {event.Event{ObjectKind: "static_rendition", ObjectID: "f", Resource: "a"}, Change{Asset: "a"}},
		"upload": {event.Event{ObjectKind: "upload", ObjectID: "u", Data: []byte(`{"id":"s"}`)}, Change{}},
		"other": {
			event.Event{ObjectKind: "asset", ObjectID: "a", Data: []byte(`{"live_stream_id":{}}`)},
			Change{Asset: "a"},
		},
		"no JSON": {event.Event{ObjectKind: "asset", ObjectID: "a", Data: []byte(`{`)}, Change{Asset: "a"}},
	} {
		tt.want.Object = tt.event.ObjectID
		if got := digest(tt.event); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
