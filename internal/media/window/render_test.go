package window

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gohlslib/v2/pkg/playlist"

	"millrace/internal/media/timeline"
)

func TestFirstPlaylist(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(2, false)
	r.begin("v", false)
	r.part("v")
	want := `#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.000000,PART-HOLD-BACK=0.930000,HOLD-BACK=6.000000
#EXT-X-PART-INF:PART-TARGET=0.300000
#EXT-X-MEDIA-SEQUENCE:0
#EXT-X-DISCONTINUITY-SEQUENCE:0
#EXT-X-MAP:URI="v/init-0.mp4"
` + strings.Join([]string{gapText(0), gapText(1), gapText(2), gapText(3), gapText(4), gapText(5), gapText(6)}, "") +
		`#EXT-X-PROGRAM-DATE-TIME:2026-03-04T12:00:00.000Z
#EXT-X-PART:DURATION=0.300000,URI="v/7.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.300000,URI="v/7.1.m4s"
#EXTINF:0.600000,
v/7.m4s
#EXT-X-PROGRAM-DATE-TIME:2026-03-04T12:00:00.600Z
#EXT-X-PART:DURATION=0.300000,URI="v/7.2.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="v/8.1.m4s"
#EXT-X-RENDITION-REPORT:URI="a.m3u8",LAST-MSN=7,LAST-PART=1
`
	if got := r.text(t, "v", now()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if l := r.list(t, "a", now()); l.hint != "a/7.2.m4s" || len(l.open) != 0 ||
		!slices.Equal(l.reports, []string{`URI="v.m3u8",LAST-MSN=8,LAST-PART=0`}) {
		t.Errorf("audio:\n%s", l.text)
	}
}

// TestDiscontinuitySequence: text beside parts has it from the first discontinuity on, delta updates too, and none
// before: Shaka shows no text where it is. All other playlists have it.
func TestDiscontinuitySequence(t *testing.T) {
	t.Parallel()
	const tag = "\n#EXT-X-DISCONTINUITY-SEQUENCE:0\n"
	delta := Reload{MSN: -1, Part: -1, Skip: true}
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	has := func(id string) (n int) {
		for _, q := range []Reload{now(), delta} {
			if strings.Contains(r.text(t, id, q), tag) {
				n++
			}
		}
		return n
	}
	for range 10 {
		r.segment(7, false)
	}
	if text, video := has(subtitles), has("v"); text != 0 || video != 2 {
		t.Errorf("%d of 2 of text have it, and no discontinuity; %d of 2 of the picture", text, video)
	}
	r.segment(7, true)
	r.segment(7, false)
	if n := has(subtitles); n != 2 {
		t.Errorf("%d of 2 have it", n)
	}
	for range 8 {
		r.segment(7, false)
	}
	skips := r.text(t, subtitles, delta)
	if !strings.Contains(skips, tag) || !strings.Contains(skips, "SKIP:") ||
		strings.Contains(skips, "DISCONTINUITY\n") {
		t.Errorf("a delta update that skips it:\n%s", skips)
	}
	standard := newRig(Options{Mode: Mode{Listed: 30 * time.Second, InMemory: 2}})
	standard.start()
	standard.Texts().Add(subtitles, false)
	standard.segment(7, false)
	if text := standard.text(t, subtitles, now()); !strings.Contains(text, tag) {
		t.Errorf("without parts:\n%s", text)
	}
}

func gapText(n int) string { return fmt.Sprintf("#EXT-X-GAP\n#EXTINF:2.000000,\nv/%d.m4s\n", n) }

func TestModesWithoutPartsShowNone(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: Mode{Listed: 30 * time.Second, InMemory: 2}})
	r.start()
	r.segment(7, false)
	r.begin("v", false)
	r.part("v")
	text := r.text(t, "v", Reload{MSN: -1, Part: -1, Skip: true})
	for _, tag := range []string{
		"EXT-X-PART", "EXT-X-SERVER-CONTROL", "EXT-X-PRELOAD-HINT", "EXT-X-RENDITION-REPORT", "EXT-X-GAP", "EXT-X-SKIP",
	} {
		if strings.Contains(text, tag) {
			t.Errorf("%s in\n%s", tag, text)
		}
	}
	if l := parse(t, text); l.version != 7 || l.msn != 0 || len(l.segs) != 1 {
		t.Errorf("got\n%s", text)
	}
}

