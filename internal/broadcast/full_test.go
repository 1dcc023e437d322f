package broadcast_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/media/timeline"
)

// machine is what outlives a process: its disk, and its memory.
type machine struct {
	w            *world
	root         string
	copies       int
	disk, memory string
	full         string // the disk as it was when it became full; empty: there is room
}

func (w *world) machine(t *testing.T) *machine {
	t.Helper()
	m := &machine{w: w, root: t.TempDir()}
	m.disk, m.memory = m.copied(""), m.copied("")
	return m
}

// copied is a folder as it is now; an empty one of none.
func (m *machine) copied(dir string) string {
	m.copies++
	to := filepath.Join(m.root, strconv.Itoa(m.copies))
	if dir == "" {
		m.w.must(os.Mkdir(to, 0o700))
	} else {
		m.w.must(os.CopyFS(to, os.DirFS(dir)))
	}
	return to
}

func (m *machine) start() *node {
	return m.w.start("a", slated(&stills{}, nil), func(o *broadcast.Options) {
		o.Journals = broadcast.Journals{Dir: m.disk, Marks: m.memory}
	})
}

// fill has nothing reach the disk any more, and nothing the storage, which lies on it.
func (m *machine) fill(n *node) {
	m.w.wait(0)
	n.power.storage.Store(true)
	m.full = m.copied(m.disk)
}

// kill ends a process. What it still writes is not what the next one finds.
func (m *machine) kill(n *node) {
	n.kill()
	if m.full == "" {
		m.full = m.disk
	}
	m.disk, m.memory, m.full = m.copied(m.full), m.copied(m.memory), ""
}

// listed is what a viewer remembers of a segment.
type listed struct {
	length        string // EXTINF
	discontinuity int
	gap           bool
}

// witness is a viewer that remembers all that it was told and given.
type witness struct {
	sequence, discontinuity, next map[string]int // by playlist
	segments                      map[string]listed
	bytes                         map[string]string
}

func newWitness() *witness {
	return &witness{map[string]int{}, map[string]int{}, map[string]int{}, map[string]listed{}, map[string]string{}}
}

// look reads a live stream's or an asset's playlists. again: and all segments, not only those that it has not.
func (w *witness) look(n *node, when string, again bool, playback id.Playback) {
	v := n.viewer()
	for _, at := range v.Playlists(playback) {
		w.read(v, when+" "+at[strings.LastIndexByte(at, '/')+1:], again, at, v.Expect(when, http.StatusOK, at))
	}
}

func (w *witness) read(v playbacktest.Viewer, when string, again bool, at, text string) {
	number, dsn, is, from := 0, 0, listed{}, 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		tag, value, _ := strings.Cut(line, ":")
		switch {
		case tag == "#EXT-X-MEDIA-SEQUENCE":
			number, _ = strconv.Atoi(value)
			from = number
		case tag == "#EXT-X-DISCONTINUITY-SEQUENCE":
			dsn, _ = strconv.Atoi(value)
			if dsn < w.discontinuity[at] {
				v.T.Errorf("%s: the discontinuity sequence goes back from %d to %d", when, w.discontinuity[at], dsn)
			}
			w.discontinuity[at] = dsn
		case tag == "#EXT-X-DISCONTINUITY":
			dsn++
		case tag == "#EXT-X-GAP":
			is.gap = true
		case tag == "#EXTINF":
			is.length = value
		case line != "" && line[0] != '#':
			is.discontinuity = dsn
			w.segment(v, when, again, at[:strings.LastIndexByte(at, '/')+1]+line, is)
			number, is = number+1, listed{}
		}
	}
	if from < w.sequence[at] || number < w.next[at] {
		v.T.Errorf("%s: lists %d to %d, listed %d to %d before", when, from, number-1, w.sequence[at], w.next[at]-1)
	}
	w.sequence[at], w.next[at] = from, number
}

func (w *witness) segment(v playbacktest.Viewer, when string, again bool, uri string, is listed) {
	was, known := w.segments[uri]
	if known && (was.length != is.length || was.discontinuity != is.discontinuity || was.gap && !is.gap) {
		v.T.Errorf("%s: %s is %+v, was %+v", when, uri, is, was)
	}
	w.segments[uri] = is
	before, given := w.bytes[uri]
	if is.gap || given && !again {
		return
	}
	now := v.Expect(when, http.StatusOK, uri)
	if given && now != before {
		v.T.Errorf("%s: %s has other bytes", when, uri)
	}
	w.bytes[uri] = now
}

