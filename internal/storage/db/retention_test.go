package db_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/retention"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestRetentionPolicies(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		env, err := d.Access().EnsureDefault(ctx, access.Environment{
			ID: "env", Name: "Default", Kind: "production", CreatedAt: at(0),
		})
		must(t, err)
		s := db.Retention(d)
		none, err := s.Policy(ctx, env.ID)
		if err != nil || none.On() || none.Environment != env.ID {
			t.Errorf("without one: %+v, %v", none, err)
		}
		for i, l := range []retention.Limits{{MaxAgeDays: 30}, {MaxAgeDays: 7, MaxBytes: 5e12}} {
			p := retention.Policy{Environment: env.ID, Limits: l, StartsAt: at(100 + i), UpdatedAt: at(i + 1)}
			told := audit.With(ctx, audit.Entry{At: start, Operation: "set-retention"})
			must(t, s.Set(told, p))
			var got retention.Policy
			got, err = s.Policy(ctx, env.ID)
			all, failed := s.Policies(ctx)
			if err != nil || failed != nil || got != p || !slices.Equal(all, []retention.Policy{p}) {
				t.Errorf("got %+v, %+v, %v, %v", got, all, err, failed)
			}
		}
		must(t, s.Remove(ctx, env.ID))
		must(t, s.Remove(ctx, env.ID))
		var all []retention.Policy
		if all, err = s.Policies(ctx); err != nil || len(all) != 0 {
			t.Errorf("removed: %+v, %v", all, err)
		}
		log, err := d.AuditLog(ctx, audit.Query{Resource: string(env.ID), Limit: 9})
		if err != nil || len(log) != 2 || log[0].Resource.Type != "retention_policy" || log[0].Environment != env.ID {
			t.Errorf("audit log %+v, %v", log, err)
		}
	})
}

// TestRetentionNow: the time of the database, which runs on this machine.
func TestRetentionNow(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		before := time.Now()
		now, err := db.Retention(d).Now(t.Context())
		if err != nil || now.Before(before.Add(-time.Minute)) || now.After(time.Now().Add(time.Minute)) {
			t.Errorf("%v, %v, asked at %v", now, err, before)
		}
	})
}

// TestUnmeasuredOfClips: media whose asset is gone come once each, however many clips use them, so that a page is as
// long as it can be, and behind a place.
func TestUnmeasuredOfClips(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		s := db.Retention(d)
		for i, uses := range [][]id.Media{{"gone-a", "gone-b"}, {"gone-a"}, {"gone-a", "gone-c"}, {"gone-b"}} {
			must(t, d.Assets().Insert(t.Context(), asset.Change{Asset: asset.Asset{
				ID: id.Asset(fmt.Sprint("clip-", i)), Environment: "env", Status: asset.Ready, Index: "i",
				Media: id.Media(fmt.Sprint("own-", i)), Uses: uses, CreatedAt: at(1), UpdatedAt: at(1),
			}}))
		}
		var got []string
		var behind id.Media
		for len(got) < 9 {
			page, err := s.Unmeasured(t.Context(), at(0), behind, 2)
			must(t, err)
			if len(page) > 0 {
				got = append(got, fmt.Sprint(page))
				behind = page[len(page)-1]
			}
			if len(page) < 2 {
				break
			}
		}
		want := []string{"[gone-a gone-b]", "[gone-c own-0]", "[own-1 own-2]", "[own-3]"}
		if !slices.Equal(got, want) {
			t.Errorf("pages are %q, not %q", got, want)
		}
	})
}

