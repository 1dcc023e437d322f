package expire_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// TestExpire deletes a test asset with everything it has, once or twice.
func TestExpire(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	began := w.Now()
	a, err := w.Create(w.Ctx(), workertest.Env, asset.CreateInput{
		Options: assetopt.Options{
			Test: true, Inputs: []assetopt.Input{{URL: w.Site.Offer(filmtest.Usual(t, "small.mp4"))}},
		},
	}, began)
	w.Must(err)
	var end job.Insert
	for _, j := range w.Jobs.Take() {
		if j.Kind == asset.JobExpire {
			end = j
			continue
		}
		w.Must(w.Do(j, 1))
	}
	if !end.At.Equal(began.Add(24*time.Hour)) || end.Key != string(a.ID) || len(w.Objects()) == 0 {
		t.Fatalf("asked for %+v with %d objects", end, len(w.Objects()))
	}
	w.Must(w.Do(end, 1))
	w.Must(w.Do(end, 1)) // again, after a crash
	if _, err := w.Find(w.Ctx(), a.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its time the asset is there: %v", err)
	}
	w.Must(w.DoAll())
	w.NothingLeft()
}

// TestExpireOfARecording waits for a broadcast that goes on.
func TestExpireOfARecording(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	a, err := w.Record(w.Ctx(), asset.NewRecording{
		ID: "a", Environment: workertest.Env, LiveStream: "s", Test: true, Media: "m",
	}, w.Now())
	w.Must(err)
	if jobs := w.Jobs.Take(); len(jobs) != 0 || !a.Options.Test {
		t.Errorf("asked for %v at the beginning; %+v", jobs, a.Options)
	}
	end := job.New(asset.JobExpire, string(a.ID), asset.ExpireArgs{Asset: a.ID})
	var later *job.SnoozeError
	if err := w.Do(end, 1); !errors.As(err, &later) {
		t.Errorf("while it is recorded: %v", err)
	}
	over := w.Now()
	w.Must(w.EndLive(w.Ctx(), a.ID, asset.Writer{}, nil, over))
	jobs := w.Jobs.Take()
	if len(jobs) != 1 || jobs[0].Kind != asset.JobExpire || !jobs[0].At.Equal(over.Add(24*time.Hour)) {
		t.Fatalf("asked for %+v at the end", jobs)
	}
	w.Must(w.Do(jobs[0], 1))
	if _, err := w.Find(w.Ctx(), a.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its time the asset is there: %v", err)
	}
}
