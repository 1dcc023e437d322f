package db_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/usage"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

var hour = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func delivered(a id.Asset, stream id.LiveStream, s usage.Seconds) usage.Delivered {
	return usage.Delivered{Asset: a, Environment: "env", LiveStream: stream, Seconds: s}
}

// reports says what a query gives: asset, seconds and state.
func reports(t *testing.T, d *db.DB, env id.Environment, q usage.Query) (text string, total int) {
	t.Helper()
	if q.Limit == 0 {
		q.Page, q.Limit = 1, 100
	}
	if q.From.IsZero() {
		q.From, q.To = hour, hour.Add(time.Hour)
	}
	page, total, err := d.Usage().Reports(t.Context(), env, q)
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, r := range page {
		part := fmt.Sprintf("%s %g", r.Asset.ID, r.Seconds.Sum())
		if r.Deleted {
			part += " deleted"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", "), total
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d, other := dbtest.Open(t, url), dbtest.Open(t, url)
		add := func(d *db.DB, at time.Time, all ...usage.Delivered) {
			t.Helper()
			if err := d.Usage().Add(t.Context(), at, all); err != nil {
				t.Fatal(err)
			}
		}
		add(d, hour, delivered("a", "", usage.Seconds{Tier720: 1.5}),
			delivered("b", "s", usage.Seconds{Tier2160: 10, AudioOnly: 1}))
		add(other, hour, delivered("b", "s", usage.Seconds{Tier1080: 0.25}),
			delivered("a", "", usage.Seconds{Tier720: 0.5}))
		add(d, hour.Add(time.Hour), delivered("a", "", usage.Seconds{Tier1440: 100}))
		add(d, hour, usage.Delivered{Asset: "c", Environment: "others", Seconds: usage.Seconds{Tier720: 7}})
		add(d, hour)
		for _, tt := range []struct {
			name  string
			env   id.Environment
			q     usage.Query
			want  string
			total int
		}{
			{"an hour", "env", usage.Query{}, "b 11.25 deleted, a 2 deleted", 2},
			{
				"two hours", "env",
				usage.Query{From: hour, To: hour.Add(2 * time.Hour)},
				"a 102 deleted, b 11.25 deleted", 2,
			},
			{"no hour", "env", usage.Query{From: hour, To: hour}, "", 0},
			{"the hour before", "env", usage.Query{From: hour.Add(-time.Hour), To: hour}, "", 0},
			{"the second page", "env", usage.Query{Page: 2, Limit: 1}, "a 2 deleted", 2},
			{"behind the last page", "env", usage.Query{Page: 3, Limit: 1}, "", 2},
			{"an asset", "env", usage.Query{Asset: "a"}, "a 2 deleted", 1},
			{"a live stream", "env", usage.Query{LiveStream: "s"}, "b 11.25 deleted", 1},
			{"another's asset", "env", usage.Query{Asset: "c"}, "", 0},
			{"another environment", "others", usage.Query{}, "c 7 deleted", 1},
			{"what can't be an ID", "env", usage.Query{Asset: "a\x00"}, "", 0},
		} {
			if got, total := reports(t, d, tt.env, tt.q); got != tt.want || total != tt.total {
				t.Errorf("%s: %q, %d in all; want %q, %d", tt.name, got, total, tt.want, tt.total)
			}
		}
		page, _, err := d.Usage().Reports(t.Context(), "env", usage.Query{
			From: hour, To: hour.Add(2 * time.Hour), Page: 1, Limit: 1,
		})
		if want := (usage.Seconds{Tier720: 2, Tier1440: 100}); err != nil || len(page) != 1 || page[0].Seconds != want {
			t.Errorf("%+v, %v; want %+v", page, err, want)
		}
	})
}

