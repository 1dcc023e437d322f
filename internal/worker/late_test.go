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
)

// leave puts what a run stored that was killed before it could clear up.
func (w *world) leave(keys ...string) {
	w.t.Helper()
	for _, key := range keys {
		w.must(w.store.Store.Put(w.ctx(), key, bytes.NewReader([]byte("x"))))
	}
}

// TestLateRunOfAFile comes when the file, or its asset, is not wanted any more, and after their purge: what the run before it has stored goes.
func TestLateRunOfAFile(t *testing.T) {
	t.Parallel()
	path := clip(t, "a.mp4")
	for _, kind := range []string{asset.JobStatic, asset.JobMaster} {
		for _, deleted := range []string{"file", "asset"} {
			t.Run(kind+" without its "+deleted, func(t *testing.T) {
				t.Parallel()
				s := newShop(t, time.Minute)
				a := s.ready(path)
				j, file := s.order(a, kind)
				switch {
				case deleted == "asset":
					s.must(s.Delete(s.ctx(), env, a.ID, s.now()))
				case kind == asset.JobStatic:
					s.must(s.DeleteStatic(s.ctx(), env, a.ID, file, s.now()))
				default:
					_, err := s.SetMasterAccess(s.ctx(), env, a.ID, "none", s.now())
					s.must(err)
				}
				s.must(s.work()) // the purge
				before := len(s.objects())
				s.leave(objectkey.File(a.Media, file, "mp4"), objectkey.Files(a.Media)+string(file)+"/v/0.m4s")
				if deleted == "asset" {
					s.leave(objectkey.Media(a.Media) + "rungs/360p/0.m4s")
				}
				s.must(s.do(j, 2))
				if after := s.objects(); len(after) != before {
					t.Errorf("left: %v", after)
				}
			})
		}
	}
}

// order asks for a file, of which there is a job, then.
func (s *shop) order(a asset.Asset, kind string) (job.Insert, id.StaticRendition) {
	s.t.Helper()
	if kind == asset.JobStatic {
		f := s.ask(a, "highest")
		return s.jobs.take()[0], f.ID
	}
	got, err := s.SetMasterAccess(s.ctx(), env, a.ID, "temporary", s.now())
	s.must(err)
	return s.jobs.take()[0], got.Master.ID
}

// TestEndedFile: of one that is errored nothing is left, of one that is ready nothing else, whenever the run that ended it was killed.
func TestEndedFile(t *testing.T) {
	t.Parallel()
	s := newShop(t, time.Minute)
	a := s.ready(clip(t, "a.mp4"))
	for _, kind := range []string{asset.JobStatic, asset.JobMaster} {
		j, file := s.order(a, kind)
		whole, spare := objectkey.File(a.Media, file, "mp4"), objectkey.Files(a.Media)+string(file)+"/v/0.m4s"
		s.footage.before = func(asset.Asset) error { s.leave(whole, spare); return fault.New(fault.Invalid, "it can't be made") }
		_ = s.do(j, 1) // its error is for the log
		if left := s.files(); len(left) > 0 {
			t.Errorf("%s: left of what is errored: %v", kind, left)
		}
		s.leave(whole, spare)
		s.must(s.do(j, 2))
		if left := s.files(); len(left) > 0 {
			t.Errorf("%s: left of what is errored: %v", kind, left)
		}
		s.footage.before = nil
	}
	s.must(s.DeleteStatic(s.ctx(), env, a.ID, s.find(a.ID).Static.Files[0].ID, s.now()))
	s.must(s.work())
	j, file := s.order(a, asset.JobStatic)
	s.must(s.do(j, 1))
	s.leave(objectkey.Files(a.Media) + string(file) + "/v/0.m4s")
	s.must(s.do(j, 2))
	if left := s.files(); len(left) != 1 || left[0] != objectkey.File(a.Media, file, "mp4") {
		t.Errorf("left of what is ready: %v", left)
	}
}

// TestLateRunsOfAGoneAsset: of every kind of job, whatever the one before has stored after the purge.
func TestLateRunsOfAGoneAsset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	path := clip(t, "a.mp4")
	made := w.create(assetopt.Input{URL: w.site.offer(path)})
	ingest := w.jobs.take()[0]
	recorded := w.recording(2, w.now())
	w.must(w.EndLive(w.ctx(), recorded.ID, asset.Writer{}, nil, w.now()))
	finish := w.jobs.take()[0]
	tracked := w.ready(path)
	tr := w.add(tracked, asset.TextTrack, w.site.offer(text(t, "x", "no subtitles")))
	track := w.jobs.take()[0]
	for _, a := range []asset.Asset{made, recorded, tracked} {
		w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
	}
	w.must(w.work())
	w.leave(objectkey.Media(made.Media)+"source.mp4", objectkey.Index(recorded.Media), objectkey.Tracks(tracked.Media)+string(tr.ID)+".vtt")
	for _, j := range []job.Insert{ingest, finish, track} {
		w.must(w.do(j, 2))
	}
	if left := w.objects(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	old := job.New(asset.JobIngest, "x", map[string]string{"asset_id": string(made.ID)}) // of a version that did not name the media
	w.must(w.do(old, 1))
}

// TestLateRunLeavesClipsAlone: the asset was whole and is deleted, a clip of it plays.
func TestLateRunLeavesClipsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.create(assetopt.Input{URL: w.site.offer(clip(t, "a.mp4"))})
	j := w.jobs.take()[0]
	w.must(w.do(j, 1))
	part := w.clip(w.find(a.ID), 0, nil)
	w.must(w.work())
	w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
	w.must(w.work())
	before := w.objects()
	w.must(w.do(j, 2))
	if after := w.objects(); len(after) != len(before) || !strings.Contains(strings.Join(after, " "), string(a.Media)) {
		t.Errorf("of %v there is %v", before, after)
	}
	if got := w.find(part.ID); got.Status != asset.Ready {
		t.Errorf("the clip is %s", got.Status)
	}
}
