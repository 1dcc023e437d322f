package ingest_test

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// clipped makes a clip that becomes ready.
func (w *world) clipped(source asset.Asset, from, to float64) asset.Asset {
	w.T.Helper()
	a := w.ClipOf(source, from, &to)
	w.Must(w.DoAll())
	if a = w.Asset(a.ID); a.Status != asset.Ready {
		w.T.Fatalf("the clip is %s: %+v", a.Status, a.Errors)
	}
	return a
}

func (w *world) timeline(a asset.Asset) *timeline.Timeline {
	w.T.Helper()
	t, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	return t
}

const subtitles = `WEBVTT

00:01.000 --> 00:02.000
in front

00:03.500 --> 00:05.000
over the start

00:09.000 --> 00:10.000
inside

00:12.500 --> 00:13.000
behind
`

// A clip plays the source's own segments, has its texts cut to it, and a clip of it does the same.
func TestClip(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mp4", "a.mkv"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			source := w.ReadyAsset(filmtest.Usual(t, name),
				assetopt.Input{
					URL: w.Site.Offer(filmtest.Text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles",
					LanguageCode: "en", Name: "Words",
				})
			before := len(w.Objects())
			a := w.clipped(source, 4.5, 11) // of segments 4–8 and 8–12
			if d := a.Facts.Duration; math.Abs(d-6.5) > 0.001 || a.SourceAsset != source.ID ||
				a.Origin != asset.FromClip {
				t.Errorf("clip %+v", a)
			}
			if !slices.Equal(a.Uses, []id.Media{source.Media}) {
				t.Errorf("uses %v, the source is %s", a.Uses, source.Media)
			}
			if n := len(w.Objects()) - before; n != 7 {
				t.Errorf("%d objects were made, want index, text, two segments at the ends of each rendition and the "+
					"video's init segment", n)
			}
			// in Matroska the grid of the pictures is another one
			if n := w.Samples(a); n["v"] != 195 && (n["v"] != 196 || name == "a.mp4") {
				t.Errorf("%v is played", n)
			}
			w.wantText(a, said{0, 0.5, "over the start"}, said{4.5, 5.5, "inside"})
			again := w.clipped(a, 4.5, 6) // of 8–12
			if d := again.Facts.Duration; math.Abs(d-1.5) > 0.001 || w.Samples(again)["v"] < 45 ||
				w.Samples(again)["v"] > 46 || again.SourceAsset != a.ID {
				t.Errorf("clip of the clip %+v", again)
			}
			if !slices.Contains(again.Uses, source.Media) && name == "a.mkv" && slices.Contains(again.Uses, a.Media) {
				t.Errorf("uses %v, the source is %s", again.Uses, source.Media)
			}
			w.wantText(again, said{0, 1, "inside"})
			if z := w.timeline(again).ZeroTime(); math.Abs(z-19) > 0.05 {
				t.Errorf("the clip's second 0 is at media time %.3f", z)
			}
			if end := w.clipped(source, 12.3, 13); len(end.Tracks) != 3 ||
				!strings.Contains(end.Tracks[2].Name, "Words") {
				t.Errorf("tracks %+v", end.Tracks)
			}
			quiet := w.clipped(source, 5.1, 5.7)
			if len(quiet.Tracks) != 2 {
				t.Errorf("tracks %+v", quiet.Tracks)
			}
		})
	}
}

// said is a cue, in seconds.
type said struct {
	from, to float64
	text     string
}

// wantText wants the clip's text track to have these cues, give or take the 20 ms by which sound begins before the
// picture in Matroska.
func (w *world) wantText(a asset.Asset, cues ...said) {
	w.T.Helper()
	i := slices.IndexFunc(a.Tracks, func(t asset.Track) bool { return t.Type == asset.TextTrack })
	if i < 0 {
		w.T.Fatalf("no text among %+v", a.Tracks)
	}
	tr := a.Tracks[i]
	if tr.Status != asset.TrackReady || tr.Name != "Words" || tr.LanguageCode != "en" ||
		!strings.HasPrefix(tr.Object, objectkey.Tracks(a.Media)) {
		w.T.Errorf("text track %+v", tr)
	}
	d, err := captions.Parse(w.ReadObject(tr.Object))
	w.Must(err)
	same := func(c captions.Cue, s said) bool {
		return c.Text == s.text && math.Abs(c.Start.Seconds()-s.from) < 0.03 && math.Abs(c.End.Seconds()-s.to) < 0.03
	}
	if !slices.EqualFunc(d.Cues(), cues, same) {
		w.T.Errorf("cues are %+v, want %+v", d.Cues(), cues)
	}
}

