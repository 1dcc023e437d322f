// Package queue runs the jobs that changes create: it passes each to the handler of its kind and keeps the promises of
// job.Handler, on River, in the same database as the changes. It must never know what a job does or any resource. It
// owns the goroutines of River and one per running job; Run leaves none behind.
//
// River lacks three things, which are added here and in package db: a heartbeat (otherwise a dead node's jobs would
// wait for an hour or for ever), cancelling running jobs on SQLite, and limits that the worker knows and the inserter
// does not.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/trace"
)

const (
	defaultWorkers = 4
	// A notification starts a job at once; the poll finds what was released, or was due later.
	fetchCooldown = 50 * time.Millisecond
	fetchPoll     = time.Second

	cancelEvery = time.Second
	seeEvery    = 5 * time.Second
	// lostAfter is how long a node may be silent; then its jobs are taken over. Work may run twice if it was only slow.
	lostAfter = 30 * time.Second
	stopAfter = 30 * time.Second // what a handler may take to let go
)

// Options is what New needs.
type Options struct {
	DB *db.DB
	// Node is this process; stable across restarts, so that it finds the jobs it died on, and never shared with a
	// living one.
	Node     id.Node
	Handlers []job.Handler // one per kind
	Workers  int           // the queues' places follow from it; 0: 4
	Classes  job.Classes   // a kind that is in none is refused; nil: all that there are
	// Works reports whether this node works on a queue; nil: on all. Jobs of others wait for other nodes.
	Works  func(job.Queue) bool
	Logger *slog.Logger
	Tracer *trace.Tracer // nil: jobs are in no trace
	// Died is the job that this node's process died of the last time; 0: of none.
	Died int64
}

// Queue works jobs.
type Queue struct {
	db     *db.DB
	node   id.Node
	died   int64
	logger *slog.Logger
	tracer *trace.Tracer
	client db.JobClient // nil without handlers, or without queues

	lostAfter time.Duration
	classes   job.Classes
	shared    map[job.Queue]*places // those of queues that owners share

	mu      sync.Mutex
	running map[int64]context.CancelCauseFunc

	outage outage
	others map[id.Node]bool // that were seen on this database; only keep uses it
}

// New makes a queue; nothing starts.
func New(o Options) (*Queue, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.DB == nil || o.Node == "" || len(o.Node) > 100 {
		return nil, errors.New("make queue: it needs a database and a node of 1 to 100 characters")
	}
	if o.Workers <= 0 {
		o.Workers = defaultWorkers
	}
	if o.Classes == nil {
		o.Classes = job.AllClasses()
	}
	q := &Queue{
		db: o.DB, node: o.Node, died: o.Died, logger: o.Logger, tracer: o.Tracer, lostAfter: lostAfter,
		classes: o.Classes,
		shared:  map[job.Queue]*places{}, running: map[int64]context.CancelCauseFunc{},
	}
	queues := map[string]river.QueueConfig{}
	for _, c := range o.Classes {
		if o.Works != nil && !o.Works(c.Queue) {
			continue
		}
		n := c.Places(o.Workers)
		queues[string(c.Queue)] = river.QueueConfig{MaxWorkers: n}
		if c.ByOwner {
			q.shared[c.Queue] = newPlaces(n)
		}
	}
	if len(o.Handlers) == 0 || len(queues) == 0 {
		return q, nil
	}
	workers := river.NewWorkers()
	seen := map[string]bool{}
	for _, h := range o.Handlers {
		if h.Kind == "" || h.Work == nil || seen[h.Kind] {
			return nil, fmt.Errorf("make queue: kind %q must be there once, with work", h.Kind)
		}
		if _, ok := o.Classes.Of(h.Kind); !ok {
			return nil, fmt.Errorf("make queue: kind %q is in no class", h.Kind)
		}
		seen[h.Kind] = true
		if h.MaxAttempts <= 0 {
			h.MaxAttempts = defaultAttempts
		}
		river.AddWorkerArgs(workers, db.ArgsOf(h.Kind), &worker{handler: h, queue: q})
	}
	client, err := o.DB.JobClient(&river.Config{
		ID:                string(o.Node),
		Logger:            slog.New(libraryLog{o.Logger.Handler(), &q.outage}),
		Queues:            queues,
		Workers:           workers,
		FetchCooldown:     fetchCooldown,
		FetchPollInterval: fetchPoll,
		JobTimeout:        -1, // each handler's own
	})
	if err != nil {
		return nil, fmt.Errorf("make queue: %w", err)
	}
	q.client = client
	return q, nil
}

// Name is for lifecycle.
func (q *Queue) Name() string { return "queue" }

// Cancel ends the unfinished jobs of a kind and key; a running one's context ends with job.ErrCancelled within seconds.
func (q *Queue) Cancel(ctx context.Context, kind, key string) error {
	_, err := q.db.CancelJobs(ctx, kind, key)
	return err
}

