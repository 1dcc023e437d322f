package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/programtest"
	"millrace/test/bench/encoder"
	"millrace/test/rig"
)

// stormKills is how often TestStorm kills the server; MILLRACE_TEST_KILLS says otherwise (make storm-live).
const stormKills = 5

// killsOr is MILLRACE_TEST_KILLS, or the usual number where that is not set.
func killsOr(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("MILLRACE_TEST_KILLS")
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("read MILLRACE_TEST_KILLS: %q, %v", text, err)
	}
	return n
}

// TestStorm kills the server at random moments of two live streams whose encoders come back, often twice within a
// segment's length. A viewer remembers everything that it was told and given: nothing of it may be gone or other than
// it was. Of each connection at most the open part is lost, and 150 ms. Where the machine keeps an encoder waiting for
// half a second, slate comes in its place up to its next key frame, and those pictures are rightly not recorded.
func TestStorm(t *testing.T) {
	rig.Paced(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		kills := killsOr(t, stormKills)
		random := dice(t)
		s := rig.Start(t, rig.Options{Pair: p})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		t.Cleanup(func() { cancel(); wg.Wait() })
		var at address
		at.set(s)
		low := newStormStream(t, s, "low", 290*time.Millisecond)
		low.clip = stormClip(t, "storm.flv", "-tune", "zerolatency")
		standard := newStormStream(t, s, "standard", time.Second)
		standard.clip, standard.lag = stormClip(t, "storm-b-frames.flv", "-bf", "2"), 2*time.Second/30
		streams := []*stormStream{low, standard}
		for _, x := range streams {
			wg.Go(func() { x.publish(ctx, &at) })
		}
		seen := newMemory(random.Uint64())
		for _, x := range streams {
			s.AwaitPlayable(t, s.PlayURL(x.play), patience)
			x.asset = s.AwaitLive(t, x.id, "active", patience, func(o rig.Object) bool {
				return o.Text("active_asset_id") != ""
			}).Text("active_asset_id")
			for _, uri := range references(string(get(t, s.PlayURL(x.play)))) {
				playlist := path(join(t, s.PlayURL(x.play), uri))
				wg.Go(func() { seen.follow(ctx, &at, playlist, x.stamps.Sent) })
			}
		}
		for n := range kills {
			for _, x := range streams {
				x.await(t)
			}
			rig.Pause(stormPause(random))
			for _, x := range streams {
				x.killed()
			}
			s.Kill(t)
			listed := seen.last()
			s.Run(t)
			at.set(s)
			seen.recall(t, s.HTTP, fmt.Sprintf("kill %d", n+1), listed)
			if t.Failed() {
				break
			}
		}
		for _, x := range streams {
			x.await(t)
		}
		rig.Pause(3 * time.Second)
		cancel()
		wg.Wait()
		seen.recall(t, s.HTTP, "the end", seen.last())
		// on a busy machine much of it is the restart
		t.Logf("at most %v of pictures were sent without anything new in a playlist", seen.stood)
		for _, x := range streams {
			s.Complete(t, x.id)
			x.account(t, s, s.AwaitAsset(t, x.asset, "finished", patience, rig.Finished))
		}
	})
}

// stormPause is how long the encoders publish until the next kill: half of the time for less than a segment.
func stormPause(random *rand.Rand) time.Duration {
	if random.IntN(2) == 0 {
		return time.Duration(50+random.IntN(1200)) * time.Millisecond
	}
	return time.Duration(500+random.IntN(4000)) * time.Millisecond
}

// stormClip is what an encoder sends: 16 s, a whole number of frames of picture and sound alike.
func stormClip(t *testing.T, name string, more ...string) *encoder.Clip {
	t.Helper()
	return stormClipOf(t, "320x180", name, more...)
}

