// Package streamhealth reports the health of live streams' encoders: those of this node, and those of other nodes,
// which it asks. It must never know HTTP as clients speak it, SQL, or how nodes trust each other. It starts a goroutine
// for each node that it asks, and waits for them.
package streamhealth

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

// Path is where a Handler is asked.
const Path = "/health/v2"

const (
	patience = 3 * time.Second // for another node to respond in
	most     = 1 << 20         // bytes: ten minutes of samples are a fifth of it
	// together is of how many streams one request asks.
	together = 100
	// refrain is how long a node that did not respond is not asked again.
	refrain = 5 * time.Second
)

// Measuring is what measures the encoders of this node; broadcast.Service fits.
type Measuring interface {
	Health(s live.Stream) live.Health
}

// Options configures an All.
type Options struct {
	Own    Measuring
	Owners follow.Directory // nil: this node serves alone
	Peer   follow.Peer
	Now    func() time.Time
	Logger *slog.Logger
}

// All tells how encoders do, as pages ask for it.
type All struct {
	opt Options

	mu     sync.Mutex
	silent map[id.Node]time.Time // nodes that did not respond, and until when they are not asked
}

// New returns an All.
func New(o Options) *All { return &All{opt: o, silent: map[id.Node]time.Time{}} }

// One is All as the API asks for it.
type One struct{ *All }

// Health implements api.Health.
func (o One) Health(ctx context.Context, s live.Stream) live.Health {
	return o.All.Health(ctx, []live.Stream{s}, false)[0]
}

// Health implements dashboard.Health. Each node is asked once for all that it has, and all nodes at the same time. What
// one does not tell in time is said to be elsewhere.
func (a *All) Health(ctx context.Context, all []live.Stream, brief bool) []live.Health {
	out := make([]live.Health, len(all))
	there := map[live.Owner][]int{}
	for i, s := range all {
		out[i] = a.opt.Own.Health(s)
		if out[i].Status == live.HealthElsewhere && a.opt.Owners != nil {
			there[s.Owner] = append(there[s.Owner], i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var asked sync.WaitGroup
	for owner, which := range there {
		for some := range slices.Chunk(which, together) {
			asked.Go(func() { a.elsewhere(ctx, owner.Node, all, some, brief, out) })
		}
	}
	asked.Wait()
	return out
}

// elsewhere fills in what a node tells of some of the streams, which it has.
func (a *All) elsewhere(
	ctx context.Context, n id.Node, all []live.Stream, some []int, brief bool, out []live.Health,
) {
	of := make([]live.Stream, 0, len(some))
	for _, i := range some {
		of = append(of, all[i])
	}
	var found []live.Health
	err := fault.Guard(func() (err error) {
		found, err = a.ask(ctx, n, of, brief)
		return err
	})
	if err != nil {
		a.opt.Logger.InfoContext(ctx, "how encoders at another node do is not known", "node", n, "error", err)
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
func (a *All) ask(ctx context.Context, n id.Node, all []live.Stream, brief bool) ([]live.Health, error) {
	if a.refrains(n) {
		return nil, fault.New(fault.Unavailable, "the node did not respond a moment ago")
	}
	to, err := a.opt.Owners.Owner(ctx, all[0].ID)
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
		Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: Path, RawQuery: q.Encode()},
	}
	res, err := a.opt.Peer.Do(ctx, to.Node, r.WithContext(ctx))
	if err != nil {
		a.leave(n)
		return nil, fmt.Errorf("ask for health: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(res.Body, most))
	switch {
	case err != nil:
		a.leave(n)
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

func (a *All) refrains(n id.Node) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.opt.Now().Before(a.silent[n])
}

// leave notes that a node does not respond.
func (a *All) leave(n id.Node) {
	now := a.opt.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, until := range a.silent {
		if !now.Before(until) {
			delete(a.silent, other)
		}
	}
	a.silent[n] = now.Add(refrain)
}

// Handler tells other nodes what is measured here. Whether a broadcast waits for an encoder they know themselves.
type Handler struct{ Own Measuring }

// ServeHTTP implements http.Handler.
func (h Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	streams := q["stream"]
	if len(streams) > together {
		wire.Fail(w, fault.New(fault.Invalid, "health is told of at most %d streams at once", together), false)
		return
	}
	out := make([]live.Health, 0, len(streams))
	for _, s := range streams {
		m := h.Own.Health(live.Stream{ID: id.LiveStream(s)})
		if q.Get("brief") != "" {
			m.Samples = nil
		}
		out = append(out, m)
	}
	data, err := json.Marshal(out) //nolint:musttag // All.ask reads it
	if err != nil {
		wire.Fail(w, err, false)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data) // who asked may be gone
}