// TestRandomBroadcast writes a broadcast of random segments, reconnects and renditions that come and go, and holds
// every playlist against the ones before it and against an independent parser.
func TestRandomBroadcast(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			mode := low
			mode.Leading = int64(seed % 8)
			r := newRig(Options{Mode: mode})
			stop := r.run(t)
			defer stop()
			w := newWatcher(t, r)
			r.start()
			ids := []string{"v", "a"}
			disc := false
			for n := range 80 {
				switch rnd.IntN(12) {
				case 0: // the encoder reconnects, perhaps without sound
					r.Live(false)
					w.look()
					r.Live(true)
					disc = n > 0
					ids = ids[:1+rnd.IntN(2)]
					if len(ids) == 1 && rnd.IntN(2) == 0 {
						ids = ids[:2]
					}
				case 1:
					r.wall = r.wall.Add(time.Duration(rnd.IntN(5000)) * time.Millisecond)
				}
				parts := 1 + rnd.IntN(8)
				for _, id := range ids {
					r.begin(id, disc)
				}
				for range parts {
					for _, id := range ids {
						r.part(id)
						if rnd.IntN(3) == 0 {
							w.look()
						}
					}
				}
				r.Target(2, nil)
				if len(ids) == 1 {
					r.Begin("a", timeline.Mark{Start: r.wall, Discontinuity: disc}, 0, int64(r.at*48000))
					r.Finish("a", int64(parts)*14400)
				}
				r.finish(parts, ids...)
				disc = false
				w.look()
			}
			r.Close()
			w.look()
			if l := w.last["v"]; !l.ended {
				t.Error("no end")
			}
		})
	}
}

// watcher remembers what playlists promised.
type watcher struct {
	t    *testing.T
	r    *rig
	last map[string]list
	segs map[string]listed // by rendition and URI, first seen
	part map[string]float64
	msn  map[string]int64
}

func newWatcher(t *testing.T, r *rig) *watcher {
	t.Helper()
	return &watcher{
		t: t, r: r, last: map[string]list{}, segs: map[string]listed{}, part: map[string]float64{},
		msn: map[string]int64{},
	}
}

func (w *watcher) look() {
	t := w.t
	t.Helper()
	if w.r.sealedNow() == 0 {
		return
	}
	for _, id := range []string{"v", "a"} {
		older, known := w.last[id]
		l := w.r.list(t, id, now())
		event := w.r.list(t, id, Reload{MSN: -1, Part: -1, Event: true})
		delta := w.r.list(t, id, Reload{MSN: -1, Part: -1, Skip: true})
		eventDelta := w.r.list(t, id, Reload{MSN: -1, Part: -1, Event: true, Skip: true})
		w.constants(l, older, known)
		w.segments(id, l)
		w.segments(id, event)
		w.parts(id, l)
		w.oracle(l)
		for i, s := range delta.segs { // a player reads a delta update before it joins it to what it has
			if delta.skip > 0 && s.init != l.segs[delta.skip+i].init {
				t.Fatalf("segment %d has the init segment %q in\n%s", s.msn, s.init, delta.text)
			}
		}
		if got := delta.expand(t, l); !slices.Equal(got, l.uris()) || len(delta.open) != len(l.open) ||
			delta.hint != l.hint {
			t.Fatalf("delta update\n%s\nof\n%s", delta.text, l.text)
		}
		if got := eventDelta.expand(t, event); !slices.Equal(got, event.uris()) {
			t.Fatalf("delta update\n%s\nof\n%s", eventDelta.text, event.text)
		}
		w.boundary(delta, l)
		w.boundary(eventDelta, event)
		w.fresh(id, event)
		w.last[id] = l
	}
	w.reports()
}

func (w *watcher) constants(l, older list, known bool) {
	if !known {
		return
	}
	same := l.target == older.target &&
		(l.ended || l.partTarget == older.partTarget && l.holdBack == older.holdBack && l.version == older.version)
	if !same || l.msn < older.msn || l.dsn < older.dsn {
		w.t.Fatalf("a constant changed or time went back:\n%s\n%s", older.text, l.text)
	}
}

