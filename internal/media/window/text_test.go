package window

import (
	"math"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/hls"
)

const subtitles = "t1"

func (r *rig) says(from, to time.Duration, text string) bool {
	return r.Texts().Publish(subtitles, captions.Cue{Start: from, End: to, Text: text})
}

// vtt is a text segment.
func (r *rig) vtt(t *testing.T, msn int64) string {
	t.Helper()
	data, err := r.Texts().Segment(t.Context(), subtitles, msn)
	if err != nil {
		t.Fatalf("segment %d: %v", msn, err)
	}
	return string(data)
}

// listing is a text rendition's playlist.
func (r *rig) textList(t *testing.T, rendition string) string {
	t.Helper()
	text, err := r.Playlist(t.Context(), rendition, Reload{MSN: -1, Part: -1}, false)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// durations are the lines of a playlist that say how long segments are, and where they do not go on.
func durations(list string) (out []string) {
	for line := range strings.Lines(list) {
		if strings.HasPrefix(line, "#EXTINF") || strings.HasPrefix(line, "#EXT-X-DISCONTINUITY\n") ||
			strings.HasPrefix(line, "#EXT-X-MEDIA-SEQUENCE") {
			out = append(out, line)
		}
	}
	return out
}

// TestTextFollowsVideo: a text rendition has the video's segments, those without a cue as well; a cue that spans two is
// in both, unchanged.
func TestTextFollowsVideo(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: Mode{Listed: 30 * time.Second, InMemory: 2}})
	r.start()
	r.Texts().Add(subtitles, false)
	r.segment(2, false)
	r.says(700*time.Millisecond, 1500*time.Millisecond, "over <b>two</b> <script>")
	r.segment(2, false)
	r.segment(2, true)
	r.segment(2, false)
	if got, want := durations(r.textList(t, subtitles)),
		durations(r.textList(t, "v")); strings.Join(got, "") != strings.Join(want, "") {
		t.Errorf("the text is cut in\n%v, the video in\n%v", got, want)
	}
	if list := r.textList(t, subtitles); strings.Contains(list, "MAP") || strings.Contains(list, "PART") ||
		!strings.Contains(list, subtitles+"/1.vtt") {
		t.Errorf("playlist:\n%s", list)
	}
	const head = "WEBVTT\nX-TIMESTAMP-MAP=MPEGTS:900630,LOCAL:00:00:00.007\n"
	cue := "\n00:00:00.700 --> 00:00:01.500\nover <b>two</b> &lt;script&gt;\n"
	nothing := func(from, to string) string { return "\n00:00:0" + from + " --> 00:00:0" + to + "\n\n" }
	for msn, want := range []string{
		head + nothing("0.000", "0.600"), head + cue, head + cue, head + nothing("1.800", "2.400"),
	} {
		if got := r.vtt(t, int64(msn)); got != want {
			t.Errorf("segment %d is\n%q, not\n%q", msn, got, want)
		}
	}
	if _, err := r.Texts().Segment(t.Context(), subtitles, 9); err == nil {
		t.Error("a segment that is far away was given")
	}
}

// TestTextNeverChanges: a cue that comes late is in no segment that was listed before, but seen in the next one, for a
// second at least by players who have shown 1.07 s of a segment of 2 s when it is listed.
func TestTextNeverChanges(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	for range 3 {
		r.segment(2, false)
	}
	before := r.vtt(t, r.first+2)
	if !r.says(100*time.Millisecond, 900*time.Millisecond, "late") {
		t.Fatal("the cue was not taken")
	}
	r.segment(2, false)
	r.segment(2, false)
	if after := r.vtt(t, r.first+2); after != before {
		t.Errorf("a listed segment has become\n%s", after)
	}
	if got := r.vtt(t, r.first+3); !strings.Contains(got, "00:00:01.800 --> 00:00:03.870\nlate") {
		t.Errorf("the next segment:\n%s", got)
	}
	if r.says(0, time.Second, "<i></i>") {
		t.Error("a cue without text was taken")
	}
}

// TestTextDraft: a cue that waits for further words is published with the segment in which it begins, when that is
// listed, and not before; one that was withdrawn is not, and who withdraws it knows which it was.
func TestTextDraft(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	r.segment(2, false)
	x := r.Texts()
	draft := func(from, to time.Duration, text string) {
		x.Draft(subtitles, captions.Cue{Start: from, End: to, Text: text})
	}
	draft(700*time.Millisecond, 900*time.Millisecond, "one")
	if x.Withdraw(subtitles) {
		t.Error("a draft was published before the segment was listed")
	}
	draft(700*time.Millisecond, 1100*time.Millisecond, "one two")
	r.segment(2, false) // up to 1.2 s
	published := x.Withdraw(subtitles)
	if got := r.vtt(t, r.first+1); !published || !strings.Contains(got, "one two") {
		t.Errorf("published: %t\n%s", published, got)
	}
	if x.Withdraw(subtitles) {
		t.Error("it was published twice")
	}
	draft(2*time.Second, 2100*time.Millisecond, "later")
	r.segment(2, false) // up to 1.8 s
	if x.Withdraw(subtitles) {
		t.Error("a draft that begins in the next segment was published")
	}
	draft(1900*time.Millisecond, 2100*time.Millisecond, "gone")
	x.Withdraw(subtitles)
	r.segment(2, false)
	if got := r.vtt(t, r.first+3); strings.Contains(got, "gone") || x.Withdraw(subtitles) {
		t.Errorf("a draft that was withdrawn is in\n%s", got)
	}
}

