package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	workercaptions "millrace/internal/worker/captions"
)

// captionReader is a shop that makes text tracks of captions.
func captionReader(t *testing.T) *shop {
	t.Helper()
	s := newShop(t, time.Minute)
	s.handle[asset.JobCaptions] = (&workercaptions.Worker{Assets: s.Work, Store: s.store, Footage: s.footage, Now: s.now}).Handler()
	return s
}

const (
	captionRate   = 30
	captionLength = 12 // seconds
)

// captioned is a raw stream of H.264 or HEVC without B-frames whose pictures carry a caption each two seconds on CC1, and one on CC3.
func captioned(t *testing.T, encoder string) string {
	t.Helper()
	one := map[string][]string{
		"libx264": {"-x264-params", "slices=1:threads=1"}, "libx265": {"-x265-params", "slices=1:bframes=0:info=0:log-level=error"},
	}
	args := append([]string{
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-t", fmt.Sprint(captionLength), "-c:v", encoder, "-preset", "ultrafast",
		"-bf", "0", "-g", "60", "-pix_fmt", "yuv420p",
	}, one[encoder]...)
	format := map[string]string{"libx264": "h264", "libx265": "hevc"}[encoder]
	stream, err := os.ReadFile(programtest.SharedMedia(t, "uncaptioned."+format, append(args, "-f", format)...))
	if err != nil {
		t.Fatal(err)
	}
	e := &cea608test.Encoder{}
	for at := 1.0; at < captionLength-2; at += 2 {
		e.PopOn(1, at-1, at, at+1.5, 14, fmt.Sprintf("Caption of second %.0f", at))
	}
	e.PopOn(3, 2, 4, 6, 14, "Trois")
	path := filepath.Join(t.TempDir(), "captioned."+format)
	if err := os.WriteFile(path, e.Into(stream, format == "hevc", captionRate), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// captionedFiles are ways in which a file with captions comes in, by name: what ffmpeg does with the raw stream, and its encoder.
var captionedFiles = map[string]struct {
	encoder string
	args    []string
}{
	"as-it-is.mp4":   {"libx264", []string{"-c:v", "libx264", "-preset", "ultrafast", "-a53cc", "1", "-bf", "3", "-g", "60", "-pix_fmt", "yuv420p"}},
	"unpacked.mkv":   {"libx264", []string{"-c", "copy"}},
	"transport.ts":   {"libx264", []string{"-c:v", "libx264", "-preset", "ultrafast", "-a53cc", "1", "-bf", "2", "-g", "60", "-pix_fmt", "yuv420p", "-f", "mpegts"}},
	"encoded-too.ts": {"libx264", []string{"-c:v", "mpeg2video", "-a53cc", "1", "-bf", "2", "-b:v", "2M", "-f", "mpegts"}},
	"encoded.mp4":    {"libx265", []string{"-c", "copy", "-tag:v", "hvc1"}},
	"open-group.mp4": {"libx264", []string{"-c:v", "libx264", "-preset", "veryfast", "-a53cc", "1", "-bf", "3", "-x264-params", "open-gop=1:b-pyramid=normal", "-g", "30", "-pix_fmt", "yuv420p"}},
}

// TestCaptionsInFiles: captions in the pictures of a file become text tracks of its asset, whether the file stays as it is, is unpacked or encoded;
// a channel without captions is an error of its track that says where there are some.
func TestCaptionsInFiles(t *testing.T) {
	t.Parallel()
	for name, file := range captionedFiles {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := captioned(t, file.encoder)
			args := append([]string{"-r", fmt.Sprint(captionRate), "-i", raw}, file.args...)
			path := programtest.Media(t, name, args...)
			s := captionReader(t)
			a := s.ready(path)
			if len(a.Tracks) != 1 {
				t.Fatalf("tracks that nobody asked for: %+v", a.Tracks)
			}
			a = s.create(assetopt.Input{URL: s.site.offer(path), EmbeddedSubtitles: []assetopt.EmbeddedSubtitle{
				{Name: "English CC", LanguageCode: "en", Passthrough: "mine"}, {LanguageCode: "fr", LanguageChannel: "cc3"}, {LanguageCode: "de", LanguageChannel: "cc2"},
			}})
			if tr := textTrack(t, a, "en"); tr.Status != asset.TrackPreparing || tr.TextSource != "embedded" || !tr.ClosedCaptions || tr.Name != "English CC" {
				t.Errorf("at first: %+v", tr)
			}
			s.must(s.work())
			a = s.find(a.ID)
			if a.Status != asset.Ready {
				t.Fatalf("asset is %s: %+v", a.Status, a.Errors)
			}
			en, fr, de := textTrack(t, a, "en"), textTrack(t, a, "fr"), textTrack(t, a, "de")
			s.wantCaptions(en)
			if got := s.texts(fr); !slices.Equal(got, []string{"Trois"}) || fr.Name != "French" {
				t.Errorf("third channel: %q, %+v", got, fr)
			}
			if de.Status != asset.TrackErrored || !strings.Contains(strings.Join(de.Errors.Messages, ""), "no captions in the channel cc2; it has some in cc1, cc3") {
				t.Errorf("second channel: %+v, %+v", de, de.Errors)
			}
			s.nothingLeft()
		})
	}
}

