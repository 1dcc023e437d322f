package browser_test

import (
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/window"
	"millrace/test/browser"
	"millrace/test/rig"
)

// TestPlayersWithoutSound plays a stream without slate whose sound begins 5 s late, stays away from second 12 to 16 and
// for good from second 24 on. Players that are there from the beginning, and those that come when the sound has gone,
// play on, and hear silence, in low latency and without, and afterwards: two at a time, so that others that are
// followed frame by frame have a processor.
func TestPlayersWithoutSound(t *testing.T) {
	rig.Paced(t, rig.Long)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	silent := func(s *stream) {
		s.noSlate = true
		s.away = func(k frame.Kind, at time.Duration) bool {
			second := int(at / time.Second)
			return k == frame.Audio && (second < 5 || second >= 12 && second < 16 || second >= 24)
		}
	}
	s := newStream(t, c[0], 0, 0, silent)
	server := httptest.NewServer(playersSite(s))
	t.Cleanup(server.Close)
	s.awaitListed(t)
	shaka, watch := b.Open(t, server.URL+"/players?players=shaka"), b.Open(t, server.URL+"/watch/streamPlaybackID")
	await(t, shaka, "play until the sound has gone for good", func(x player) bool {
		return time.Since(s.began) > 26*time.Second && x.Played >= 20
	})
	if v := watch.Plays(t, 3, patience); v.Restarts > 0 {
		t.Errorf("the watch page restarted playback %d times: %+v", v.Restarts, v)
	}
	shaka.Close(t)
	watch.Close(t)
	late := b.Open(t, server.URL+"/players?players=hls,shaka")
	await(t, late, "play without sound", func(x player) bool { return x.Played >= 5 && x.Frames > 100 })
	late.Close(t)

	standard := newStream(t, c[0], 32*time.Second, 0, func(s *stream) {
		s.edge = window.New(window.Options{
			Media: "media", Store: nowhere{}, Recorder: nowhere{}, Logger: slog.New(slog.DiscardHandler),
			Mode: window.Mode{Listed: 30 * time.Second, InMemory: 1000},
		})
		silent(s)
	})
	other := httptest.NewServer(playersSite(standard))
	t.Cleanup(other.Close)
	late = b.Open(t, other.URL+"/players?players=hls,shaka")
	await(t, late, "play without sound, standard", func(x player) bool { return x.Played >= 5 })
	late.Close(t)
	standard.end()
	standard.edge.Close()
	late = b.Open(t, other.URL+"/players?players=hls,shaka")
	await(t, late, "play what was recorded, past the end of its sound", func(x player) bool { return x.Played >= 26 })
}