// segments: a media sequence number, its discontinuity sequence number, duration, date and init segment never change.
func (w *watcher) segments(id string, l list) {
	var sum float64
	for i, s := range l.segs {
		if math.Round(s.dur) > float64(l.target) {
			w.t.Fatalf("segment %d lasts %v s:\n%s", s.msn, s.dur, l.text)
		}
		if s.uri != fmt.Sprintf("%s/%d.m4s", id, s.msn) {
			w.t.Fatalf("segment %d is called %s:\n%s", s.msn, s.uri, l.text)
		}
		sum += s.dur
		if s.msn < w.r.first {
			continue // a leading gap
		}
		if i == 0 {
			s.at = "" // a date is always there but for leading gaps
		}
		s.parts = nil
		key := fmt.Sprint(id, s.msn, i == 0)
		if old, seen := w.segs[key]; seen && fmt.Sprint(old) != fmt.Sprint(s) {
			w.t.Fatalf("segment was %+v and is %+v:\n%s", old, s, l.text)
		}
		w.segs[key] = s
	}
	if l.typ == "" && !l.ended && w.r.opt.Mode.Leading == 7 && sum < 6 {
		w.t.Fatalf("%v s are listed:\n%s", sum, l.text)
	}
}

func (w *watcher) parts(id string, l list) {
	groups := make([][]listedPart, 0, len(l.segs)+1)
	for _, s := range l.segs {
		groups = append(groups, s.parts)
		var sum float64
		for _, p := range s.parts {
			sum += p.dur
		}
		if len(s.parts) > 0 && math.Abs(sum-s.dur) > 1e-5 {
			w.t.Fatalf("parts of %d last %v of %v s:\n%s", s.msn, sum, s.dur, l.text)
		}
	}
	var behind float64 // parts are listed of what begins within three target durations of the end
	for _, p := range l.open {
		behind += p.dur
	}
	for _, s := range slices.Backward(l.segs) {
		if behind += s.dur; !s.gap && !l.ended && (behind < float64(3*l.target)+1e-5) != (len(s.parts) > 0) {
			w.t.Fatalf("segment %d, which begins %v s from the end, has %d parts:\n%s", s.msn, behind, len(s.parts),
				l.text)
		}
	}
	for _, g := range append(groups, l.open) {
		for i, p := range g {
			if old, seen := w.part[p.uri]; seen && old != p.dur || p.dur > l.partTarget ||
				i < len(g)-1 && p.dur < 0.85*l.partTarget {
				w.t.Fatalf("part %+v was %v:\n%s", p, old, l.text)
			}
			w.part[p.uri] = p.dur
			msn, n := named(w.t, p.uri)
			if _, err := w.r.ReadPart(w.t.Context(), id, msn, n); err != nil {
				w.t.Fatalf("part %s is listed: %v", p.uri, err)
			}
		}
	}
}

// boundary: what a delta update leaves out lies behind the skip boundary.
func (w *watcher) boundary(d, full list) {
	if d.skip == 0 {
		return
	}
	var rest float64
	for _, s := range full.segs[d.skip:] {
		rest += s.dur
	}
	for _, p := range full.open {
		rest += p.dur
	}
	if rest < float64(6*d.target) {
		w.t.Fatalf("skips %d, %v s are left:\n%s", d.skip, rest, full.text)
	}
}

// fresh: the kept text of the whole recording is what rendering it again gives.
func (w *watcher) fresh(id string, event list) {
	e := w.r.Edge
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.rendition(id)
	kept := l.event
	l.event = prefix{}
	if got := string(e.media(l, listing{event: true}).Append(nil)); got != event.text {
		w.t.Fatalf("kept\n%s\nanew\n%s", event.text, got)
	}
	l.event = kept
}

func (w *watcher) oracle(l list) {
	var m playlist.Media
	if strings.Count(l.text, "#EXT-X-MAP") > 1 {
		return // more than the oracle can
	}
	if err := m.Unmarshal([]byte(l.text)); err != nil {
		w.t.Fatalf("%v:\n%s", err, l.text)
	}
}

// reports: what is said of another rendition is what its own playlist shows.
func (w *watcher) reports() {
	for id, other := range map[string]string{"v": "a", "a": "v"} {
		l, o := w.last[id], w.last[other]
		if l.ended {
			continue
		}
		msn, part := o.next()
		if len(o.open) == 0 {
			msn--
			part = len(o.segs[len(o.segs)-1].parts)
		}
		want := fmt.Sprintf(`URI="%s.m3u8",LAST-MSN=%d,LAST-PART=%d`, other, msn, part-1)
		if part == 0 {
			want = fmt.Sprintf(`URI="%s.m3u8",LAST-MSN=%d`, other, msn)
		}
		if !slices.Equal(l.reports, []string{want}) {
			w.t.Fatalf("reports %v, want %s:\n%s", l.reports, want, o.text)
		}
	}
}

