// Package workers has nodes with the role worker make what viewers of other nodes wait for: segments of lower
// renditions, and images. It picks who is asked, and serves what others ask. It must never know what is made or how,
// SQL, HTTP towards viewers, or how nodes trust each other. It starts no goroutine: Run passes on what nobody waits
// for.
package workers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/turns"
	"millrace/internal/presentation"
)

// Path is where a node serves orders of others; it has the version of what is said.
const Path = "/make/v1"

// Rows lists all nodes; storage/db has them.
type Rows interface {
	Nodes(ctx context.Context) ([]node.Node, error)
}

// Options are what an Asker needs.
type Options struct {
	Rows Rows
	Peer follow.Peer
	// Ended is called with the outcome of each order that somebody waited for; nil: nobody counts them.
	Ended  func(outcome string)
	Now    func() time.Time
	Logger *slog.Logger
}

// Outcomes of an order: it was made, there was no worker that responds, workers had too much to do, or it failed.
const (
	Made     = "made"
	NoWorker = "no_worker"
	Busy     = "busy"
	Failed   = "failed"
)

// Asker asks workers. It implements presentation.Workers and is a lifecycle service.
type Asker struct {
	opt   Options
	hints chan hint
	line  *turns.Line // of orders that somebody waits for: one address with many does not keep others out

	mu      sync.Mutex
	all     []worker // that are alive
	known   bool     // they were read
	silent  map[id.Node]time.Time
	hinted  map[string]time.Time
	reading int64
	told    time.Time // when the log last said that there is no worker
}

// worker is a node that makes things.
type worker struct {
	follow.Node

	load float64
}

// hint is an order that nobody waits for.
type hint struct {
	order  presentation.Order
	viewer string
}

const (
	lookEvery = time.Second // how often the nodes are read
	lookTime  = 5 * time.Second
	// tries is how many workers are asked for one thing, one after the other, and patience how long one may take.
	tries, patience = 3, 75 * time.Second
	// silence is for how long a worker that has not responded is asked last.
	silence = 5 * time.Second
	// loaded is from which load on, per processor, one is asked after those that have less to do.
	loaded = 2
	// mostAsked is how many orders are under way at a time, and mostWaiting how many wait for that.
	mostAsked, mostWaiting = 256, 256
	// mostBytes is how many bytes of responses are being read, and mostBody how many one has.
	mostBytes, mostBody = 128 << 20, 64 << 20
	// mostHints wait to be passed on, each within hintTime; one is not repeated for hintAgain, of at most mostHinted.
	mostHints, hintTime, hintAgain, mostHinted = 64, 2 * time.Second, 5 * time.Second, 4096
	tellEvery                                  = time.Minute
)

// New makes an Asker; it knows nobody before Run.
func New(o Options) *Asker {
	if o.Ended == nil {
		o.Ended = func(string) {}
	}
	return &Asker{
		opt: o, hints: make(chan hint, mostHints), silent: map[id.Node]time.Time{}, hinted: map[string]time.Time{},
		line: turns.New(turns.Options{
			What: "what is not stored", Places: mostAsked, Waiting: mostWaiting,
		}),
	}
}

// Name implements lifecycle.Service.
func (*Asker) Name() string { return "workers" }

// Run implements lifecycle.Service: it looks which workers there are, and passes hints on.
func (a *Asker) Run(ctx context.Context) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	a.look(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			a.look(ctx)
		case h := <-a.hints:
			a.pass(ctx, h)
		}
	}
}

// look reads which workers there are. While the database is away those are asked that there were.
func (a *Asker) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	rows, err := a.opt.Rows.Nodes(ctx)
	if err != nil {
		return
	}
	var all []worker
	for i := range rows {
		r := &rows[i]
		if r.State != node.Alive || r.AdvertiseURL == "" || !r.Has(node.RoleWorker) {
			continue
		}
		w := worker{follow.Node{ID: r.Name, URL: r.AdvertiseURL}, r.Load.CPU}
		if r.Shown() == node.Draining {
			w.load += loaded // it is asked after those that stay
		}
		all = append(all, w)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all, a.known = all, true
}

// Alive is how many workers there are, as far as is known.
func (a *Asker) Alive() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.all)
}