// TestUsageOfDays: sums that are read from whole days and from hours around them, or from days without some hours, are
// those of the hours.
func TestUsageOfDays(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		begin := hour.Truncate(24 * time.Hour)
		const hours = 4 * 24
		sums := map[id.Asset]*[hours + 1]float64{"a": {}, "b": {}, "c": {}} // before each hour
		for i := range hours {
			at, seconds := begin.Add(time.Duration(i)*time.Hour), map[id.Asset]float64{
				"a": float64(1 + i),
				"b": float64(i % 7), "c": 0,
			}
			if i == 30 { // an asset that was watched in one hour alone
				seconds["c"] = 1000
			}
			for a, sum := range sums {
				sum[i+1] = sum[i] + seconds[a]
				must(t, d.Usage().Add(t.Context(), at, []usage.Delivered{delivered(a, "",
					usage.Seconds{Tier720: seconds[a]})}))
			}
		}
		for from := 0; from < hours; from += 5 {
			for _, length := range []int{1, 2, 11, 12, 13, 20, 23, 24, 25, 36, 48, 60, 72} {
				to := min(from+length, hours)
				want := map[id.Asset]float64{}
				for a, sum := range sums {
					if s := sum[to] - sum[from]; s > 0 {
						want[a] = s
					}
				}
				q := usage.Query{
					From: begin.Add(time.Duration(from) * time.Hour),
					To:   begin.Add(time.Duration(to) * time.Hour), Page: 1, Limit: 10,
				}
				page, total, err := d.Usage().Reports(t.Context(), "env", q)
				must(t, err)
				got := map[id.Asset]float64{}
				for i, r := range page {
					got[r.Asset.ID] = r.Seconds.Sum()
					if i > 0 && r.Seconds.Sum() > page[i-1].Seconds.Sum() {
						t.Errorf("from hour %d to %d: not in the order of what was delivered", from, to)
					}
				}
				if total != len(want) || !maps.Equal(got, want) {
					t.Errorf("from hour %d to %d: %v, %d in all; want %v", from, to, got, total, want)
				}
				q.Page = 2
				if page, total, err = d.Usage().Reports(t.Context(), "env", q); err != nil || len(page) > 0 ||
					total != len(want) {
					t.Errorf("from hour %d to %d: %d on the second page, %d in all, %v", from, to, len(page), total,
						err)
				}
			}
		}
	})
}

// TestMigrateUsageDays: the sums of days are made from the hours that are there.
func TestMigrateUsageDays(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		begin := hour.Truncate(24 * time.Hour)
		for i := range 48 {
			must(t, d.Usage().Add(t.Context(), begin.Add(time.Duration(i)*time.Hour), []usage.Delivered{
				delivered("a", "", usage.Seconds{Tier720: 1}), delivered("b", "", usage.Seconds{Tier720: float64(i)}),
			}))
		}
		newest, err := db.SchemaVersion()
		must(t, err)
		must(t, d.MigrateTo(t.Context(), 33))
		must(t, d.MigrateTo(t.Context(), newest))
		for day, want := range []string{"b 276 deleted, a 24 deleted", "b 852 deleted, a 24 deleted"} {
			from := begin.AddDate(0, 0, day)
			if got, total := reports(t, d, "env", usage.Query{
				From: from, To: from.AddDate(0, 0, 1), Page: 1,
				Limit: 10,
			}); got != want || total != 2 {
				t.Errorf("day %d: %q, %d in all", day, got, total)
			}
		}
	})
}

// TestUsagePlan: a report of a day reads the sums of the day, and by size the rows of the assets on the page.
func TestUsagePlan(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.Usage().Add(t.Context(), hour, []usage.Delivered{delivered("a", "", usage.Seconds{Tier720: 1})}))
	begin := hour.Truncate(24 * time.Hour)
	plan, err := d.Plans(func(d *db.DB) error {
		_, _, err := d.Usage().Reports(t.Context(), "env", usage.Query{
			From: begin, To: begin.Add(24 * time.Hour),
			Page: 1, Limit: 10,
		})
		return err
	})
	must(t, err)
	all := strings.Join(plan, "\n")
	if !strings.Contains(all, "delivery_usage_days_list") || !strings.Contains(all,
		"sqlite_autoindex_delivery_usage_1") || strings.Contains(all, "delivery_usage_hours") {
		t.Errorf("the plan is\n%s", all)
	}
}

