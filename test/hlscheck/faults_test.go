package hlscheck

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/test/origin"
)

// fault is one thing an origin does wrong, and the rule that must catch it.
type fault struct {
	rule string
	o    origin.Options
	with Options
}

const master = origin.ID + ".m3u8"

func live(o origin.Options) origin.Options {
	o.LowLatency = true
	return o
}

func text(f func(name, text string) string) origin.Options { return live(origin.Options{Text: f}) }

func respond(f func(w http.ResponseWriter, r *http.Request) bool) origin.Options {
	return live(origin.Options{Respond: f})
}

func status(code int, when func(r *http.Request) bool) origin.Options {
	return respond(func(w http.ResponseWriter, r *http.Request) bool {
		if when(r) {
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.WriteHeader(code)
			return true
		}
		return false
	})
}

// data changes the files whose name matches.
func data(pattern string, f func(b []byte) []byte) origin.Options {
	re := regexp.MustCompile(pattern)
	return live(origin.Options{Data: func(name string, b []byte) []byte {
		if re.MatchString(name) {
			return f(bytes.Clone(b))
		}
		return b
	}})
}

// otherMediaHinted has other media begin with segment 6. What is hinted there is a name that would go on in segment 5;
// the response to it is this file.
func otherMediaHinted(file string) origin.Options {
	return live(origin.Options{
		BreakAt: 6, Text: swap("video.m3u8", `HINT:TYPE=PART,URI="video_6.0`, `HINT:TYPE=PART,URI="video_5.9`),
		Respond: func(_ http.ResponseWriter, r *http.Request) bool {
			r.URL.Path = strings.Replace(r.URL.Path, "video_5.9.m4s", file, 1)
			return false
		},
	})
}

// box changes the body of the first box of that kind, wherever it is.
func box(kind string, change func(body []byte)) func([]byte) []byte {
	return func(b []byte) []byte {
		if i := bytes.Index(b, []byte(kind)); i >= 0 {
			change(b[i+4:])
		}
		return b
	}
}

// later shifts a tfdt by so many ticks.
func later(ticks int64) func([]byte) []byte {
	return func(b []byte) []byte {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte("tfdt"))
			if i < 0 {
				return b
			}
			at += i + 4
			if b[at] == 1 {
				binary.BigEndian.PutUint64(b[at+4:], binary.BigEndian.Uint64(b[at+4:])+uint64(ticks))
			} else {
				binary.BigEndian.PutUint32(b[at+4:], binary.BigEndian.Uint32(b[at+4:])+uint32(ticks))
			}
		}
	}
}

// counted calls f with the number of the call, from 1.
func counted(name string, f func(n int, text string) string) func(string, string) string {
	var calls atomic.Int32
	return in(name, func(text string) string { return f(int(calls.Add(1)), text) })
}

func drop(pattern string) func(string) string {
	re := regexp.MustCompile(`(?m)^` + pattern + `\n`)
	return func(text string) string { return re.ReplaceAllString(text, "") }
}