// TestKilledWithAFullDisk kills a process 40 times, most times after nothing has reached its disk and its storage for
// a while, as it publishes pictures with B-frames, or slate. Viewers see no number go back and nothing change that was
// listed but into a gap, and the lengths of picture and sound add up to the same.
func TestKilledWithAFullDisk(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Standard} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				s := w.stream(window(100), func(in *live.CreateInput) { in.LatencyMode = mode })
				random := rand.New(rand.NewPCG(uint64(len(mode)), 7))
				k := &killer{w: w, m: w.machine(t), s: s, x: newWitness(), random: random}
				n := k.m.start()
				e := n.publish(s.StreamKey).send(40 * time.Second)
				k.look(n, false)
				lives := 40
				if testing.Short() {
					lives = 12
				}
				for range lives {
					k.m.kill(n)
					e.stop()
					n = k.m.start()
					k.lives++
					k.look(n, true)
					e = k.live(n)
				}
				k.m.kill(n)
				e.stop()
				n = k.m.start()
				k.look(n, true)
				w.wait(101 * time.Second)
				_, line := w.recorded(w.row(s.ID).RecentAssets[0])
				sums(t, line, lives)
			})
		})
	}
}

// killer lets processes go on with one broadcast.
type killer struct {
	w      *world
	m      *machine
	s      live.Stream
	x      *witness
	random *rand.Rand
	lives  int
}

func (k *killer) look(n *node, again bool) {
	k.w.t.Helper()
	when := fmt.Sprint("life ", k.lives)
	k.x.look(n, when, again, k.s.PlaybackIDs[0].ID)
	k.x.look(n, when+", asset", again, k.w.playbackID(k.w.row(k.s.ID).ActiveAsset))
}

// live has an encoder come at once or some time later, perhaps twice, and the disk become full at any time, or not at
// all.
func (k *killer) live(n *node) (e *encoder) {
	full, step := k.random.IntN(10), 0
	for range 1 + k.random.IntN(2) {
		if e != nil {
			e.stop()
		}
		k.w.wait(time.Duration(max(k.random.IntN(8)-4, 0)) * time.Second)
		e = n.publish(k.s.StreamKey)
		e.lag = 2
		for range 1 + k.random.IntN(7) {
			if step == full {
				k.m.fill(n)
			}
			step++
			e.send(time.Duration(200+k.random.IntN(1800)) * time.Millisecond)
			k.w.wait(0)
			k.look(n, false)
		}
	}
	return e
}

// sums checks that picture and sound last equally long up to each discontinuity, but for the time that a picture waits
// for its presentation and a frame of sound, and that both begin at the place where the lengths before add up to.
func sums(t *testing.T, line *timeline.Timeline, least int) {
	t.Helper()
	v, a := line.Rendition(timeline.MainVideo), line.Rendition(timeline.MainAudio)
	if v == nil || a == nil {
		t.Fatal("picture or sound is missing")
	}
	const most = 2.0/fps + 1024.0/48000
	var picture, sound, apart, off float64
	stretches := 0
	for i, m := range line.Marks {
		if m.Discontinuity {
			stretches++
			apart = max(apart, math.Abs(picture-sound))
			begins := func(l *timeline.Rendition) float64 {
				return float64(l.Chunks[i].Time)/float64(l.Timescale) - float64(l.Chunks[0].Time)/float64(l.Timescale)
			}
			off = max(off, math.Abs(begins(v)-picture), math.Abs(begins(a)-sound))
		}
		picture, sound = picture+v.Seconds(i), sound+a.Seconds(i)
	}
	if apart > most || off > most || math.Abs(picture-sound) > most {
		t.Errorf("over %d stretches the sums of lengths are up to %.3f s apart, and %.3f s from where the media is; "+
			"in the end picture is %.3f s and sound %.3f s", stretches, apart, off, picture, sound)
	}
	if stretches < least {
		t.Errorf("only %d stretches", stretches)
	}
}