// The bytes of a source that is deleted stay for as long as a clip plays them, and not longer.
func TestPurge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mp4", "a.mkv"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			source := w.ReadyAsset(filmtest.Usual(t, name),
				assetopt.Input{
					URL: w.Site.Offer(filmtest.Text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles",
					LanguageCode: "en", Name: "Words",
				})
			a := w.clipped(source, 1, 11)
			b := w.clipped(a, 1.5, 9)
			had := []map[string]int{w.Samples(a), w.Samples(b)}
			other := w.ReadyAsset(filmtest.Usual(t, "b.mp4"))
			w.Must(w.Delete(w.Ctx(), workertest.Env, source.ID, w.Now()))
			w.Must(w.DoAll())
			if !maps.Equal(w.Samples(a), had[0]) || !maps.Equal(w.Samples(b), had[1]) {
				t.Error("the clips lost something")
			}
			w.wantText(a, said{0, 1, "in front"}, said{2.5, 4, "over the start"}, said{8, 9, "inside"})
			for _, key := range w.Objects() {
				if strings.HasPrefix(key, objectkey.Media(source.Media)) &&
					(strings.Contains(key, "tracks/") || strings.Contains(key, "timeline") ||
						strings.Contains(key, "/0.m4s")) {
					t.Errorf("%s is left", key)
				}
			}
			w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
			w.Must(w.DoAll())
			if !maps.Equal(w.Samples(b), had[1]) {
				t.Error("the clip of the clip lost something")
			}
			w.Must(w.Delete(w.Ctx(), workertest.Env, b.ID, w.Now()))
			w.Must(w.DoAll())
			for _, key := range w.Objects() {
				if !strings.HasPrefix(key, objectkey.Media(other.Media)) {
					t.Errorf("%s is left", key)
				}
			}
			if w.Samples(other)["v"] != 390 {
				t.Error("another asset lost something")
			}
		})
	}
}

// A source that is deleted while a clip of it is made: either the clip plays, or it says why not; nothing is left over.
func TestPurgeWaitsForClips(t *testing.T) {
	t.Parallel()
	path := filmtest.Usual(t, "a.mp4")
	t.Run("deleted first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{})
		source := w.ReadyAsset(path)
		to := 11.0
		a := w.ClipOf(source, 5, &to)
		cut := w.Jobs.Take()[0]
		w.Must(w.Delete(w.Ctx(), workertest.Env, source.ID, w.Now()))
		purge := w.Jobs.Take()[0]
		if _, snoozed := errors.AsType[*job.SnoozeError](w.Do(purge, 1)); !snoozed {
			t.Error("the purge does not wait")
		}
		if err := w.Do(cut, 1); fault.KindOf(err) != fault.Invalid {
			t.Errorf("got %v", err)
		}
		if got := w.Asset(a.ID); got.Status != asset.Errored ||
			!strings.Contains(got.Errors.Messages[0], "has been deleted") {
			t.Errorf("the clip is %+v", got)
		}
		w.Must(w.Do(purge, 1))
		w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
		w.Must(w.DoAll())
		if left := w.Objects(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("deleted in between", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{})
		source := w.ReadyAsset(path)
		to := 11.0
		a := w.ClipOf(source, 5, &to)
		cut := w.Jobs.Take()[0]
		var once sync.Once                  // tracks are cut side by side
		w.Store.Fail = func(string) error { // the source's timeline was read
			once.Do(func() {
				w.Must(w.Delete(w.Ctx(), workertest.Env, source.ID, w.Now()))
				if _, snoozed := errors.AsType[*job.SnoozeError](w.Do(w.Jobs.All[0], 1)); !snoozed {
					t.Error("the purge does not wait")
				}
			})
			return nil
		}
		w.Must(w.Do(cut, 1))
		w.Must(w.DoAll())
		if got := w.Asset(a.ID); got.Status != asset.Ready || w.Samples(got)["v"] != 180 {
			t.Errorf("the clip is %+v", got)
		}
	})
}