func faults() map[string]fault {
	vod := func(o origin.Options) origin.Options { o.Mode = origin.VOD; return o }
	all := map[string]fault{
		"byte order mark": {rule: "utf8", o: text(in("video.m3u8", func(s string) string { return "\ufeff" + s }))},
		"first line":      {rule: "extm3u", o: text(swap("audio.m3u8", "#EXTM3U\n", "\n#EXTM3U\n"))},
		"low version":     {rule: "version", o: text(swap("", "#EXT-X-VERSION:9", "#EXT-X-VERSION:3"))},
		"odd tag":         {rule: "tag-known", o: text(swap("", "#EXT-X-VERSION:9", "#EXT-X-VERSION:9\n#EXT-X-FOO:1"))},
		"tag twice": {
			rule: "tag-once",
			o:    text(swap("", "#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:2\n#EXT-X-TARGETDURATION:2")),
		},
		"tag misplaced": {
			rule: "tag-place", o: text(swap(master, "#EXT-X-VERSION:9", "#EXT-X-VERSION:9\n#EXT-X-TARGETDURATION:2")),
		},
		"attribute form": {rule: "attributes", o: text(swap("", "INDEPENDENT=YES", `INDEPENDENT="YES"`))},
		"attribute missing": {rule: "attribute-required", o: text(in("", func(s string) string {
			return regexp.MustCompile(`PART:DURATION=[0-9.]+,`).ReplaceAllString(s, "PART:")
		}))},
		"no target duration": {rule: "target-duration-tag", o: text(in("", drop("#EXT-X-TARGETDURATION:2")))},
		"no media sequence": {
			rule: "media-sequence-tag", o: text(in("video.m3u8", drop("#EXT-X-MEDIA-SEQUENCE:.*"))),
		},
		"no DSN": {
			rule: "discontinuity-sequence-tag", o: text(in("audio.m3u8", drop("#EXT-X-DISCONTINUITY-SEQUENCE:.*"))),
		},
		"VOD without end": {rule: "playlist-type", o: vod(text(in("video.m3u8", drop("#EXT-X-ENDLIST"))))},
		"segment lost": {
			rule: "status",
			o:    status(500, func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "audio_3.m4s") }),
		},
		"playlist type": {rule: "playlist-type-http", o: header("video.m3u8", "Content-Type", "text/plain")},
		"media type": {
			rule: "media-type-http", o: header("video_3.m4s", "Content-Type", "application/octet-stream"),
		},
		"playlist kept":    {rule: "playlist-cache", o: header("video.m3u8", "Cache-Control", "max-age=3600")},
		"segment not kept": {rule: "media-cache", o: header("video_3.m4s", "Cache-Control", "no-cache")},
		"no CORS":          {rule: "cors", o: header("video.m3u8", "Access-Control-Allow-Origin", "")},
		"empty 200": {
			rule: "unknown-404",
			o:    status(200, func(r *http.Request) bool { return strings.Contains(r.URL.Path, "no-such-segment") }),
		},
		"HEAD refused": {
			rule: "head", o: status(405, func(r *http.Request) bool { return r.Method == http.MethodHead }),
		},
		"range ignored": {
			rule: "ranges", o: status(416, func(r *http.Request) bool { return r.Header.Get("Range") != "" }),
		},
		"not independent": {
			rule: "independent-segments", o: vod(text(in(master, drop("#EXT-X-INDEPENDENT-SEGMENTS")))),
		},
		"bandwidth too low":    {rule: "bandwidth", o: vod(text(in(master, number("BANDWIDTH", 0.7))))},
		"bandwidth too high":   {rule: "bandwidth", o: vod(text(in(master, number("BANDWIDTH", 3))))},
		"average off":          {rule: "average-bandwidth", o: vod(text(in(master, number("AVERAGE-BANDWIDTH", 0.5))))},
		"codec wrong":          {rule: "codecs", o: text(swap(master, "avc1.", "avc3."))},
		"codec left out":       {rule: "codecs", o: text(swap(master, ",mp4a.40.2", ""))},
		"resolution wrong":     {rule: "resolution", o: text(swap(master, "640x360", "1280x720"))},
		"frame rate wrong":     {rule: "frame-rate", o: text(swap(master, "FRAME-RATE=30.000", "FRAME-RATE=25.000"))},
		"group unknown":        {rule: "groups", o: text(swap(master, `AUDIO="audio"`, `AUDIO="sound"`))},
		"name twice":           {rule: "groups", o: text(swap(master, `NAME="Deutsch"`, `NAME="English"`))},
		"language missing":     {rule: "language", o: text(swap(master, `LANGUAGE="de",`, ""))},
		"chapters refused":     {rule: "status", o: chaptered(`URI="metadata.json"`, http.StatusForbidden, `[]`)},
		"chapters not JSON":    {rule: "session-data", o: chaptered(`URI="metadata.json"`, http.StatusOK, `[`)},
		"pictures unannounced": {rule: "image-playlist", o: winding(drop("#EXT-X-IMAGES-ONLY"), 32, 16)},
		"pictures too small":   {rule: "image-tiles", o: winding(same, 16, 8)},
		"segment too long": {
			rule: "target-duration", o: text(swap("", "#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:1")),
		},
		"URI twice": {
			rule: "uri-unique",
			o: text(in("audio.m3u8", func(s string) string {
				return strings.Replace(s, "audio_2.m4s", "audio_3.m4s", 1)
			})),
		},
		"no map":   {rule: "map", o: text(in("video.m3u8", drop("#EXT-X-MAP:.*")))},
		"no dates": {rule: "pdt", o: text(in("video.m3u8", drop("#EXT-X-PROGRAM-DATE-TIME:.*")))},
		"dates stand still": {rule: "pdt", o: text(in("audio.m3u8", func(s string) string {
			return regexp.MustCompile(`TIME:.*`).ReplaceAllString(s, "TIME:2000-01-01T00:00:00.000Z")
		}))},
		"no part target": {rule: "part-inf", o: text(in("", drop("#EXT-X-PART-INF:.*")))},
		"part too long":  {rule: "part-target", o: text(swap("", "PART-TARGET=0.35000", "PART-TARGET=0.30000"))},
		"part too short": {rule: "part-short", o: text(swap("", "PART-TARGET=0.35000", "PART-TARGET=0.45000"))},
		"part sum": {
			rule: "part-sum", o: text(swap("video.m3u8", "#EXTINF:2.00000,", "#EXTINF:2.01000,")),
		},
		"parts dropped early": {rule: "part-kept", o: text(in("video.m3u8", dropOldParts))},
		"text's part hold back": {
			rule: "part-hold-back", o: text(swap("text.m3u8", ",PART-HOLD-BACK=", ",X-HOLD-BACK=")),
		},
		"part hold back": {
			rule: "part-hold-back", o: text(swap("", "PART-HOLD-BACK=1.05000", "PART-HOLD-BACK=0.80000")),
		},
		"hold back":    {rule: "hold-back", o: text(swap("", ",HOLD-BACK=6.0", ",HOLD-BACK=4.0"))},
		"skip until":   {rule: "can-skip-until", o: text(swap("", "CAN-SKIP-UNTIL=12", "CAN-SKIP-UNTIL=8"))},
		"no hint":      {rule: "low-latency-server", o: text(in("", drop("#EXT-X-PRELOAD-HINT:.*")))},
		"window short": {rule: "window-length", o: live(origin.Options{Text: in("video.m3u8", shortWindow)})},
		"target changes": {
			rule: "constants",
			o:    text(counted("video.m3u8", later9(swapText("#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:3")))),
		},
		"part target changes": {
			rule: "constants",
			o:    text(counted("video.m3u8", later9(swapText("PART-TARGET=0.35000", "PART-TARGET=0.36000")))),
		},
		"sequence falls": {rule: "media-sequence", o: text(counted("video.m3u8", later9(sequence(-1))))},
		"break forgotten": {
			rule: "discontinuity-sequence",
			o: live(origin.Options{
				BreakAt: 1, Text: swap("", "DISCONTINUITY-SEQUENCE:1", "DISCONTINUITY-SEQUENCE:0"),
			}), with: Options{Follow: 19 * time.Second},
		},
		"entry changes": {
			rule: "entry-immutable",
			o:    text(counted("video.m3u8", later9(swapText("#EXTINF:2.00000,", "#EXTINF:2.00100,")))),
		},
		"event loses its start": {
			rule: "append-only",
			o:    live(origin.Options{Mode: origin.Event, Text: counted("video.m3u8", later9(shortWindow))}),
		},
		"part changes": {
			rule: "listed-parts", o: text(counted("audio.m3u8", later9(swapText(".1.m4s", ".1.m4s?x")))),
		},
		"503": {
			rule: "status", o: status(503, func(r *http.Request) bool { return r.URL.Query().Get("_HLS_msn") == "6" }),
		},
		"stands still": {
			rule: "reload-grows", o: live(origin.Options{Text: freeze("audio.m3u8")}),
			with: Options{Follow: 12 * time.Second},
		},
		"removed at once": {
			rule: "removal-early", o: live(origin.Options{Respond: removeEarly()}),
			with: Options{Follow: 19 * time.Second},
		},
		"reload returns old": {rule: "blocking-reload", o: respond(withoutDirectives)},
		"reload is late":     {rule: "blocking-time", o: respond(lateReload)},
		"far future": {
			rule: "far-future",
			o: status(200, func(r *http.Request) bool {
				n, _ := strconv.Atoi(r.URL.Query().Get("_HLS_msn"))
				return n > 12
			}),
		},
		"part alone": {
			rule: "directive",
			o: respond(func(_ http.ResponseWriter, r *http.Request) bool {
				forget(r, "_HLS_part", "_HLS_msn")
				return false
			}),
		},
		"hint is 404": {
			rule: "preload-hint", o: text(swap("video.m3u8", `HINT:TYPE=PART,URI="video`, `HINT:TYPE=PART,URI="vide0`)),
		},
		"hint not kept": {rule: "preload-hint", o: text(in("video.m3u8", func(s string) string {
			return regexp.MustCompile(`HINT:TYPE=PART,URI=".*"`).ReplaceAllString(s,
				`HINT:TYPE=PART,URI="video_0.0.m4s"`)
		}))},
		"hint is of later media": {
			rule: "immutable-bytes", o: otherMediaHinted("video_6.1.m4s"),
			with: Options{Follow: 10 * time.Second, OtherMedia: true},
		},
		"delta is another":  {rule: "delta", o: live(origin.Options{Begin: longAgo, Text: in("", deltaOff)})},
		"delta without map": {rule: "delta-map", o: live(origin.Options{Begin: longAgo, Text: in("", mapBehindSkip)})},
		"skips too much":    {rule: "skip-boundary", o: live(origin.Options{Begin: longAgo, Text: in("", skipsMore)})},
		"report is old": {
			rule: "report",
			o: text(in("video.m3u8", func(s string) string {
				return regexp.MustCompile(`LAST-MSN=\d+`).ReplaceAllString(s, "LAST-MSN=1")
			})),
		},
		"report is ahead": {rule: "report", o: text(in("video.m3u8", func(s string) string {
			return regexp.MustCompile(`LAST-MSN=\d+`).ReplaceAllStringFunc(s, func(tag string) string {
				n, _ := strconv.Atoi(strings.TrimPrefix(tag, "LAST-MSN="))
				return fmt.Sprintf("LAST-MSN=%d", n+2) // blocks as long as a report may, and comes true
			})
		}))},
		"report is missing":  {rule: "report", o: text(in("video.m3u8", drop("#EXT-X-RENDITION-REPORT.*")))},
		"segment is no fMP4": {rule: "fmp4", o: data(`^video_3\.m4s`, func(b []byte) []byte { return b[1:] })},
		"4 billion samples":  {rule: "fmp4", o: data(`^video_3\.m4s`, box("trun", endless))},
		"no tfdt": {
			rule: "fmp4",
			o: data(`^video_3\.m4s`, func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte("tfdt"), []byte("free"))
			}),
		},
		"init with samples": {rule: "init", o: data(`init`, box("stsz", func(b []byte) { b[11] = 1 }))},
		"part is another": {
			rule: "part-bytes", o: data(`^video_\d+\.2\.m4s`, func(b []byte) []byte { b[len(b)-1] ^= 1; return b }),
		},
		"part duration": {
			rule: "part-duration", o: text(swap("video.m3u8", "DURATION=0.33333", "DURATION=0.34333")),
		},
		"segment duration": {
			rule: "segment-duration", o: vod(text(swap("video.m3u8", "#EXTINF:2.00000", "#EXTINF:1.98000"))),
		},
		"segment stretched": {
			rule: "segment-duration", o: vod(text(swap("video.m3u8", "#EXTINF:2.00000", "#EXTINF:2.10000"))),
		},
		"tfdt jumps": {rule: "tfdt", o: data(`^audio_[4-9]\.m4s|^audio_1\d\.m4s`, later(48))},
		"tfdt falls at break": {
			rule: "tfdt-break",
			o:    live(origin.Options{BreakAt: 6, Data: func(n string, b []byte) []byte { return restart(n, b) }}),
			with: Options{Follow: 8 * time.Second, MayStall: true},
		},
		"independence claimed": {rule: "independent-part", o: text(in("video.m3u8", func(s string) string {
			return regexp.MustCompile(`(\.1\.m4s")`).ReplaceAllString(s, "$1,INDEPENDENT=YES")
		}))},
		"no sync sample": {rule: "segment-sync", o: data(`^video_\d+\.m4s`, nonSyncFirst)},
		"bytes change":   {rule: "immutable-bytes", o: live(origin.Options{Data: fickle()})},
		"map without break": {
			rule: "discontinuity-map",
			o:    live(origin.Options{BreakAt: 6, Text: in("", drop("#EXT-X-DISCONTINUITY")), Data: otherInit}),
			with: Options{Follow: 8 * time.Second},
		},
		"no WEBVTT": {
			rule: "webvtt", o: data(`^text_`, func(b []byte) []byte { return bytes.TrimPrefix(b, []byte("WEBVTT")) }),
		},
		"cues elsewhere": {
			rule: "webvtt",
			o: data(`^text_`, func(b []byte) []byte {
				return bytes.ReplaceAll(b, []byte("MPEGTS:0"), []byte("MPEGTS:900000"))
			}),
		},
		"audio starts apart": {rule: "align-start", o: data(`^audio_`, later(9600))},
		"audio dated apart": {
			rule: "align-pdt",
			o: text(counted("audio.m3u8", func(_ int, s string) string {
				return shiftDates(s, 200*time.Millisecond)
			})),
		},
		"break in one only": {
			rule: "align-discontinuity",
			o:    live(origin.Options{BreakAt: 6, Text: in("audio.m3u8", drop("#EXT-X-DISCONTINUITY"))}),
			with: Options{Follow: 8 * time.Second},
		},
		"other target": {
			rule: "align-target", o: text(swap("audio.m3u8", "#EXT-X-TARGETDURATION:2", "#EXT-X-TARGETDURATION:3")),
		},
		"ends apart": {
			rule: "align-ends",
			o: vod(text(in("audio.m3u8", func(s string) string {
				return strings.Replace(s, "#EXTINF:2.00533,\naudio_14.m4s\n", "", 1)
			}))),
		},
		"not compressed": {
			rule: "gzip",
			o: respond(func(_ http.ResponseWriter, r *http.Request) bool {
				r.Header.Del("Accept-Encoding")
				return false
			}),
		},
		"parts kept for ever": {
			rule: "part-old", o: live(origin.Options{Begin: longAgo, Text: in("video.m3u8", partsForAll)}),
		},
	}
	return all
}

