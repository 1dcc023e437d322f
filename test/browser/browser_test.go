package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/web/header"
	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/origin"
	"millrace/test/rig"
)

// patience is for what takes a second or two on a machine that has nothing else to do.
const patience = 3 * time.Minute

var clips = sync.OnceValues(func() ([2]origin.Clip, error) {
	var c [2]origin.Clip
	var err error
	for i, hz := range []int{440, 660} {
		if c[i], err = generate(hz, origin.Seconds); err != nil {
			return c, err
		}
	}
	return c, nil
})

func generate(frequency, seconds int) (origin.Clip, error) {
	return origin.Generate(context.Background(), "ffmpeg", frequency, seconds, origin.GOPSeconds)
}

// made fails or skips the test when there is no clip.
func made(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if os.Getenv("MILLRACE_TEST_REQUIRE") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}

// site serves the watch page and the origin of two clips.
func site(t *testing.T, o origin.Options) (page string, base string) {
	t.Helper()
	c, err := clips()
	made(t, err)
	o.Clip, o.Commentary = c[0], &c[1]
	g, err := origin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return host(t, g)
}

// host serves the watch page and an origin as the real service does, on one address.
func host(t *testing.T, media http.Handler) (page string, base string) {
	t.Helper()
	return hostKnowing(t, media, nil)
}

// hostKnowing is host with what the watch page may say of playback IDs.
func hostKnowing(t *testing.T, media http.Handler, describe watch.Describe) (page string, base string) {
	t.Helper()
	mux := http.NewServeMux()
	pages := header.Closed(watch.Handler(watch.Options{Describe: describe}))
	mux.Handle("/watch/", pages)
	mux.Handle("/embed/", pages)
	mux.Handle("/", media)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/watch/" + origin.ID, s.URL
}

// TestWatchAsset plays a finished asset from its first second, shows its subtitles and switches its sound.
func TestWatchAsset(t *testing.T) {
	rig.Paced(t)
	b := browser.Start(t)
	url, base := site(t, origin.Options{Mode: origin.VOD, Subtitles: true})
	p := b.Open(t, url)
	v := p.Plays(t, 1, patience)
	var from float64
	p.Eval(t, "document.querySelector('video').played.start(0)", &from)
	if from > 0.5 || v.Live || v.Width != origin.Width || v.Height != origin.Height || v.AudioBytes == 0 {
		t.Errorf("plays wrongly, from %.2f s on: %+v", from, v)
	}
	if v.Duration < origin.Seconds-0.2 || v.Duration > origin.Seconds+0.2 {
		t.Errorf("duration %.2f s, want %d", v.Duration, origin.Seconds)
	}
	if want := []string{"English", "Deutsch"}; !slices.Equal(v.AudioTracks, want) {
		t.Errorf("audio tracks %v, want %v", v.AudioTracks, want)
	}
	p.Select(t, "#subtitles", "English")
	p.Until(t, "subtitle shown", patience, func(v browser.Probe) bool {
		return slices.ContainsFunc(v.TextTracks, func(tt browser.TextTrack) bool {
			return tt.Mode == "showing" && len(tt.Active) == 1
		})
	})
	p.Screenshot(t, "subtitles")
	p.Select(t, "#audio", "Deutsch")
	p.Until(t, "other sound", patience, func(v browser.Probe) bool { return v.AudioTrack == 1 })
	p.Plays(t, 1, patience)
	p.Seek(t, 20)
	if v = p.Plays(t, 1, patience); v.Time < 21 {
		t.Errorf("after a seek to 20 s the time is %.1f", v.Time)
	}
	if asked := strings.Join(p.Log(t).Requests, "\n"); !strings.Contains(asked, "commentary_") {
		t.Error("the other sound was never fetched")
	}
	p.StaysHome(t, base)
	small := b.OpenSize(t, url, phone, 844)
	small.Plays(t, 0.5, patience)
	hasRoom(t, small, "phone")
	small.Screenshot(t, "phone")
}

