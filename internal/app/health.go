package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
)

const (
	healthPath = "/health/v2"
	healthTime = 3 * time.Second // for another node to respond in
	mostHealth = 1 << 20         // bytes: ten minutes of samples are a fifth of it
	// mostMeasured is of how many streams one request asks.
	mostMeasured = 100
	// healthRefrain is how long a node that did not respond is not asked again.
	healthRefrain = 5 * time.Second
)

// measuring is what measures the encoders of this node; broadcast.Service fits.
type measuring interface {
	Health(s live.Stream) live.Health
}

// encoders tells how encoders do, those of this node and those of others, as pages ask for it.
type encoders struct {
	own    measuring
	owners follow.Directory // nil: this node serves alone
	peer   follow.Peer
	log    *slog.Logger

	mu     sync.Mutex
	silent map[id.Node]time.Time // nodes that did not respond, and until when they are not asked
}

// health is encoders as the API asks for it.
type health struct{ *encoders }

// Health implements api.Health.
func (h health) Health(ctx context.Context, s live.Stream) live.Health {
	return h.encoders.Health(ctx, []live.Stream{s}, false)[0]
}

func (n *node) encoders() *encoders {
	e := &encoders{own: n.live, log: n.log, silent: map[id.Node]time.Time{}}
	if n.owners != nil {
		e.owners, e.peer = n.owners, peers{n.peers}
	}
	return e
}

// Health implements dashboard.Health. Each node is asked once for all that it has, and all nodes at the same time. What
// one does not tell in time is said to be elsewhere.
func (e *encoders) Health(ctx context.Context, all []live.Stream, brief bool) []live.Health {
	out := make([]live.Health, len(all))
	there := map[live.Owner][]int{}
	for i, s := range all {
		out[i] = e.own.Health(s)
		if out[i].Status == live.HealthElsewhere && e.owners != nil {
			there[s.Owner] = append(there[s.Owner], i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	var asked sync.WaitGroup
	for owner, which := range there {
		for some := range slices.Chunk(which, mostMeasured) {
			asked.Go(func() { e.elsewhere(ctx, owner.Node, all, some, brief, out) })
		}
	}
	asked.Wait()
	return out
}

// elsewhere fills in what a node tells of some of the streams, which it has.
func (e *encoders) elsewhere(
	ctx context.Context, n id.Node, all []live.Stream, some []int, brief bool, out []live.Health,
) {
	of := make([]live.Stream, 0, len(some))
	for _, i := range some {
		of = append(of, all[i])
	}
	var found []live.Health
	err := fault.Guard(func() (err error) {
		found, err = e.ask(ctx, n, of, brief)
		return err
	})
	if err != nil {
		e.log.InfoContext(ctx, "how encoders at another node do is not known", "node", n, "error", err)
	}
	for k, i := range some {
		if err != nil {
			out[i].Unanswered = true
			continue
		}
		if out[i] = found[k]; out[i].Status == live.HealthIdle && all[i].ActiveAsset != "" {
			out[i].Status = live.HealthAway // it has just left
		}
	}
}

// ask asks a node for what it measures of streams.
func (e *encoders) ask(ctx context.Context, n id.Node, all []live.Stream, brief bool) ([]live.Health, error) {
	if e.refrains(n) {
		return nil, fault.New(fault.Unavailable, "the node did not respond a moment ago")
	}
	to, err := e.owners.Owner(ctx, all[0].ID)
	if err != nil {
		return nil, err
	}
	q := url.Values{}
	for _, s := range all {
		q.Add("stream", string(s.ID))
	}
	if brief {
		q.Set("brief", "true")
	}
	r := &http.Request{
		Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: healthPath, RawQuery: q.Encode()},
	}
	res, err := e.peer.Do(ctx, to.Node, r.WithContext(ctx))
	if err != nil {
		e.refrain(n)
		return nil, fmt.Errorf("ask for health: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(res.Body, mostHealth))
	switch {
	case err != nil:
		e.refrain(n)
		return nil, fmt.Errorf("read health: %w", err)
	case res.StatusCode != http.StatusOK:
		return nil, wire.Failed(res.StatusCode, data)
	}
	found, err := wire.Decode[[]live.Health](data)
	if err != nil {
		return nil, err
	}
	isOf := func(h live.Health, s live.Stream) bool { return h.Stream == s.ID && len(h.Samples) <= live.MaxSamples }
	if !slices.EqualFunc(found, all, isOf) {
		return nil, fault.New(fault.Internal, "the response is about something else")
	}
	return found, nil
}

func (e *encoders) refrains(n id.Node) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return clock().Before(e.silent[n])
}

// refrain notes that a node does not respond.
func (e *encoders) refrain(n id.Node) {
	now := clock()
	e.mu.Lock()
	defer e.mu.Unlock()
	for other, until := range e.silent {
		if !now.Before(until) {
			delete(e.silent, other)
		}
	}
	e.silent[n] = now.Add(healthRefrain)
}

// healthHandler tells other nodes what is measured here. Whether a broadcast waits for an encoder they know themselves.
type healthHandler struct{ own measuring }

// ServeHTTP implements http.Handler.
func (h healthHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	streams := q["stream"]
	if len(streams) > mostMeasured {
		wire.Fail(w, fault.New(fault.Invalid, "health is told of at most %d streams at once", mostMeasured), false)
		return
	}
	out := make([]live.Health, 0, len(streams))
	for _, s := range streams {
		m := h.own.Health(live.Stream{ID: id.LiveStream(s)})
		if q.Get("brief") != "" {
			m.Samples = nil
		}
		out = append(out, m)
	}
	data, err := json.Marshal(out) //nolint:musttag // encoders.ask reads it
	if err != nil {
		wire.Fail(w, err, false)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked may be gone
}
