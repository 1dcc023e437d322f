package streamhealth

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
)

// here measures what a node has, as broadcast.Service does: streams whose names begin with its name.
type here string

func (h here) Health(s live.Stream) live.Health {
	switch {
	case strings.HasPrefix(string(s.ID), string(h)) && !strings.HasSuffix(string(s.ID), "gone"):
		return live.Health{
			Stream: s.ID, Status: live.HealthLive, Encoder: &live.Encoder{Name: "at " + string(h)},
			Samples: []live.Sample{{Pace: 1}},
		}
	case s.Protocol != "" && s.Node != id.Node(h):
		return live.Health{Stream: s.ID, Status: live.HealthElsewhere}
	}
	return live.Health{Stream: s.ID, Status: live.HealthIdle}
}

// fleetOf has other nodes behind one Peer: c responds with what is of something else, and d not at all.
type fleetOf struct {
	mu    sync.Mutex
	asked map[id.Node]int
}

func (*fleetOf) Owner(_ context.Context, s id.LiveStream) (follow.Owner, error) {
	if s == "x1" {
		return follow.Owner{}, fault.New(fault.NotFound, "nobody has it")
	}
	return follow.Owner{Node: follow.Node{ID: id.Node(s[:1])}}, nil
}

func (*fleetOf) Lost(id.LiveStream) {}

func (f *fleetOf) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked[to.ID]++
	f.mu.Unlock()
	w := httptest.NewRecorder()
	switch to.ID {
	case "c":
		_, _ = w.WriteString(`[{"Stream":"a1","Status":"live"}]`)
	case "d":
		<-ctx.Done()
		return nil, errors.New("nothing responds there")
	default:
		Handler{here(to.ID)}.ServeHTTP(w, r)
	}
	return w.Result(), nil
}

// TestEncodersElsewhere: a node tells how the encoders of other nodes do, after one request to each; one that is lost
// keeps nobody waiting longer than they like, and is not asked again for a while.
func TestEncodersElsewhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fleet := &fleetOf{asked: map[id.Node]int{}}
		e := New(Options{
			Own: here("a"), Owners: fleet, Peer: fleet, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		})
		var all []live.Stream
		for _, s := range []string{"a1", "b1", "b2", "c1", "d1", "d2", "x1", "bgone", "bgone"} {
			owner := live.Owner{Node: id.Node(s[:1]), Run: "run"}
			all = append(all, live.Stream{ID: id.LiveStream(s), Protocol: "rtmp", Owner: owner})
		}
		all[8].ActiveAsset = "asset"
		expect := func(brief bool, want string) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			var got []string
			for i, h := range e.Health(ctx, all, brief) {
				what := string(h.Stream) + " " + string(h.Status)
				if h.Unanswered {
					what += " lost"
				}
				samples := 1
				if brief && h.Stream != "a1" { // which is not asked for
					samples = 0
				}
				measured := h.Encoder != nil && len(h.Samples) == samples
				if h.Stream != all[i].ID || measured != (h.Status == live.HealthLive) {
					t.Errorf("of %s: %+v", all[i].ID, h)
				}
				got = append(got, what)
			}
			if is := strings.Join(got, ", "); is != want {
				t.Errorf("got  %s\nwant %s", is, want)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
		}
		const want = "a1 live, b1 live, b2 live, c1 elsewhere lost, d1 elsewhere lost, d2 elsewhere lost, " +
			"x1 elsewhere lost, bgone idle, bgone away"
		count := func(when string, want map[id.Node]int) {
			t.Helper()
			if !maps.Equal(fleet.asked, want) {
				t.Errorf("%s: asked %v, want %v", when, fleet.asked, want)
			}
		}
		expect(false, want)
		count("at first", map[id.Node]int{"b": 1, "c": 1, "d": 1})
		expect(true, want)
		count("a moment later", map[id.Node]int{"b": 2, "c": 2, "d": 1})
		time.Sleep(refrain)
		expect(true, want)
		count("and after a while", map[id.Node]int{"b": 3, "c": 3, "d": 2})
		if one := (One{e}).Health(t.Context(), all[1]); one.Status != live.HealthLive || len(one.Samples) != 1 {
			t.Errorf("for the API: %+v", one)
		}
		e.opt.Owners = nil
		alone := e.Health(t.Context(), all[1:2], false)
		if len(alone) != 1 || alone[0].Status != live.HealthElsewhere || alone[0].Unanswered {
			t.Errorf("of a node that serves alone: %+v", alone)
		}
		w := httptest.NewRecorder()
		query := strings.Repeat("&stream=b1", together+1)
		Handler{here("b")}.ServeHTTP(w, httptest.NewRequestWithContext(
			t.Context(), http.MethodGet, Path+"?"+query[1:], nil,
		))
		if w.Code != http.StatusBadRequest {
			t.Errorf("of too many streams: status %d", w.Code)
		}
	})
}