// TestTextTooLate: a cue of what was said that begins more than ten seconds behind the live edge is not shown with
// other pictures, but left out and counted. Closed captions begin where their segment does, however long that is.
func TestTextTooLate(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	r.Texts().Add("t2", true)
	for range 20 {
		r.segment(2, false) // 0.6 s
	}
	if live := r.Texts().Live(subtitles); live != 12*time.Second {
		t.Fatalf("the live edge is at %s", live)
	}
	if r.says(1900*time.Millisecond, 5*time.Second, "too late") {
		t.Error("a cue was taken that is 10.1 s late")
	}
	if late := r.Texts().Late(subtitles); late != 3100*time.Millisecond {
		t.Errorf("late: %s", late)
	}
	if !r.says(2*time.Second, 5*time.Second, "late") || r.Texts().Late(subtitles) != 3100*time.Millisecond {
		t.Error("a cue was not taken that is 10 s late")
	}
	if !r.Texts().Publish("t2", captions.Cue{End: 5 * time.Second, Text: "above"}) || r.Texts().Late("t2") != 0 {
		t.Error("closed captions were not taken")
	}
	if !r.Texts().Publish(subtitles, captions.Cue{Start: 13 * time.Second, End: 15 * time.Second, Text: "early"}) {
		t.Error("a cue that is early was not taken")
	}
}

// TestTextIsInTime: text does not delay players that do not ask for it; one at the PART-HOLD-BACK of the text finds
// what belongs to what it shows listed, and has two parts' time to load it, whenever it looks, with segments as long as
// the target duration allows.
func TestTextIsInTime(t *testing.T) {
	t.Parallel()
	for what, add := range map[string]func(*Texts){
		"no text":         func(*Texts) {},
		"closed captions": func(x *Texts) { x.Add(subtitles, true) },
		"recognised":      func(x *Texts) { x.Add(subtitles, false); x.Watermark(subtitles, 0) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(Options{Mode: low})
			r.start()
			add(r.Texts())
			r.segment(7, false)
			r.segment(7, false)
			const with = 2.93
			asked := now()
			asked.TextHoldBack = true
			for range 10 {
				r.begin("v", false)
				for range 7 {
					r.part("v")
					live, reading := r.list(t, "v", now()), r.list(t, "v", asked)
					if live.holdBack != 0.93 || reading.holdBack != with {
						t.Fatalf("PART-HOLD-BACK is %v, and %v for those who read", live.holdBack, reading.holdBack)
					}
					if !r.Texts().Any() {
						continue
					}
					text := r.list(t, subtitles, now())
					if text.holdBack != with {
						t.Fatalf("PART-HOLD-BACK of the text is %v", text.holdBack)
					}
					if early := with - (live.end() - text.end()); early < 2*live.partTarget {
						t.Fatalf("listed %.3f s before it is shown", early)
					}
				}
				r.finish(7, "v")
			}
		})
	}
}

// end is where a playlist ends, in seconds behind its segment 0.
func (l list) end() (s float64) {
	s = float64(l.msn) * 2.1 // what has left it
	for _, x := range l.segs {
		s += x.dur
	}
	for _, p := range l.open {
		s += p.dur
	}
	return s
}

// TestTextDoesNotOverlap: cues that come late at the same time are shown one behind the other, and the delay does not
// grow with them.
func TestTextDoesNotOverlap(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	for range 10 {
		r.segment(2, false) // 0.6 s
	}
	for i := range 5 {
		at := time.Duration(i) * 1500 * time.Millisecond
		r.says(at, at+2*time.Second, "late") // half a second longer than it is spoken
	}
	r.Texts().Add("t2", true)
	r.Texts().Publish("t2", captions.Cue{Start: 6 * time.Second, End: 8 * time.Second, Text: "above"})
	r.Texts().Publish("t2", captions.Cue{Start: 6 * time.Second, End: 8 * time.Second, Text: "below"})
	whole, err := r.Texts().Whole(subtitles)
	if err != nil {
		t.Fatal(err)
	}
	cues := whole.Cues()
	// the first one is there for a second at PART-HOLD-BACK
	for i, want := range []int{6000, 8070, 9070, 10070, 11070} {
		if c := cues[i]; c.Start != time.Duration(want)*time.Millisecond {
			t.Errorf("cue %d from %s to %s, want it from %d ms", i, c.Start, c.End, want)
		}
	}
	if both, err := r.Texts().Whole("t2"); err != nil || both.Cues()[1].Start != 6*time.Second {
		t.Errorf("closed captions that are on the screen together: %+v, %v", both.Cues(), err)
	}
}

