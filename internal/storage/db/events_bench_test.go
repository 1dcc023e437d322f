package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// BenchmarkLists reads pages of 100 with a million events and ten thousand assets stored, and removes old events, on
// SQLite: p95 in milliseconds.
func BenchmarkLists(b *testing.B) {
	d, err := db.Open(b.Context(), db.Options{
		URL: "sqlite://" + b.TempDir() + "/x.db", MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	const events, assets = 1_000_000, 10_000
	if err = d.FillEvents(b.Context(), events); err != nil {
		b.Fatal(err)
	}
	for i := range assets {
		a := asset.Asset{
			ID: id.Asset(fmt.Sprintf("asset%d", i)), Environment: "env", Status: asset.Ready, Index: "x",
			CreatedAt: at(i), Media: id.Media(fmt.Sprint(i)),
		}
		if err = d.Assets().Insert(b.Context(), asset.Change{Asset: a}); err != nil {
			b.Fatal(err)
		}
	}
	list := func(q event.Query) func(context.Context) error {
		q.Environment, q.Limit = "env", 100
		return func(ctx context.Context) error {
			got, err := d.ListEvents(ctx, q)
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("%+v finds nothing", q)
			}
			return err
		}
	}
	middle := time.UnixMilli(events / 2 * 1000)
	for name, do := range map[string]func(context.Context) error{
		"newest":      list(event.Query{NewestFirst: true}),
		"oldest":      list(event.Query{}),
		"type":        list(event.Query{NewestFirst: true, Types: []string{"test.type3"}}),
		"rare types":  list(event.Query{NewestFirst: true, Types: []string{"test.rare", "test.type1"}}),
		"object":      list(event.Query{NewestFirst: true, Object: "object77"}),
		"object+type": list(event.Query{NewestFirst: true, Object: "object77", Types: []string{"test.type7"}}),
		"until":       list(event.Query{NewestFirst: true, Until: middle}),
		"since":       list(event.Query{Since: middle}),
		"since+until": list(event.Query{Since: middle, Until: middle.Add(time.Hour), Types: []string{"test.type5"}}),
		"assets": func(ctx context.Context) error {
			_, _, err := d.Assets().List(ctx, "env", asset.ListQuery{Page: 1, Limit: 100})
			return err
		},
		"prune 100": func(ctx context.Context) error {
			_, err := d.PruneEvents(ctx, middle, 100)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				begin := time.Now()
				if err := do(b.Context()); err != nil {
					b.Fatal(err)
				}
				took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)*95/100], "p95-ms")
		})
	}
}

// BenchmarkSegmentsBesidePruning commits a segment of a live stream every 20 ms, alone and while a million old events
// with their deliveries are removed as the service removes them: p50, p95 and the longest commit in milliseconds.
func BenchmarkSegmentsBesidePruning(b *testing.B) {
	d, err := db.Open(b.Context(), db.Options{
		URL: "sqlite://" + b.TempDir() + "/x.db", MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	fillLists(b, d)
	if err = d.Assets().Insert(b.Context(), asset.Change{
		Asset: asset.Asset{ID: "live", Environment: "env", Status: asset.Ready, IsLive: true, Media: "live"},
	}); err != nil {
		b.Fatal(err)
	}
	segment := int64(0)
	run := func(b *testing.B) {
		b.Helper()
		var took []float64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for b.Loop() {
			<-tick.C
			begin := time.Now()
			row := asset.TimelineEntry{Sequence: segment, Data: make([]byte, 200)}
			if err := d.Assets().Append(b.Context(), "live", asset.Writer{}, []asset.TimelineEntry{row}); err != nil {
				b.Fatal(err)
			}
			segment++
			took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2], "p50-ms")
		b.ReportMetric(took[len(took)*95/100], "p95-ms")
		b.ReportMetric(took[len(took)-1], "max-ms")
	}
	b.Run("alone", run)
	b.Run("pruning", func(b *testing.B) {
		ctx, cancel := context.WithCancel(b.Context())
		ended := make(chan error)
		go func() {
			for {
				n, err := d.PruneEvents(ctx, time.UnixMilli(1<<40), 100)
				if err == nil && n != 100 {
					err = errors.New("all is removed")
				}
				if err != nil {
					ended <- err
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(50 * time.Millisecond):
				}
			}
		}()
		run(b)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			b.Fatal(err)
		}
	})
}
