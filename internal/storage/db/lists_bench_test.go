package db_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
)

// BenchmarkOtherLists reads the lists that BenchmarkLists does not: pages of 100 on SQLite, with a million deliveries
// to a webhook, ten thousand uploads and live streams, and two days in which each of ten thousand assets was watched in
// every hour and four weeks in which it was watched once a day: p95 in milliseconds.
func BenchmarkOtherLists(b *testing.B) {
	d, err := db.Open(b.Context(), db.Options{
		URL: "sqlite://" + b.TempDir() + "/x.db", MasterKey: masterkey.Of(masterkey.Key{}),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	fillLists(b, d)
	day := time.UnixMilli(0).UTC()
	reports := func(q usage.Query) func(context.Context) (int, error) {
		q.Page, q.Limit = 1, 100
		return func(ctx context.Context) (int, error) {
			got, _, err := d.Usage().Reports(ctx, "env", q)
			return len(got), err
		}
	}
	deliveries := func(q webhook.DeliveryQuery) func(context.Context) (int, error) {
		q.Limit = 100
		return func(ctx context.Context) (int, error) {
			got, err := d.Deliveries(ctx, "hook0", q)
			return len(got), err
		}
	}
	for name, list := range map[string]func(context.Context) (int, error){
		"uploads": func(ctx context.Context) (int, error) {
			got, err := d.Uploads().List(ctx, "env", upload.ListQuery{Page: 1, Limit: 100})
			return len(got), err
		},
		"uploads, last page": func(ctx context.Context) (int, error) {
			got, err := d.Uploads().List(ctx, "env", upload.ListQuery{Page: 100, Limit: 100})
			return len(got), err
		},
		"live streams": func(ctx context.Context) (int, error) {
			got, err := d.LiveStreams().List(ctx, "env", live.ListQuery{Page: 1, Limit: 100})
			return len(got), err
		},
		"live streams, last page": func(ctx context.Context) (int, error) {
			got, err := d.LiveStreams().List(ctx, "env", live.ListQuery{Page: 100, Limit: 100})
			return len(got), err
		},
		"live streams, counted": func(ctx context.Context) (int, error) {
			got, err := d.LiveStreams().Count(ctx, "env")
			return got.All, err
		},
		"idle live streams": func(ctx context.Context) (int, error) {
			got, err := d.LiveStreams().List(ctx, "env", live.ListQuery{Status: live.StatusIdle, Page: 50, Limit: 100})
			return len(got), err
		},
		"assets, last page": func(ctx context.Context) (int, error) {
			got, _, err := d.Assets().List(ctx, "env", asset.ListQuery{Page: 100, Limit: 100})
			return len(got), err
		},
		"signing keys": func(ctx context.Context) (int, error) {
			got, err := d.Signing().Keys(ctx, "env", 1, 100)
			return len(got), err
		},
		"playback restrictions": func(ctx context.Context) (int, error) {
			got, err := d.Restrictions().List(ctx, "env", 1, 100)
			return len(got), err
		},
		"webhooks": func(ctx context.Context) (int, error) {
			got, err := d.Webhooks(ctx, "env", 1, 100)
			return len(got), err
		},
		"deliveries":           deliveries(webhook.DeliveryQuery{}),
		"deliveries, far back": deliveries(webhook.DeliveryQuery{Before: 5000}),
		"failed deliveries":    deliveries(webhook.DeliveryQuery{State: webhook.Failed}),
		"attempts of a page of events": func(ctx context.Context) (int, error) {
			var page []int64
			for i := range int64(100) {
				page = append(page, 900_000-i)
			}
			got, err := d.AttemptsOf(ctx, page, 20)
			return len(got), err
		},
		"delivery usage of an hour": reports(usage.Query{
			From: day.Add(time.Hour), To: day.Add(2 * time.Hour),
		}),
		"delivery usage of a day, one asset": reports(usage.Query{
			From: day, To: day.Add(24 * time.Hour), Asset: "asset77",
		}),
		"delivery usage of a day": reports(usage.Query{From: day, To: day.Add(24 * time.Hour)}),
		"delivery usage of a day at UTC+1": reports(usage.Query{
			From: day.Add(23 * time.Hour),
			To:   day.Add(47 * time.Hour),
		}),
		"delivery usage of a day at UTC-5": reports(usage.Query{
			From: day.Add(5 * time.Hour),
			To:   day.Add(29 * time.Hour),
		}),
		"delivery usage of a month": reports(usage.Query{From: day, To: day.AddDate(0, 0, 30)}),
	} {
		b.Run(name, func(b *testing.B) {
			var took []float64
			for b.Loop() {
				begin := time.Now()
				if n, err := list(b.Context()); err != nil || n == 0 {
					b.Fatal(n, err)
				}
				took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)*95/100], "p95-ms")
		})
	}
}