// texts are what a ready track says.
func (s *shop) texts(tr asset.Track) (out []string) {
	s.t.Helper()
	if tr.Status != asset.TrackReady {
		s.t.Fatalf("%+v, %+v", tr, tr.Errors)
	}
	d, err := mediastore.Document(s.ctx(), s.store, tr.Object)
	s.must(err)
	for _, c := range d.Cues() {
		out = append(out, c.Text)
	}
	return out
}

// wantCaptions wants those of CC1, each at its time.
func (s *shop) wantCaptions(tr asset.Track) {
	s.t.Helper()
	if got := s.texts(tr); len(got) != 5 {
		s.t.Fatalf("captions: %q", got)
	}
	d, err := mediastore.Document(s.ctx(), s.store, tr.Object)
	s.must(err)
	for i, c := range d.Cues() {
		at := time.Duration(1+2*i) * time.Second
		if want := fmt.Sprintf("Caption of second %d", 1+2*i); c.Text != want || (c.Start-at).Abs() > 100*time.Millisecond || (c.End-at-1500*time.Millisecond).Abs() > 100*time.Millisecond {
			s.t.Errorf("caption %d: %q from %v to %v", i, c.Text, c.Start, c.End)
		}
	}
}

// captionedAsset is an asset, not ingested yet, of an MP4 with captions that are wanted.
func (s *shop) captionedAsset(t *testing.T) asset.Asset {
	t.Helper()
	file := captionedFiles["as-it-is.mp4"]
	path := programtest.Media(t, "captioned.mp4", append([]string{"-r", fmt.Sprint(captionRate), "-i", captioned(t, file.encoder)}, file.args...)...)
	return s.create(assetopt.Input{URL: s.site.offer(path), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1)})
}

// until does jobs up to the first of a kind, which it gives.
func (s *shop) until(kind string) job.Insert {
	s.t.Helper()
	queue := s.jobs.take()
	for len(queue) > 0 {
		j := queue[0]
		if j.Kind == kind {
			return j
		}
		s.must(s.do(j, 1))
		queue = append(queue[1:], s.jobs.take()...)
	}
	s.t.Fatalf("no job %s", kind)
	return job.Insert{}
}