// TestRetentionCandidates: assets oldest first with the sizes and users of their media, and what an environment stores.
func TestRetentionCandidates(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx := t.Context()
		s := db.Retention(d)
		insert := func(env id.Environment, name string, created int, change func(*asset.Asset)) asset.Asset {
			t.Helper()
			a := asset.Asset{
				ID: id.Asset(name), Environment: env, Status: asset.Ready, Index: "i", Media: id.Media("m-" + name),
				CreatedAt: at(created), UpdatedAt: at(created),
			}
			if change != nil {
				change(&a)
			}
			must(t, d.Assets().Insert(ctx, asset.Change{Asset: a}))
			return a
		}
		source := insert("env", "source", 1, func(a *asset.Asset) { a.Exempt = true })
		insert("env", "b", 2, nil)
		insert("env", "a", 2, nil)
		insert("env", "clip", 3, func(a *asset.Asset) { a.Uses = []id.Media{"m-source"} })
		insert("env", "live", 4, func(a *asset.Asset) { a.IsLive = true })
		insert("env", "new", 4, func(a *asset.Asset) { a.Status = asset.Preparing })
		insert("others", "other", 1, nil)

		unmeasured := func(before time.Time) string {
			t.Helper()
			media, err := s.Unmeasured(ctx, before, "", 9)
			must(t, err)
			return fmt.Sprint(media)
		}
		if got := unmeasured(at(0)); got != "[m-a m-b m-clip m-other m-source]" {
			t.Errorf("not measured are %s", got)
		}
		if got, err := s.Unmeasured(ctx, at(0), "m-a", 2); err != nil || fmt.Sprint(got) != "[m-b m-clip]" {
			t.Errorf("behind the first are %s, %v", got, err)
		}
		stored := func() string {
			t.Helper()
			got, err := s.Stored(ctx, "env")
			must(t, err)
			return fmt.Sprint(got)
		}
		if got := stored(); got != "{0 4}" {
			t.Errorf("stored %s", got)
		}
		sized := func(name string, bytes int64) retention.Sized {
			return retention.Sized{Media: id.Media("m-" + name), Bytes: bytes, At: at(9)}
		}
		must(t, s.SetSizes(ctx, []retention.Sized{
			sized("source", 1), sized("a", 10), sized("clip", 100), sized("other", 1000), sized("gone", 1e4),
		}))
		must(t, s.SetSizes(ctx, []retention.Sized{sized("source", 5e12)}))
		must(t, s.SetSizes(ctx, nil))
		must(t, s.ForgetSizes(ctx, 9))
		if got := stored(); got != "{5000000000110 1}" {
			t.Errorf("stored %s", got)
		}
		if got := unmeasured(at(9)); got != "[m-b]" {
			t.Errorf("not measured are %s", got)
		}
		if got := unmeasured(at(10)); got != "[m-a m-b m-clip m-other m-source]" {
			t.Errorf("measured too long ago are %s", got)
		}

		var lines []string
		var behind retention.Place
		for page := 0; ; page++ {
			some, err := s.Candidates(ctx, "env", behind, 2)
			must(t, err)
			if len(some) == 0 {
				break
			}
			for _, c := range some {
				line := string(c.Asset.ID)
				for _, m := range c.Media {
					line += fmt.Sprintf(" %s=%d/%v/%d", m.ID, m.Bytes, m.Measured, m.Users)
				}
				lines = append(lines, line)
				behind = retention.Place{CreatedAt: c.Asset.CreatedAt, Asset: c.Asset.ID}
			}
			if page == 0 && !some[0].Asset.Exempt {
				t.Error("the exemption is lost")
			}
		}
		want := []string{
			"source m-source=5000000000000/true/2", "a m-a=10/true/1", "b m-b=0/false/1",
			"clip m-clip=100/true/1 m-source=5000000000000/true/2", "live m-live=0/false/1", "new m-new=0/false/1",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("candidates:\n%s", strings.Join(lines, "\n"))
		}

		// what is deleted is measured again, as far as somebody uses it
		must(t, d.Assets().Delete(ctx, asset.Change{From: asset.Ready, Asset: source, Deleted: at(9)}))
		if got := stored(); got != "{110 1}" {
			t.Errorf("when the source is deleted: stored %s", got)
		}
		if got := unmeasured(at(9)); got != "[m-b m-source]" {
			t.Errorf("when the source is deleted: not measured are %s", got)
		}
		must(t, s.SetSizes(ctx, []retention.Sized{sized("source", 7)}))
		if got := stored(); got != "{117 1}" {
			t.Errorf("of what the clip uses: stored %s", got)
		}
	})
}
