package browser_test

import (
	"slices"
	"testing"
	"time"

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
	b.Logf("%.2f s behind by its picture (%.2f to %.2f), %.2f by date, %d stalls", median, behind[0], behind[len(behind)-1], dates[len(dates)/2], stalls)
	return median
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