// pass has a worker make what is behind a segment.
func (a *Asker) pass(ctx context.Context, h hint) {
	ctx, cancel := context.WithTimeout(turns.For(ctx, func() string { return h.viewer }), hintTime)
	defer cancel()
	all := a.pick(h.order)
	if len(all) == 0 {
		return
	}
	_, err := a.ask(ctx, all[0], h.order) // who watches on asks for it
	if unreached := (*silentError)(nil); errors.As(err, &unreached) && ctx.Err() == nil {
		a.noted(ctx, all[0], err)
	}
}

// Ahead implements presentation.Workers.
func (a *Asker) Ahead(ctx context.Context, o presentation.Order) {
	data, err := json.Marshal(o) //nolint:musttag // a resource by the names of its fields
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opt.Now()
	if now.Sub(a.hinted[string(data)]) < hintAgain {
		return
	}
	for key, at := range a.hinted {
		if len(a.hinted) >= mostHinted || now.Sub(at) >= hintAgain {
			delete(a.hinted, key)
		}
	}
	a.hinted[string(data)] = now
	select {
	case a.hints <- hint{o, turns.Viewer(ctx)}:
	default: // whoever watches asks for it later
	}
}

// pick lists workers in the order in which they are asked. The same things are asked of the same worker while it is
// there (rendezvous hashing), which has then read what they are made of, and continues its own runs. Those that have
// much to do, or did not respond a moment ago, come last.
func (a *Asker) pick(o presentation.Order) []worker {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.opt.Now()
	type ranked struct {
		worker

		late bool
		busy bool
		rank uint64
	}
	all := make([]ranked, 0, len(a.all))
	for _, w := range a.all {
		h := fnv.New64a()
		_, _ = io.WriteString(h, string(w.ID)+"\x00"+string(o.Asset)+"\x00"+string(o.Stream)+"\x00"+o.Rendition)
		all = append(all, ranked{
			worker: w, late: now.Before(a.silent[w.ID]), busy: w.load >= loaded, rank: mixed(h.Sum64()),
		})
	}
	slices.SortFunc(all, func(x, y ranked) int {
		switch {
		case x.late != y.late:
			return after(x.late)
		case x.busy != y.busy:
			return after(x.busy)
		}
		return after(x.rank < y.rank)
	})
	out := make([]worker, len(all))
	for i := range all {
		out[i] = all[i].worker
	}
	return out
}

// after is 1 for what comes later.
func after(later bool) int {
	if later {
		return 1
	}
	return -1
}

// mixed spreads a sum that differs from others in few bits (the finalizer of MurmurHash3).
func mixed(h uint64) uint64 {
	h = (h ^ h>>33) * 0xff51afd7ed558ccd
	h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Make implements presentation.Workers.
func (a *Asker) Make(ctx context.Context, o presentation.Order) ([]byte, error) {
	data, err := a.make(ctx, o)
	switch {
	case err == nil:
		a.opt.Ended(Made)
	case ctx.Err() != nil: // the viewer has left
	case fault.CodeOf(err) == NoWorker:
		a.opt.Ended(NoWorker)
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.TooMany):
		a.opt.Ended(Busy)
	case fault.Is(err, fault.Internal):
		a.opt.Ended(Failed)
	default: // there is no such thing
		a.opt.Ended(Made)
	}
	return data, err
}

func (a *Asker) make(ctx context.Context, o presentation.Order) ([]byte, error) {
	turn, err := a.line.Enter(ctx, turns.Viewer(ctx), 0, 0)
	if err != nil {
		return nil, err
	}
	defer turn.Leave()
	var last error
	for i, w := range a.pick(o) {
		if i == tries {
			break
		}
		data, err := a.ask(ctx, w, o)
		if err == nil || ctx.Err() != nil {
			return data, err
		}
		unreached := (*silentError)(nil)
		switch {
		case errors.As(err, &unreached):
			a.noted(ctx, w, err)
			if last == nil {
				last = a.none(ctx, err)
			}
		case fault.Is(err, fault.Unavailable), fault.Is(err, fault.TooMany), fault.Is(err, fault.Conflict):
			last = fault.Wrap(fault.Unavailable, err,
				"the nodes with the role worker have too much to do: ask again in a moment")
		default:
			return nil, err
		}
	}
	if last == nil {
		last = a.none(ctx, nil)
	}
	return nil, last
}

