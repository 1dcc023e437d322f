package db_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/internal/control/audit"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// BenchmarkCreates has 16 clients create live streams on SQLite, as requests of the API do: each with a playback ID, its
// event and its entry of the audit log. It tells what one costs in processor time, of which the clients need next to
// nothing here.
func BenchmarkCreates(b *testing.B) {
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
	service := live.New(live.Options{Store: d.LiveStreams()})
	var created atomic.Int64
	responses := make([][]float64, 16)
	before, first := processorTime(b), time.Now()
	b.ResetTimer()
	for i := range responses {
		clients.Go(func() {
			for n := created.Add(1); int(n) <= b.N; n = created.Add(1) {
				began := time.Now()
				request := audit.With(ctx, audit.Entry{
					At: began, Environment: "env", Operation: "create-live-stream", RequestID: fmt.Sprint(n),
					Actor: audit.Actor{Type: audit.AccessToken, ID: "token", Name: "name"}, Address: "192.0.2.1",
				})
				in := live.CreateInput{PlaybackPolicies: []playbackid.Policy{playbackid.Public}, LatencyMode: live.Low}
				if _, err := service.Create(request, "env", in, began); err != nil {
					b.Error(err)
					return
				}
				responses[i] = append(responses[i], milliseconds(began))
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/time.Since(first).Seconds(), "created/s")
	b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "CPU-µs/op")
	b.ReportMetric(p95(responses), "p95-ms")
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
