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
	"millrace/internal/worker/static/statictest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// left are the jobs that the sweeper asks for.
func left(w *workertest.World) []job.Insert {
	w.T.Helper()
	all, err := w.Unfinished(w.Ctx())
	w.Must(err)
	var out []job.Insert
	for _, a := range all {
		out = append(out, a.Left(w.Now())...)
	}
	return out
}

// TestWhatCouldNotBeEnded: the last attempt finds no database to write its end into, and the job is over. What is left
// is asked for again under the same key, and ends.
func TestWhatCouldNotBeEnded(t *testing.T) {
	t.Parallel()
	path := filmtest.Usual(t, "a.mp4")
	for kind, tt := range map[string]struct {
		ask    func(s *statictest.Shop) id.Asset
		status func(a asset.Asset) string
	}{
		asset.JobIngest: {
			func(s *statictest.Shop) id.Asset {
				return s.NewAsset(assetopt.Input{URL: s.Site.Offer(filmtest.Text(t, "x", "no video"))}).ID
			},
			func(a asset.Asset) string { return string(a.Status) },
		},
		asset.JobTrackIngest: {
			func(s *statictest.Shop) id.Asset {
				a := s.ReadyAsset(path)
				s.AddTrackFrom(a, asset.TextTrack, s.Site.Offer(filmtest.Text(t, "x", "no subtitles")))
				return a.ID
			},
			func(a asset.Asset) string { return string(a.Tracks[len(a.Tracks)-1].Status) },
		},
		asset.JobStatic: {
			func(s *statictest.Shop) id.Asset { a := s.ReadyAsset(path); s.Ask(a, "highest"); return a.ID },
			func(a asset.Asset) string { return string(a.Static.Files[0].Status) },
		},
		asset.JobMaster: {
			func(s *statictest.Shop) id.Asset {
				a := s.ReadyAsset(path)
				_, err := s.SetMasterAccess(s.Ctx(), workertest.Env, a.ID, "temporary", s.Now())
				s.Must(err)
				return a.ID
			},
			func(a asset.Asset) string { return string(a.Master.Status) },
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := statictest.NewShop(t, time.Minute)
			a := tt.ask(s)
			j := s.Jobs.Take()[0]
			s.Footage.Before = func(asset.Asset) error { return fault.New(fault.Invalid, "it can't be made") }
			s.Jobs.Fail = func() error { return workertest.ErrStore }
			if err := s.Do(j, s.Handlers[kind].MaxAttempts); !errors.Is(err, workertest.ErrStore) ||
				fault.Permanent(err) {
				t.Errorf("without a database: %v", err)
			}
			if got := tt.status(s.Asset(a)); got != "preparing" {
				t.Fatalf("it is %s", got)
			}
			s.Jobs.Fail = nil
			again := left(s.World)
			if len(again) != 1 || again[0].Kind != j.Kind || again[0].Key != j.Key ||
				string(again[0].Args) != string(j.Args) {
				t.Fatalf("asked for %+v, want %+v", again, j)
			}
			_ = s.Do(again[0], 1) // its error is for the log
			if got := tt.status(s.Asset(a)); got != "errored" {
				t.Errorf("in the end it is %s", got)
			}
			if again := left(s.World); len(again) != 0 {
				t.Errorf("asked for %+v in the end", again)
			}
			s.NothingLeft()
		})
	}
}

// TestRecordingThatCanNotBeCompleted has an end: one that was never to be seen is errored, one that plays goes on doing
// so without the files that it was to have. No segment is lost, and what could not be is done when it can.
func TestRecordingThatCanNotBeCompleted(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	for _, seen := range []bool{false, true} {
		o := assetopt.Options{
			StaticRenditions: []assetopt.StaticRendition{{Resolution: "highest"}}, MasterAccess: assetopt.Temporary,
		}
		a := w.Unseen(3, w.Now(), o)
		if seen {
			w.Must(w.Ready(w.Ctx(), a.ID, asset.Growth{}, w.Now()))
		}
		w.Must(w.EndLive(w.Ctx(), a.ID, asset.Writer{}, nil, w.Now()))
		j := w.Jobs.Take()[0]
		stored := len(w.Objects())
		w.Store.Fail = func(string) error { return workertest.ErrStore }
		for attempt := range w.Handlers[j.Kind].MaxAttempts {
			if got := w.Asset(a.ID); got.Static.Files[0].Status != asset.FilePreparing ||
				got.Master.Status != asset.FilePreparing {
				t.Fatalf("given up before attempt %d: %+v", attempt+1, got.Static)
			}
			if err := w.Do(j, attempt+1); !errors.Is(err, workertest.ErrStore) {
				t.Fatalf("got %v", err)
			}
		}
		w.Store.Fail = nil
		got := w.Asset(a.ID)
		if got.Static.Files[0].Status != asset.FileErrored || got.Master.Status != asset.FileErrored ||
			len(w.Objects()) != stored {
			t.Errorf("files are %+v and %+v", got.Static, got.Master)
		}
		again := left(w)
		if !seen {
			if got.Status != asset.Errored || got.Errors == nil || len(again) > 0 {
				t.Errorf("asset is %s; asked for %v", got.Status, again)
			}
			continue
		}
		if got.Status != asset.Ready || len(again) != 1 || again[0].Kind != asset.JobFinish || again[0].Key != j.Key {
			t.Fatalf("asset is %s; asked for %v", got.Status, again)
		}
		if jobs := got.Left(w.Now().Add(8 * 24 * time.Hour)); len(jobs) > 0 {
			t.Errorf("asked for %v for ever", jobs)
		}
		w.Must(w.Do(again[0], 1))
		if got := w.Asset(a.ID); got.Index == "" || got.Static.Files[0].Status != asset.FileErrored ||
			len(left(w)) > 0 {
			t.Errorf("in the end %+v", got)
		}
	}
}

// TestRecordingThatKillsItsProcess is given up, too.
func TestRecordingThatKillsItsProcess(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	a := w.NewRecording(2, w.Now())
	w.Must(w.EndLive(w.Ctx(), a.ID, asset.Writer{}, nil, w.Now()))
	j := w.Jobs.Take()[0]
	if err := w.DoAgain(j, job.Job{Attempt: 1, Crashes: job.MaxCrashes}); err == nil || w.Asset(a.ID).Index != "" {
		t.Errorf("got %v", err)
	}
}

// TestHandlersHaveAnEnd: no job has its place in the queue for ever.
func TestHandlersHaveAnEnd(t *testing.T) {
	t.Parallel()
	for kind, h := range statictest.NewShop(t, time.Minute).Handlers {
		if h.Timeout <= 0 || h.Timeout > 24*time.Hour {
			t.Errorf("%s may take %s", kind, h.Timeout)
		}
	}
}