// TestUsageOfNodes has several nodes add to the same hours at the same time.
func TestUsageOfNodes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		const nodes, times = 4, 10
		first := dbtest.Open(t, url)
		var adding sync.WaitGroup
		for n := range nodes {
			d := dbtest.Open(t, url)
			adding.Go(func() {
				for range times {
					all := []usage.Delivered{
						delivered("a", "", usage.Seconds{Tier720: 1}), delivered("b", "", usage.Seconds{Tier720: 2}),
						delivered("c", "", usage.Seconds{Tier720: 3}),
					}
					if n%2 > 0 {
						slices.Reverse(all)
					}
					if err := d.Usage().Add(t.Context(), hour, all); err != nil {
						t.Error(err)
					}
				}
			})
		}
		adding.Wait()
		if got, _ := reports(t, first, "env", usage.Query{}); got != "c 120 deleted, b 80 deleted, a 40 deleted" {
			t.Error(got)
		}
	})
}

// TestUsageOfDeletedAssets: reports go on to say what they said of an asset, without what its owner wrote into its
// inputs.
func TestUsageOfDeletedAssets(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		service := asset.New(asset.Options{Store: d.Assets()})
		made, err := service.Create(t.Context(), "env", asset.CreateInput{Options: assetopt.Options{
			Inputs: []assetopt.Input{{URL: "https://user:password@example.com/a.mp4"}}, Passthrough: "p",
			VideoQuality: "plus",
		}}, hour)
		if err != nil {
			t.Fatal(err)
		}
		facts := asset.Facts{Duration: 12.5, Width: 1280, Height: 720, HasVideo: true}
		if err = asset.NewWork(asset.Options{Store: d.Assets()}).Ready(t.Context(), made.ID,
			asset.Growth{Facts: &facts}, hour); err != nil {
			t.Fatal(err)
		}
		if err = d.Usage().Add(t.Context(), hour, []usage.Delivered{
			delivered(made.ID, "", usage.Seconds{Tier720: 5}),
		}); err != nil {
			t.Fatal(err)
		}
		read := func() usage.Report {
			page, _, failed := d.Usage().Reports(t.Context(), "env", usage.Query{
				From: hour, To: hour.Add(time.Hour), Page: 1, Limit: 10,
			})
			if failed != nil || len(page) != 1 {
				t.Fatal(page, failed)
			}
			return page[0]
		}
		before := read()
		if before.Deleted || before.Asset.Status != asset.Ready || before.Asset.Facts != facts {
			t.Errorf("%+v", before)
		}
		if err = service.Delete(t.Context(), "env", made.ID, hour.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		after := read()
		if !after.Deleted || !after.DeletedAt.Equal(hour.Add(time.Minute)) || after.Asset.Facts != facts ||
			!after.Asset.CreatedAt.Equal(before.Asset.CreatedAt) ||
			after.Asset.Options.Passthrough != "p" || after.Asset.Options.VideoQuality != "plus" ||
			len(after.Asset.Options.Inputs) > 0 {
			t.Errorf("%+v", after)
		}
		for _, tt := range []struct {
			at    time.Time
			hours int
			known bool
		}{
			{hour.Add(usage.Kept + 11*time.Hour), 1, true}, // the day is not over
			{hour.Add(usage.Kept + 12*time.Hour), 0, true},
			{hour.Add(usage.Kept + 36*time.Hour), 0, false},
		} {
			if more, failed := usage.New(d.Usage()).Forget(t.Context(), tt.at); failed != nil || more {
				t.Errorf("%v: %v, %v", tt.at, more, failed)
			}
			if _, n := reports(t, d, "env", usage.Query{}); n != tt.hours {
				t.Errorf("%v: %d hours, want %d", tt.at, n, tt.hours)
			}
		}
	})
}

// TestForgetUsage removes a bounded number of rows at a time.
func TestForgetUsage(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		var all []usage.Delivered
		for i := range 7 {
			all = append(all, delivered(id.Asset(fmt.Sprint("a", i)), "", usage.Seconds{Tier720: 1}))
		}
		if err := d.Usage().Add(t.Context(), hour, all); err != nil {
			t.Fatal(err)
		}
		for _, left := range []int{4, 1, 0} {
			more, err := d.Usage().Forget(t.Context(), hour.Add(time.Hour), 3)
			if _, n := reports(t, d, "env", usage.Query{}); err != nil || n != left || more != (left > 0) {
				t.Errorf("%d are left, want %d; more: %v; %v", n, left, more, err)
			}
		}
	})
}
