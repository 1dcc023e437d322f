package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/browser"
	"millrace/test/rig"
)

// lateWorkers has all workers of a page get what they are sent 400 ms later, as on a busy device, but always.
const lateWorkers = `{
  const Real = window.Worker;
  window.Worker = class extends Real {
    postMessage(...message) { setTimeout(() => super.postMessage(...message), 400); }
  };
}
`

// lateUpdates has a page hear 100 ms later, as on a busy device, but always, that a SourceBuffer has taken an append.
// early is how many appends began before that of the one before them was heard.
const lateUpdates = `{
  window.early = 0;
  const buffers = SourceBuffer.prototype, listen = buffers.addEventListener, append = buffers.appendBuffer;
  buffers.addEventListener = function (type, f, ...more) {
    const later = (event) => setTimeout(() => { this.unheard = false; f(event); }, 100);
    listen.call(this, type, type === 'updateend' ? later : f, ...more);
  };
  buffers.appendBuffer = function (data) {
    if (this.unheard) window.early++;
    append.call(this, data);
    this.unheard = true;
  };
}
`

// TestPlayersWithLateWorkers plays where workers are slow: nothing is left out. With its default, a worker, hls.js
// 1.7.4 takes a segment for loaded of which it has not asked for the last part: the worker still has the part before it
// when the playlist is reloaded, in which the segment is whole, and when that part is appended, the segment is one of
// this playlist. Such a segment is the fragment before the next one (findFragmentByPTS), or in the buffer but for 0.2 s
// (bufferPadding of the fragment tracker), and then nothing more is loaded until the player stalls. Without a worker,
// no playlist comes between. mux-player 3.14.0 is made without.
func TestPlayersWithLateWorkers(t *testing.T) {
	rig.Paced(t)
	playLate(t, lateWorkers)
}

// TestPlayersWithLateUpdates plays where a page hears late of appends: each one waits for the one before it. Without
// engine.js an append begins early here once to four times, and now and then a part is lost by it.
func TestPlayersWithLateUpdates(t *testing.T) {
	rig.Paced(t)
	for _, p := range playLate(t, lateUpdates) {
		var early int
		p.Eval(t, "early", &early)
		if early > 0 {
			t.Errorf("%d appends began before the one before them was heard of", early)
		}
	}
}

