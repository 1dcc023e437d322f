package static_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/download"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/worker/static/statictest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// shop is a statictest.Shop and what is asked of it here.
type shop struct{ *statictest.Shop }

// file is the only file of an asset, and what is stored of it.
func (s *shop) file(a id.Asset) (asset.StaticRendition, *mp4.File) {
	s.T.Helper()
	now := s.Asset(a)
	f := now.Static.Files[len(now.Static.Files)-1]
	if f.Status != asset.FileReady {
		s.T.Fatalf("%+v", f)
	}
	data := s.ReadObject(objectkey.File(now.Media, f.ID, f.Ext))
	x, err := mp4.Index(bytes.NewReader(data), int64(len(data)))
	s.Must(err)
	if int64(len(data)) != f.Size {
		s.T.Errorf("%d bytes: %+v", len(data), f)
	}
	return f, x
}

// TestStaticFiles makes every kind of file of an upload: the samples are those of the renditions that viewers get.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	s := &shop{statictest.NewShop(t, time.Nanosecond)} // a turn for each segment
	a := s.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	count := s.Samples(a)
	for _, resolution := range []string{"highest", "audio-only"} {
		s.Ask(a, resolution)
		s.Must(s.DoAll())
		f, x := s.file(a.ID)
		for _, tr := range x.Tracks {
			want := count["v"]
			if tr.Kind == frame.Audio {
				want = count["a"]
			}
			if tr.Len() != want || tr.NonStandardEdit {
				t.Errorf("%s: %d samples of %s, viewers get %d", resolution, tr.Len(), tr.FourCC, want)
			}
		}
		if f.Bitrate == 0 || f.ResolutionTier == "" || len(x.Tracks) == 0 || f.Sound() != (len(x.Tracks) == 1) {
			t.Errorf("%+v with %d tracks", f, len(x.Tracks))
		}
	}
	for _, f := range s.Asset(a.ID).Static.Files {
		s.Must(s.DeleteStatic(s.Ctx(), workertest.Env, a.ID, f.ID, s.Now()))
	}
	s.Must(s.DoAll())
	if left := s.Files(); len(left) > 0 {
		t.Errorf("left of deleted files: %v", left)
	}
	s.NothingLeft()
}

// TestStaticEncodes makes a size that nobody is offered, in many turns: what was made for it goes when it is there.
// Sound in a codec that phones don't have in an MP4 becomes AAC.
func TestStaticEncodes(t *testing.T) {
	t.Parallel()
	s := &shop{statictest.NewShop(t, time.Nanosecond)}
	// pixels that are not square: 853x480 as it is shown
	a := s.ReadyAsset(filmtest.File(t, "a.mp4", filmtest.Video("-s", "640x480")...))
	count := s.Samples(a)
	s.Footage.Change = func(f *download.Footage) { f.EncodeAudio = true }
	s.Ask(a, "360p")
	s.Must(s.DoAll())
	f, x := s.file(a.ID)
	if f.Width != 640 || f.Height != 360 || len(x.Tracks) != 2 || x.Tracks[0].Len() != count["v"] ||
		x.Tracks[0].FourCC != "avc1" || x.Tracks[1].FourCC != "mp4a" {
		t.Errorf("%+v: %d pictures of %d", f, x.Tracks[0].Len(), count["v"])
	}
	if n := x.Tracks[1].Len() - count["a"]; n < -3 || n > 3 {
		t.Errorf("%d frames of sound of %d", x.Tracks[1].Len(), count["a"])
	}
	if v, snd := x.Tracks[0].PTS(0), x.Tracks[1]; v < 0 || v > int64(x.Tracks[0].Timescale)/30 ||
		snd.PTS(1) > int64(snd.Timescale)/10 {
		t.Errorf("begins at %d and %d", v, snd.PTS(0))
	}
	if left := s.Files(); len(left) != 1 {
		t.Errorf("stored: %v", left)
	}
	told := s.Progress.Told
	if n := len(told); n < 3 || told[n-1] != 99 || !slices.IsSorted(told) || f.Progress != 0 {
		t.Errorf("progress: %v, then %f", told, f.Progress)
	}
	s.NothingLeft()
}

