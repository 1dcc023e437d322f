package db_test

import (
	"testing"
	"time"

	"millrace/internal/control/job"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestJobsWaiting counts what could run now, by queue; what is due later does not wait.
func TestJobsWaiting(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		if all, err := db.JobsWaiting(t.Context(), d); err != nil || len(all) > 0 {
			t.Errorf("at first: %v %v", all, err)
		}
		hourAgo := time.Now().Add(-time.Hour)
		for _, j := range []job.Insert{
			{Kind: "asset.static", Key: "a", Queue: job.Background, At: hourAgo},
			{
				Kind: "asset.static", Key: "b", Queue: job.Background,
			},
			{Kind: "asset.finish", Key: "c", Queue: job.Prompt, At: time.Now().Add(time.Hour)},
			{Kind: "asset.ingest", Key: "d", Queue: job.Fetching},
		} {
			j.Args = []byte("{}")
			if err := d.Enqueue(t.Context(), j); err != nil {
				t.Fatal(err)
			}
		}
		all, err := db.JobsWaiting(t.Context(), d)
		if err != nil || len(all) != 2 || all[0].Queue != job.Background || all[0].Jobs != 2 ||
			all[1].Queue != job.Fetching || all[1].Jobs != 1 {
			t.Fatalf("%+v %v", all, err)
		}
		if all[0].Oldest < 59*time.Minute || all[0].Oldest > 2*time.Hour || all[1].Oldest > 30*time.Minute {
			t.Errorf("the first ones have waited for %v and %v", all[0].Oldest, all[1].Oldest)
		}
	})
}
