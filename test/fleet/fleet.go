package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audience"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	nodes "millrace/internal/control/node"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/usage"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/watching"
	"millrace/internal/presentation"
	"millrace/internal/stalecache"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/queue"
	"millrace/internal/tally"
)

const env = id.Environment("env")

// What app has for nodes of several.
const (
	renewEvery, rowValid = time.Second, 3 * time.Second
	ownerFresh           = time.Second
)

// fleet is all nodes, and the load on them.
type fleet struct {
	plan    plan
	nodes   []*node
	streams []*stream
	costs   *meter
	times   timings
	puts    atomic.Int64
	failed  chan error
	quiet   context.CancelFunc // ends the load
	load    sync.WaitGroup
	halt    context.CancelFunc // ends the services
	running sync.WaitGroup
	mu      sync.Mutex // of the streams, which grow
}

// node is one process of the service, but for its sockets and media.
type node struct {
	fleet   *fleet
	name    id.Node
	db      *db.DB
	live    *broadcast.Service
	shows   *presentation.Source
	owners  *stalecache.Cache[id.LiveStream, nodes.Owner]
	meter   metering.Meter
	watched watching.Register
}

// start opens the nodes and runs their services.
func start(ctx context.Context, p plan, url string) (*fleet, error) {
	m, err := newMeter(ctx, url)
	if err != nil {
		return nil, err
	}
	if p.idle {
		url += "&pool_max_conns=2" // beside the connection of its row
	}
	ctx, halt := context.WithCancel(ctx)
	loaded, quiet := context.WithCancel(ctx)
	f := &fleet{plan: p, costs: m, failed: make(chan error, 1), quiet: quiet, halt: halt}
	for i := range p.nodes {
		n := &node{fleet: f, name: id.Node(fmt.Sprintf("node%03d", i))}
		f.nodes = append(f.nodes, n)
		if err = n.open(ctx, url); err != nil {
			return nil, errors.Join(err, f.stop())
		}
	}
	if !p.idle {
		f.run(loaded)
	}
	return f, nil
}

// open runs the services of a node.
func (n *node) open(ctx context.Context, url string) (err error) {
	f, log := n.fleet, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	n.db, err = db.Open(ctx, db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{}), Logger: log})
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	owner := live.Owner{Node: n.name, Run: string(n.name) + "-1"}
	assets := recorder{asset.NewWork(asset.Options{Store: n.db.Assets()}), &f.times}
	n.live = broadcast.New(broadcast.Options{
		Streams: live.NewBroadcasts(n.db.LiveStreams()), Assets: assets, Store: nowhere{puts: &f.puts},
		Owner: owner, Now: time.Now, Logger: log, Meter: &n.meter, Fleet: broadcast.Fleet{Others: n},
	})
	schema, err := db.SchemaVersion()
	if err != nil {
		return err
	}
	row := nodes.New(nodes.Options{
		Store: renewals{n.db.Nodes(), &f.times}, Name: n.name, Run: owner.Run, Schema: schema, Logger: log,
		AdvertiseURL: func() string { return "http://" + string(n.name) },
		Load:         func() nodes.Load { return nodes.Load{Streams: n.live.Broadcasts()} },
		Every:        renewEvery, Valid: rowValid, Renewed: n.live.Renewed,
	})
	f.serve(ctx, row)
	if f.plan.idle {
		return nil
	}
	n.owners = stalecache.New[id.LiveStream, nodes.Owner](4096, ownerFresh)
	n.shows = presentation.New(presentation.Options{
		Access: resolver{access.New(access.Options{Store: n.db.Access()}), &f.times}, Assets: assets,
		Broadcasts: everywhere{n}, Blob: nowhere{puts: &f.puts}, Meter: &n.meter, Now: time.Now, Logger: log,
	})
	done := func(context.Context, job.Job) error { return nil }
	jobs, err := queue.New(queue.Options{
		DB: n.db, Node: n.name, Logger: log, Handlers: []job.Handler{{Kind: asset.JobFinish, Work: done}},
	})
	if err != nil {
		return fmt.Errorf("make queue: %w", err)
	}
	counts := audience.New(audience.Options{Local: local{&n.watched}, Node: n.name, Store: n.db.Audiences()})
	f.serve(ctx, n.db)
	f.serve(ctx, n.live)
	f.serve(ctx, jobs)
	f.serve(ctx, tally.New(tally.Options{
		Meter: &n.meter, Usage: usage.New(n.db.Usage()), Share: counts.Share, Now: time.Now, Logger: log,
	}))
	return nil
}

