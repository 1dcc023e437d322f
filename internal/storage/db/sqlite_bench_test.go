package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// BenchmarkWritesWhileRead creates live streams with 16 clients while 4 read lists all the time, on SQLite: how many
// are created a second, the 95th percentile of a creation and of a list in milliseconds, and how large the log's file
// becomes beside the database's.
func BenchmarkWritesWhileRead(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x.db")
	d, err := db.Open(b.Context(), db.Options{URL: "sqlite://" + path, MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	ctx, stop := context.WithCancel(b.Context())
	var beside, clients sync.WaitGroup
	defer beside.Wait()
	defer stop()
	beside.Go(func() { _ = d.Run(ctx) })
	var created atomic.Int64
	create := func() error {
		n := int(created.Add(1))
		s := live.Stream{
			ID: id.LiveStream(fmt.Sprintf("live%d", n)), Environment: "env", State: live.Idle,
			StreamKey: fmt.Sprint("key", n), CreatedAt: at(n),
		}
		told := event.New("env", "video.live_stream.created", "live_stream", string(s.ID), s.CreatedAt, s)
		return d.LiveStreams().Insert(ctx, live.Change{Stream: s, Events: []event.Event{told}})
	}
	list := func() error {
		_, err := d.LiveStreams().List(ctx, "env", live.ListQuery{Page: 1, Limit: 100})
		return err
	}
	lists := make([][]float64, 4)
	for i := range lists {
		beside.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if err := list(); err != nil && ctx.Err() == nil {
					b.Error(err)
					return
				}
				lists[i] = append(lists[i], milliseconds(began))
			}
		})
	}
	creations := make([][]float64, 16)
	var largest atomic.Int64
	first := time.Now()
	b.ResetTimer()
	for i := range creations {
		clients.Go(func() {
			for int(created.Load()) < b.N {
				began := time.Now()
				if err := create(); err != nil {
					b.Error(err)
					return
				}
				creations[i] = append(creations[i], milliseconds(began))
				if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > largest.Load() {
					largest.Store(info.Size())
				}
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	took := time.Since(first)
	stop()
	beside.Wait()
	b.ReportMetric(float64(created.Load())/took.Seconds(), "created/s")
	b.ReportMetric(p95(creations), "p95-create-ms")
	b.ReportMetric(p95(lists), "p95-list-ms")
	b.ReportMetric(float64(largest.Load())/1e6, "log-MB")
	if info, err := os.Stat(path); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "database-MB")
	}
}

func milliseconds(since time.Time) float64 {
	return float64(time.Since(since)) / float64(time.Millisecond)
}

func p95(all [][]float64) float64 {
	sorted := slices.Sorted(slices.Values(slices.Concat(all...)))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*95/100]
}