// A clip of what is still going on: what is on record, up to when it was asked for; it waits a little for the rest.
func TestClipOfLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	start := w.Now()
	source := w.NewRecording(5, start) // 0–10
	inside := w.clipped(source, 3, 7)
	if tl := w.timeline(inside); inside.Facts.Duration != 4 || len(tl.Marks) != 3 ||
		!tl.Marks[0].Start.Equal(start.Add(3*time.Second)) {
		t.Errorf("inside: %+v", inside)
	}
	w.Clock = start.Add(8 * time.Second) // segment 4 is not on record yet at that time
	open := w.ClipOf(source, 3, nil)
	j := w.Jobs.Take()[0]
	if _, snoozed := errors.AsType[*job.SnoozeError](w.Do(j, 8)); !snoozed {
		t.Error("it does not wait for what was recorded when it was asked for")
	}
	w.Extend(source, 5, 2, start) // 10–14: the segment of the request is whole
	w.Must(w.Do(j, 1))
	if got := w.Asset(open.ID); got.Status != asset.Ready || got.Facts.Duration != 7 { // 3–10
		t.Errorf("open: %+v", got)
	}
	to := 15.5
	later := w.ClipOf(source, 9, &to)
	j = w.Jobs.Take()[0]
	if _, snoozed := errors.AsType[*job.SnoozeError](w.Do(j, 1)); !snoozed {
		t.Error("it does not wait for what was asked for")
	}
	w.Clock = w.Clock.Add(time.Minute)
	w.Must(w.Do(j, 1))
	if got := w.Asset(later.ID); got.Facts.Duration != 5 { // 9–14: that is all there is
		t.Errorf("later: %+v", got)
	}
	w.Must(w.EndLive(w.Ctx(), source.ID, asset.Writer{}, nil, w.Now()))
	w.Must(w.DoAll())
	whole := w.ClipOf(w.Asset(source.ID), 0, nil)
	w.Must(w.DoAll())
	if got := w.Asset(whole.ID); got.Status != asset.Ready || got.Facts.Duration != 14 ||
		!slices.Equal(got.Uses, []id.Media{source.Media}) {
		t.Errorf("whole: %+v", got)
	}
}

// A finished broadcast has its record as an index; work that comes twice or too late changes nothing.
func TestFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	source := w.NewRecording(3, w.Now())
	w.Must(w.EndLive(w.Ctx(), source.ID, asset.Writer{}, nil, w.Now()))
	j := w.Jobs.Take()[0]
	w.Must(w.Do(j, 1))
	w.Must(w.Do(j, 2))
	got := w.Asset(source.ID)
	if got.Status != asset.Ready || got.Facts.Duration != 6 || got.Facts.FrameRate != -1 ||
		got.Index != objectkey.Index(source.Media) || len(w.timeline(got).Marks) != 3 {
		t.Errorf("finished %+v", got)
	}
	second := w.NewRecording(3, w.Now())
	w.Must(w.EndLive(w.Ctx(), second.ID, asset.Writer{}, nil, w.Now()))
	late := w.Jobs.Take()[0]
	w.Store.Fail = func(string) error {
		w.Must(w.Delete(w.Ctx(), workertest.Env, second.ID, w.Now()))
		return nil
	}
	w.Must(w.Do(late, 1))
	w.Store.Fail = nil
	w.Must(w.Do(late, 2))
	for _, key := range w.Objects() {
		if strings.HasPrefix(key, objectkey.Media(second.Media)) {
			t.Errorf("%s is left", key)
		}
	}
	for _, h := range w.Handlers {
		if err := h.Work(w.Ctx(), job.Job{
			Kind: h.Kind, Args: json.RawMessage("[]"), Attempt: 1, MaxAttempts: 1,
		}); err == nil {
			t.Errorf("%s takes any arguments", h.Kind)
		}
	}
}