// longAgo is 25 s before the bubble's clock starts, so that there are segments beyond the skip boundary.
var longAgo = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Add(-25 * time.Second)

func header(name, key, value string) origin.Options {
	return live(origin.Options{Header: func(n string, h http.Header) {
		if n == name {
			h.Set(key, value)
		}
	}})
}

func number(name string, factor float64) func(string) string {
	re := regexp.MustCompile(`([:,])` + name + `=(\d+)`)
	return func(s string) string {
		return re.ReplaceAllStringFunc(s, func(m string) string {
			n, _ := strconv.ParseFloat(m[strings.IndexByte(m, '=')+1:], 64)
			return fmt.Sprintf("%s%s=%d", m[:1], name, int(n*factor))
		})
	}
}

func swapText(old, with string) func(string) string {
	return func(s string) string { return strings.ReplaceAll(s, old, with) }
}

// later9 begins with its change at the tenth playlist.
func later9(change func(string) string) func(int, string) string {
	return func(n int, s string) string {
		if n < 10 {
			return s
		}
		return change(s)
	}
}

var sequenceTag = regexp.MustCompile(`(?m)^#EXT-X-MEDIA-SEQUENCE:(\d+)$`)

func sequence(by int) func(string) string {
	return func(s string) string {
		return sequenceTag.ReplaceAllStringFunc(s, func(m string) string {
			n, _ := strconv.Atoi(strings.TrimPrefix(m, "#EXT-X-MEDIA-SEQUENCE:"))
			return fmt.Sprintf("#EXT-X-MEDIA-SEQUENCE:%d", n+by)
		})
	}
}

