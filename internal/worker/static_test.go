package worker_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/download"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/mediastore"
	"millrace/internal/presentation"
	"millrace/internal/worker/master"
	"millrace/internal/worker/static"
)

// shop makes files of the world's assets, as the service does.
type shop struct {
	*world
	footage  *spoiled
	progress *progressed
}

// spoiled lets tests get between a job and what it works on.
type spoiled struct {
	*presentation.Source
	before func(a asset.Asset) error
	change func(f *download.Footage)
}

func (s *spoiled) Footage(ctx context.Context, a asset.Asset, want download.Want) (download.Footage, error) {
	if s.before != nil {
		if err := s.before(a); err != nil {
			return download.Footage{}, err
		}
	}
	f, err := s.Source.Footage(ctx, a, want)
	if s.change != nil && err == nil {
		s.change(&f)
	}
	return f, err
}

// progressed notes what is written down of how far files are, in percent.
type progressed struct {
	asset.FileMaker

	told []float64
}

func (p *progressed) StaticProgress(
	ctx context.Context, a id.Asset, f id.StaticRendition, percent float64, now time.Time,
) error {
	p.told = append(p.told, percent)
	return p.FileMaker.StaticProgress(ctx, a, f, percent, now)
}

func newShop(t *testing.T, pass time.Duration) *shop {
	t.Helper()
	w := newWorld(t, options{})
	engine := newEngine(t, 0)
	log := slog.New(slog.DiscardHandler)
	rungs := justintime.New(justintime.Options{Encoder: engine, Store: mediastore.Derived{Objects: mediastore.Objects{Blob: w.store}, Assets: w.Work}, Version: "test", Now: time.Now, Logger: log})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { _ = rungs.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	footage := &spoiled{Source: presentation.New(presentation.Options{
		Assets: w.Work, Blob: w.store, Library: ondemand.NewLibrary(objects{w.store}, 1<<20), Renditions: rungs, Now: w.now, Logger: log,
	})}
	progress := &progressed{FileMaker: w.Work}
	for _, h := range []job.Handler{
		(&static.Worker{Assets: progress, Store: w.store, Footage: footage, Encoder: engine, Scratch: w.scratch, Pass: pass, Now: w.now}).Handler(),
		(&master.Worker{Assets: w.Work, Store: w.store, Footage: footage, Now: w.now}).Handler(),
	} {
		w.handle[h.Kind] = h
	}
	return &shop{w, footage, progress}
}

func (s *shop) ask(a asset.Asset, resolution string) asset.StaticRendition {
	s.t.Helper()
	f, err := s.AddStatic(s.ctx(), env, a.ID, assetopt.StaticRendition{Resolution: resolution}, s.now())
	s.must(err)
	return f
}

// file is the only file of an asset, and what is stored of it.
func (s *shop) file(a id.Asset) (asset.StaticRendition, *mp4.File) {
	s.t.Helper()
	now := s.find(a)
	f := now.Static.Files[len(now.Static.Files)-1]
	if f.Status != asset.FileReady {
		s.t.Fatalf("%+v", f)
	}
	data := s.read(objectkey.File(now.Media, f.ID, f.Ext))
	x, err := mp4.Index(bytes.NewReader(data), int64(len(data)))
	s.must(err)
	if int64(len(data)) != f.Size {
		s.t.Errorf("%d bytes: %+v", len(data), f)
	}
	return f, x
}

// files lists what is stored of files.
func (s *shop) files() (out []string) {
	for _, key := range s.objects() {
		if strings.Contains(key, "/files/") {
			out = append(out, key)
		}
	}
	return out
}

// TestStaticFiles makes every kind of file of an upload: the samples are those of the renditions that viewers get.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	s := newShop(t, time.Nanosecond) // a turn for each segment
	a := s.ready(clip(t, "a.mp4"))
	count := s.samples(a)
	for _, resolution := range []string{"highest", "audio-only"} {
		s.ask(a, resolution)
		s.must(s.work())
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
	for _, f := range s.find(a.ID).Static.Files {
		s.must(s.DeleteStatic(s.ctx(), env, a.ID, f.ID, s.now()))
	}
	s.must(s.work())
	if left := s.files(); len(left) > 0 {
		t.Errorf("left of deleted files: %v", left)
	}
	s.nothingLeft()
}

// TestStaticEncodes makes a size that nobody is offered, in many turns: what was made for it goes when it is there. Sound in a codec that phones
// don't have in an MP4 becomes AAC.
func TestStaticEncodes(t *testing.T) {
	t.Parallel()
	s := newShop(t, time.Nanosecond)
	a := s.ready(ffmpeg(t, "a.mp4", video("-s", "640x480")...)) // pixels that are not square: 853x480 as it is shown
	count := s.samples(a)
	s.footage.change = func(f *download.Footage) { f.EncodeAudio = true }
	s.ask(a, "360p")
	s.must(s.work())
	f, x := s.file(a.ID)
	if f.Width != 640 || f.Height != 360 || len(x.Tracks) != 2 || x.Tracks[0].Len() != count["v"] || x.Tracks[0].FourCC != "avc1" || x.Tracks[1].FourCC != "mp4a" {
		t.Errorf("%+v: %d pictures of %d", f, x.Tracks[0].Len(), count["v"])
	}
	if n := x.Tracks[1].Len() - count["a"]; n < -3 || n > 3 {
		t.Errorf("%d frames of sound of %d", x.Tracks[1].Len(), count["a"])
	}
	if v, snd := x.Tracks[0].PTS(0), x.Tracks[1]; v < 0 || v > int64(x.Tracks[0].Timescale)/30 || snd.PTS(1) > int64(snd.Timescale)/10 {
		t.Errorf("begins at %d and %d", v, snd.PTS(0))
	}
	if left := s.files(); len(left) != 1 {
		t.Errorf("stored: %v", left)
	}
	told := s.progress.told
	if n := len(told); n < 3 || told[n-1] != 99 || !slices.IsSorted(told) || f.Progress != 0 {
		t.Errorf("progress: %v, then %f", told, f.Progress)
	}
	s.nothingLeft()
}

// TestStaticEnds: whatever happens to a job, the file gets an end, and nothing is left of one that nobody wants any more.
func TestStaticEnds(t *testing.T) {
	t.Parallel()
	path := clip(t, "a.mp4")
	for name, tt := range map[string]struct {
		before func(s *shop, a asset.Asset) error
		change func(f *download.Footage)
		status asset.FileStatus // empty: it is not there any more
		files  int
	}{
		"at fault":  {before: func(*shop, asset.Asset) error { return fault.New(fault.Invalid, "the picture can't be decoded") }, status: asset.FileErrored},
		"each time": {before: func(*shop, asset.Asset) error { return errors.New("no luck") }, status: asset.FileErrored},
		"panics":    {before: func(*shop, asset.Asset) error { panic("oh") }, status: asset.FileErrored},
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
			return s.DeleteStatic(s.ctx(), env, a.ID, a.Static.Files[0].ID, s.now())
		}},
		"asset deleted": {before: func(s *shop, a asset.Asset) error { return s.Delete(s.ctx(), env, a.ID, s.now()) }},
		"nothing in it": {change: func(f *download.Footage) { f.Renditions = nil }, status: asset.FileErrored},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, time.Minute)
			a := s.ready(path)
			s.ask(a, "highest")
			s.footage.change = tt.change
			if tt.before != nil {
				s.footage.before = func(a asset.Asset) error { return tt.before(s, a) }
			}
			_ = s.work() // the job's own error is for the log
			now, err := s.Find(s.ctx(), a.ID)
			switch {
			case tt.status == "" && err == nil && len(now.Static.Files) > 0, tt.status != "" && (err != nil || now.Static.Files[0].Status != tt.status):
				t.Errorf("%v, %+v", err, now.Static)
			case tt.status == asset.FileErrored && len(now.Static.Files[0].Errors.Messages) == 0:
				t.Error("nobody is told why")
			}
			if left := s.files(); len(left) != tt.files {
				t.Errorf("stored: %v", left)
			}
			if name == "asset deleted" && len(s.objects()) > 0 {
				t.Errorf("left of the asset: %v", s.objects())
			}
		})
	}
}