// TestStaticEnds: whatever happens to a job, the file gets an end, and nothing is left of one that nobody wants any
// more.
func TestStaticEnds(t *testing.T) {
	t.Parallel()
	path := filmtest.Usual(t, "a.mp4")
	for name, tt := range map[string]struct {
		before func(s *shop, a asset.Asset) error
		change func(f *download.Footage)
		status asset.FileStatus // empty: it is not there any more
		files  int
	}{
		"at fault": {
			before: func(*shop, asset.Asset) error { return fault.New(fault.Invalid, "the picture can't be decoded") },
			status: asset.FileErrored,
		},
		"each time": {
			before: func(*shop, asset.Asset) error { return errors.New("no luck") }, status: asset.FileErrored,
		},
		"panics": {before: func(*shop, asset.Asset) error { panic("oh") }, status: asset.FileErrored},
		"once": {before: func() func(*shop, asset.Asset) error {
			n := 0
			return func(*shop, asset.Asset) error {
				if n++; n == 1 {
					return errors.New("no luck")
				}
				return nil
			}
		}(), status: asset.FileReady, files: 1},
		"file deleted": {before: func(s *shop, a asset.Asset) error {
			return s.DeleteStatic(s.Ctx(), workertest.Env, a.ID, a.Static.Files[0].ID, s.Now())
		}},
		"asset deleted": {
			before: func(s *shop, a asset.Asset) error { return s.Delete(s.Ctx(), workertest.Env, a.ID, s.Now()) },
		},
		"nothing in it": {change: func(f *download.Footage) { f.Renditions = nil }, status: asset.FileErrored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shop{statictest.NewShop(t, time.Minute)}
			a := s.ReadyAsset(path)
			s.Ask(a, "highest")
			s.Footage.Change = tt.change
			if tt.before != nil {
				s.Footage.Before = func(a asset.Asset) error { return tt.before(s, a) }
			}
			_ = s.DoAll() // the job's own error is for the log
			now, err := s.Find(s.Ctx(), a.ID)
			switch {
			case tt.status == "" && err == nil && len(now.Static.Files) > 0,
				tt.status != "" && (err != nil || now.Static.Files[0].Status != tt.status):
				t.Errorf("%v, %+v", err, now.Static)
			case tt.status == asset.FileErrored && len(now.Static.Files[0].Errors.Messages) == 0:
				t.Error("nobody is told why")
			}
			if left := s.Files(); len(left) != tt.files {
				t.Errorf("stored: %v", left)
			}
			if name == "asset deleted" && len(s.Objects()) > 0 {
				t.Errorf("left of the asset: %v", s.Objects())
			}
		})
	}
}

// TestMasterIsTakenAway when its day is over, with its file.
func TestMasterIsTakenAway(t *testing.T) {
	t.Parallel()
	s := &shop{statictest.NewShop(t, time.Minute)}
	a := s.ReadyAsset(filmtest.Usual(t, "a.mp4"))
	_, err := s.SetMasterAccess(s.Ctx(), workertest.Env, a.ID, "temporary", s.Now())
	s.Must(err)
	make1 := s.Jobs.Take()
	if len(make1) != 1 || make1[0].Kind != asset.JobMaster {
		t.Fatalf("jobs %v", make1)
	}
	s.Must(s.Do(make1[0], 1))
	m := s.Asset(a.ID).Master
	over := s.Jobs.Take()
	if m.Status != asset.FileReady || len(over) != 1 || !over[0].At.Equal(m.Expires) || len(s.Files()) != 1 {
		t.Fatalf("%+v, jobs %v, files %v", m, over, s.Files())
	}
	// a clock that goes before the database's
	if _, snoozed := errors.AsType[*job.SnoozeError](s.Do(over[0], 1)); !snoozed {
		t.Error("taken away too early")
	}
	if f, err := s.Footage.Master(s.Ctx(), string(a.ID), unix(m.Expires), m.Signature); err != nil || f.Size == 0 {
		t.Errorf("the master can't be had: %v", err)
	}
	s.Mu.Lock()
	s.Clock = m.Expires
	s.Mu.Unlock()
	if _, err := s.Footage.Master(s.Ctx(), string(a.ID), unix(m.Expires),
		m.Signature); fault.KindOf(err) != fault.Denied {
		t.Errorf("after its time: %v", err)
	}
	s.Must(s.Do(over[0], 1))
	s.Must(s.DoAll())
	if now := s.Asset(a.ID); now.Master != nil || now.Options.MasterAccess != "none" || len(s.Files()) > 0 {
		t.Errorf("%+v, files %v", now.Master, s.Files())
	}
	s.Must(s.Do(make1[0], 1)) // a job that is late
	s.Must(s.Do(over[0], 1))
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