// fillLists stores what is listed.
func fillLists(b *testing.B, d *db.DB) {
	b.Helper()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	ctx := b.Context()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	check(err)
	for i := range 10_000 {
		a := asset.Asset{
			ID: id.Asset(fmt.Sprintf("asset%d", i)), Environment: "env", Status: asset.Ready, Index: "x",
			CreatedAt: at(i), Media: id.Media(fmt.Sprint(i)),
		}
		check(d.Assets().Insert(ctx, asset.Change{Asset: a}))
		u := upload.Upload{
			ID: id.Upload(fmt.Sprintf("upload%d", i)), Environment: "env", Status: upload.Waiting,
			Secret: fmt.Sprint("secret", i), CreatedAt: at(i),
		}
		check(d.Uploads().Insert(ctx, upload.Change{Upload: u}))
		s := live.Stream{
			ID: id.LiveStream(fmt.Sprintf("live%d", i)), Environment: "env", State: live.Idle,
			StreamKey: fmt.Sprint("key", i), CreatedAt: at(i),
		}
		check(d.LiveStreams().Insert(ctx, live.Change{Stream: s}))
	}
	for i := range 100 {
		k := signing.Key{
			ID: id.SigningKey(fmt.Sprint("key", i)), Environment: "env", Public: &key.PublicKey, CreatedAt: at(i),
		}
		check(d.Signing().InsertKey(ctx, k, 1000))
		check(d.Restrictions().Insert(ctx, restriction.Restriction{
			ID: id.PlaybackRestriction(fmt.Sprint("r", i)), Environment: "env", CreatedAt: at(i),
		}, 1000))
		check(d.InsertWebhook(ctx, webhook.Webhook{
			ID: id.Webhook(fmt.Sprint("hook", i)), Environment: "env", Address: fmt.Sprint("https://", i),
			CreatedAt: at(i),
		}, 1000))
	}
	check(d.FillEvents(ctx, 1_000_000))
	check(d.Exec(ctx,
		`INSERT INTO webhook_deliveries (webhook_id, sequence, resource_id, state, attempts, first_at, next_at, log)
		SELECT 'hook0', sequence, resource_id, CASE WHEN sequence % 997 = 0 THEN 'failed' ELSE 'delivered' END, 1, 1, 0,
			'{"at":"2026-11-01T12:00:00Z","address":"https://a.example","status":204}' || char(10) FROM events`))
	check(d.Exec(ctx, `WITH RECURSIVE h(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM h WHERE i < 719)
		INSERT INTO delivery_usage (asset_id, hour, environment_id, live_stream_id, audio_only, tier_720p, tier_1080p, tier_1440p, tier_2160p, total)
		SELECT id, i * 3600000, 'env', '', 0, 1000, 2000, 0, 0, 3000 FROM assets, h WHERE i < 48 OR i % 24 = 20`))
	check(d.Exec(ctx, `INSERT INTO delivery_usage_days (asset_id, day, environment_id, total)
		SELECT asset_id, hour - hour % 86400000, 'env', SUM(total) FROM delivery_usage GROUP BY asset_id,
			hour - hour % 86400000`))
}
