package sweep

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/id"
)

type assets struct{ preparing []asset.Asset }

func (a assets) Unfinished(context.Context) ([]asset.Asset, error) { return a.preparing, nil }

type queue struct{ got []string }

func (q *queue) Enqueue(_ context.Context, jobs ...job.Insert) error {
	for _, j := range jobs {
		q.got = append(q.got, j.Kind+" "+j.Key)
	}
	return nil
}

func TestSweepAsksForWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		old := time.Now().Add(-time.Hour)
		q := &queue{}
		s := &Sweeper{
			Assets: assets{preparing: []asset.Asset{
				{ID: "url", Status: asset.Preparing, UpdatedAt: old},
				{ID: "live", Status: asset.Preparing, IsLive: true, LiveStream: id.LiveStream("s"), UpdatedAt: old},
				{ID: "over", Status: asset.Preparing, LiveStream: id.LiveStream("s"), UpdatedAt: old},
				{ID: "new", Status: asset.Preparing, UpdatedAt: time.Now()},
			}},
			Uploads: &uploads{}, Store: openFolder(t, t.TempDir()), Alone: alone,
			Queue: q, Every: 10 * time.Minute, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		}
		ctx, cancel := context.WithTimeout(t.Context(), 11*time.Minute)
		defer cancel()
		_ = s.Run(ctx)
		want := []string{
			"asset.ingest url", "asset.finish over", "asset.ingest url", "asset.finish over", "asset.ingest new",
		}
		if len(q.got) != len(want) {
			t.Fatalf("asked for %q, want %q", q.got, want)
		}
		for i := range want {
			if q.got[i] != want[i] {
				t.Errorf("asked for %q, want %q", q.got, want)
			}
		}
	})
}