// shortWindow leaves the newest two segments.
func shortWindow(s string) string {
	re := regexp.MustCompile(`(?s)#EXT-X-PROGRAM-DATE-TIME.*?#EXTINF:[^\n]*\n[^\n]*\n`)
	n := len(re.FindAllString(s, -1)) - 2
	if n <= 0 {
		return s
	}
	gone := 0
	s = re.ReplaceAllStringFunc(s, func(m string) string {
		if gone++; gone <= n {
			return ""
		}
		return m
	})
	return sequence(n)(s)
}

// dropOldParts leaves the parts of the open segment only.
func dropOldParts(s string) string {
	i := strings.LastIndex(s, "#EXTINF")
	if i < 0 {
		return s
	}
	return drop("#EXT-X-PART:.*")(s[:i]) + s[i:]
}

// partsForAll lists invented parts for each segment that has none.
func partsForAll(s string) string {
	re := regexp.MustCompile(`Z\n#EXTINF:2.00000,\nvideo_(\d+)\.m4s`)
	var parts strings.Builder
	for i := range 6 {
		fmt.Fprintf(&parts, "#EXT-X-PART:DURATION=0.33333,URI=\"video_$1.%d.m4s\"", i)
		if i == 0 {
			parts.WriteString(",INDEPENDENT=YES")
		}
		parts.WriteString("\n")
	}
	return re.ReplaceAllString(s, "Z\n"+parts.String()+"#EXTINF:2.00000,\nvideo_$1.m4s")
}

