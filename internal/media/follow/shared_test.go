package follow_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/follow"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
)

// TestCoalesced: the owner is asked once, however many viewers wait for a playlist or want a part; and not at all for
// what is kept and true.
func TestCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, _ := pair(t, s, 64<<20)
		v := view(t, f, playback.Watch{})
		const viewers = 100
		waited := make(chan string, viewers)
		for range viewers {
			go func() {
				text, err := v.Playlist(t.Context(), timeline.MainVideo, playback.Reload{MSN: 4, Part: 0}, false)
				if err != nil {
					t.Error(err)
				}
				waited <- string(text.Data)
			}()
		}
		synctest.Wait()
		s.publish(1)
		for range viewers {
			if got := <-waited; !strings.Contains(got, "v/3.4.m4s") {
				t.Errorf("who waited was given\n%.100s", got)
			}
		}
		synctest.Wait() // the change is known
		for range viewers {
			if _, err := listed(t.Context(), v); err != nil {
				t.Error(err)
			}
		}
		for range viewers {
			go func() {
				data, err := delivered.Bytes(v.Chunk(t.Context(), timeline.MainVideo, newest(s)))
				if err != nil || string(data) != "v 4 0." {
					t.Errorf("the part: %q, %v", data, err)
				}
				waited <- ""
			}()
		}
		for range viewers {
			<-waited
		}
		if times, _ := n.count(wire.Playlist, ""); times != 1 {
			t.Errorf("the owner was asked for playlists %d times", times)
		}
		if times, _ := n.count(wire.Chunk, ""); times != 1 {
			t.Errorf("the owner was asked for media %d times", times)
		}
	})
}

// TestTrue: a playlist that is kept is given until something changes that it shows, be it in another rendition; then
// the owner is asked.
func TestTrue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, _ := pair(t, s, 64<<20)
		v := view(t, f, playback.Watch{})
		list := func(v playback.Live) string {
			t.Helper()
			text, err := listed(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		list(v)
		list(v)
		if times, _ := n.count(wire.Playlist, ""); times != 1 {
			t.Errorf("the owner was asked %d times, and nothing had changed", times)
		}
		s.Edge.Begin(timeline.MainAudio, timeline.Mark{Start: time.Unix(1e9+8, 0)}, 0, 900000+4*180000)
		s.Edge.Part(timeline.MainAudio, []byte("sound"), 45000, true)
		synctest.Wait()
		got, want := list(v), list(s.View(playback.Watch{}))
		if got != want || !strings.Contains(got, "LAST-MSN=4,LAST-PART=0") {
			t.Errorf("after the sound has gone on:\n%s\nwant\n%s", got, want)
		}
	})
}

// TestHint: the part that comes next is asked for before any viewer does, while viewers take parts of that rendition;
// and no longer.
func TestHint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(17)
		f, n, _ := pair(t, s, 64<<20)
		v := view(t, f, playback.Watch{})
		reload := func(msn int64, part int) {
			t.Helper()
			r := playback.Reload{MSN: msn, Part: part}
			if _, err := v.Playlist(t.Context(), timeline.MainVideo, r, false); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		reload(-1, -1)
		if times, _ := n.count(wire.Chunk, ""); times != 0 {
			t.Errorf("nobody takes parts, and %d are asked for", times)
		}
		if _, err := v.Chunk(t.Context(), timeline.MainVideo, newest(s)); err != nil {
			t.Fatal(err)
		}
		s.publish(1)
		reload(4, 1)
		before, _ := n.count(wire.Chunk, "")
		s.publish(1) // the part that was hinted
		synctest.Wait()
		data, err := delivered.Bytes(v.Chunk(t.Context(), timeline.MainVideo, newest(s)))
		after, _ := n.count(wire.Chunk, "")
		if err != nil || string(data) != "v 4 2." || before != 2 || after != before {
			t.Errorf("the hinted part: %q, %v; the owner was asked for %d and then %d", data, err, before, after)
		}
		time.Sleep(6 * time.Second)
		s.publish(1)
		reload(4, 3)
		if times, _ := n.count(wire.Chunk, ""); times != after {
			t.Errorf("nobody takes parts any more, and %d more are asked for", times-after)
		}
	})
}