// TestPlayersBeginAtGap begins in the last of the gaps that a stream lists in front when it has just begun, over a slow
// connection: the segment behind it comes to its turn while the gap's init segment is on its way. Sound is loaded in
// whole segments, as pictures are later than it by some of them.
func TestPlayersBeginAtGap(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	b := browser.Start(t)
	s := newStream(t, c[0], 4*time.Second, 0)
	holdBack := regexp.MustCompile(`PART-HOLD-BACK=[0-9.]+`)
	var begin sync.Once
	var behind string // where players begin: shortly before the first segment
	site := playersSite(s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch name := path.Base(r.URL.Path); {
		case strings.HasPrefix(name, "init-"):
			<-time.After(500 * time.Millisecond)
		case strings.HasSuffix(r.URL.Path, "/v/7.0.m4s"):
			<-time.After(7 * time.Second)
		case strings.HasSuffix(name, ".m3u8"):
			r.Header.Del("Accept-Encoding")
			playlist := httptest.NewRecorder()
			site.ServeHTTP(playlist, r)
			begin.Do(func() { behind = fmt.Sprintf("PART-HOLD-BACK=%.3f", time.Since(s.began).Seconds()+1) })
			w.Header().Set("Content-Type", playlist.Header().Get("Content-Type"))
			w.WriteHeader(playlist.Code)
			_, _ = w.Write(holdBack.ReplaceAll(playlist.Body.Bytes(), []byte(behind)))
			return
		}
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	all, watch := b.Open(t, server.URL+"/players?players=hls"), b.Open(t, server.URL+"/watch/streamPlaybackID")
	await(t, all, "play 2 s", func(x player) bool { return x.Played >= 2 && x.AudioBytes > 0 })
	watch.Plays(t, 2, patience)
	var sought []string
	all.Eval(t, "said.hls.filter((line) => line.includes('seek to target start position'))", &sought)
	if len(sought) != 1 || !strings.Contains(sought[0], "start position 14.") {
		t.Errorf("it begins elsewhere than right behind the gaps: %q", sought)
	}
}

// TestShakaWithLatePlaylist: Shaka, set as docs/api.md says, plays on when the playlist of the picture falls back by
// more than a segment, as that of a lower rendition does whose encoder has too much to do. Shaka 5.2.12 takes the live
// edge to go on with the clock from where it was at first. What is listed counts to it for as long as the playlists
// are, from that edge: with each update the first segment leaves, until there is none.
func TestShakaWithLatePlaylist(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	late := &latePlaylist{site: playersSite(newStream(t, c[0], 20*time.Second, 0)), by: 3 * time.Second}
	server := httptest.NewServer(late)
	t.Cleanup(server.Close)
	p := browser.Start(t).Open(t, server.URL+"/players?players=shaka")
	before := await(t, p, "play", func(x player) bool { return x.Played >= 1 })[0].Played
	late.begin(t)
	for _, x := range await(t, p, "play on", func(x player) bool { return x.Played > before+15 }) {
		t.Logf("%+v", x)
		x.unharmed(t, p)
	}
}

// latePlaylist is a site whose playlist of the picture is, from some moment on, what it was some time before.
type latePlaylist struct {
	site http.Handler
	by   time.Duration

	mu   sync.Mutex
	path string // of the playlist
	were []datedPlaylist
}

type datedPlaylist struct {
	at   time.Time
	text []byte
}

func (l *latePlaylist) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/v.m3u8") {
		l.site.ServeHTTP(w, r)
		return
	}
	l.mu.Lock()
	l.path = r.URL.Path
	var text []byte
	for _, p := range l.were {
		if text == nil || time.Since(p.at) >= l.by {
			text = p.text
		}
	}
	l.mu.Unlock()
	if text == nil {
		l.site.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.apple.mpegurl")
	_, _ = w.Write(text)
}

// begin makes the playlist late. It looks at it ten times a second until the test is over.
func (l *latePlaylist) begin(t *testing.T) {
	look := func() {
		now := httptest.NewRecorder()
		l.site.ServeHTTP(now, httptest.NewRequestWithContext(t.Context(), http.MethodGet, l.path, nil))
		l.mu.Lock()
		defer l.mu.Unlock()
		l.were = append(l.were, datedPlaylist{time.Now(), now.Body.Bytes()})
	}
	look()
	over := make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-t.Context().Done():
				return
			case <-tick.C:
				look()
			}
		}
	}()
	t.Cleanup(func() { <-over })
}

// playLate plays with hls.js, set as docs/api.md says, and in the watch page, both with a script in front of hls.js,
// until both have played for some seconds: they leave nothing out. It gives the two pages. The watch page has its first
// part so late that it brings its viewer to live, over what has not been loaded then and never is.
func playLate(t *testing.T, script string) []*browser.Page {
	t.Helper()
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 20*time.Second, 0)
	site := playersSite(s)
	var first sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/v/") && strings.Contains(r.Referer(), "/watch/") {
			first.Do(func() { <-time.After(5 * time.Second) })
		}
		if strings.HasPrefix(r.URL.Path, "/watch/assets/hls.min") {
			r.Header.Del("Accept-Encoding")
			kit := httptest.NewRecorder()
			site.ServeHTTP(kit, r)
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(append([]byte(script), kit.Body.Bytes()...))
			return
		}
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	b := browser.Start(t)
	all, watch := b.Open(t, server.URL+"/players?players=hls"), b.Open(t, server.URL+"/watch/streamPlaybackID")
	for _, x := range await(t, all, "play 6 s", func(x player) bool { return x.Played >= 6 && x.AudioBytes > 0 }) {
		x.unharmed(t, all)
	}
	watch.Plays(t, 0.5, patience)
	var began float64
	watch.Eval(t, "Math.max(document.querySelector('video').played.start(0), millrace.seen.broughtTo)", &began)
	if v := (player{Buffered: watch.Probe(t).Buffered, Began: began}); v.holes() > 0 {
		t.Errorf("the watch page has holes: %v, played from %v", v.Buffered, began)
	}
	return []*browser.Page{all, watch}
}
