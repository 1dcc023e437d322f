package db_test

import (
	"slices"
	"strings"
	"testing"

	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestLiveSome: streams are read by their IDs, those of the environment that are there.
func TestLiveSome(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		deleted := idleStream("env", "deleted", at(3))
		deleted.DeletedAt = at(4)
		insertStreams(t, d, idleStream("env", "1", at(1)), idleStream("env", "2", at(2)), idleStream("env", "3", at(3)),
			idleStream("other", "x", at(1)), deleted)
		for name, tt := range map[string]struct{ of, want []string }{
			"two":                 {[]string{"s-1", "s-3"}, []string{"s-1", "s-3"}},
			"of another":          {[]string{"s-x", "s-2"}, []string{"s-2"}},
			"none":                {nil, nil},
			"unknown and deleted": {[]string{"s-9", "s-deleted"}, nil},
			"impossible":          {[]string{"\x00", "\xff"}, nil},
			"impossible and not":  {[]string{"\x00", "s-2"}, []string{"s-2"}},
		} {
			var of []id.LiveStream
			for _, s := range tt.of {
				of = append(of, id.LiveStream(s))
			}
			found, err := d.LiveStreams().Some(t.Context(), "env", of)
			got := names(found)
			slices.Sort(got)
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
			}
		}
	})
}

// TestLiveSomePlan: a few streams are found by their IDs, however many the environment has.
func TestLiveSomePlan(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	plan, err := d.Plans(func(d *db.DB) error {
		_, err := d.LiveStreams().Some(t.Context(), "env", []id.LiveStream{"a", "b", "c"})
		return err
	})
	must(t, err)
	if len(plan) == 0 || !strings.Contains(plan[0], "sqlite_autoindex_live_streams_1 (id=?)") {
		t.Errorf("the plan is\n%s", strings.Join(plan, "\n"))
	}
}