// freeze keeps giving out the fifth playlist.
func freeze(name string) func(string, string) string {
	var kept atomic.Pointer[string]
	return counted(name, func(n int, s string) string {
		if n == 5 {
			kept.Store(&s)
		}
		if p := kept.Load(); p != nil {
			return *p
		}
		return s
	})
}

// removeEarly forgets a segment as soon as it has been sent twice (as a whole).
func removeEarly() func(http.ResponseWriter, *http.Request) bool {
	var sent atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/video_1.m4s") || sent.Add(1) == 1 {
			return false
		}
		w.Header().Set("Access-Control-Allow-Origin", "*")
		http.NotFound(w, r)
		return true
	}
}

func forget(r *http.Request, name, unless string) {
	q := r.URL.Query()
	if q.Has(unless) {
		return
	}
	q.Del(name)
	r.URL.RawQuery = q.Encode()
}

// withoutDirectives responds to a blocking reload with what there is.
func withoutDirectives(_ http.ResponseWriter, r *http.Request) bool {
	if n, err := strconv.Atoi(r.URL.Query().Get("_HLS_msn")); err == nil && n < 12 {
		r.URL.RawQuery = ""
	}
	return false
}

// lateReload waits before it responds.
func lateReload(_ http.ResponseWriter, r *http.Request) bool {
	if r.URL.Query().Has("_HLS_part") && r.URL.Query().Has("_HLS_msn") {
		<-time.After(4 * time.Second)
	}
	return false
}

