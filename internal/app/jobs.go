package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"millrace/internal/app/cleanup"
	"millrace/internal/app/roles"
	"millrace/internal/control/job"
	"millrace/internal/lifecycle"
	"millrace/internal/storage/db"
	"millrace/internal/storage/queue"
	"millrace/internal/worker/attempt"
	workercaptions "millrace/internal/worker/captions"
	"millrace/internal/worker/finish"
	"millrace/internal/worker/ingest"
	"millrace/internal/worker/master"
	"millrace/internal/worker/static"
	"millrace/internal/worker/track"
	workerupload "millrace/internal/worker/upload"
)

// jobs is the queue with every worker.
func (n *node) jobs(ctx context.Context) (lifecycle.Service, error) {
	scratch, err := filepath.Abs(filepath.Join(n.cfg.DataDir, "downloads"))
	if err != nil {
		return nil, fmt.Errorf("name folder for downloads: %w", err)
	}
	if err = os.MkdirAll(scratch, 0o750); err != nil {
		return nil, fmt.Errorf("make folder for downloads: %w", err)
	}
	workers := n.cfg.WorkerConcurrency
	if workers <= 0 {
		workers = runtime.NumCPU()
	}
	if n.metrics != nil {
		n.metrics.Queues(func(ctx context.Context) ([]job.Waiting, error) { return db.JobsWaiting(ctx, n.db) },
			roles.Slots(n.cfg.Node.Roles, workers))
	}
	handlers, tidy := n.handlers(scratch, workers)
	if err = tidy(ctx); err != nil {
		return nil, err
	}
	if n.metrics != nil {
		handlers = n.metrics.Handlers(handlers)
	}
	return queue.New(queue.Options{
		DB: n.db, Node: n.id, Died: n.died, Logger: n.log, Tracer: n.tracing.Tracer(), Workers: workers,
		Handlers: handlers, Works: roles.Works(n.cfg.Node.Roles),
	})
}

// handlers are those of every kind of job. tidy removes what earlier processes have left in the folder scratch.
func (n *node) handlers(scratch string, workers int) (all []job.Handler, tidy func(context.Context) error) {
	probes := attempt.NewProbeLimiter(workers)
	files := ingest.New(ingest.Options{
		Assets: n.assets, Store: n.blob, Fetch: n.fetch, Engine: n.ffmpeg, Library: n.library, Scratch: scratch,
		MaxSize: n.cfg.MaxUploadBytes, Mark: n.mark, ProbeLimiter: probes, Now: clock, Logger: n.log,
	})
	tracks := track.New(track.Options{
		Assets:       n.assets,
		Store:        n.blob,
		Fetch:        n.fetch,
		Engine:       n.ffmpeg,
		Scratch:      scratch,
		MaxSize:      n.cfg.MaxUploadBytes,
		ProbeLimiter: probes,
		Now:          clock,
	})
	downloads := &static.Worker{
		Assets:  n.assets,
		Store:   n.blob,
		Footage: n.viewers,
		Encoder: n.ffmpeg,
		Scratch: scratch,
		Pass:    time.Minute,
		Now:     clock,
	}
	said := n.speechWorker(scratch)
	ends := &finish.Worker{Assets: n.assets, Store: n.blob, Now: clock}
	closed := &workercaptions.Worker{Assets: n.assets, Store: n.blob, Footage: n.viewers, Now: clock}
	masters := &master.Worker{Assets: n.assets, Store: n.blob, Footage: n.viewers, Now: clock}
	received := &workerupload.Worker{Uploads: n.uploads, Assets: n.assets, Files: n.files, Now: clock}
	cleaning := cleanup.Options{DB: n.db, Assets: n.assets.Work, Objects: n.blob, Now: clock, Logger: n.log}
	if n.metrics != nil {
		cleaning.Deleted = n.metrics.Retired
	}
	all = slices.Concat(received.Handlers(), cleanup.Handlers(cleaning), []job.Handler{
		files.Handler(), tracks.Handler(), ends.Handler(), downloads.Handler(), masters.Handler(), said.Handler(),
		closed.Handler(),
	})
	return all, func(ctx context.Context) error {
		return errors.Join(files.Tidy(ctx), tracks.Tidy(ctx), downloads.Tidy(ctx), said.Tidy(ctx))
	}
}
