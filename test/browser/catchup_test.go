package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// catchUpPage has a player that Pace plays, by a clock of its own, and an hls.js and a media element that do nothing.
const catchUpPage = `<!doctype html><title>catching up</title>
<script type="module">
import { Pace, catchUp } from '/watch/assets/catchup.js';

// runs plays a stream of parts that come some seconds late, each by what delay says, and tells how it went.
window.runs = ({ behind, delay = () => 0.03, seconds = 60, target = 0.86, held = false }) => {
  const part = 0.277, step = 0.01, pace = new Pace();
  const out = { stalls: 0, fastest: 1, slowest: 1, latencies: [] };
  let at = 100 - behind, rate = 1, n = Math.floor(100 / part), buffered = n * part, waits = false, looks = 100;
  for (let t = 100; t < 100 + seconds; t += step) {
    while ((n + 1) * part + delay(n + 1) <= t) {
      if (!waits) pace.look(t, buffered - at);
      buffered = ++n * part;
    }
    if (waits && buffered - at > 0.1) waits = false;
    if (!waits) at += step * rate;
    if (!waits && at >= buffered) {
      [at, rate, waits] = [buffered, 1, true];
      out.stalls++;
      pace.stalled(t, { part, most: 2 });
    }
    if (t >= looks && !waits) {
      looks += 0.25;
      rate = pace.rate(t, { latency: t - at, target, ahead: buffered - at, part, most: 2, held });
      out.fastest = Math.max(out.fastest, rate);
      out.slowest = Math.min(out.slowest, rate);
    }
    if (out.latencies.length < t - 100) out.latencies.push(t - at);
  }
  return out;
};

// stage is a live stream that is played 2 s behind, and all buffered; script is what happens to it. It tells the rates.
const names = ['BUFFER_APPENDING', 'DESTROYING', 'LEVEL_UPDATED', 'MEDIA_ATTACHED', 'MEDIA_DETACHING'];
window.stage = (script) => {
  let now = 100;
  performance.now = () => now * 1000;
  const does = {};
  const details = {
    live: true, partTarget: 0.3, partHoldBack: 0.93, targetduration: 2, age: 0, get edge() { return now; },
  };
  const hls = {
    config: { lowLatencyMode: true, maxLiveSyncPlaybackRate: 1, liveSyncOnStallIncrease: 1 }, latestLevelDetails: details,
    get targetLatency() { return this.config.liveSyncDuration || details.partHoldBack; },
    on(name, run) { does[name] = run; },
  };
  const media = Object.assign(new EventTarget(), {
    currentTime: now - 2, playbackRate: 1, paused: false, seeking: false, buffered: { length: 1, end: () => now },
  });
  const rates = [];
  const run = (seconds) => {
    for (const end = now + seconds; now < end;) {
      now += 0.25;
      if (!media.paused) media.currentTime += 0.25 * media.playbackRate;
      media.dispatchEvent(new Event('timeupdate'));
    }
    rates.push(Math.round(100 * media.playbackRate) / 100);
  };
  const hear = (event) => media.dispatchEvent(new Event(event));
  const seek = (by) => { media.currentTime += by; hear('seeking'); };
  catchUp(hls, Object.fromEntries(names.map((name) => [name, name])));
  does.MEDIA_ATTACHED('', { media });
  does.LEVEL_UPDATED();
  const updated = () => does.LEVEL_UPDATED();
  const added = () => rates.push(hls.config.liveSyncOnStallIncrease);
  script({ run, hear, seek, media, hls, details, updated, added, end: () => does.DESTROYING() });
  rates.push(hls.config.maxLiveSyncPlaybackRate);
  return rates;
};
</script>`

func openCatchUp(t *testing.T) *browser.Page {
	t.Helper()
	server := httptest.NewServer(playersMux(catchUpPage))
	t.Cleanup(server.Close)
	return browser.Start(t).Open(t, server.URL+"/players")
}