func (e *Edge) sealedNow() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sealed
}

// TestHoursWithReconnects: over 12 hours with a reconnect every few minutes each segment keeps its numbers, and the
// work for a playlist does not grow.
func TestHoursWithReconnects(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	stop := r.run(t)
	defer stop()
	r.start()
	disc, tags := map[int64]int64{}, int64(0)
	for n := range int64(21600) {
		again := n%97 == 96
		if again {
			r.Live(false)
			r.Live(true)
			tags++
		}
		disc[7+n] = tags
		r.segment(2, again)
		if n%53 != 0 {
			continue
		}
		l := r.list(t, "v", now())
		for _, s := range l.segs {
			if s.msn >= 7 && s.dsn != disc[s.msn] {
				t.Fatalf("segment %d has discontinuity sequence number %d, want %d:\n%s", s.msn, s.dsn, disc[s.msn],
					l.text)
			}
		}
		if last := l.segs[len(l.segs)-1].msn; last != 7+n {
			t.Fatalf("ends at %d, want %d", last, 7+n)
		}
		if len(l.segs) > 60 {
			t.Fatalf("%d segments listed", len(l.segs))
		}
	}
}

func TestTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	for range 3 {
		r.segment(7, false)
	}
	r.begin("v", false)
	r.part("v") // open in one rendition only: kept, with a gap in the other
	const tag = "#EXT-X-INDEPENDENT-SEGMENTS\n"
	if v, a := r.text(t, "v", now()), r.text(t, "a", now()); r.Independent() || strings.Contains(v, tag) ||
		!strings.Contains(a, tag) {
		t.Errorf("nobody knows what pictures are still to come, and sound is independent:\n%s\n%s", v, a)
	}
	r.Close()
	r.Close()
	if v := r.text(t, "v", now()); !r.Independent() || !strings.Contains(v, tag) {
		t.Errorf("every segment begins with a key frame, and it is not said:\n%s", v)
	}
	v, a := r.list(t, "v", now()), r.list(t, "a", Reload{MSN: -1, Part: -1, Event: true, Skip: true})
	if control := "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12.000000,"; v.version != 9 ||
		!strings.Contains(v.text, control) {
		t.Errorf("another version than before the end, or other offers:\n%s", v.text)
	}
	if !v.ended || v.hint != "" || v.partTarget != 0 || v.typ != "" || len(v.segs) != 4 || v.msn != 7 ||
		v.segs[3].dur != 0.3 {
		t.Errorf("got\n%s", v.text)
	}
	if !a.ended || a.typ != "VOD" || len(a.segs) != 4 || !a.segs[3].gap || a.segs[3].dur != 0.3 {
		t.Errorf("got\n%s", a.text)
	}
	if got := r.list(t, "v", ask(99, 3)); !got.ended {
		t.Error("a reload far ahead of the end does not get the end")
	}
	r.Live(true)
	r.begin("v", false)
	r.part("v")
	r.Finish("v", 0)
	if got := r.text(t, "v", now()); got != v.text {
		t.Errorf("changed after the end:\n%s", got)
	}
}

// TestHoldBackAtTheEnd: a live stream's playlists keep PART-HOLD-BACK when it ends. Shaka, which has had it, can't read
// an end without it, and its viewers would not be told that this is one.
func TestHoldBackAtTheEnd(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.Texts().Add(subtitles, false)
	for range 10 {
		r.segment(7, false)
	}
	r.Texts().Watermark(subtitles, math.MaxInt64)
	r.Close()
	for _, id := range []string{"v", "a", subtitles} {
		text := r.text(t, id, now())
		if !strings.Contains(text, "ENDLIST") || !strings.Contains(text, ",PART-HOLD-BACK=") ||
			strings.Contains(text, "EXT-X-PART") {
			t.Errorf("%s at the end:\n%s", id, text)
		}
	}
}

func TestIndependentUntilASegmentIsNot(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	r.Begin("a", timeline.Mark{Start: r.wall}, 0, 1<<20)
	r.Part("a", []byte("sound may begin anywhere"), 1024, false)
	r.Begin("v", timeline.Mark{Start: r.wall}, 0, 1<<20)
	r.Part("v", []byte("no key frame"), partTicks, false)
	r.Close()
	if v, a := r.text(t, "v", now()), r.text(t, "a", now()); r.Independent() ||
		strings.Contains(v, "INDEPENDENT-SEG") || !strings.Contains(a, "INDEPENDENT-SEG") {
		t.Errorf("a segment of video without a key frame went unseen, or sound counts as dependent:\n%s\n%s", v, a)
	}
}

