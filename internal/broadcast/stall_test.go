package broadcast_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/timeline"
)

// stalling is how a latency mode bears a connection that delivers nothing for a while and stays open.
type stalling struct {
	mode    live.LatencyMode
	segment time.Duration
	// A stall that is shorter than least costs no picture, wherever it begins; one that is shorter than most costs none
	// where it begins best, right behind what was listed last.
	least, most time.Duration
	grows       time.Duration // how long the playlists of a silent encoder stay as they are, at most
}

// In low latency players stay three parts of 0.3 s behind, and a little more; two pictures may not be listed yet. The
// others' playlists are to grow within one and a half target durations.
func stallings() []stalling {
	const part = 302 * time.Millisecond // as it is said
	return []stalling{
		{live.Low, 2 * time.Second, part * 31 / 10 * 3 / 4, part * 3, part * 31 / 10},
		{live.Reduced, 2 * time.Second, time.Second, 3 * time.Second, 3 * time.Second},
		{live.Standard, 4 * time.Second, 2 * time.Second, 6 * time.Second, 6 * time.Second},
	}
}

func (s stalling) stream(in *live.CreateInput) {
	in.LatencyMode, in.SlateForStandard, in.ReconnectWindow = s.mode, true, new(30.0)
}

// TestStall has an open connection deliver nothing for a while, again and again, and then at once what has piled up.
// While players have something to show nothing is lost. What a longer stall costs is at most the pictures of its time
// and those up to the next key frame.
func TestStall(t *testing.T) {
	t.Parallel()
	const phases = 8 // of a segment, in which stalls begin
	// What comes first behind slate is shown from a key frame on, however late, if that is near: the recording is ahead
	// from then on, and bears more. So no key frame is as near as this.
	const apart = 300 * time.Millisecond
	for _, mode := range stallings() {
		for _, group := range []time.Duration{time.Second, 2 * time.Second} {
			t.Run(fmt.Sprintf("%s, a key frame each %v", mode.mode, group), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					n, s := w.start("a", slated(&stills{}, nil)), w.stream(mode.stream)
					e := n.publish(s.StreamKey)
					e.numbers, e.group = true, int(group.Seconds()*fps)
					e.since = time.Now()
					type stall struct {
						long time.Duration
						at   time.Time
						from int // the first picture that it may cost
					}
					var stalls []stall
					e.send(3 * mode.segment)
					for _, ms := range []int{450, 550, 800, 1000, 1500, 2000, 7000} {
						long := time.Duration(ms) * time.Millisecond
						for phase := range phases {
							at := 2*mode.segment + mode.segment*time.Duration(phase)/phases
							if toKey := group - at%group; toKey == group || toKey <= apart {
								at += apart
							}
							from := e.picture
							e.send(at)
							stalls = append(stalls, stall{long, time.Now(), from})
							w.wait(long)
							e.deliver(long)
							e.send(4*mode.segment - (at+long)%mode.segment)
						}
					}
					e.stop()
					w.wait(31 * time.Second)
					recorded := w.timeline(w.row(s.ID).RecentAssets[0])
					kept := w.numbers(recorded)
					free := map[time.Duration]bool{} // lengths of stalls that have cost nothing
					for i, x := range stalls {
						until, cost := e.picture, 0
						if i+1 < len(stalls) {
							until = stalls[i+1].from
						}
						for n := x.from; n < until; n++ {
							if !kept[n] {
								cost++
							}
						}
						most := int((x.long + group).Seconds() * fps)
						if x.long < mode.least {
							most = 0
						}
						if cost > most {
							t.Errorf("a stall of %v, the %dth, costs %d pictures", x.long, i, cost)
						}
						free[x.long] = free[x.long] || cost == 0
						slate := slices.ContainsFunc(recorded.Marks, func(m timeline.Mark) bool {
							return m.Slate && m.Start.After(x.at.Add(-time.Second)) && m.Start.Before(x.at.Add(x.long))
						})
						if slate && x.long < mode.least {
							t.Errorf("there is slate in a stall of %v, the %dth", x.long, i)
						}
					}
					for long, ok := range free {
						if !ok && long < mode.most {
							t.Errorf("a stall of %v costs pictures wherever it begins", long)
						}
					}
				})
			})
		}
	}
}

// numbers are the pictures of an encoder that numbers them, as far as they are recorded.
func (w *world) numbers(t *timeline.Timeline) map[int]bool {
	w.t.Helper()
	out := map[int]bool{}
	for _, c := range t.Rendition(timeline.MainVideo).Chunks {
		w.objects.mu.Lock()
		fragments, err := cmaf.ParseFragments(w.objects.data[c.Object])
		w.objects.mu.Unlock()
		w.must(err)
		for _, f := range fragments {
			for _, s := range f.Samples {
				n := len(s.Data)
				if n >= numberedSize && binary.BigEndian.Uint32(s.Data[n-numberedSize:]) == numberedSize-4 {
					out[int(binary.BigEndian.Uint32(s.Data[n-4:]))] = true
				}
			}
		}
	}
	return out
}

// TestPlaylistsGrowInAStall watches a stream whose encoder falls silent and stays connected: there is something new
// before players have shown what was listed, and before they take a playlist that stays as it is for a dead one.
func TestPlaylistsGrowInAStall(t *testing.T) {
	t.Parallel()
	const step = 10 * time.Millisecond
	for _, mode := range stallings() {
		for phase := range 8 {
			t.Run(fmt.Sprintf("%s, %d", mode.mode, phase), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					n, s := w.start("a", slated(&stills{}, nil)), w.stream(mode.stream)
					e, v := n.publish(s.StreamKey), n.viewer()
					e.send(4*mode.segment + mode.segment*time.Duration(phase)/8 - mode.segment/2)
					lists := v.Playlists(s.PlaybackIDs[0].ID)
					last, since := make([]string, len(lists)), make([]time.Time, len(lists))
					go e.send(mode.segment / 2) // until it falls silent
					longest := make([]time.Duration, len(lists))
					for range (mode.segment/2 + 2*mode.grows) / step {
						w.wait(step)
						for i, l := range lists {
							if text := v.Expect("silent", http.StatusOK, l); text != last[i] {
								last[i], since[i] = text, time.Now()
							}
							longest[i] = max(longest[i], time.Since(since[i]))
						}
					}
					for i, l := range lists {
						// as many pictures as the session waits for, and the time between two looks
						if most := mode.grows + at(1, fps) + 2*step; longest[i] > most {
							t.Errorf("%s stays as it is for %v", l, longest[i])
						}
						if !strings.Contains(last[i], "#EXT-X-DISCONTINUITY\n") {
							t.Errorf("there is no slate in %s", l)
						}
					}
					e.stop()
				})
			})
		}
	}
}

// TestStallThenClosed has a connection that is silent close before players have to be shown something else: there is
// slate at once, half a second behind what came last.
func TestStallThenClosed(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", slated(&stills{}, nil)), w.stream(stallings()[2].stream)
		e := n.publish(s.StreamKey).send(9 * time.Second)
		w.wait(2 * time.Second)
		last := w.row(s.ID).ActiveAsset
		if got := w.slates(last); got != 0 {
			t.Errorf("%d segments are slate while the connection is open", got)
		}
		e.stop()
		w.wait(time.Second)
		if got := w.slates(last); got == 0 {
			t.Error("there is no slate, the connection is closed")
		}
	})
}

// slates is how many segments of an asset are slate.
func (w *world) slates(a id.Asset) (n int) {
	w.t.Helper()
	for _, m := range w.timeline(a).Marks {
		if m.Slate {
			n++
		}
	}
	return n
}