// TestWatchLive waits for a stream that has not begun, then plays it close to its edge.
func TestWatchLive(t *testing.T) {
	rig.Paced(t)
	clip, err := generate(440, 3*origin.Seconds) // it must not end while a slow machine looks
	made(t, err)
	b := browser.Start(t)
	var live atomic.Pointer[origin.Origin] // nil: not begun
	url, base := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g := live.Load(); g != nil {
			g.ServeHTTP(w, r)
			return
		}
		http.Error(w, "not live", http.StatusPreconditionFailed)
	}))
	p := b.Open(t, url)
	p.Until(t, "says that it waits", patience, func(v browser.Probe) bool {
		return v.State == "waiting" && strings.Contains(v.Sentence, "The picture comes by itself")
	})
	p.Screenshot(t, "waiting")
	// one whole segment exists
	g, err := origin.New(origin.Options{LowLatency: true, Clip: clip, Begin: time.Now().Add(-2100 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	live.Store(g)
	first := p.FirstPicture(t, patience)
	p.Plays(t, 8, patience)
	p.Screenshot(t, "live")
	v := p.Until(t, "live and less than 4 s behind", patience, func(v browser.Probe) bool {
		return v.Live && v.Behind() > 0.3 && v.Behind() < 4
	})
	t.Logf("first picture after %v, %.2f s behind (hls.js says %.2f), %d stalls", first, v.Behind(), v.Latency,
		v.Stalls)
	p.Eval(t, "document.querySelector('video').pause()", nil)
	<-time.After(6 * time.Second)
	// before it plays on, for that catches up slowly
	p.Until(t, "offers the way to the edge", patience, func(browser.Probe) bool {
		var s string
		p.Eval(t, "document.getElementById('live-text').textContent", &s)
		return s == "Go to live"
	})
	p.Eval(t, "document.querySelector('video').play()", nil)
	p.Plays(t, 1, patience)
	p.Click(t, "#live")
	p.Until(t, "back at the edge", patience, func(v browser.Probe) bool {
		return v.Latency > 0 && v.Latency < 4 && !v.Paused
	})
	p.StaysHome(t, base)
}

// TestWatchFallsBehind gives the player nothing for so long that it falls farther behind than hls.js catches up: it is
// brought back to the edge. Who goes back by himself is left where he is.
func TestWatchFallsBehind(t *testing.T) {
	rig.Paced(t)
	clip, err := generate(440, 8*origin.Seconds) // it must not end while a slow machine looks
	made(t, err)
	g, err := origin.New(origin.Options{LowLatency: true, Clip: clip, Begin: time.Now().Add(-10 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	var network sync.RWMutex // held while nothing gets through
	url, _ := host(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		network.RLock()
		network.RUnlock() //nolint:staticcheck // it is waited for
		g.ServeHTTP(w, r)
	}))
	p := browser.Start(t).Open(t, url)
	p.FirstPicture(t, patience)
	p.Plays(t, 2, patience)
	near := func(v browser.Probe) bool { return v.Live && v.Behind() > 0.3 && v.Behind() < 4 }
	p.Until(t, "near the edge", patience, near)
	network.Lock()
	p.Until(t, "without anything to play", patience, func(v browser.Probe) bool { return v.ReadyState < 3 })
	<-time.After(5 * time.Second)
	network.Unlock()
	p.Until(t, "brought back", patience, near)
	p.Plays(t, 1, patience)
	p.Eval(t, "document.querySelector('video').currentTime -= 8", nil)
	if v := p.Plays(t, 3, patience); v.Behind() < 6 {
		t.Errorf("%.1f s behind after going back by 8", v.Behind())
	}
}

// TestWatchReset gives the element a new media source, as hls.js does after an error of the browser's, before anything
// has played and later: it plays, unless the viewer paused.
func TestWatchReset(t *testing.T) {
	rig.Paced(t)
	b := browser.Start(t)
	asked, give := make(chan struct{}, 100), make(chan struct{})
	url, _ := site(t, origin.Options{Mode: origin.VOD, Respond: func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.Count(r.URL.Path, "/") > 1 {
			asked <- struct{}{}
			<-give
		}
		return false
	}})
	const reset = "window.millrace.hls.recoverMediaError()"
	p := b.Open(t, url)
	<-asked
	p.Eval(t, reset, nil)
	close(give)
	p.Plays(t, 1, patience)
	p.Eval(t, reset, nil)
	p.Plays(t, 1, patience)
	p.Eval(t, "document.querySelector('video').pause()", nil)
	p.Eval(t, reset, nil)
	if v := p.Until(t, "a picture", patience, func(v browser.Probe) bool {
		return v.ReadyState >= 3 && v.Width > 0
	}); !v.Paused {
		t.Errorf("plays although the viewer paused: %+v", v)
	}
}

// TestWatchFaults shows what the page says when there is nothing to play, and that it comes back by itself.
func TestWatchFaults(t *testing.T) {
	rig.Paced(t)
	b := browser.Start(t)
	var status atomic.Int32
	url, _ := site(t, origin.Options{Mode: origin.VOD, Respond: func(w http.ResponseWriter, _ *http.Request) bool {
		if s := status.Load(); s != 0 {
			http.Error(w, "no", int(s))
			return true
		}
		return false
	}})
	for code, want := range map[int]string{
		404: "no video at this address", 403: "private", 500: "has a problem (500)",
	} {
		status.Store(int32(code))
		p := b.Open(t, url)
		p.Until(t, "a sentence", patience, func(v browser.Probe) bool { return strings.Contains(v.Sentence, want) })
		if code == 404 { // looks once more when it is told to
			status.Store(0)
			p.Click(t, "#again")
			p.Plays(t, 1, patience)
		}
		p.Close(t)
	}
	status.Store(412)
	p := b.Open(t, url)
	p.Until(t, "waits", patience, func(v browser.Probe) bool { return v.State == "waiting" })
	status.Store(0)
	p.Plays(t, 1, patience)
}