// service is what runs until it is stopped.
type service interface {
	Run(ctx context.Context) error
}

func (f *fleet) serve(ctx context.Context, s service) {
	f.running.Go(func() {
		if err := s.Run(ctx); err != nil && ctx.Err() == nil {
			select {
			case f.failed <- err:
			default:
			}
		}
	})
}

// stop ends everything.
func (f *fleet) stop() error {
	f.quiet()
	f.load.Wait()
	for _, s := range f.streams {
		s.stop()
	}
	f.halt()
	f.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := f.costs.conn.Close(ctx)
	for _, n := range f.nodes {
		if n.db != nil {
			err = errors.Join(err, n.db.Close())
		}
	}
	select {
	case failed := <-f.failed:
		return errors.Join(failed, err)
	default:
		return err
	}
}

// Look implements broadcast.Others: the nodes are read, as handover reads them.
func (n *node) Look(ctx context.Context) error {
	_, err := n.db.Nodes().Nodes(ctx)
	return err
}

// Promise implements broadcast.Others; a node whose row is late would ask the others, over HTTP.
func (*node) Promise(context.Context) error { return nil }

// Refuses implements broadcast.Others; no node of a simulation ends.
func (*node) Refuses(context.Context, live.Owner) bool { return false }

// renewals are timed.
type renewals struct {
	nodes.Store
	times *timings
}

func (r renewals) Renew(ctx context.Context, n nodes.Node, valid time.Duration) error {
	return r.times.since("renewal", time.Now(), r.Store.Renew(ctx, n, valid))
}

// recorder is what is recorded, timed.
type recorder struct {
	*asset.Work
	times *timings
}

func (r recorder) Append(ctx context.Context, a id.Asset, by asset.Writer, entries []asset.TimelineEntry) error {
	began := time.Now()
	return r.times.since("segment", began, r.Work.Append(ctx, a, by, entries))
}

func (r recorder) Grow(ctx context.Context, a id.Asset, g asset.Growth, now time.Time) error {
	began := time.Now()
	return r.times.since("growth", began, r.Work.Grow(ctx, a, g, now))
}

// resolver is what playback IDs lead to, timed.
type resolver struct {
	presentation.Resolver
	times *timings
}

func (r resolver) Resolve(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	began := time.Now()
	o, err := r.Resolver.Resolve(ctx, p)
	return o, r.times.since("playback ID", began, err)
}

// everywhere are the broadcasts of all nodes, as viewers of one see them: whose they are is asked of the database once
// a second for each, and what would come over HTTP is there already.
type everywhere struct{ *node }

func (e everywhere) Recovered(ctx context.Context) error { return e.live.Recovered(ctx) }

func (e everywhere) Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error) {
	if own, err := e.live.Watched(ctx, s); err == nil {
		return own, nil
	}
	o, err := e.owners.Get(ctx, s, time.Now(), func(ctx context.Context) (nodes.Owner, error) {
		began := time.Now()
		o, err := e.db.Directory().Owner(ctx, s)
		return o, e.fleet.times.since("owner", began, err)
	})
	if err != nil {
		return nil, err
	}
	for _, n := range e.fleet.nodes {
		if n.name == o.Name {
			return n.live.Watched(ctx, s)
		}
	}
	return nil, playback.Inactive()
}

func (e everywhere) OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	return e.live.OfAsset(ctx, s, a)
}

func (e everywhere) Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error) {
	return e.live.Earlier(ctx, s, m)
}

// local is who watches on a node.
type local struct{ *watching.Register }

func (local) Key(p id.Playback) uint64 { return watching.Key(string(p)) }

func (l local) Now(now time.Time) audience.Views { return l.Register.Now(now) }

// nowhere takes objects, and counts them.
type nowhere struct {
	blob.Store // what nobody calls

	puts *atomic.Int64
}

func (n nowhere) Put(_ context.Context, _ string, r io.Reader) error {
	n.puts.Add(1)
	_, err := io.Copy(io.Discard, r)
	return err
}

func (n nowhere) Link(context.Context, string, *os.File) error {
	n.puts.Add(1)
	return nil
}
