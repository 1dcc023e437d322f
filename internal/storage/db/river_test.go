package db_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// complaints keeps what is logged at WARN or above.
type complaints struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (c *complaints) Enabled(context.Context, slog.Level) bool { return true }
func (c *complaints) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *complaints) WithGroup(string) slog.Handler            { return c }

func (c *complaints) Handle(_ context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.all = append(c.all, r.Message)
	}
	return nil
}

// midnight comes once, at once; over is closed when what was to be done then is done.
type midnight struct {
	calls int
	over  chan struct{}
}

func (m *midnight) Next(now time.Time) time.Time {
	m.calls++
	switch m.calls {
	case 1:
		return now
	case 2:
		close(m.over)
	}
	return now.Add(time.Hour)
}

type idle struct {
	river.WorkerDefaults[db.JobArgs]
}

func (idle) Work(context.Context, *river.Job[db.JobArgs]) error { return nil }

// TestMidnight is when River rebuilds indexes: neither engine complains about those that it has not.
func TestMidnight(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		logged, night := &complaints{}, &midnight{over: make(chan struct{})}
		workers := river.NewWorkers()
		river.AddWorkerArgs(workers, db.ArgsOf("test.kind"), idle{})
		c, err := d.JobClient(&river.Config{
			Logger: slog.New(logged), Workers: workers,
			Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
			ReindexerSchedule: night,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		select {
		case <-night.over:
		case <-time.After(time.Minute):
			t.Error("midnight does not come")
		}
		if err := c.StopAndCancel(context.WithoutCancel(t.Context())); err != nil {
			t.Fatal(err)
		}
		logged.mu.Lock()
		defer logged.mu.Unlock()
		if len(logged.all) > 0 {
			t.Errorf("it complains: %q", logged.all)
		}
	})
}