// TestCaptionsAfterCrashes: the track is made by the attempt after one that was killed between any two of its steps, and once; a job that is done
// again changes nothing, and one that was lost is asked for again.
func TestCaptionsAfterCrashes(t *testing.T) {
	t.Parallel()
	s := captionReader(t)
	a := s.captionedAsset(t)
	j := s.until(asset.JobCaptions)
	a = s.find(a.ID)
	if left := a.Left(s.now()); len(left) != 1 || left[0].Kind != asset.JobCaptions || left[0].Key != j.Key {
		t.Errorf("work that is left: %+v", left)
	}
	killed := errors.New("killed")
	var stop context.CancelCauseFunc
	die := func() error { stop(killed); return killed }
	h := s.handle[asset.JobCaptions]
	for step, set := range []func(){
		func() { s.footage.before = func(asset.Asset) error { return die() } },
		func() { s.footage.before, s.store.put = nil, func(string) error { return die() } },
		func() { s.store.put, s.jobs.save = nil, die },
	} {
		var ctx context.Context
		ctx, stop = context.WithCancelCause(s.ctx())
		defer stop(nil)
		set()
		if err := h.Work(ctx, job.Job{Kind: j.Kind, Args: j.Args, MaxAttempts: h.MaxAttempts, Attempt: h.MaxAttempts}); !errors.Is(err, killed) {
			t.Errorf("step %d: %v", step, err)
		}
		if tr := textTrack(t, s.find(a.ID), "en"); tr.Status != asset.TrackPreparing {
			t.Errorf("step %d: %+v", step, tr)
		}
	}
	s.jobs.save = nil
	for range 2 {
		s.must(s.do(j, 1))
		s.wantCaptions(textTrack(t, s.find(a.ID), "en"))
	}
	a = s.find(a.ID)
	if left := a.Left(s.now()); len(left) != 0 {
		t.Errorf("work that is left in the end: %+v", left)
	}
}

// TestCaptionsThatCantBeRead: a failure of storage is tried again, and after the last attempt the track is errored and the asset is as it was; of a
// file without captions or without video the track says so; a track and an asset that are deleted meanwhile leave nothing.
func TestCaptionsThatCantBeRead(t *testing.T) {
	t.Parallel()
	s := captionReader(t)
	a := s.captionedAsset(t)
	j := s.until(asset.JobCaptions)
	broken := errors.New("disk on fire")
	s.footage.before = func(asset.Asset) error { return broken }
	h := s.handle[asset.JobCaptions]
	if err := s.do(j, 1); !errors.Is(err, broken) || textTrack(t, s.find(a.ID), "en").Status != asset.TrackPreparing {
		t.Errorf("first attempt: %v", err)
	}
	if err := s.do(j, h.MaxAttempts); !errors.Is(err, broken) {
		t.Errorf("last attempt: %v", err)
	}
	a = s.find(a.ID)
	if tr := textTrack(t, a, "en"); tr.Status != asset.TrackErrored || a.Status != asset.Ready {
		t.Errorf("after the last attempt: %+v, asset %s", tr, a.Status)
	}
	s.footage.before = nil

	for name, args := range map[string][]string{
		"no closed captions": {"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-t", "3", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"},
		"no video":           {"-f", "lavfi", "-i", "sine=frequency=500", "-t", "3", "-c:a", "aac"},
	} {
		path := programtest.Media(t, strings.ReplaceAll(name, " ", "-")+".mp4", args...)
		b := s.create(assetopt.Input{URL: s.site.offer(path), EmbeddedSubtitles: make([]assetopt.EmbeddedSubtitle, 1)})
		s.must(s.work())
		tr := textTrack(t, s.find(b.ID), "en")
		if tr.Status != asset.TrackErrored || !strings.Contains(strings.Join(tr.Errors.Messages, ""), name) {
			t.Errorf("%s: %+v, %+v", name, tr, tr.Errors)
		}
	}

	before := len(s.objects())
	a = s.captionedAsset(t)
	j = s.until(asset.JobCaptions)
	stored := len(s.objects())
	s.store.put = func(string) error { // while the captions are read
		s.store.put = nil
		return s.DeleteTrack(s.ctx(), env, a.ID, textTrack(t, s.find(a.ID), "en").ID, s.now())
	}
	s.must(s.do(j, 1))
	if now := len(s.objects()); now != stored {
		t.Errorf("%d objects after the track was deleted, %d before: %q", now, stored, s.objects())
	}
	s.must(s.Delete(s.ctx(), env, a.ID, s.now()))
	s.must(s.do(j, 1))
	s.must(s.work())
	if now := len(s.objects()); now != before {
		t.Errorf("%d objects after the asset was deleted, %d before", now, before)
	}
}