// silentError is that of a worker that could not be asked.
type silentError struct{ err error }

func (s *silentError) Error() string { return "the worker does not respond: " + s.err.Error() }

// Unwrap gives the cause.
func (s *silentError) Unwrap() error { return s.err }

// noted keeps that a worker did not respond: for a while it is asked last.
func (a *Asker) noted(ctx context.Context, w worker, err error) {
	a.mu.Lock()
	now := a.opt.Now()
	first := now.After(a.silent[w.ID])
	for n, until := range a.silent {
		if now.After(until) {
			delete(a.silent, n)
		}
	}
	a.silent[w.ID] = now.Add(silence)
	a.mu.Unlock()
	if first {
		a.opt.Logger.WarnContext(ctx, "a node with the role worker does not respond", "node", w.ID, "error", err)
	}
}

// none is the error where there is no worker that responds.
func (a *Asker) none(ctx context.Context, err error) error {
	a.mu.Lock()
	tell := a.known && a.opt.Now().Sub(a.told) >= tellEvery
	if tell {
		a.told = a.opt.Now()
	}
	a.mu.Unlock()
	if tell {
		a.opt.Logger.ErrorContext(ctx, "no node with the role worker responds: lower renditions that are not "+
			"stored, and images, can't be had", "error", err)
	}
	f := fault.Coded(fault.Unavailable, NoWorker,
		"it is not stored yet, and no node with the role worker is there to make it: ask again in a moment")
	f.Err = err
	return f
}

// read takes room for bytes that are being read, or gives it back.
func (a *Asker) read(n int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n > 0 && a.reading > 0 && a.reading+n > mostBytes {
		return false
	}
	a.reading += n
	return true
}

// ask asks one worker; nil without an error: it is stored.
func (a *Asker) ask(ctx context.Context, w worker, o presentation.Order) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	text, err := json.Marshal(request{o, turns.Viewer(ctx)}) //nolint:musttag // likewise
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err, "the order can't be written")
	}
	query := url.Values{"order": {string(text)}}.Encode()
	if len(query) > maxOrder { // no worker would take it, and each would seem not to respond
		return nil, fault.New(fault.Invalid, "the query is too long")
	}
	r := &http.Request{
		Method: http.MethodGet, Header: http.Header{}, URL: &url.URL{Path: Path, RawQuery: query},
	}
	res, err := a.opt.Peer.Do(ctx, w.Node, r.WithContext(ctx))
	if err != nil {
		return nil, unheard(ctx, err)
	}
	defer func() { _ = res.Body.Close() }() // it was only read
	switch {
	case res.StatusCode == http.StatusNoContent:
		return nil, nil
	case res.StatusCode != http.StatusOK && res.Header.Get("Content-Type") != "application/json":
		return nil, &silentError{fmt.Errorf("status %d: another version has no such path", res.StatusCode)}
	case res.StatusCode != http.StatusOK:
		var data []byte
		if data, err = io.ReadAll(io.LimitReader(res.Body, wire.MaxError)); err != nil {
			return nil, unheard(ctx, err)
		}
		return nil, wire.Failed(res.StatusCode, data)
	case res.ContentLength < 0 || res.ContentLength > mostBody:
		return nil, fault.New(fault.Internal, "a worker sends %d bytes, of at most %d", res.ContentLength, mostBody)
	case !a.read(res.ContentLength):
		return nil, fault.New(fault.TooMany, "too much is read of workers at a time: ask again in a moment")
	}
	defer a.read(-res.ContentLength)
	data := make([]byte, res.ContentLength)
	if _, err = io.ReadFull(res.Body, data); err != nil {
		return nil, unheard(ctx, err)
	}
	return data, nil
}

// unheard is the error of an order that got no whole response. A worker that has not made it in time may be making it:
// whether the other end of a connection is there at all, its pings tell much sooner.
func unheard(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(fault.Unavailable, err, "the worker takes too long: ask again in a moment")
	}
	return &silentError{err}
}
