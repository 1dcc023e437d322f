package worker_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/worker/static/statictest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// leave puts what a run stored that was killed before it could clear up.
func leave(w *workertest.World, keys ...string) {
	w.T.Helper()
	for _, key := range keys {
		w.Must(w.Store.Store.Put(w.Ctx(), key, bytes.NewReader([]byte("x"))))
	}
}

// TestLateRunOfAFile comes when the file, or its asset, is not wanted any more, and after their purge: what the run
// before it has stored goes.
func TestLateRunOfAFile(t *testing.T) {
	t.Parallel()
	path := filmtest.Usual(t, "a.mp4")
	for _, kind := range []string{asset.JobStatic, asset.JobMaster} {
		for _, deleted := range []string{"file", "asset"} {
			t.Run(kind+" without its "+deleted, func(t *testing.T) {
				t.Parallel()
				s := statictest.NewShop(t, time.Minute)
				a := s.ReadyAsset(path)
				j, file := order(s, a, kind)
				switch {
				case deleted == "asset":
					s.Must(s.Delete(s.Ctx(), workertest.Env, a.ID, s.Now()))
				case kind == asset.JobStatic:
					s.Must(s.DeleteStatic(s.Ctx(), workertest.Env, a.ID, file, s.Now()))
				default:
					_, err := s.SetMasterAccess(s.Ctx(), workertest.Env, a.ID, "none", s.Now())
					s.Must(err)
				}
				s.Must(s.DoAll()) // the purge
				before := len(s.Objects())
				leave(s.World, objectkey.File(a.Media, file, "mp4"), objectkey.Files(a.Media)+string(file)+"/v/0.m4s")
				if deleted == "asset" {
					leave(s.World, objectkey.Media(a.Media)+"rungs/360p/0.m4s")
				}
				s.Must(s.Do(j, 2))
				if after := s.Objects(); len(after) != before {
					t.Errorf("left: %v", after)
				}
			})
		}
	}
}

// order asks for a file, of which there is a job, then.
func order(s *statictest.Shop, a asset.Asset, kind string) (job.Insert, id.StaticRendition) {
	s.T.Helper()
	if kind == asset.JobStatic {
		f := s.Ask(a, "highest")
		return s.Jobs.Take()[0], f.ID
	}
	got, err := s.SetMasterAccess(s.Ctx(), workertest.Env, a.ID, "temporary", s.Now())
	s.Must(err)
	return s.Jobs.Take()[0], got.Master.ID
}

// TestEndedFile: of one that is errored nothing is left, of one that is ready nothing else, whenever the run that ended
// it was killed.
func TestEndedFile(t *testing.T) {
	t.Parallel()
	s := statictest.NewShop(t, time.Minute)
	a := s.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	for _, kind := range []string{asset.JobStatic, asset.JobMaster} {
		j, file := order(s, a, kind)
		whole, spare := objectkey.File(a.Media, file, "mp4"), objectkey.Files(a.Media)+string(file)+"/v/0.m4s"
		s.Footage.Before = func(asset.Asset) error {
			leave(s.World, whole, spare)
			return fault.New(fault.Invalid, "it can't be made")
		}
		_ = s.Do(j, 1) // its error is for the log
		if left := s.Files(); len(left) > 0 {
			t.Errorf("%s: left of what is errored: %v", kind, left)
		}
		leave(s.World, whole, spare)
		s.Must(s.Do(j, 2))
		if left := s.Files(); len(left) > 0 {
			t.Errorf("%s: left of what is errored: %v", kind, left)
		}
		s.Footage.Before = nil
	}
	s.Must(s.DeleteStatic(s.Ctx(), workertest.Env, a.ID, s.Asset(a.ID).Static.Files[0].ID, s.Now()))
	s.Must(s.DoAll())
	j, file := order(s, a, asset.JobStatic)
	s.Must(s.Do(j, 1))
	leave(s.World, objectkey.Files(a.Media)+string(file)+"/v/0.m4s")
	s.Must(s.Do(j, 2))
	if left := s.Files(); len(left) != 1 || left[0] != objectkey.File(a.Media, file, "mp4") {
		t.Errorf("left of what is ready: %v", left)
	}
}

// TestLateRunsOfAGoneAsset: of every kind of job, whatever the one before has stored after the purge.
func TestLateRunsOfAGoneAsset(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	path := filmtest.Usual(t, "a.mp4")
	made := w.NewAsset(assetopt.Input{URL: w.Site.Offer(path)})
	ingest := w.Jobs.Take()[0]
	recorded := w.NewRecording(2, w.Now())
	w.Must(w.EndLive(w.Ctx(), recorded.ID, asset.Writer{}, nil, w.Now()))
	finish := w.Jobs.Take()[0]
	tracked := w.ReadyAsset(path)
	tr := w.AddTrackFrom(tracked, asset.TextTrack, w.Site.Offer(filmtest.Text(t, "x", "no subtitles")))
	track := w.Jobs.Take()[0]
	for _, a := range []asset.Asset{made, recorded, tracked} {
		w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
	}
	w.Must(w.DoAll())
	leave(w, objectkey.Media(made.Media)+"source.mp4", objectkey.Index(recorded.Media),
		objectkey.Tracks(tracked.Media)+string(tr.ID)+".vtt")
	for _, j := range []job.Insert{ingest, finish, track} {
		w.Must(w.Do(j, 2))
	}
	if left := w.Objects(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// of a version that did not name the media
	old := job.New(asset.JobIngest, "x", map[string]string{"asset_id": string(made.ID)})
	w.Must(w.Do(old, 1))
}

// TestLateRunLeavesClipsAlone: the asset was whole and is deleted, a clip of it plays.
func TestLateRunLeavesClipsAlone(t *testing.T) {
	t.Parallel()
	w := workertest.New(t, workertest.Options{})
	a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mp4"))})
	j := w.Jobs.Take()[0]
	w.Must(w.Do(j, 1))
	part := w.ClipOf(w.Asset(a.ID), 0, nil)
	w.Must(w.DoAll())
	w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
	w.Must(w.DoAll())
	before := w.Objects()
	w.Must(w.Do(j, 2))
	if after := w.Objects(); len(after) != len(before) || !strings.Contains(strings.Join(after, " "), string(a.Media)) {
		t.Errorf("of %v there is %v", before, after)
	}
	if got := w.Asset(part.ID); got.Status != asset.Ready {
		t.Errorf("the clip is %s", got.Status)
	}
}