func TestPartTargetsStay(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	before := r.list(t, "v", now())
	// another publication means it differently
	r.Target(4, map[string]time.Duration{"v": time.Second, "a": time.Second, "b": time.Second})
	if got := r.PartLimit("v"); got != perPart {
		t.Errorf("part limit %v", got)
	}
	if got := r.PartLimit("b"); got != perPart {
		t.Errorf("a rendition that comes late may have parts of %v", got)
	}
	r.segment(7, true)
	after := r.list(t, "v", now())
	if after.target != before.target || after.partTarget != before.partTarget || after.holdBack != before.holdBack ||
		r.TargetDuration() != 2 {
		t.Errorf("before\n%s\nafter\n%s", before.text, after.text)
	}
}

func TestPartsThatAreTooLong(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	// One frame a second: not one part fits the target. The segment is listed when it is whole.
	r.begin("v", true)
	r.begin("a", true)
	r.Part("v", []byte("slow"), 90000, true)
	r.part("a")
	l := r.list(t, "v", now())
	if len(l.open) != 0 || l.hint != "" || len(l.segs) != 8 {
		t.Errorf("got\n%s", l.text)
	}
	r.Part("v", []byte("slowslow"), 90000, false)
	r.finish(6, "v", "a")
	l = r.list(t, "v", now())
	if s := l.segs[len(l.segs)-1]; len(s.parts) != 0 || s.dur != 2 || s.uri != "v/8.m4s" {
		t.Errorf("got\n%s", l.text)
	}
	if got := r.list(t, "a", now()).reports; !slices.Equal(got, []string{`URI="v.m3u8",LAST-MSN=8`}) {
		t.Errorf("reports %v", got)
	}
	// A frame was lost: the part is listed as long as the target.
	r.begin("v", false)
	r.part("v")
	r.Part("v", append(r.bufs["v"], "longer"...), 45000, false)
	l = r.list(t, "v", now())
	if len(l.open) != 2 || l.open[1].dur != 0.3 {
		t.Errorf("got\n%s", l.text)
	}
}

func TestResumeGoesOnTheSame(t *testing.T) {
	t.Parallel()
	one := newRig(Options{Mode: low})
	stop := one.run(t)
	one.start()
	for n := range 40 {
		one.segment(1+n%7, n%9 == 8)
	}
	one.drain(t)
	stop()
	two := newRig(Options{Mode: low, Timeline: one.store.timeline(t)})
	two.wall = one.wall
	if two.list(t, "v", now()).msn == 0 {
		t.Error("nothing was resumed")
	}
	if s := two.Standing(); !s.Began || math.Abs(s.At-one.Standing().At) > 1e-9 || s.Zero != 10 ||
		s.Renditions[0].PartTarget != 300000 {
		t.Errorf("stands at %+v", s)
	}
	for _, r := range []*rig{one, two} { // the encoder is back in both worlds
		r.Live(false)
		r.announce("v", "a")
		if r == two {
			r.Target(9, map[string]time.Duration{"v": time.Second})
		}
		r.Live(true)
		for n := range 30 {
			r.segment(7, n == 0)
		}
	}
	for _, q := range []Reload{now(), {MSN: -1, Part: -1, Event: true}, {MSN: -1, Part: -1, Event: true, Skip: true}} {
		for _, id := range []string{"v", "a"} {
			if a, b := one.text(t, id, q), two.text(t, id, q); a != b {
				t.Errorf("went on as\n%s\nresumed as\n%s", a, b)
			}
		}
	}
	l1, _ := one.Describe()
	l2, _ := two.Describe()
	l1[0].NoCaptions = false // nobody has looked at what was there before
	if fmt.Sprint(l1) != fmt.Sprint(l2) {
		t.Errorf("described as\n%+v\nresumed as\n%+v", l1, l2)
	}
}

func TestGzip(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	r.segment(7, false)
	packed, err := r.Playlist(t.Context(), "v", now(), true)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != r.text(t, "v", now()) {
		t.Errorf("%v\n%s", err, text)
	}
	again, _ := r.Playlist(t.Context(), "v", now(), true)
	if &again[0] != &packed[0] {
		t.Error("compressed twice")
	}
}
