package browser_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/web/watch"
	"millrace/test/browser"
	"millrace/test/origin"
)

// BenchmarkLatencyOfPlayers measures how far behind the encoder each player settles, alone on its page, by the number
// in the picture that it shows: an iteration is one start. The figures stand in BENCHMARKS.md.
func BenchmarkLatencyOfPlayers(b *testing.B) {
	c, err := clips()
	made(b, err)
	for _, name := range []string{"hls", "mux", "shaka"} {
		b.Run(name, func(b *testing.B) {
			chromium := browser.Start(b)
			var latencies []float64
			for b.Loop() {
				s := newStream(b, c[0], 20*time.Second+time.Duration(len(latencies))*130*time.Millisecond, 0)
				p := players(b, chromium, s, name)
				latencies = append(latencies, measureLatency(b, s, p))
				p.Close(b)
				s.end()
			}
			slices.Sort(latencies)
			b.ReportMetric(latencies[0], "s-best")
			b.ReportMetric(latencies[len(latencies)/2], "s-median")
			b.ReportMetric(latencies[len(latencies)-1], "s-worst")
		})
	}
}

// measureLatency is the median of 20 looks at a player that has played for 5 s, in seconds behind the encoder.
func measureLatency(b *testing.B, s *stream, p *browser.Page) float64 {
	await(b, p, "play 5 s", func(x player) bool { return x.Played >= 5 })
	var behind, dates []float64
	stalls := 0
	for range 20 {
		var all []player
		p.Eval(b, "window.look()", &all)
		behind, dates = append(behind, s.behind(all[0])), append(dates, all[0].Behind)
		stalls = all[0].Stalls
		<-time.After(130 * time.Millisecond)
	}
	slices.Sort(behind)
	slices.Sort(dates)
	median := behind[len(behind)/2]
	b.Logf("%.2f s behind by its picture (%.2f to %.2f), %.2f by date, %d stalls", median, behind[0],
		behind[len(behind)-1], dates[len(dates)/2], stalls)
	return median
}

// watchLook gives the watch page, and the embedded player, what playersPage has: look.
const watchLook = `
const v = document.querySelector('video'), number = ` + numberOf + `, seen = { played: 0, last: 0, stalls: 0 };
v.addEventListener('waiting', () => { if (seen.played > 1) seen.stalls++; });
setInterval(() => {
  const step = v.currentTime - seen.last;
  if (step > 0 && step < 0.6) seen.played += step;
  seen.last = v.currentTime;
}, 100);
window.look = () => [{
  name: 'watch', played: seen.played, stalls: seen.stalls, number: number(v), now: Date.now(), rate: v.playbackRate,
  behind: (Date.now() - millrace.hls?.playingDate) / 1000, errors: millrace.seen.errors,
}];`

// watchedPages are those that BenchmarkLatencyOfPages opens: our own, and others to compare them with.
var watchedPages = []struct{ name, path string }{
	{"watch", "/watch/streamPlaybackID"},
	{"embed", "/embed/streamPlaybackID?autoplay&muted"},
	{"hls.js-alone", "/players?players=hls&plain"},
	{"shaka", "/players?players=shaka"},
}

// BenchmarkLatencyOfPages measures the watch page and the embedded player beside hls.js by itself and Shaka, of a stream
// with a key frame each second, over lines of each kind, and counts stalls. In an iteration all play side by side, over
// lines that are alike, and are looked at for 15 s when all have played for 5.
func BenchmarkLatencyOfPages(b *testing.B) {
	c, err := origin.Generate(b.Context(), "ffmpeg", 440, origin.Seconds, 1)
	made(b, err)
	for _, kind := range []string{"steady", "bursts", "losses"} {
		b.Run(kind, func(b *testing.B) {
			chromium := browser.Start(b)
			looks, stalls := make([][]float64, len(watchedPages)), make([]int, len(watchedPages))
			for n := 0; b.Loop(); n++ {
				watchPages(b, chromium, c, kind, n, looks, stalls)
			}
			for i, page := range watchedPages {
				slices.Sort(looks[i])
				b.ReportMetric(looks[i][len(looks[i])/2], page.name+"-s-p50")
				b.ReportMetric(looks[i][len(looks[i])*95/100], page.name+"-s-p95")
				b.ReportMetric(float64(stalls[i]), page.name+"-stalls")
			}
		})
	}
}

// watchPages is an iteration: it adds to what was looked at of each page and to its stalls.
func watchPages(b *testing.B, on *browser.Browser, c origin.Clip, kind string, n int, looks [][]float64, stalls []int) {
	s := newStream(b, c, 20*time.Second+time.Duration(n)*130*time.Millisecond, 0)
	site := http.NewServeMux()
	site.Handle("/", playersSite(s))
	site.Handle("/embed/", watch.Handler(watch.Options{}))
	server := httptest.NewServer(site)
	pages := make([]*browser.Page, len(watchedPages))
	for i, page := range watchedPages {
		pages[i] = on.Open(b, "http://"+relayed(b, server.Listener.Addr().String(), kind, n)+page.path)
		if !strings.HasPrefix(page.path, "/players") {
			pages[i].Eval(b, watchLook, nil)
		}
	}
	before := make([]player, len(pages))
	for i, p := range pages {
		before[i] = await(b, p, "play 5 s", func(x player) bool { return x.Played >= 5 })[0]
	}
	var all []player
	behind := make([][]float64, len(pages))
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		for i, p := range pages {
			p.Eval(b, "window.look()", &all)
			behind[i] = append(behind[i], s.behind(all[0]))
		}
	}
	for i, p := range pages {
		p.Eval(b, "window.look()", &all)
		slices.Sort(behind[i])
		more := all[0].Stalls - before[i].Stalls
		b.Logf("%s, %s: %.2f s behind (%.2f to %.2f), %d stalls in the first 5 s, %d more, %v", kind,
			watchedPages[i].name,
			behind[i][len(behind[i])/2], behind[i][0], behind[i][len(behind[i])-1], before[i].Stalls, more,
			all[0].Errors)
		looks[i] = append(looks[i], behind[i]...)
		stalls[i] += more
		p.Close(b)
	}
	s.end()
	server.CloseClientConnections()
	server.Close()
}

// behind is how many seconds ago the encoder sent the picture that a player shows, as if pictures were sent in the
// order of presentation.
func (s *stream) behind(x player) float64 {
	at := time.UnixMilli(x.Now).Sub(s.zero) - time.Duration(x.Number+1)*time.Second/origin.FrameRate
	at %= s.long
	if at < -s.long/2 {
		at += s.long
	}
	return at.Seconds()
}