// TestCatchUpPace: who watches a low-latency stream catches up with it by the rate, as far as what is buffered lets
// them, and keeps some of it.
func TestCatchUpPace(t *testing.T) {
	rig.Parallel(t)
	p := openCatchUp(t)
	for name, tt := range map[string]struct {
		player  string     // of a stream
		stalls  [2]int     // how many there are, at least and at most
		behind  [2]float64 // seconds, at least and at most, in the end
		fastest float64    // rate, at most
		slowest float64    // at least
		from    int        // second at which the end begins
	}{
		"joins": {"{ behind: 1.0 }", [2]int{}, [2]float64{0.65, 0.75}, 1.1, 1, 10},
		"joins far behind, with much buffered": {
			"{ behind: 2.5 }", [2]int{}, [2]float64{0.65, 0.75}, 1.3, 1, 20,
		},
		"parts come late now and then": {
			"{ behind: 1.35, delay: (n) => 0.03 + (n * 7919 % 10) / 20 }", [2]int{}, [2]float64{1.05, 1.25}, 1.1, 1, 10,
		},
		"parts come so late that nothing is to spare": {
			"{ behind: 1.1, delay: (n) => 0.03 + (n * 7919 % 10) / 20 }", [2]int{}, [2]float64{1.05, 1.15}, 1, 1, 2,
		},
		"stalls": {
			"{ behind: 1.0, delay: (n) => n > 400 && n < 480 && n % 20 === 0 ? 1.2 : 0.03, seconds: 40 }",
			[2]int{1, 3},
			[2]float64{1.2, 1.6},
			1.3, 1, 39,
		},
		"stalled once, long ago": {
			"{ behind: 1.0, delay: (n) => n === 400 ? 1.2 : 0.03, seconds: 110 }",
			[2]int{1, 1},
			[2]float64{0.65, 0.75},
			1.3, 1, 105,
		},
		"stalls for a moment": {
			"{ behind: 1.0, delay: (n) => n === 400 ? 0.47 : 0.03, seconds: 30 }",
			[2]int{1, 1},
			[2]float64{0.85, 0.95},
			1.1, 0.95, 25,
		},
		"text":          {"{ behind: 3.5, target: 2.86, held: true }", [2]int{}, [2]float64{2.86, 2.95}, 1.3, 1, 10},
		"earlier time":  {"{ behind: 5 }", [2]int{}, [2]float64{4.95, 5.05}, 1, 1, 1},
		"at its target": {"{ behind: 0.68 }", [2]int{}, [2]float64{0.65, 0.7}, 1, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var got struct {
				Stalls           int
				Fastest, Slowest float64
				Latencies        []float64
			}
			p.Eval(t, fmt.Sprintf("runs(%s)", tt.player), &got)
			if got.Stalls < tt.stalls[0] || got.Stalls > tt.stalls[1] {
				t.Errorf("%d stalls, want %v", got.Stalls, tt.stalls)
			}
			if got.Fastest > tt.fastest || got.Slowest < tt.slowest {
				t.Errorf("rates from %v to %v, want %v to %v", got.Slowest, got.Fastest, tt.slowest, tt.fastest)
			}
			for n, latency := range got.Latencies[tt.from:] {
				if latency < tt.behind[0] || latency > tt.behind[1] {
					t.Fatalf("%.2f s behind after %d s, want %v: %.2f", latency, n+tt.from, tt.behind, got.Latencies)
				}
			}
		})
	}
}