// TestMemory: what is kept is bounded, and what was dropped is asked for again.
func TestMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const room = 16 << 10
		s := newStudio(true, 0)
		s.publish(160)
		f, n, _ := pair(t, s, room)
		v := view(t, f, playback.Watch{})
		for range 2 {
			for msn := range 40 {
				r := hls.Resource{Init: -1, MSN: int64(msn), Part: -1, Ext: "m4s"}
				want := fmt.Sprintf("v %d 0.v %d 1.v %d 2.v %d 3.", msn, msn, msn, msn)
				data, err := delivered.Bytes(v.Chunk(t.Context(), timeline.MainVideo, r))
				if err != nil || string(data) != want {
					t.Fatalf("segment %d: %q, %v", msn, data, err)
				}
				if kept := f.Kept(); kept > room {
					t.Fatalf("%d bytes are kept", kept)
				}
			}
		}
		if times, urls := n.count(wire.Chunk, ""); urls != 40 || times != 80 {
			t.Errorf("%d segments were asked for %d times", urls, times)
		}
	})
}

// TestUnwatched: half a minute after the last viewer nothing is kept of a broadcast, and its owner is asked for
// nothing; who comes then finds it again.
func TestUnwatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		s.publish(16)
		f, n, _ := pair(t, s, 64<<20)
		ask := func() {
			t.Helper()
			if _, err := listed(t.Context(), view(t, f, playback.Watch{})); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		time.Sleep(follow.Unwatched - 2*time.Second)
		ask()
		time.Sleep(follow.Unwatched - 2*time.Second)
		if f.Following() != 1 || f.Kept() == 0 {
			t.Errorf("%d are followed while one is watched", f.Following())
		}
		time.Sleep(4 * time.Second)
		before, _ := n.count(wire.Changes, "")
		time.Sleep(time.Minute)
		after, _ := n.count(wire.Changes, "")
		if f.Following() != 0 || f.Kept() != 0 || after != before {
			t.Errorf("%d are followed, %d bytes kept, the owner asked %d times", f.Following(), f.Kept(), after-before)
		}
		ask()
		if f.Following() != 1 {
			t.Error("who comes later finds nothing")
		}
	})
}

// TestMetered: what viewers are sent is counted where they are, in the stream's environment; and not at the owner.
func TestMetered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStudio(true, 0)
		var there, here metering.Meter
		s.Meter = there.Counter(metering.Asset{ID: string(asset)})
		s.publish(16)
		n := newNode("run", s)
		all := &fleet{nodes: map[string]*node{"a": n}, has: "a"}
		f := follow.New(follow.Options{
			Peer: all, Directory: all, Meter: &here, Bytes: 1 << 20, Now: time.Now, Logger: quiet(),
		})
		defer f.Close()
		v := view(t, f, playback.Watch{})
		for range 3 { // the last two are kept
			b, err := v.Chunk(t.Context(), timeline.MainVideo, hls.Resource{Init: -1, MSN: 1, Part: -1, Ext: "m4s"})
			if err != nil {
				t.Fatal(err)
			}
			b.Watched.Sent(100, 100)
		}
		lengths := here.Take()[metering.Asset{ID: string(asset), Environment: "env", LiveStream: string(stream)}]
		if lengths[metering.Tier720] != 6*time.Second || len(there.Take()) != 0 {
			t.Errorf("counted: %v here", lengths)
		}
	})
}

// TestUnknown: streams that nobody has cost no node a request, and one that does not respond costs one a second.
func TestUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, n, all := pair(t, newStudio(true, 0), 1<<20)
		all.move("")
		for range 100 {
			if _, err := f.Watched(t.Context(), id.LiveStream("unknown")); err == nil {
				t.Error("an unknown stream is watched")
			}
		}
		if times, _ := n.count(wire.About, ""); times != 0 {
			t.Errorf("a node was asked %d times", times)
		}
		all.move("a")
		n.is(reset)
		for range 100 {
			if _, err := f.Watched(t.Context(), stream); err == nil {
				t.Error("a stream of a node that resets connections is watched")
			}
		}
		if times, _ := n.count(wire.About, ""); times != 1 {
			t.Errorf("a node that resets connections was asked %d times", times)
		}
	})
}
