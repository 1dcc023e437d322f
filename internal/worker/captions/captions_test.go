package captions_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/worker/captions/captionstest"
	"millrace/internal/worker/static/statictest"
	"millrace/internal/worker/workertest"
)

// captionedFiles are ways in which a file with captions comes in, by name: what ffmpeg does with the raw stream, and
// its encoder.
var captionedFiles = map[string]struct {
	encoder string
	args    []string
}{
	"as-it-is.mp4": {
		"libx264",
		[]string{
			"-c:v", "libx264", "-preset", "ultrafast", "-a53cc", "1", "-bf", "3", "-g", "60", "-pix_fmt", "yuv420p",
		},
	},
	"unpacked.mkv": {"libx264", []string{"-c", "copy"}},
	"transport.ts": {
		"libx264",
		[]string{
			"-c:v", "libx264", "-preset", "ultrafast", "-a53cc", "1", "-bf", "2", "-g", "60", "-pix_fmt", "yuv420p",
			"-f", "mpegts",
		},
	},
	"encoded-too.ts": {
		"libx264", []string{"-c:v", "mpeg2video", "-a53cc", "1", "-bf", "2", "-b:v", "2M", "-f", "mpegts"},
	},
	"encoded.mp4": {"libx265", []string{"-c", "copy", "-tag:v", "hvc1"}},
	"open-group.mp4": {
		"libx264",
		[]string{
			"-c:v", "libx264", "-preset", "veryfast", "-a53cc", "1", "-bf", "3", "-x264-params",
			"open-gop=1:b-pyramid=normal", "-g", "30", "-pix_fmt", "yuv420p",
		},
	},
}

// TestCaptionsInFiles: captions in the pictures of a file become text tracks of its asset, whether the file stays as it
// is, is unpacked or encoded; a channel without captions is an error of its track that says where there are some.
func TestCaptionsInFiles(t *testing.T) {
	t.Parallel()
	for name, file := range captionedFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := captionstest.Captioned(t, file.encoder)
			args := append([]string{"-r", fmt.Sprint(captionstest.Rate), "-i", raw}, file.args...)
			path := programtest.Media(t, name, args...)
			s := &shop{captionstest.Reader(t)}
			a := s.ReadyAsset(path)
			if len(a.Tracks) != 1 {
				t.Fatalf("tracks that nobody asked for: %+v", a.Tracks)
			}
			a = s.NewAsset(assetopt.Input{URL: s.Site.Offer(path), EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
				{Name: "English CC", LanguageCode: "en", Passthrough: "mine"},
				{LanguageCode: "fr", LanguageChannel: "cc3"},
				{LanguageCode: "de", LanguageChannel: "cc2"},
			}})
			if tr := workertest.TextTrack(t, a, "en"); tr.Status != asset.TrackPreparing ||
				tr.TextSource != "embedded" || !tr.ClosedCaptions || tr.Name != "English CC" {
				t.Errorf("at first: %+v", tr)
			}
			s.Must(s.DoAll())
			a = s.Asset(a.ID)
			if a.Status != asset.Ready {
				t.Fatalf("asset is %s: %+v", a.Status, a.Errors)
			}
			en, fr, de := workertest.TextTrack(t, a, "en"), workertest.TextTrack(t, a, "fr"),
				workertest.TextTrack(t, a, "de")
			s.wantCaptions(en)
			if got := s.texts(fr); !slices.Equal(got, []string{"Trois"}) || fr.Name != "French" {
				t.Errorf("third channel: %q, %+v", got, fr)
			}
			if de.Status != asset.TrackErrored ||
				!strings.Contains(strings.Join(de.Errors.Messages, ""),
					"no captions in the channel cc2; it has some in cc1, cc3") {
				t.Errorf("second channel: %+v, %+v", de, de.Errors)
			}
			s.NothingLeft()
		})
	}
}

// shop is a statictest.Shop and what is asked of it here.
type shop struct{ *statictest.Shop }

// texts are what a ready track says.
func (s *shop) texts(tr asset.Track) (out []string) {
	s.T.Helper()
	if tr.Status != asset.TrackReady {
		s.T.Fatalf("%+v, %+v", tr, tr.Errors)
	}
	d, err := mediastore.Document(s.Ctx(), s.Store, tr.Object)
	s.Must(err)
	for _, c := range d.Cues() {
		out = append(out, c.Text)
	}
	return out
}

// wantCaptions wants those of CC1, each at its time.
func (s *shop) wantCaptions(tr asset.Track) {
	s.T.Helper()
	if got := s.texts(tr); len(got) != 5 {
		s.T.Fatalf("captions: %q", got)
	}
	d, err := mediastore.Document(s.Ctx(), s.Store, tr.Object)
	s.Must(err)
	for i, c := range d.Cues() {
		at := time.Duration(1+2*i) * time.Second
		if want := fmt.Sprintf("Caption of second %d", 1+2*i); c.Text != want ||
			(c.Start-at).Abs() > 100*time.Millisecond || (c.End-at-1500*time.Millisecond).Abs() > 100*time.Millisecond {
			s.T.Errorf("caption %d: %q from %v to %v", i, c.Text, c.Start, c.End)
		}
	}
}

// captionedAsset is an asset, not ingested yet, of an MP4 with captions that are wanted.
func (s *shop) captionedAsset(t *testing.T) asset.Asset {
	t.Helper()
	file := captionedFiles["as-it-is.mp4"]
	path := programtest.Media(t, "captioned.mp4",
		append([]string{
			"-r", fmt.Sprint(captionstest.Rate), "-i", captionstest.Captioned(t, file.encoder),
		}, file.args...)...)
	return s.NewAsset(assetopt.Input{URL: s.Site.Offer(path), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1)})
}