// TestTextIsAwaited: a segment whose cues are not all known is listed later, but not later than when the next one is
// half done; the video is not held up. Where parts are listed nothing is awaited: players are closer to live than that.
func TestTextIsAwaited(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: Mode{Listed: 30 * time.Second, InMemory: 2}})
	r.start()
	r.Texts().Add(subtitles, false)
	r.Target(1, nil)
	r.segment(2, false)
	r.Texts().Watermark(subtitles, 600*time.Millisecond)
	r.segment(2, false)
	one, two := hls.SegmentURI(subtitles, r.first+1, "vtt"), hls.SegmentURI(subtitles, r.first+2, "vtt")
	if strings.Contains(r.textList(t, subtitles), one) {
		t.Error("a segment is listed whose cues are not known")
	}
	if !strings.Contains(r.textList(t, "v"), hls.SegmentURI("v", r.first+1, "m4s")) {
		t.Error("the video waits for the text")
	}
	r.says(700*time.Millisecond, 900*time.Millisecond, "in time")
	r.Texts().Watermark(subtitles, 1200*time.Millisecond)
	if !strings.Contains(r.textList(t, subtitles), one) ||
		!strings.Contains(r.vtt(t, r.first+1), "00:00:00.700 --> 00:00:00.900\nin time") {
		t.Errorf("all is known, and the segment is not listed:\n%s", r.textList(t, subtitles))
	}
	r.segment(2, false)
	if strings.Contains(r.textList(t, subtitles), two) {
		t.Error("the third segment is listed too early")
	}
	r.begin("v", false)
	r.part("v")
	r.part("v")
	if !strings.Contains(r.textList(t, subtitles), two) {
		t.Error("the third segment is waited for for ever")
	}
	r.Texts().Watermark(subtitles, math.MaxInt64)
	r.Close()
	if list := r.textList(t, subtitles); !strings.Contains(list, "ENDLIST") {
		t.Errorf("at the end:\n%s", list)
	}
	r = newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	r.Texts().Watermark(subtitles, 0)
	for n := range int64(3) {
		r.segment(2, false)
		if !strings.Contains(r.textList(t, subtitles), hls.SegmentURI(subtitles, r.first+n, "vtt")) {
			t.Errorf("segment %d is not listed at low latency", n)
		}
	}
}

// TestTextIsRecorded: what was published is recorded with the segments, once, also behind the last one, and a node that
// goes on has the same segments.
func TestTextIsRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, true)
	r.says(0, 500*time.Millisecond, "one")
	r.segment(2, false)
	r.says(700*time.Millisecond, 900*time.Millisecond, "two")
	r.segment(2, false)
	r.says(1300*time.Millisecond, 1400*time.Millisecond, "three")
	r.Close()
	if err := r.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	recorded := r.store.timeline(t)
	if x := recorded.Text(subtitles); x == nil || len(x.Cues) != 3 || x.Cues[2].Text != "three" {
		t.Fatalf("recorded: %+v", x)
	}
	again := newRig(Options{Mode: low, Timeline: recorded})
	again.Texts().Add(subtitles, true)
	for msn := r.first; msn < r.first+2; msn++ {
		if got, want := again.vtt(t, msn), r.vtt(t, msn); got != want {
			t.Errorf("segment %d became\n%s\nand was\n%s", msn, got, want)
		}
	}
	whole, err := again.Texts().Whole(subtitles)
	if err != nil || whole.Len() != 3 {
		t.Errorf("whole: %d cues, %v", whole.Len(), err)
	}
	if renditions, err := again.Describe(); err != nil || !renditions[0].NoCaptions {
		t.Errorf("captions that are a rendition of their own are announced in the picture: %v", err)
	}
}

// TestTextIsBounded: of more cues than anybody can read, so many are kept in a second and no more, and those of the
// next second again; in all there are no more than a document may have.
func TestTextIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: Mode{Listed: 30 * time.Second, InMemory: 2}})
	r.start()
	r.Texts().Add(subtitles, true)
	kept := func(at time.Duration, n int) (kept int) {
		for range n {
			if r.says(at, at+time.Second, "x") {
				kept++
			}
		}
		return kept
	}
	if n := kept(0, cuesASecond); n != cuesASecond || r.Texts().Full(subtitles) {
		t.Errorf("%d in a second are kept", n)
	}
	if n := kept(500*time.Millisecond, 1000); n != 0 || !r.Texts().Full(subtitles) {
		t.Errorf("%d more are kept", n)
	}
	if n := kept(1100*time.Millisecond, 1000); n != cuesASecond {
		t.Errorf("%d of the next second are kept", n)
	}
	all := 2 * cuesASecond
	for at := 3 * time.Second; all <= captions.MaxCues; at += 2 * time.Second {
		n := kept(at, cuesASecond)
		if all += n; n < cuesASecond {
			break
		}
	}
	if all != captions.MaxCues {
		t.Errorf("%d in all are kept", all)
	}
}