// TestMasterIsTakenAway when its day is over, with its file.
func TestMasterIsTakenAway(t *testing.T) {
	t.Parallel()
	s := newShop(t, time.Minute)
	a := s.ready(clip(t, "a.mp4"))
	_, err := s.SetMasterAccess(s.ctx(), env, a.ID, "temporary", s.now())
	s.must(err)
	make1 := s.jobs.take()
	if len(make1) != 1 || make1[0].Kind != asset.JobMaster {
		t.Fatalf("jobs %v", make1)
	}
	s.must(s.do(make1[0], 1))
	m := s.find(a.ID).Master
	over := s.jobs.take()
	if m.Status != asset.FileReady || len(over) != 1 || !over[0].At.Equal(m.Expires) || len(s.files()) != 1 {
		t.Fatalf("%+v, jobs %v, files %v", m, over, s.files())
	}
	if _, snoozed := errors.AsType[*job.SnoozeError](s.do(over[0], 1)); !snoozed { // a clock that goes before the database's
		t.Error("taken away too early")
	}
	if f, err := s.footage.Master(s.ctx(), string(a.ID), unix(m.Expires), m.Signature); err != nil || f.Size == 0 {
		t.Errorf("the master can't be had: %v", err)
	}
	s.mu.Lock()
	s.clock = m.Expires
	s.mu.Unlock()
	if _, err := s.footage.Master(s.ctx(), string(a.ID), unix(m.Expires), m.Signature); fault.KindOf(err) != fault.Denied {
		t.Errorf("after its time: %v", err)
	}
	s.must(s.do(over[0], 1))
	s.must(s.work())
	if now := s.find(a.ID); now.Master != nil || now.Options.MasterAccess != "none" || len(s.files()) > 0 {
		t.Errorf("%+v, files %v", now.Master, s.files())
	}
	s.must(s.do(make1[0], 1)) // a job that is late
	s.must(s.do(over[0], 1))
}

func unix(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