// until does jobs up to the first of a kind, which it gives.
func (s *shop) until(kind string) job.Insert {
	s.T.Helper()
	queue := s.Jobs.Take()
	for len(queue) > 0 {
		j := queue[0]
		if j.Kind == kind {
			return j
		}
		s.Must(s.Do(j, 1))
		queue = append(queue[1:], s.Jobs.Take()...)
	}
	s.T.Fatalf("no job %s", kind)
	return job.Insert{}
}

// TestCaptionsAfterCrashes: the track is made by the attempt after one that was killed between any two of its steps,
// and once; a job that is done again changes nothing, and one that was lost is asked for again.
func TestCaptionsAfterCrashes(t *testing.T) {
	t.Parallel()
	s := &shop{captionstest.Reader(t)}
	a := s.captionedAsset(t)
	j := s.until(asset.JobCaptions)
	a = s.Asset(a.ID)
	if left := a.Left(s.Now()); len(left) != 1 || left[0].Kind != asset.JobCaptions || left[0].Key != j.Key {
		t.Errorf("work that is left: %+v", left)
	}
	killed := errors.New("killed")
	var stop context.CancelCauseFunc
	die := func() error { stop(killed); return killed }
	h := s.Handlers[asset.JobCaptions]
	for step, set := range []func(){
		func() { s.Footage.Before = func(asset.Asset) error { return die() } },
		func() { s.Footage.Before, s.Store.Fail = nil, func(string) error { return die() } },
		func() { s.Store.Fail, s.Jobs.Fail = nil, die },
	} {
		var ctx context.Context
		ctx, stop = context.WithCancelCause(s.Ctx())
		defer stop(nil)
		set()
		if err := h.Work(ctx, job.Job{
			Kind: j.Kind, Args: j.Args, MaxAttempts: h.MaxAttempts, Attempt: h.MaxAttempts,
		}); !errors.Is(err, killed) {
			t.Errorf("step %d: %v", step, err)
		}
		if tr := workertest.TextTrack(t, s.Asset(a.ID), "en"); tr.Status != asset.TrackPreparing {
			t.Errorf("step %d: %+v", step, tr)
		}
	}
	s.Jobs.Fail = nil
	for range 2 {
		s.Must(s.Do(j, 1))
		s.wantCaptions(workertest.TextTrack(t, s.Asset(a.ID), "en"))
	}
	a = s.Asset(a.ID)
	if left := a.Left(s.Now()); len(left) != 0 {
		t.Errorf("work that is left in the end: %+v", left)
	}
}

// TestCaptionsThatCantBeRead: a failure of storage is tried again, and after the last attempt the track is errored and
// the asset is as it was; of a file without captions or without video the track says so; a track and an asset that are
// deleted meanwhile leave nothing.
func TestCaptionsThatCantBeRead(t *testing.T) {
	t.Parallel()
	s := &shop{captionstest.Reader(t)}
	a := s.captionedAsset(t)
	j := s.until(asset.JobCaptions)
	broken := errors.New("disk on fire")
	s.Footage.Before = func(asset.Asset) error { return broken }
	h := s.Handlers[asset.JobCaptions]
	if err := s.Do(j, 1); !errors.Is(err, broken) ||
		workertest.TextTrack(t, s.Asset(a.ID), "en").Status != asset.TrackPreparing {
		t.Errorf("first attempt: %v", err)
	}
	if err := s.Do(j, h.MaxAttempts); !errors.Is(err, broken) {
		t.Errorf("last attempt: %v", err)
	}
	a = s.Asset(a.ID)
	if tr := workertest.TextTrack(t, a, "en"); tr.Status != asset.TrackErrored || a.Status != asset.Ready {
		t.Errorf("after the last attempt: %+v, asset %s", tr, a.Status)
	}
	s.Footage.Before = nil

	for name, args := range map[string][]string{
		"no closed captions": {
			"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-t", "3", "-c:v", "libx264", "-preset", "ultrafast",
			"-pix_fmt", "yuv420p",
		},
		"no video": {"-f", "lavfi", "-i", "sine=frequency=500", "-t", "3", "-c:a", "aac"},
	} {
		path := programtest.Media(t, strings.ReplaceAll(name, " ", "-")+".mp4", args...)
		b := s.NewAsset(assetopt.Input{
			URL: s.Site.Offer(path), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1),
		})
		s.Must(s.DoAll())
		tr := workertest.TextTrack(t, s.Asset(b.ID), "en")
		if tr.Status != asset.TrackErrored || !strings.Contains(strings.Join(tr.Errors.Messages, ""), name) {
			t.Errorf("%s: %+v, %+v", name, tr, tr.Errors)
		}
	}

	before := len(s.Objects())
	a = s.captionedAsset(t)
	j = s.until(asset.JobCaptions)
	stored := len(s.Objects())
	s.Store.Fail = func(string) error { // while the captions are read
		s.Store.Fail = nil
		return s.DeleteTrack(s.Ctx(), workertest.Env, a.ID, workertest.TextTrack(t, s.Asset(a.ID), "en").ID, s.Now())
	}
	s.Must(s.Do(j, 1))
	if now := len(s.Objects()); now != stored {
		t.Errorf("%d objects after the track was deleted, %d before: %q", now, stored, s.Objects())
	}
	s.Must(s.Delete(s.Ctx(), workertest.Env, a.ID, s.Now()))
	s.Must(s.Do(j, 1))
	s.Must(s.DoAll())
	if now := len(s.Objects()); now != before {
		t.Errorf("%d objects after the asset was deleted, %d before", now, before)
	}
}
