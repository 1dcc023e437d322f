package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/test/browser"
)

// lateWorkers has all workers of a page get what they are sent 400 ms later, as on a busy device, but always.
const lateWorkers = `{
  const Real = window.Worker;
  window.Worker = class extends Real {
    postMessage(...message) { setTimeout(() => super.postMessage(...message), 400); }
  };
}
`

// TestPlayersWithLateWorkers plays where workers are slow with hls.js, set as docs/api.md says, and in the watch page:
// they leave nothing out. With its default, a worker, hls.js 1.7.4 takes a segment for loaded of which it has not asked
// for the last part: the worker still has the part before it when the playlist is reloaded, in which the segment is
// whole, and when that part is appended, the segment is one of this playlist. Such a segment is the fragment before the
// next one (findFragmentByPTS), or in the buffer but for 0.2 s (bufferPadding of the fragment tracker), and then nothing
// more is loaded until the player stalls. Without a worker, no playlist comes between. mux-player 3.14.0 is made without.
func TestPlayersWithLateWorkers(t *testing.T) {
	c, err := clips()
	made(t, err)
	s := newStream(t, c[0], 20*time.Second, 0)
	site := playersSite(s)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/watch/assets/hls.min") {
			r.Header.Del("Accept-Encoding")
			script := httptest.NewRecorder()
			site.ServeHTTP(script, r)
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write(append([]byte(lateWorkers), script.Body.Bytes()...))
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
	watch.Eval(t, "document.querySelector('video').played.start(0)", &began)
	if v := (player{Buffered: watch.Probe(t).Buffered, Began: began}); v.holes() > 0 {
		t.Errorf("the watch page has holes: %v, played from %v", v.Buffered, began)
	}
}