// stormClipOf is stormClip of a size.
func stormClipOf(t *testing.T, size, name string, more ...string) *encoder.Clip {
	t.Helper()
	args := []string{
		"-f", "lavfi", "-i", "testsrc2=size=" + size + ":rate=30", "-f", "lavfi", "-i",
		"sine=frequency=440:sample_rate=48000",
		"-t", "17",
		"-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-pix_fmt", "yuv420p", "-g", "60",
		"-keyint_min", "60",
		"-sc_threshold", "0", "-b:v", "300k", "-maxrate", "300k", "-bufsize", "300k", "-c:a", "aac", "-ac", "2", "-b:a",
		"64k",
	}
	file := programtest.SharedMedia(t, name, append(append(args, more...), "-f", "flv")...)
	clip, err := encoder.ReadClip(file, 480, 750, 16*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return clip
}

// address is where the server listens; it changes with each start.
type address struct{ http, rtmp atomic.Value }

func (a *address) set(s *rig.Server) {
	a.http.Store(s.HTTP)
	a.rtmp.Store(s.RTMP)
}

// stormStream is a live stream with an encoder that comes back again and again, and numbers its pictures.
type stormStream struct {
	id, key, play, asset string
	part                 time.Duration // longest
	clip                 *encoder.Clip
	lag                  time.Duration // of presentation behind decoding
	stamps               encoder.Stamps

	mu    sync.Mutex
	lives []stormLife
	open  bool // the last one goes on
}

// stormLife is one connection: the numbers of its pictures, and when it was cut.
type stormLife struct {
	from, to int
	cut      time.Time // zero: the encoder has ended it
}

func newStormStream(t *testing.T, s *rig.Server, mode string, part time.Duration) *stormStream {
	t.Helper()
	l := s.CreateLive(t, mode, rig.Object{"reconnect_window": 1800})
	return &stormStream{id: l.Text("id"), key: l.Text("stream_key"), play: l.Text("playback_ids.0.id"), part: part}
}

// publish sends until ctx ends, and connects again at once whenever the connection breaks.
func (ss *stormStream) publish(ctx context.Context, at *address) {
	for ctx.Err() == nil {
		p, err := encoder.Dial(ctx, at.rtmp.Load().(string)+"/app/"+ss.key)
		if err != nil {
			rig.Pause(20 * time.Millisecond)
			continue
		}
		ss.mu.Lock()
		ss.lives, ss.open = append(ss.lives, stormLife{from: len(ss.stamps.Sent())}), true
		ss.mu.Unlock()
		_ = p.Play(ctx, ss.clip, &ss.stamps) // it breaks with each kill
		ss.mu.Lock()
		ss.open = false
		ss.lives[len(ss.lives)-1].to = len(ss.stamps.Sent())
		ss.mu.Unlock()
		p.Close()
	}
}

// await waits until the encoder is connected and sends.
func (ss *stormStream) await(t *testing.T) {
	t.Helper()
	sends := func() bool {
		ss.mu.Lock()
		defer ss.mu.Unlock()
		return ss.open && len(ss.stamps.Sent()) > ss.lives[len(ss.lives)-1].from
	}
	for end := time.Now().Add(patience); !sends(); rig.Pause(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the encoder of the stream of %v parts is not back within %v", ss.part, patience)
		}
	}
}

// killed notes that the server is killed now.
func (ss *stormStream) killed() {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.lives[len(ss.lives)-1].cut = time.Now()
}

// alike wants the lengths of sound and picture to add up to the same; lists are both playlists' segments.
func (ss *stormStream) alike(t *testing.T, lists [][]string) {
	t.Helper()
	if len(lists) != 2 || len(lists[0]) != len(lists[1]) {
		t.Fatalf("parts of %v: %d playlists", ss.part, len(lists))
	}
	most := 0.05 + ss.lag.Seconds() // two frames of sound and what is rounded
	apart, steps := 0.0, ""
	for i := range lists[0] {
		var long [2]float64
		for k := range long {
			text, rest, _ := strings.Cut(lists[k][i], ",")
			long[k] = number(t, text)
			steps += fmt.Sprintf("%.3f%s ", long[k], strings.ReplaceAll(rest, "\n", " "))
		}
		steps += "\n"
		apart += long[0] - long[1]
	}
	t.Logf("parts of %v: sound and picture end %.3f s apart", ss.part, apart)
	if apart > most || apart < -most {
		t.Errorf("parts of %v: that is too far:\n%s", ss.part, steps)
	}
}

// account counts which pictures are recorded. What the machine kept the encoder from sending in time, it may have kept
// the server from taking.
func (ss *stormStream) account(t *testing.T, s *rig.Server, asset rig.Object) {
	t.Helper()
	recorded := map[int]bool{}
	var lists [][]string
	for _, m := range mediaPlaylists(t, s.PlayURL(asset.Text("playback_ids.0.id"))) {
		lists = append(lists, strings.Split(m.text, "#EXTINF:")[1:])
		for _, e := range m.entries {
			if !m.audio {
				for _, n := range ss.stamps.Found(get(t, e.url)) {
					recorded[n] = true
				}
			}
		}
	}
	ss.alike(t, lists)
	const more = 150 * time.Millisecond
	sent, worst, total := ss.stamps.Sent(), time.Duration(0), 0
	for i, l := range ss.lives {
		var lost, late time.Duration
		for n := l.from; n < l.to; n++ {
			due := sent[l.from].Add(time.Duration(n-l.from) * time.Second / 30)
			switch late = max(late, sent[n].Sub(due)); {
			case recorded[n] && lost > 0:
				t.Fatalf("parts of %v: connection %d lost pictures before %d of %d", ss.part, i, n-l.from, l.to-l.from)
			case recorded[n] || !l.cut.IsZero() && !sent[n].Before(l.cut):
				continue
			case lost == 0 && l.cut.IsZero():
				lost = sent[l.to-1].Sub(sent[n])
			case lost == 0:
				lost = l.cut.Sub(sent[n])
			}
			total++
		}
		worst = max(worst, lost)
		if lost > ss.part+more+late {
			t.Errorf("parts of %v: connection %d of %.2f s lost its last %v", ss.part, i,
				sent[l.to-1].Sub(sent[l.from]).Seconds(), lost)
		}
	}
	t.Logf("parts of %v: %d connections, %d of %d pictures lost, at most the last %v of one", ss.part, len(ss.lives),
		total, len(sent), worst)
}
