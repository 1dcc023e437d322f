package node_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// drains is whether a node is to leave, or why that can't be read.
type drains struct {
	node.Drains

	mu  sync.Mutex
	on  bool
	err error
}

func (d *drains) set(on bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on, d.err = on, err
}

func (d *drains) Draining(_ context.Context, n id.Node, run string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n != "a" || run != "run" {
		return false, errors.New("another node is asked about")
	}
	return d.on, d.err
}

// TestWatchDrain: a process is told of each change within a second or so, and of nothing while the database is away.
func TestWatchDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told []bool
		d := &drains{}
		w := node.WatchDrain(d, "a", "run", func(on bool) { told = append(told, on) }, slog.New(slog.DiscardHandler))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		step := func(on bool, err error, want ...bool) {
			t.Helper()
			d.set(on, err)
			time.Sleep(2100 * time.Millisecond)
			synctest.Wait()
			if !slices.Equal(told, want) {
				t.Errorf("told %v, want %v", told, want)
			}
		}
		step(false, nil)
		step(true, nil, true)
		step(false, errors.New("away"), true)
		step(true, nil, true)
		step(false, nil, true, false)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