func deltaOff(s string) string {
	if !strings.Contains(s, "#EXT-X-SKIP") {
		return s
	}
	return strings.Replace(s, "#EXTINF:2.00000,", "#EXTINF:1.99900,", 1)
}

func mapBehindSkip(s string) string {
	if !strings.Contains(s, "#EXT-X-SKIP") {
		return s
	}
	return drop("#EXT-X-MAP:.*")(s)
}

func skipsMore(s string) string {
	re := regexp.MustCompile(`(?s)(#EXT-X-SKIP:SKIPPED-SEGMENTS=)(\d+)(\n).*?#EXTINF:[^\n]*\n[^\n]*\n`)
	return re.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.Atoi(re.FindStringSubmatch(m)[2])
		return fmt.Sprintf("#EXT-X-SKIP:SKIPPED-SEGMENTS=%d\n", n+1)
	})
}

// restart sends decode times back to near 0 from segment 6 on.
func restart(name string, b []byte) []byte {
	m := regexp.MustCompile(`^(video|audio|commentary)_(\d+)\.`).FindStringSubmatch(name)
	if m == nil {
		return b
	}
	if n, _ := strconv.Atoi(m[2]); n < 6 {
		return b
	}
	scale := int64(48000)
	if m[1] == "video" {
		scale = 15360
	}
	return later(-10 * scale)(bytes.Clone(b))
}

