package window

import (
	"slices"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/timeline"
)

// TestListsBeginTogether: the sliding playlists of all renditions begin with the same segment at any time, with leading
// gaps and without, although sound is a little shorter or longer than the picture and text comes later. What a playlist
// shows can be decoded with what Describe says of it.
func TestListsBeginTogether(t *testing.T) {
	t.Parallel()
	for what, ticks := range map[string]int64{"shorter sound": 14336, "as long": 14400, "longer sound": 14464} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := newRig(Options{Mode: low})
			r.start()
			r.Texts().Add(subtitles, false)
			r.Texts().Watermark(subtitles, 0) // each segment of text is waited for as long as it may be
			other := timeline.Init{Rendition: "a", Codec: "codec.other"}
			n := r.AddInit(frame.Audio, 48000, other, []byte("another"))
			ids := []string{"v", "a", subtitles}
			for k := range 60 {
				r.begin("v", false)
				r.bufs["a"] = nil
				r.Begin("a", timeline.Mark{Start: r.wall}, n*min(k/3, 1), int64(k)*5*ticks)
				for range 5 {
					r.part("v")
					r.bufs["a"] = append(r.bufs["a"], "sound"...)
					r.Part("a", r.bufs["a"], ticks, true)
					if k > 0 {
						r.together(t, ids)
					}
				}
				r.finish(5, "v", "a")
				r.together(t, ids)
				slices.Reverse(ids)
			}
			if l := r.list(t, "v", now()); l.msn < 7+30 {
				t.Errorf("nothing has left:\n%s", l.text)
			}
			r.Close()
			r.together(t, ids)
		})
	}
}

// together wants what TestListsBeginTogether says now.
func (r *rig) together(t *testing.T, ids []string) {
	t.Helper()
	begins := map[string]int64{}
	var inits []string // of the sound
	for _, id := range ids {
		l := r.list(t, id, now())
		begins[id] = l.msn
		if id != "a" {
			continue
		}
		for _, s := range l.segs {
			if s.init != "" && !slices.Contains(inits, s.init) {
				inits = append(inits, s.init)
			}
		}
	}
	if begins["a"] != begins["v"] || begins[subtitles] != begins["v"] {
		t.Fatalf("they begin with %v", begins)
	}
	all, err := r.Describe()
	if err != nil {
		t.Fatal(err)
	}
	open := r.rendition("a").open() != nil // its init segment is told too
	if n := len(all[1].Listed); n != len(inits) && (!open || n != len(inits)+1) {
		t.Fatalf("%d init segments are told of, %v are listed", n, inits)
	}
}

// TestLateListBegins: a rendition that is far behind lists the last segment that it has, and has the number of it.
func TestLateListBegins(t *testing.T) {
	t.Parallel()
	r := newRig(Options{Mode: low})
	r.start()
	for range 3 {
		r.segment(6, false)
	}
	for range 40 {
		r.segment(6, false, "v")
	}
	if l := r.list(t, "a", now()); len(l.segs) != 1 || l.msn != 9 || l.segs[0].uri != "a/9.m4s" {
		t.Errorf("got\n%s", l.text)
	}
	r.Close()
	v, a := r.list(t, "v", now()), r.list(t, "a", now())
	if v.msn != a.msn || len(v.segs) != len(a.segs) || time.Duration(len(v.segs))*6*perPart < low.Listed {
		t.Errorf("at the end\n%s\n%s", v.text, a.text)
	}
}
