package app

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/config"
	nodes "millrace/internal/control/node"
)

// encoders are those of a node, as they go after it leaves.
type encoders struct {
	left            time.Time // since when it leaves
	letGo, received time.Duration
	told            []bool
}

func (e *encoders) Drain(on bool) { e.left, e.told = time.Now(), append(e.told, on) }

func (e *encoders) Attended() (connected, gone int) {
	switch since := time.Since(e.left); {
	case since < e.letGo:
		return 1, 0
	case since < e.received:
		return 0, 1
	}
	return 0, 0
}

// TestDrainOfLeaver: an operator has a node leave, and stay; when it was told to stop it leaves for good.
func TestDrainOfLeaver(t *testing.T) {
	t.Parallel()
	d, at := newDeparture(time.Second), &encoders{}
	d.live = at
	d.drain(true)
	d.drain(false)
	d.begin()
	d.drain(false)
	if !slices.Equal(at.told, []bool{true, false, true}) {
		t.Errorf("the encoders are told %v", at.told)
	}
}

// TestDeparture: a node that is told to stop goes when its encoders are let go of and, where there are other nodes,
// when those have its broadcasts and its viewers; in any case after two thirds of its time. A node that fails goes at
// once.
func TestDeparture(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for name, tt := range map[string]struct {
		failed, others  bool
		letGo, received time.Duration
		watched         time.Duration // so long somebody asks for something each four seconds
		waits           time.Duration // such a request takes so long
		waited          time.Duration // a request that was under way before goes on for so long
		want            time.Duration
	}{
		"alone, without encoders":             {},
		"alone, with viewers":                 {watched: time.Hour},
		"alone, with an encoder":              {letGo: 2 * second, received: time.Hour, want: 2 * second},
		"alone, with one that does not go":    {letGo: time.Hour, want: 20 * second},
		"failed":                              {failed: true, letGo: second},
		"with others, and nobody":             {others: true},
		"with others, which get its encoders": {others: true, letGo: second, received: 12 * second, want: 12 * second},
		"with others, which do not":           {others: true, letGo: second, received: time.Hour, want: 20 * second},
		"with others, and viewers for long":   {others: true, watched: time.Hour, want: 20 * second},
		"with others, and viewers that go":    {others: true, watched: 7 * second, want: 4*second + goneFor},
		"with others, and one that waits":     {others: true, watched: second, waits: 9 * second, want: 19 * second},
		"with others, and one that waited":    {others: true, waited: 9 * second, want: 9*second + goneFor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newDeparture(30 * second)
				told, tell := context.WithCancel(t.Context())
				defer tell()
				ctx, stop := context.WithCancel(t.Context())
				at := &encoders{letGo: tt.letGo, received: tt.received}
				d.told, d.live, d.others = told, at, func(context.Context) bool { return tt.others }
				d.tell, d.log = func(context.Context) error { return nil }, slog.New(slog.DiscardHandler)
				d.watched = func() bool { return tt.watched > 0 }
				var over atomic.Bool
				var viewer sync.WaitGroup
				defer viewer.Wait()
				ask := func(takes time.Duration) {
					h := d.viewers.of(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }))
					r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
					h.ServeHTTP(httptest.NewRecorder(), r)
				}
				if tt.waited > 0 {
					viewer.Go(func() { ask(tt.waited) })
				}
				viewer.Go(func() {
					time.Sleep(2 * time.Millisecond) // it leaves by then
					for began := time.Now(); time.Since(began) < tt.watched && !over.Load(); time.Sleep(4 * second) {
						ask(tt.waits)
					}
				})
				time.Sleep(time.Millisecond)
				if got := d.grace(); got != 30*second {
					t.Errorf("before, a listener has %v", got)
				}
				began := time.Now()
				if !tt.failed {
					tell()
				}
				stop()
				_ = d.Run(ctx)
				over.Store(true)
				took := time.Since(began)
				if took < tt.want || took > tt.want+2*leaveEvery {
					t.Errorf("it took %v, want %v", took, tt.want)
				}
				if got := d.grace(); got > 30*second-tt.want || got < 10*second-2*leaveEvery {
					t.Errorf("after %v a listener has %v", took, got)
				}
				if at.left.IsZero() != tt.failed {
					t.Errorf("encoders were let go of at %v", at.left)
				}
			})
		})
	}
}

// TestSucceeds: only a node that does what the leaving one did is waited for.
func TestSucceeds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		left, other string
		state       nodes.Node
		want        bool
	}{
		"all, all":              {left: "all", other: "all", want: true},
		"all, playback":         {left: "all", other: "playback", want: true},
		"ingest, all":           {left: "ingest", other: "all", want: true},
		"ingest, playback":      {left: "ingest", other: "playback"},
		"playback, playback":    {left: "playback", other: "playback", want: true},
		"worker, all":           {left: "worker", other: "all"},
		"all, one that leaves":  {left: "all", other: "all", state: nodes.Node{Draining: true}},
		"all, one that is gone": {left: "all", other: "all", state: nodes.Node{State: nodes.Gone}},
	} {
		other := tt.state
		other.Roles, other.AdvertiseURL = []string{tt.other}, "http://192.0.2.1"
		other.State = cmp.Or(other.State, nodes.Alive)
		if got := succeeds(config.Roles{tt.left}, &other); got != tt.want {
			t.Errorf("%s: %t, want %t", name, got, tt.want)
		}
	}
	if succeeds(config.Roles{config.RoleAll}, &nodes.Node{State: nodes.Alive, Roles: []string{nodes.RoleAll}}) {
		t.Error("a node that nobody can reach is waited for")
	}
}