// Run works jobs until ctx ends: first those this node died on. When it ends, the running jobs' contexts do too, and
// they are given back without an attempt being counted.
func (q *Queue) Run(ctx context.Context) error {
	if err := q.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // stopped before it began
		}
		return fmt.Errorf("start queue: %w", err)
	}
	err := q.keep(ctx)
	return errors.Join(err, q.stop(context.WithoutCancel(ctx)))
}

func (q *Queue) start(ctx context.Context) error {
	if q.died != 0 {
		if err := q.db.BlameJob(ctx, q.died); err != nil {
			return err
		}
		q.died = 0
	}
	n, err := q.db.ReleaseJobs(ctx, q.node)
	if err != nil {
		return err
	}
	if n > 0 {
		q.logger.WarnContext(ctx, "jobs of an earlier run are taken up again", slog.Int("jobs", n))
	}
	if err := q.db.SeeNode(ctx, q.node); err != nil {
		return err
	}
	if err := q.tellOthers(ctx); err != nil {
		return err
	}
	// River must not hear of ctx: that would end the jobs without waiting for them.
	if q.client == nil {
		return nil
	}
	return q.client.Start(context.WithoutCancel(ctx))
}

// tellOthers says once of each other process on this database that it is there: what it does is seen here, and it may
// be there by mistake.
func (q *Queue) tellOthers(ctx context.Context) error {
	living, err := q.db.LivingNodes(ctx, q.lostAfter)
	if err != nil {
		return err
	}
	seen := make(map[id.Node]bool, len(living))
	for _, node := range living {
		if node == q.node {
			continue
		}
		seen[node] = true
		if !q.others[node] {
			q.logger.WarnContext(ctx, "another process runs on this database", slog.String("node", string(node)))
		}
	}
	q.others = seen
	return nil
}

func (q *Queue) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stopAfter, errors.New("a job did not let go"))
	defer cancel()
	if q.client != nil {
		if err := q.client.StopAndCancel(ctx); err != nil {
			return fmt.Errorf("stop queue: %w", context.Cause(ctx)) // the jobs are released at the next start
		}
	}
	if _, err := q.db.ReleaseJobs(ctx, q.node); err != nil {
		return fmt.Errorf("stop queue: %w", err)
	}
	return nil
}

// keep does what River does not, until ctx ends, or another process has taken this node's name.
func (q *Queue) keep(ctx context.Context) error {
	cancels, nodes := time.NewTicker(cancelEvery), time.NewTicker(seeEvery)
	defer cancels.Stop()
	defer nodes.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-cancels.C:
			err = q.passCancels(ctx)
		case <-nodes.C:
			if err = q.watchNodes(ctx); err == nil {
				q.reached(ctx)
			}
		}
		if errors.Is(err, db.ErrOccupied) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			q.couldNot(ctx, err)
		}
	}
}

// couldNot logs an error of keep: that the database is away, once.
func (q *Queue) couldNot(ctx context.Context, err error) {
	if !db.Away(err) {
		q.logger.WarnContext(ctx, "queue could not keep house", slog.Any("error", err))
		return
	}
	if q.outage.begin(time.Now()) {
		q.logger.WarnContext(ctx, awayText, slog.Any("error", err))
	}
}

// reached logs that the database is there again, if it was not.
func (q *Queue) reached(ctx context.Context) {
	if took, was := q.outage.end(time.Now()); was {
		q.logger.WarnContext(ctx, backText, slog.Duration("after", took))
	}
}

// passCancels tells running jobs that they were cancelled.
func (q *Queue) passCancels(ctx context.Context) error {
	q.mu.Lock()
	ids := make([]int64, 0, len(q.running))
	for k := range q.running {
		ids = append(ids, k)
	}
	q.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	cancelled, err := q.db.CancelWanted(ctx, ids)
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, k := range cancelled {
		if end, ok := q.running[k]; ok {
			end(job.ErrCancelled)
		}
	}
	return nil
}

// watchNodes says that this node is alive and takes over from those that are not.
func (q *Queue) watchNodes(ctx context.Context) error {
	if err := q.db.KeepNode(ctx); err != nil {
		return err
	}
	if err := q.db.SeeNode(ctx, q.node); err != nil {
		return err
	}
	if err := q.tellOthers(ctx); err != nil {
		return err
	}
	lost, err := q.db.LostNodes(ctx, q.lostAfter)
	if err != nil {
		return err
	}
	for _, node := range lost {
		if node == q.node {
			continue
		}
		n, err := q.db.ReleaseJobs(ctx, node)
		if err != nil {
			return err
		}
		q.logger.WarnContext(ctx, "a node was lost", slog.String("node", string(node)), slog.Int("jobs", n))
	}
	return nil
}
