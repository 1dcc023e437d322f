package upload_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
)

// overdue is which uploads are late, in this order.
func overdue(t *testing.T, s *upload.Service, before time.Time, limit int) (all []id.Upload) {
	t.Helper()
	var last upload.Overdue
	for {
		some, err := s.Overdue(t.Context(), before, last, limit)
		must(t, err)
		if len(some) > limit {
			t.Fatalf("%d in a page of %d", len(some), limit)
		}
		for _, o := range some {
			all, last = append(all, o.ID), o
		}
		if len(some) < limit {
			return all
		}
	}
}

// TestOverdue: an upload is late from the end of its time on and, once it is over, until it is noted that its bytes are
// gone.
func TestOverdue(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, _ *db.DB, s *upload.Service) {
		ctx := t.Context()
		short := create(t, s, upload.CreateInput{Timeout: new(60)})
		long := create(t, s, upload.CreateInput{Timeout: new(600)})
		quit := create(t, s, upload.CreateInput{})
		must(t, s.Quit(ctx, quit.ID, noon.Add(time.Second)))
		var others []id.Upload // of one moment
		for range 5 {
			u := create(t, s, upload.CreateInput{Timeout: new(300)})
			others = append(others, u.ID)
		}
		slices.Sort(others)
		for _, tt := range []struct {
			at   time.Duration
			want []id.Upload
		}{
			{time.Second, nil},
			{2 * time.Second, []id.Upload{quit.ID}},
			{time.Minute, []id.Upload{quit.ID}},
			{time.Minute + time.Millisecond, []id.Upload{quit.ID, short.ID}},
			{time.Hour, append(append([]id.Upload{quit.ID, short.ID}, others...), long.ID)},
		} {
			for _, limit := range []int{1, 2, 100} {
				if got := overdue(t, s, noon.Add(tt.at), limit); !slices.Equal(got, tt.want) {
					t.Errorf("before %v, by %d: %v, want %v", tt.at, limit, got, tt.want)
				}
			}
		}
		medias := []id.Media{quit.Media, short.Media, "other"}
		expecting := func(want ...id.Media) {
			t.Helper()
			got, err := s.Expecting(ctx, medias)
			must(t, err)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("expecting %v, want %v", got, want)
			}
		}
		expecting(quit.Media, short.Media)
		before, err := s.Find(ctx, quit.ID)
		must(t, err)
		for range 2 {
			must(t, s.Cleared(ctx, quit.ID))
			must(t, s.Cleared(ctx, short.ID)) // it waits
		}
		after, err := s.Find(ctx, quit.ID)
		must(t, err)
		if !after.Cleared || !after.UpdatedAt.Equal(before.UpdatedAt) || !after.Unneeded.Equal(before.UpdatedAt) ||
			after.Revision != before.Revision+1 {
			t.Errorf("cleared: %+v", after)
		}
		expecting(short.Media)
		if got := overdue(t, s, noon.Add(2*time.Minute), 10); !slices.Equal(got, []id.Upload{short.ID}) {
			t.Errorf("once it is cleared: %v", got)
		}
		must(t, s.Expire(ctx, short.ID, noon.Add(time.Minute)))
		got, err := s.Overdue(ctx, noon.Add(2*time.Minute), upload.Overdue{}, 1)
		if err != nil || len(got) != 1 || got[0].Job().Kind != upload.JobClear {
			t.Errorf("once it has timed out: %+v, %v", got, err)
		}
		wantKind(t, s.Cleared(ctx, "unknown"), fault.NotFound)
	})
}

// TestPrune: the row of an upload goes a while after it was of use, and not before its bytes.
func TestPrune(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, d *db.DB, s *upload.Service) {
		ctx := t.Context()
		assets := asset.New(asset.Options{Store: d.Assets()})
		complete := func() upload.Upload {
			u := create(t, s, upload.CreateInput{})
			n := asset.NewUpload{Upload: u.ID, Environment: env, Options: u.Options, Media: u.Media}
			made, err := assets.Uploaded(n, noon)
			must(t, err)
			done, err := s.Completed(u, made.Asset.ID, noon)
			must(t, err)
			must(t, d.CompleteUpload(ctx, done, made))
			return done.Upload
		}
		waiting, playable, deleted, failed := create(t, s, upload.CreateInput{}), complete(), complete(), complete()
		quit, stuck := create(t, s, upload.CreateInput{}), create(t, s, upload.CreateInput{})
		must(t, s.Quit(ctx, quit.ID, noon.Add(time.Second)))
		must(t, s.Cleared(ctx, quit.ID))
		must(t, s.Quit(ctx, stuck.ID, noon.Add(time.Second)))
		must(t, s.Fail(ctx, failed.ID, upload.Error{Type: "t", Message: "m"}, noon.Add(2*time.Second)))
		must(t, assets.Delete(ctx, env, failed.Asset, noon.Add(time.Hour))) // counts no more: it had failed
		must(t, assets.Delete(ctx, env, deleted.Asset, noon.Add(3*time.Second)))
		left := func() (all []string) {
			t.Helper()
			names := map[id.Upload]string{
				waiting.ID: "waiting", playable.ID: "playable", deleted.ID: "deleted", failed.ID: "failed",
				quit.ID: "quit", stuck.ID: "stuck",
			}
			list, err := s.List(ctx, env, upload.ListQuery{}, noon)
			must(t, err)
			for _, u := range list {
				all = append(all, names[u.ID])
			}
			slices.Sort(all)
			return all
		}
		for _, tt := range []struct {
			before time.Duration
			limit  int
			gone   int
			want   []string
		}{
			{time.Second, 10, 0, []string{"deleted", "failed", "playable", "quit", "stuck", "waiting"}},
			{time.Hour, 1, 1, []string{"deleted", "failed", "playable", "stuck", "waiting"}},
			{3 * time.Second, 10, 1, []string{"deleted", "playable", "stuck", "waiting"}},
			{3*time.Second + 1e6, 10, 1, []string{"playable", "stuck", "waiting"}},
			{365 * 24 * time.Hour, 10, 0, []string{"playable", "stuck", "waiting"}},
		} {
			n, err := d.PruneUploads(ctx, noon.Add(tt.before), tt.limit)
			must(t, err)
			if got := left(); n != tt.gone || !slices.Equal(got, tt.want) {
				t.Errorf("before %v: %d are gone, %v left, want %d and %v", tt.before, n, got, tt.gone, tt.want)
			}
		}
		must(t, s.Cleared(ctx, stuck.ID))
		if n, err := d.PruneUploads(ctx, noon.Add(time.Hour), 10); err != nil || n != 1 {
			t.Errorf("once its bytes are gone: %d, %v", n, err)
		}
		if got := fmt.Sprint(left()); got != "[playable waiting]" {
			t.Error(got)
		}
	})
}
