package worker_test

import (
	"errors"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// left are the jobs that the sweeper asks for.
func (w *world) left() []job.Insert {
	w.t.Helper()
	all, err := w.Unfinished(w.ctx())
	w.must(err)
	var out []job.Insert
	for _, a := range all {
		out = append(out, a.Left(w.now())...)
	}
	return out
}

// TestWhatCouldNotBeEnded: the last attempt finds no database to write its end into, and the job is over. What is left is asked for again
// under the same key, and ends.
func TestWhatCouldNotBeEnded(t *testing.T) {
	t.Parallel()
	path := clip(t, "a.mp4")
	for kind, tt := range map[string]struct {
		ask    func(s *shop) id.Asset
		status func(a asset.Asset) string
	}{
		asset.JobIngest: {
			func(s *shop) id.Asset {
				return s.create(assetopt.Input{URL: s.site.offer(text(t, "x", "no video"))}).ID
			},
			func(a asset.Asset) string { return string(a.Status) },
		},
		asset.JobTrackIngest: {
			func(s *shop) id.Asset {
				a := s.ready(path)
				s.add(a, asset.TextTrack, s.site.offer(text(t, "x", "no subtitles")))
				return a.ID
			},
			func(a asset.Asset) string { return string(a.Tracks[len(a.Tracks)-1].Status) },
		},
		asset.JobStatic: {
			func(s *shop) id.Asset { a := s.ready(path); s.ask(a, "highest"); return a.ID },
			func(a asset.Asset) string { return string(a.Static.Files[0].Status) },
		},
		asset.JobMaster: {
			func(s *shop) id.Asset {
				a := s.ready(path)
				_, err := s.SetMasterAccess(s.ctx(), env, a.ID, "temporary", s.now())
				s.must(err)
				return a.ID
			},
			func(a asset.Asset) string { return string(a.Master.Status) },
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, time.Minute)
			a := tt.ask(s)
			j := s.jobs.take()[0]
			s.footage.before = func(asset.Asset) error { return fault.New(fault.Invalid, "it can't be made") }
			s.jobs.save = func() error { return errStore }
			if err := s.do(j, s.handle[kind].MaxAttempts); !errors.Is(err, errStore) || fault.Permanent(err) {
				t.Errorf("without a database: %v", err)
			}
			if got := tt.status(s.find(a)); got != "preparing" {
				t.Fatalf("it is %s", got)
			}
			s.jobs.save = nil
			again := s.left()
			if len(again) != 1 || again[0].Kind != j.Kind || again[0].Key != j.Key || string(again[0].Args) != string(j.Args) {
				t.Fatalf("asked for %+v, want %+v", again, j)
			}
			_ = s.do(again[0], 1) // its error is for the log
			if got := tt.status(s.find(a)); got != "errored" {
				t.Errorf("in the end it is %s", got)
			}
			if again := s.left(); len(again) != 0 {
				t.Errorf("asked for %+v in the end", again)
			}
			s.nothingLeft()
		})
	}
}

// TestRecordingThatCanNotBeCompleted has an end: one that was never to be seen is errored, one that plays goes on doing so without the files
// that it was to have. No segment is lost, and what could not be is done when it can.
func TestRecordingThatCanNotBeCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	for _, seen := range []bool{false, true} {
		o := assetopt.Options{StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}}, MasterAccess: assetopt.Temporary}
		a := w.unseen(3, w.now(), o)
		if seen {
			w.must(w.Ready(w.ctx(), a.ID, asset.Growth{}, w.now()))
		}
		w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, nil, w.now()))
		j := w.jobs.take()[0]
		stored := len(w.objects())
		w.store.put = func(string) error { return errStore }
		for attempt := range w.handle[j.Kind].MaxAttempts {
			if got := w.find(a.ID); got.Static.Files[0].Status != asset.FilePreparing || got.Master.Status != asset.FilePreparing {
				t.Fatalf("given up before attempt %d: %+v", attempt+1, got.Static)
			}
			if err := w.do(j, attempt+1); !errors.Is(err, errStore) {
				t.Fatalf("got %v", err)
			}
		}
		w.store.put = nil
		got := w.find(a.ID)
		if got.Static.Files[0].Status != asset.FileErrored || got.Master.Status != asset.FileErrored || len(w.objects()) != stored {
			t.Errorf("files are %+v and %+v", got.Static, got.Master)
		}
		again := w.left()
		if !seen {
			if got.Status != asset.Errored || got.Errors == nil || len(again) > 0 {
				t.Errorf("asset is %s; asked for %v", got.Status, again)
			}
			continue
		}
		if got.Status != asset.Ready || len(again) != 1 || again[0].Kind != asset.JobFinish || again[0].Key != j.Key {
			t.Fatalf("asset is %s; asked for %v", got.Status, again)
		}
		if jobs := got.Left(w.now().Add(8 * 24 * time.Hour)); len(jobs) > 0 {
			t.Errorf("asked for %v for ever", jobs)
		}
		w.must(w.do(again[0], 1))
		if got := w.find(a.ID); got.Index == "" || got.Static.Files[0].Status != asset.FileErrored || len(w.left()) > 0 {
			t.Errorf("in the end %+v", got)
		}
	}
}

// TestRecordingThatKillsItsProcess is given up, too.
func TestRecordingThatKillsItsProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.recording(2, w.now())
	w.must(w.EndLive(w.ctx(), a.ID, asset.Writer{}, nil, w.now()))
	j := w.jobs.take()[0]
	if err := w.doJob(j, job.Job{Attempt: 1, Crashes: job.MaxCrashes}); err == nil || w.find(a.ID).Index != "" {
		t.Errorf("got %v", err)
	}
}

// TestHandlersHaveAnEnd: no job has its place in the queue for ever.
func TestHandlersHaveAnEnd(t *testing.T) {
	t.Parallel()
	for kind, h := range newShop(t, time.Minute).handle {
		if h.Timeout <= 0 || h.Timeout > 24*time.Hour {
			t.Errorf("%s may take %s", kind, h.Timeout)
		}
	}
}