// TestCatchUpLeavesAlone: the rate is the viewer's who has chosen one, and 1 for one who has gone back or paused, or
// when there is no live edge any more.
func TestCatchUpLeavesAlone(t *testing.T) {
	rig.Parallel(t)
	p := openCatchUp(t)
	for name, tt := range map[string]struct {
		script string
		want   []float64 // rates, and at the end up to which one hls.js itself catches up
	}{
		"catches up, and stays": {"run(2); run(20); run(1)", []float64{1.3, 1, 1, 1}},
		"a rate is chosen": {
			"run(2); media.playbackRate = 1.05; run(20); media.playbackRate = 1; run(10)", []float64{1.3, 1.05, 1, 1},
		},
		"chosen before": {"media.playbackRate = 1.5; run(1)", []float64{1.5, 1}},
		"paused": {
			"run(2); media.paused = true; hear('pause'); run(1); media.paused = false; run(1); run(2)",
			[]float64{1.3, 1, 1, 1.3, 1},
		},
		"gone back":           {"run(20); seek(-1.5); run(3); seek(1.2); run(3)", []float64{1, 1, 1.08, 1}},
		"a little back":       {"run(20); seek(-0.4); run(3)", []float64{1, 1.1, 1}},
		"stalled":             {"run(2); hear('waiting'); run(0.25); run(2)", []float64{1.3, 1, 1.3, 1}},
		"nothing to spare":    {"media.buffered.length = 0; run(3)", []float64{1, 1}},
		"ended":               {"run(2); details.live = false; updated(); run(2)", []float64{1.3, 1, 1.3}},
		"standard latency":    {"details.partTarget = 0; updated(); run(3)", []float64{1, 1.3}},
		"without low latency": {"hls.config.lowLatencyMode = false; updated(); run(3)", []float64{1, 1.3}},
		"what hls.js set, at first": {
			"details.partTarget = 0; updated(); media.playbackRate = 1.2; details.partTarget = 0.3; updated(); run(1)",
			[]float64{1, 1},
		},
		// What hls.js adds for each stall: nothing where it is Pace that does, and as before where no parts are listed.
		"what stalls add": {"added(); details.partTarget = 0; updated(); added()", []float64{0, 1, 1.3}},

		"text":      {"hls.config.liveSyncDuration = 1.96; run(3)", []float64{1, 1}},
		"destroyed": {"run(2); end(); run(2)", []float64{1.3, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			const with = "{ run, hear, seek, media, hls, details, updated, added, end }"
			p.Eval(t, fmt.Sprintf("stage((%s) => { %s; })", with, tt.script), &got)
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("rates %v, want %v", got, tt.want)
			}
		})
	}
}

// TestPlayersCatchUp: hls.js, set as docs/api.md says, gets near the live edge again, with the pitch kept, and then
// plays at 1, when its viewer has rested for a while, and when it has stalled for as long.
func TestPlayersCatchUp(t *testing.T) {
	rig.Paced(t)
	c, err := clips()
	made(t, err)
	site, free := playersSite(newStream(t, c[0], 20e9, 0)), make(chan struct{})
	var held atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if held.Load() {
			<-free
		}
		site.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	p := browser.Start(t).Open(t, server.URL+"/players?players=hls")
	await(t, p, "play", func(x player) bool { return x.Played >= 1 })
	var holdBack float64
	p.Eval(t, "window.partHoldBack()", &holdBack)
	var pitch bool
	p.Eval(t, "document.getElementById('hls').preservesPitch", &pitch)
	if !pitch {
		t.Error("the pitch changes with the rate")
	}
	far := holdBack + 0.5
	near := func(x player) bool { return x.Rate == 1 && x.Behind > 0 && x.Behind < holdBack+0.15 }
	p.Eval(t, fmt.Sprintf("window.rest(%f)", far), nil)
	p.Await(t, "rest", "window.rested", patience)
	t.Logf("%+v", await(t, p, "play near the live edge", near))
	held.Store(true)
	stalled := func(x player) bool { return slices.Contains(x.Errors, "bufferStalledError") && x.Behind > far }
	t.Logf("%+v", await(t, p, "stall", stalled))
	held.Store(false)
	close(free)
	for _, x := range await(t, p, "play near the live edge after a stall", near) {
		t.Logf("%+v", x)
		x.unharmed(t, p)
	}
}
