package db_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control/audit"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// BenchmarkCreates has clients create live streams on SQLite, as requests of the API do: each with a playback ID, its
// event and its entry of the audit log. It tells what one costs in processor time, of which the clients need next to
// nothing here.
func BenchmarkCreates(b *testing.B) {
	d := openInUse(b)
	service := live.New(live.Options{Store: d.LiveStreams()})
	before := processorTime(b)
	d.create(func(n int) error {
		now := time.Now()
		request := audit.With(d.ctx, audit.Entry{
			At: now, Environment: "env", Operation: "create-live-stream", RequestID: fmt.Sprint(n),
			Actor: audit.Actor{Type: audit.AccessToken, ID: "token", Name: "name"}, Address: "192.0.2.1",
		})
		in := live.CreateInput{PlaybackPolicies: []playbackid.Policy{playbackid.Public}, LatencyMode: live.Low}
		_, err := service.Create(request, "env", in, now)
		return err
	})
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "CPU-µs/op")
}

// BenchmarkWritesWhileRead has clients create live streams while 4 read lists all the time, on SQLite: the 95th
// percentile of a list in milliseconds, and how large the log's file becomes beside the database's.
func BenchmarkWritesWhileRead(b *testing.B) {
	d := openInUse(b)
	lists := make([][]float64, 4)
	for i := range lists {
		d.beside.Go(func() {
			for d.ctx.Err() == nil {
				began := time.Now()
				_, err := d.LiveStreams().List(d.ctx, "env", live.ListQuery{Page: 1, Limit: 100})
				if err != nil && d.ctx.Err() == nil {
					b.Error(err)
					return
				}
				lists[i] = append(lists[i], milliseconds(began))
			}
		})
	}
	var largest atomic.Int64
	d.create(func(n int) error {
		s := live.Stream{
			ID: id.LiveStream(fmt.Sprintf("live%d", n)), Environment: "env", State: live.Idle,
			StreamKey: fmt.Sprint("key", n), CreatedAt: at(n),
		}
		told := event.New("env", "video.live_stream.created", "live_stream", string(s.ID), s.CreatedAt, s)
		err := d.LiveStreams().Insert(d.ctx, live.Change{Stream: s, Events: []event.Event{told}})
		if info, bad := os.Stat(d.path + "-wal"); bad == nil && info.Size() > largest.Load() {
			largest.Store(info.Size())
		}
		return err
	})
	d.stop()
	d.beside.Wait()
	b.ReportMetric(p95(lists), "p95-list-ms")
	b.ReportMetric(float64(largest.Load())/1e6, "log-MB")
	if info, err := os.Stat(d.path); err == nil {
		b.ReportMetric(float64(info.Size())/1e6, "database-MB")
	}
}

// inUse is a database on SQLite as a process has it.
type inUse struct {
	*db.DB

	b      *testing.B
	path   string
	ctx    context.Context
	stop   func()
	beside sync.WaitGroup // what ends with ctx
}

func openInUse(b *testing.B) *inUse {
	b.Helper()
	d := &inUse{b: b, path: filepath.Join(b.TempDir(), "x.db")}
	var err error
	d.DB, err = db.Open(b.Context(), db.Options{URL: "sqlite://" + d.path, MasterKey: masterkey.Of(masterkey.Key{})})
	if err != nil {
		b.Fatal(err)
	}
	d.ctx, d.stop = context.WithCancel(b.Context())
	d.beside.Go(func() { _ = d.Run(d.ctx) })
	b.Cleanup(func() {
		d.stop()
		d.beside.Wait()
		_ = d.Close() // it is thrown away
	})
	return d
}

// create has 16 clients create what is measured, and tells how many are created a second, and how long one takes.
func (iu *inUse) create(one func(n int) error) {
	var created atomic.Int64
	var clients sync.WaitGroup
	took, first := make([][]float64, 16), time.Now()
	iu.b.ResetTimer()
	for i := range took {
		clients.Go(func() {
			for n := int(created.Add(1)); n <= iu.b.N; n = int(created.Add(1)) {
				began := time.Now()
				if err := one(n); err != nil {
					iu.b.Error(err)
					return
				}
				took[i] = append(took[i], milliseconds(began))
			}
		})
	}
	clients.Wait()
	iu.b.StopTimer()
	iu.b.ReportMetric(float64(iu.b.N)/time.Since(first).Seconds(), "created/s")
	iu.b.ReportMetric(p95(took), "p95-ms")
}

// processorTime is what this process has used of it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
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
