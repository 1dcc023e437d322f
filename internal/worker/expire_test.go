package worker_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
)

// TestExpire deletes a test asset with everything it has, once or twice.
func TestExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	began := w.now()
	a, err := w.Create(w.ctx(), env, asset.CreateInput{Options: assetopt.Options{Test: true, Inputs: []assetopt.Input{{URL: w.site.offer(clip(t, "small.mp4"))}}}}, began)
	w.must(err)
	var end job.Insert
	for _, j := range w.jobs.take() {
		if j.Kind == asset.JobExpire {
			end = j
			continue
		}
		w.must(w.do(j, 1))
	}
	if !end.At.Equal(began.Add(24*time.Hour)) || end.Key != string(a.ID) || len(w.objects()) == 0 {
		t.Fatalf("asked for %+v with %d objects", end, len(w.objects()))
	}
	w.must(w.do(end, 1))
	w.must(w.do(end, 1)) // again, after a crash
	if _, err := w.Find(w.ctx(), a.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its time the asset is there: %v", err)
	}
	w.must(w.work())
	w.nothingLeft()
}

// TestExpireOfARecording waits for a broadcast that goes on.
func TestExpireOfARecording(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a, err := w.Record(w.ctx(), asset.NewRecording{ID: "a", Environment: env, LiveStream: "s", Test: true, Media: "m"}, w.now())
	w.must(err)
	if jobs := w.jobs.take(); len(jobs) != 0 || !a.Options.Test {
		t.Errorf("asked for %v at the beginning; %+v", jobs, a.Options)
	}
	end := job.New(asset.JobExpire, string(a.ID), asset.ExpireArgs{Asset: a.ID})
	var later *job.SnoozeError
	if err := w.do(end, 1); !errors.As(err, &later) {
		t.Errorf("while it is recorded: %v", err)
	}
	over := w.now()
	w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, nil, over))
	jobs := w.jobs.take()
	if len(jobs) != 1 || jobs[0].Kind != asset.JobExpire || !jobs[0].At.Equal(over.Add(24*time.Hour)) {
		t.Fatalf("asked for %+v at the end", jobs)
	}
	w.must(w.do(jobs[0], 1))
	if _, err := w.Find(w.ctx(), a.ID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("after its time the asset is there: %v", err)
	}
}
