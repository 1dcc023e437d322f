package worker_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
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
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
)

func (w *world) clip(source asset.Asset, from float64, to *float64) asset.Asset {
	w.t.Helper()
	return w.create(assetopt.Input{URL: "svc://assets/" + string(source.ID), StartTime: &from, EndTime: to})
}

// clipped makes a clip that becomes ready.
func (w *world) clipped(source asset.Asset, from, to float64) asset.Asset {
	w.t.Helper()
	a := w.clip(source, from, &to)
	w.must(w.work())
	if a = w.find(a.ID); a.Status != asset.Ready {
		w.t.Fatalf("the clip is %s: %+v", a.Status, a.Errors)
	}
	return a
}

func (w *world) timeline(a asset.Asset) *timeline.Timeline {
	w.t.Helper()
	t, err := mediastore.Timeline(w.ctx(), w.store, w.Work, a)
	w.must(err)
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
			w := newWorld(t, options{})
			source := w.ready(clip(t, name),
				assetopt.Input{URL: w.site.offer(text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles", LanguageCode: "en", Name: "Words"})
			before := len(w.objects())
			a := w.clipped(source, 4.5, 11) // of segments 4–8 and 8–12
			if d := a.Facts.Duration; math.Abs(d-6.5) > 0.001 || a.SourceAsset != source.ID || a.Origin != asset.FromClip {
				t.Errorf("clip %+v", a)
			}
			if !slices.Equal(a.Uses, []id.Media{source.Media}) {
				t.Errorf("uses %v, the source is %s", a.Uses, source.Media)
			}
			if n := len(w.objects()) - before; n != 7 {
				t.Errorf("%d objects were made, want index, text, two segments at the ends of each rendition and the video's init segment", n)
			}
			if n := w.samples(a); n["v"] != 195 && (n["v"] != 196 || name == "a.mp4") { // in Matroska the grid of the pictures is another one
				t.Errorf("%v is played", n)
			}
			w.wantText(a, said{0, 0.5, "over the start"}, said{4.5, 5.5, "inside"})
			again := w.clipped(a, 4.5, 6) // of 8–12
			if d := again.Facts.Duration; math.Abs(d-1.5) > 0.001 || w.samples(again)["v"] < 45 || w.samples(again)["v"] > 46 || again.SourceAsset != a.ID {
				t.Errorf("clip of the clip %+v", again)
			}
			if !slices.Contains(again.Uses, source.Media) && name == "a.mkv" && slices.Contains(again.Uses, a.Media) {
				t.Errorf("uses %v, the source is %s", again.Uses, source.Media)
			}
			w.wantText(again, said{0, 1, "inside"})
			if z := w.timeline(again).ZeroTime(); math.Abs(z-19) > 0.05 {
				t.Errorf("the clip's second 0 is at media time %.3f", z)
			}
			if end := w.clipped(source, 12.3, 13); len(end.Tracks) != 3 || !strings.Contains(end.Tracks[2].Name, "Words") {
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

// wantText wants the clip's text track to have these cues, give or take the 20 ms by which sound begins before the picture in Matroska.
func (w *world) wantText(a asset.Asset, cues ...said) {
	w.t.Helper()
	i := slices.IndexFunc(a.Tracks, func(t asset.Track) bool { return t.Type == asset.TextTrack })
	if i < 0 {
		w.t.Fatalf("no text among %+v", a.Tracks)
	}
	tr := a.Tracks[i]
	if tr.Status != asset.TrackReady || tr.Name != "Words" || tr.LanguageCode != "en" || !strings.HasPrefix(tr.Object, objectkey.Tracks(a.Media)) {
		w.t.Errorf("text track %+v", tr)
	}
	d, err := captions.Parse(w.read(tr.Object))
	w.must(err)
	same := func(c captions.Cue, s said) bool {
		return c.Text == s.text && math.Abs(c.Start.Seconds()-s.from) < 0.03 && math.Abs(c.End.Seconds()-s.to) < 0.03
	}
	if !slices.EqualFunc(d.Cues(), cues, same) {
		w.t.Errorf("cues are %+v, want %+v", d.Cues(), cues)
	}
}

// The bytes of a source that is deleted stay for as long as a clip plays them, and not longer.
func TestPurge(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a.mp4", "a.mkv"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			source := w.ready(clip(t, name),
				assetopt.Input{URL: w.site.offer(text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles", LanguageCode: "en", Name: "Words"})
			a := w.clipped(source, 1, 11)
			b := w.clipped(a, 1.5, 9)
			had := []map[string]int{w.samples(a), w.samples(b)}
			other := w.ready(clip(t, "b.mp4"))
			w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
			w.must(w.work())
			if !maps.Equal(w.samples(a), had[0]) || !maps.Equal(w.samples(b), had[1]) {
				t.Error("the clips lost something")
			}
			w.wantText(a, said{0, 1, "in front"}, said{2.5, 4, "over the start"}, said{8, 9, "inside"})
			for _, key := range w.objects() {
				if strings.HasPrefix(key, objectkey.Media(source.Media)) && (strings.Contains(key, "tracks/") || strings.Contains(key, "timeline") || strings.Contains(key, "/0.m4s")) {
					t.Errorf("%s is left", key)
				}
			}
			w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
			w.must(w.work())
			if !maps.Equal(w.samples(b), had[1]) {
				t.Error("the clip of the clip lost something")
			}
			w.must(w.Delete(w.ctx(), env, b.ID, w.now()))
			w.must(w.work())
			for _, key := range w.objects() {
				if !strings.HasPrefix(key, objectkey.Media(other.Media)) {
					t.Errorf("%s is left", key)
				}
			}
			if w.samples(other)["v"] != 390 {
				t.Error("another asset lost something")
			}
		})
	}
}

// A source that is deleted while a clip of it is made: either the clip plays, or it says why not; nothing is left over.
func TestPurgeWaitsForClips(t *testing.T) {
	t.Parallel()
	path := clip(t, "a.mp4")
	t.Run("deleted first", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		source := w.ready(path)
		to := 11.0
		a := w.clip(source, 5, &to)
		cut := w.jobs.take()[0]
		w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
		purge := w.jobs.take()[0]
		if _, snoozed := errors.AsType[*job.SnoozeError](w.do(purge, 1)); !snoozed {
			t.Error("the purge does not wait")
		}
		if err := w.do(cut, 1); fault.KindOf(err) != fault.Invalid {
			t.Errorf("got %v", err)
		}
		if got := w.find(a.ID); got.Status != asset.Errored || !strings.Contains(got.Errors.Messages[0], "has been deleted") {
			t.Errorf("the clip is %+v", got)
		}
		w.must(w.do(purge, 1))
		w.must(w.Delete(w.ctx(), env, a.ID, w.now()))
		w.must(w.work())
		if left := w.objects(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
	t.Run("deleted in between", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, options{})
		source := w.ready(path)
		to := 11.0
		a := w.clip(source, 5, &to)
		cut := w.jobs.take()[0]
		var once sync.Once                 // tracks are cut side by side
		w.store.put = func(string) error { // the source's timeline was read
			once.Do(func() {
				w.must(w.Delete(w.ctx(), env, source.ID, w.now()))
				if _, snoozed := errors.AsType[*job.SnoozeError](w.do(w.jobs.all[0], 1)); !snoozed {
					t.Error("the purge does not wait")
				}
			})
			return nil
		}
		w.must(w.do(cut, 1))
		w.must(w.work())
		if got := w.find(a.ID); got.Status != asset.Ready || w.samples(got)["v"] != 180 {
			t.Errorf("the clip is %+v", got)
		}
	})
}

// recording makes the asset of a broadcast of so many segments of two seconds, one recorded at start each.
func (w *world) recording(n int, start time.Time) asset.Asset {
	w.t.Helper()
	a := w.unseen(n, start, assetopt.Options{})
	w.must(w.Ready(w.ctx(), a.ID, asset.Growth{}, start))
	return w.find(a.ID)
}

// unseen is recording before anybody was told that it plays.
func (w *world) unseen(n int, start time.Time, o assetopt.Options) asset.Asset {
	w.t.Helper()
	media := id.Media(id.New())
	a, err := w.Record(w.ctx(), asset.NewRecording{ID: id.Asset(id.New()), Environment: env, LiveStream: "live", Media: media, Options: o}, start)
	w.must(err)
	init, _ := w.broadcast(0)
	w.put(objectkey.Media(media)+"v/init-0.mp4", init)
	entries := []timeline.Entry{
		{Target: 2},
		{Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 1000}},
		{Init: &timeline.Init{Rendition: "v", Codec: "avc1.64001f", Width: 160, Height: 90, Object: objectkey.Media(media) + "v/init-0.mp4"}},
	}
	w.must(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: w.rows(0, entries...)}, start))
	w.grow(a, 0, n, start)
	return w.find(a.ID)
}

// broadcast is an init segment and a segment of two seconds, of 25 pictures a second in ticks of a thousandth.
func (w *world) broadcast(i int) (init, segment []byte) {
	w.t.Helper()
	w.aired.Do(func() {
		path := ffmpeg(w.t, "live.mp4", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:duration=20", "-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency",
			"-pix_fmt", "yuv420p", "-g", "50", "-video_track_timescale", "1000", "-movflags", "+frag_keyframe+empty_moov+default_base_moof")
		data, err := os.ReadFile(path)
		w.must(err)
		f, err := cmaf.ParseFragments(data)
		w.must(err)
		w.init = data[:f[0].Offset]
		for i := range f {
			w.live = append(w.live, cmaf.AppendFragment(nil, uint32(i+1), cmaf.TrackID, uint64(10_000+2000*i), f[i].Samples))
		}
	})
	return w.init, w.live[i]
}

func (w *world) put(key string, data []byte) {
	w.t.Helper()
	w.must(w.store.Store.Put(w.ctx(), key, bytes.NewReader(data)))
}

func (w *world) grow(a asset.Asset, from, n int, start time.Time) {
	w.t.Helper()
	for i := from; i < from+n; i++ {
		c := timeline.Chunk{Rendition: "v", Time: 10_000 + int64(i)*2000, Duration: 2000, Size: 1000, Independent: true, Object: objectkey.Media(a.Media) + "v/" + string(rune('0'+i)) + ".m4s"}
		_, segment := w.broadcast(i)
		w.put(c.Object, segment)
		at := start.Add(time.Duration(i) * 2 * time.Second)
		e := timeline.Entry{Segment: &timeline.Segment{MSN: int64(i), Start: at.UnixMilli(), Chunks: []timeline.Chunk{c}}}
		w.must(w.Grow(w.ctx(), a.ID, asset.Growth{Entries: w.rows(int64(3+i), e), Facts: &asset.Facts{Duration: float64(2*i + 2), HasVideo: true}}, at))
	}
}

func (w *world) rows(from int64, entries ...timeline.Entry) []asset.TimelineEntry {
	var out []asset.TimelineEntry
	for i, e := range entries {
		out = append(out, asset.TimelineEntry{Sequence: from + int64(i), Data: timeline.Encode(e)})
	}
	return out
}

// A clip of what is still going on: what is on record, up to when it was asked for; it waits a little for the rest.
func TestClipOfLive(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	start := w.now()
	source := w.recording(5, start) // 0–10
	inside := w.clipped(source, 3, 7)
	if tl := w.timeline(inside); inside.Facts.Duration != 4 || len(tl.Marks) != 3 || !tl.Marks[0].Start.Equal(start.Add(3*time.Second)) {
		t.Errorf("inside: %+v", inside)
	}
	w.clock = start.Add(8 * time.Second) // segment 4 is not on record yet at that time
	open := w.clip(source, 3, nil)
	j := w.jobs.take()[0]
	if _, snoozed := errors.AsType[*job.SnoozeError](w.do(j, 8)); !snoozed {
		t.Error("it does not wait for what was recorded when it was asked for")
	}
	w.grow(source, 5, 2, start) // 10–14: the segment of the request is whole
	w.must(w.do(j, 1))
	if got := w.find(open.ID); got.Status != asset.Ready || got.Facts.Duration != 7 { // 3–10
		t.Errorf("open: %+v", got)
	}
	to := 15.5
	later := w.clip(source, 9, &to)
	j = w.jobs.take()[0]
	if _, snoozed := errors.AsType[*job.SnoozeError](w.do(j, 1)); !snoozed {
		t.Error("it does not wait for what was asked for")
	}
	w.clock = w.clock.Add(time.Minute)
	w.must(w.do(j, 1))
	if got := w.find(later.ID); got.Facts.Duration != 5 { // 9–14: that is all there is
		t.Errorf("later: %+v", got)
	}
	w.must(w.EndLive(w.ctx(), source.ID, asset.Writer{}, nil, w.now()))
	w.must(w.work())
	whole := w.clip(w.find(source.ID), 0, nil)
	w.must(w.work())
	if got := w.find(whole.ID); got.Status != asset.Ready || got.Facts.Duration != 14 || !slices.Equal(got.Uses, []id.Media{source.Media}) {
		t.Errorf("whole: %+v", got)
	}
}

// A finished broadcast has its record as an index; work that comes twice or too late changes nothing.
func TestFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	source := w.recording(3, w.now())
	w.must(w.EndLive(w.ctx(), source.ID, asset.Writer{}, nil, w.now()))
	j := w.jobs.take()[0]
	w.must(w.do(j, 1))
	w.must(w.do(j, 2))
	got := w.find(source.ID)
	if got.Status != asset.Ready || got.Facts.Duration != 6 || got.Facts.FrameRate != -1 || got.Index != objectkey.Index(source.Media) || len(w.timeline(got).Marks) != 3 {
		t.Errorf("finished %+v", got)
	}
	second := w.recording(3, w.now())
	w.must(w.EndLive(w.ctx(), second.ID, asset.Writer{}, nil, w.now()))
	late := w.jobs.take()[0]
	w.store.put = func(string) error {
		w.must(w.Delete(w.ctx(), env, second.ID, w.now()))
		return nil
	}
	w.must(w.do(late, 1))
	w.store.put = nil
	w.must(w.do(late, 2))
	for _, key := range w.objects() {
		if strings.HasPrefix(key, objectkey.Media(second.Media)) {
			t.Errorf("%s is left", key)
		}
	}
	for _, h := range w.handle {
		if err := h.Work(w.ctx(), job.Job{Kind: h.Kind, Args: json.RawMessage("[]"), Attempt: 1, MaxAttempts: 1}); err == nil {
			t.Errorf("%s takes any arguments", h.Kind)
		}
	}
}
