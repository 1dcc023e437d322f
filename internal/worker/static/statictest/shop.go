// Package statictest has tests of files for download their world: workertest.World and what makes files of its assets.
package statictest

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/id"
	"millrace/internal/media/download"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/mediastore"
	"millrace/internal/presentation"
	"millrace/internal/worker/master"
	"millrace/internal/worker/static"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// Shop makes files of the world's assets, as the service does.
type Shop struct {
	*workertest.World
	Footage  *Spoiled
	Progress *Progressed
}

// Spoiled lets tests get between a job and what it works on.
type Spoiled struct {
	*presentation.Source
	Before func(a asset.Asset) error
	Change func(f *download.Footage)
}

// Footage implements static.Source.
func (s *Spoiled) Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error) {
	if s.Before != nil {
		if err := s.Before(a); err != nil {
			return download.Footage{}, err
		}
	}
	f, err := s.Source.Footage(ctx, a, want)
	if s.Change != nil && err == nil {
		s.Change(&f)
	}
	return f, err
}

// Progressed notes what is written down of how far files are, in percent.
type Progressed struct {
	asset.FileMaker

	Told []float64
}

// StaticProgress implements asset.FileMaker.
func (p *Progressed) StaticProgress(
	ctx context.Context, a id.Asset, f id.StaticRendition, percent float64, now time.Time,
) error {
	p.Told = append(p.Told, percent)
	return p.FileMaker.StaticProgress(ctx, a, f, percent, now)
}

// NewShop gives those who wait for a turn one after pass.
func NewShop(t *testing.T, pass time.Duration) *Shop {
	t.Helper()
	w := workertest.New(t, workertest.Options{})
	engine := filmtest.NewEngine(t, 0)
	log := slog.New(slog.DiscardHandler)
	rungs := justintime.New(justintime.Options{
		Encoder: engine,
		Store:   mediastore.Derived{Objects: mediastore.Objects{Blob: w.Store}, Assets: w.Work},
		Version: "test",
		Now:     time.Now,
		Logger:  log,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { _ = rungs.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	footage := &Spoiled{Source: presentation.New(presentation.Options{
		Assets:     w.Work,
		Blob:       w.Store,
		Library:    ondemand.NewLibrary(workertest.Objects{Store: w.Store}, 1<<20),
		Renditions: rungs,
		Now:        w.Now,
		Logger:     log,
	})}
	progress := &Progressed{FileMaker: w.Work}
	for _, h := range []job.Handler{
		(&static.Worker{
			Assets:  progress,
			Store:   w.Store,
			Footage: footage,
			Encoder: engine,
			Scratch: w.Scratch,
			Pass:    pass,
			Now:     w.Now,
		}).Handler(),
		(&master.Worker{Assets: w.Work, Store: w.Store, Footage: footage, Now: w.Now}).Handler(),
	} {
		w.Handlers[h.Kind] = h
	}
	return &Shop{w, footage, progress}
}

// Ask asks for a file of an asset.
func (s *Shop) Ask(a asset.Asset, resolution string) asset.StaticRendition {
	s.T.Helper()
	f, err := s.AddStatic(s.Ctx(), workertest.Env, a.ID, assetopt.StaticRendition{Resolution: resolution}, s.Now())
	s.Must(err)
	return f
}

// Files lists what is stored of files.
func (s *Shop) Files() (out []string) {
	for _, key := range s.Objects() {
		if strings.Contains(key, "/files/") {
			out = append(out, key)
		}
	}
	return out
}