// nonSyncFirst marks the first sample as no sync sample: the flag is in trun's first_sample_flags or in tfhd.
func nonSyncFirst(b []byte) []byte {
	i := bytes.Index(b, []byte("trun"))
	flags := binary.BigEndian.Uint32(b[i+4:]) & 0xffffff
	at := i + 12
	if flags&1 != 0 {
		at += 4
	}
	switch {
	case flags&4 != 0:
		binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])|nonSync)
	case flags&0x400 != 0:
		if flags&0x100 != 0 {
			at += 4
		}
		if flags&0x200 != 0 {
			at += 4
		}
		binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])|nonSync)
	}
	return b
}

// endless has a trun say that there are as many samples as it can say, and nothing of each.
func endless(trun []byte) { copy(trun[2:], []byte{0, 0, 0xff, 0xff, 0xff, 0xff}) }

// fickle responds each time with another last byte.
func fickle() func(string, []byte) []byte {
	var n atomic.Int32
	return func(name string, b []byte) []byte {
		if !strings.HasPrefix(name, "video_") || strings.Contains(name, "init") {
			return b
		}
		b = bytes.Clone(b)
		b[len(b)-1] = byte(n.Add(1))
		return b
	}
}

func otherInit(name string, b []byte) []byte {
	if !strings.Contains(name, "init2") {
		return b
	}
	return append(bytes.Clone(b), 0, 0, 0, 8, 'f', 'r', 'e', 'e')
}

func shiftDates(s string, by time.Duration) string {
	return regexp.MustCompile(`TIME:.*`).ReplaceAllStringFunc(s, func(m string) string {
		at, _ := time.Parse(time.RFC3339Nano, strings.TrimPrefix(m, "TIME:"))
		return "TIME:" + at.Add(by).Format("2006-01-02T15:04:05.000Z")
	})
}

// TestFaults injects each fault into a good origin and wants its rule to catch it.
func TestFaults(t *testing.T) {
	t.Parallel()
	caught := map[string]bool{"decodes": true} // TestDecodes
	for name, f := range faults() {
		caught[f.rule] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f.with.Follow == 0 {
				f.with.Follow = 5 * time.Second
			}
			f.with.LowLatency = true
			r := watch(t, f.o, f.with)
			if !found(r, f.rule) {
				t.Errorf("rule %s did not catch it:\n%s", f.rule, r)
			}
		})
	}
	for _, id := range RuleIDs() {
		if !caught[id] {
			t.Errorf("no fault tests the rule %s", id)
		}
	}
	if !slices.IsSorted(RuleIDs()) {
		t.Error("rules are not in order")
	}
}
