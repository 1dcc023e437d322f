package hlscheck

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/programtest"
	"millrace/test/origin"
)

var clips = sync.OnceValues(func() ([2]origin.Clip, error) {
	var c [2]origin.Clip
	var err error
	for i, hz := range []int{440, 660} {
		if c[i], err = origin.Generate(context.Background(), "ffmpeg", hz, origin.Seconds,
			origin.GOPSeconds); err != nil {
			return c, err
		}
	}
	return c, nil
})

// direct hands requests to a handler without a network, so that a test runs on synctest's clock.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r.Method == http.MethodHead || r.Header.Get("Range") != "" {
			plain := httptest.NewRecorder()
			d.h.ServeHTTP(plain, r)
			maps.Copy(w.Header(), plain.Header())
			w.Header().Del("Content-Length")
			if plain.Code != http.StatusOK {
				w.WriteHeader(plain.Code)
				return
			}
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(plain.Body.Bytes()))
			return
		}
		d.h.ServeHTTP(w, r)
	}()
	<-done
	res := w.Result()
	res.Request = r
	return res, nil
}

// watch checks an origin on a clock of its own. A live one has been on the air for nine seconds.
func watch(t *testing.T, o origin.Options, with Options) (report *Report) {
	t.Helper()
	c, err := clips()
	if err != nil {
		if os.Getenv("MILLRACE_TEST_REQUIRE") == "" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	o.Clip, o.Commentary, o.Subtitles = c[0], &c[1], true
	synctest.Test(t, func(t *testing.T) {
		if o.Mode != origin.VOD && o.Begin.IsZero() {
			o.Begin = time.Now().Add(-9 * time.Second)
		}
		g, err := origin.New(o)
		if err != nil {
			t.Fatal(err)
		}
		with.URL = "http://origin.test" + g.Path()
		with.Client = &http.Client{Transport: direct{g}}
		if report, err = Check(t.Context(), with); err != nil {
			t.Fatal(err)
		}
	})
	return report
}

// TestGood watches origins that are right: not a word may be said, and the rules must have been applied.
func TestGood(t *testing.T) {
	t.Parallel()
	lowLatency := []string{
		"blocking-reload", "blocking-time", "far-future", "directive", "preload-hint", "delta", "skip-boundary",
		"report", "part-bytes", "part-target",
		"part-short", "part-sum", "part-kept", "part-old", "part-duration", "independent-part", "listed-parts",
		"low-latency-server", "part-hold-back",
	}
	live := []string{
		"constants", "media-sequence", "entry-immutable", "append-only", "reload-grows", "removal-early", "tfdt",
		"segment-duration", "segment-sync",
		"align-start", "align-pdt", "align-discontinuity", "webvtt", "immutable-bytes", "hold-back", "window-length",
		"codecs", "frame-rate", "resolution",
	}
	for name, tt := range map[string]struct {
		o    origin.Options
		with Options
		must []string
	}{
		"low latency": {
			origin.Options{LowLatency: true},
			Options{Follow: 16 * time.Second, LowLatency: true},
			append(live, lowLatency...),
		},
		"plain live": {origin.Options{}, Options{Follow: 16 * time.Second}, live},
		"rewindable": {
			origin.Options{Mode: origin.Event, LowLatency: true},
			Options{Follow: 8 * time.Second, LowLatency: true},
			lowLatency,
		},
		"with a break": {
			origin.Options{LowLatency: true, BreakAt: 6, GapSeconds: 1},
			Options{Follow: 16 * time.Second, LowLatency: true, MayStall: true},
			[]string{"tfdt-break", "discontinuity-sequence"},
		},
		"up to a break": {
			origin.Options{BreakAt: 12},
			Options{Follow: time.Second, Until: []string{"tfdt-break"}},
			[]string{"tfdt-break"},
		},
		"hint of other media": {
			otherMediaHinted("video_6.0.m4s"),
			Options{Follow: 10 * time.Second, LowLatency: true, OtherMedia: true},
			[]string{"tfdt-break"},
		},
		"503 for a stall": {
			status(503, func(r *http.Request) bool { return r.URL.Query().Get("_HLS_msn") == "8" }),
			Options{Follow: 16 * time.Second, MayStall: true},
			[]string{"tfdt"},
		},
		"break is gone": {
			origin.Options{LowLatency: true, BreakAt: 1},
			Options{Follow: 19 * time.Second, LowLatency: true},
			[]string{"discontinuity-sequence"},
		},
		"up to its end": {
			origin.Options{LowLatency: true},
			Options{Follow: 40 * time.Second, LowLatency: true},
			[]string{"align-ends"},
		},
		"hint comes and goes": { // also between a whole playlist and a delta update
			text(counted("video.m3u8", func(n int, text string) string {
				if n/5%2 == 0 {
					return text
				}
				return drop("#EXT-X-PRELOAD-HINT.*")(text)
			})), Options{Follow: 16 * time.Second, LowLatency: true, MayStall: true}, []string{"delta"},
		},
		"finished": {
			origin.Options{Mode: origin.VOD},
			Options{},
			[]string{"average-bandwidth", "bandwidth", "align-ends", "ranges", "head", "unknown-404", "gzip"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := watch(t, tt.o, tt.with)
			if len(r.Findings) > 0 {
				t.Errorf("%s", r)
			}
			if u := r.Unchecked(tt.must...); len(u) > 0 {
				t.Errorf("rules never applied: %v\n%s", u, r)
			}
		})
	}
}

// TestDecodes has ffmpeg decode every segment of a finished asset, and complain of a broken one, and of no other.
func TestDecodes(t *testing.T) {
	t.Parallel()
	flip := func(b []byte, at, n int) []byte {
		b = bytes.Clone(b)
		for i := range n {
			b[at+i] ^= 0xff
		}
		return b
	}
	for what, broken := range map[string]struct {
		name string
		data func([]byte) []byte
	}{
		"nothing":     {},
		"the newest":  {"video_14.m4s", func(b []byte) []byte { return flip(b, len(b)/2, 2000) }},
		"a few bytes": {"video_13.m4s", func(b []byte) []byte { return flip(b, len(b)/2, 3) }},
		"no samples":  {"audio_13.m4s", func([]byte) []byte { return []byte("\x00\x00\x00\x08free") }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			r := watch(t, origin.Options{Mode: origin.VOD, Data: func(name string, b []byte) []byte {
				if name == broken.name {
					return broken.data(b)
				}
				return b
			}}, Options{Decoder: programtest.Path(t, "ffmpeg"), MaxSegments: 3})
			if broken.name != "" && !found(r, "decodes") {
				t.Errorf("a broken segment went unseen:\n%s", r)
			}
			for _, f := range r.Findings {
				if broken.name == "" || f.Rule == "decodes" && !strings.HasSuffix(f.URL, broken.name) {
					t.Errorf("a whole segment is named: %v", f)
				}
			}
			if r.Checked["decodes"] < 6 {
				t.Errorf("segments are not decoded:\n%s", r)
			}
		})
	}
}

func found(r *Report, rule string) bool {
	for _, f := range r.Findings {
		if f.Rule == rule {
			return true
		}
	}
	return false
}

// in changes the named playlists only; "" is every media playlist with audio or video.
func in(name string, change func(text string) string) func(string, string) string {
	return func(n, text string) string {
		if n == name || name == "" && (n == "video.m3u8" || n == "audio.m3u8" || n == "commentary.m3u8") {
			return change(text)
		}
		return text
	}
}

func swap(name, old, with string) func(string, string) string {
	return in(name, func(text string) string { return strings.ReplaceAll(text, old, with) })
}
