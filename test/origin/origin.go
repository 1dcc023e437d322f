package origin

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// Mode is what the playlists claim to be.
type Mode int

// A Live playlist is a window, Event keeps all that was, VOD is finished.
const (
	Live Mode = iota
	Event
	VOD
)

// Options make an origin.
type Options struct {
	Clip       Clip
	Mode       Mode
	LowLatency bool
	// Begin is when the clip's first sample was live; what is later than now is not there yet. VOD ignores it.
	Begin time.Time
	// Commentary is a second clip whose sound is an alternate audio rendition; nil for none.
	Commentary *Clip
	// Subtitles adds a text rendition.
	Subtitles bool
	// BreakAt puts a discontinuity with a new init segment before this media sequence number, 0 for none, and a gap of
	// GapSeconds.
	BreakAt    int
	GapSeconds float64

	// Text changes a playlist before it is sent: a fault. name is the file's name.
	Text func(name, text string) string
	// Data changes a segment, part or init segment before it is sent.
	Data func(name string, data []byte) []byte
	// Respond takes a request over when it returns true.
	Respond func(w http.ResponseWriter, r *http.Request) bool
	// Header changes the response's headers after all are set.
	Header func(name string, h http.Header)
}

// Constants of the playlists.
const (
	PartTarget  = 0.35 // seconds; parts are 10 video frames, 15 or 16 AAC frames
	partSeconds = 1.0 / 3
	windowSize  = 10 // segments
	// target durations from the end in which segments keep their EXT-X-PART (6.2.2 asks for it, 4.4.4.9 limits it).
	fullParts     = 3
	skipUntil     = 12  // seconds, six target durations
	holdBack      = 6.0 // seconds
	ID            = "GoodOriginPlaybackID"
	retryInterval = 5 * time.Millisecond
)

// Origin is an http.Handler.
type Origin struct {
	o          Options
	renditions map[string]*rendition
	names      []string // of media playlists with parts
}

type rendition struct {
	name     string
	track    Track
	segments []segment
}

// New cuts the clip.
func New(o Options) (*Origin, error) {
	g := &Origin{o: o, renditions: map[string]*rendition{}}
	add := func(name string, t Track) error {
		segments, err := t.cut(o.Clip.Seconds, GOPSeconds, partSeconds, float64(o.BreakAt)*GOPSeconds, o.GapSeconds)
		if err != nil {
			return err
		}
		g.renditions[name] = &rendition{name: name, track: t, segments: segments}
		g.names = append(g.names, name)
		return nil
	}
	if err := add("video", o.Clip.Video); err != nil {
		return nil, err
	}
	if err := add("audio", o.Clip.Audio); err != nil {
		return nil, err
	}
	if o.Commentary != nil {
		if err := add("commentary", o.Commentary.Audio); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Path is the multivariant playlist's.
func (or *Origin) Path() string { return "/" + ID + ".m3u8" }

// now is the time on the media's timeline up to which everything exists.
func (or *Origin) now() float64 {
	if or.o.Mode == VOD {
		return 1e9
	}
	return time.Since(or.o.Begin).Seconds()
}

func (or *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if or.o.Respond != nil && or.o.Respond(w, r) {
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == ID+".m3u8" {
		or.playlist(w, r, name, or.multivariant(), time.Second)
		return
	}
	file, ok := strings.CutPrefix(name, ID+"/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	stem, ext := strings.TrimSuffix(file, path.Ext(file)), path.Ext(file)
	switch {
	case ext == ".m3u8" && stem == "text" && or.o.Subtitles:
		or.media(w, r, file, or.renditions["video"], func(now float64, _ bool) string { return or.textPlaylist(now) })
	case ext == ".m3u8" && or.renditions[stem] != nil:
		v := or.renditions[stem]
		or.media(w, r, file, v, func(now float64, skip bool) string { return or.render(v, now, skip) })
	case ext == ".vtt" && or.o.Subtitles:
		or.text(w, r, file, stem)
	case ext == ".mp4" || ext == ".m4s":
		or.bytes(w, r, file, stem)
	default:
		http.NotFound(w, r)
	}
}

// media responds to a media playlist request, with its delivery directives (RFC 8216bis, 6.2.5). Segments and parts
// appear as those of v do.
func (or *Origin) media(
	w http.ResponseWriter, r *http.Request, file string, v *rendition, render func(now float64, skip bool) string,
) {
	q := r.URL.Query()
	age := time.Second
	if q.Has("_HLS_msn") {
		msn, err := strconv.Atoi(q.Get("_HLS_msn"))
		part, noPart := strconv.Atoi(q.Get("_HLS_part"))
		if err != nil || msn < 0 || q.Has("_HLS_part") && noPart != nil {
			http.Error(w, "bad directive", http.StatusBadRequest)
			return
		}
		if !q.Has("_HLS_part") {
			part = -1
		}
		if msn > v.open(or.now()).msn+2 {
			http.Error(w, "too far ahead", http.StatusBadRequest)
			return
		}
		if !or.wait(r.Context(), func(now float64) bool { return v.has(now, msn, part) }) {
			http.Error(w, "no such segment yet", http.StatusServiceUnavailable)
			return
		}
		age = 6 * time.Second
	} else if q.Has("_HLS_part") {
		http.Error(w, "_HLS_part without _HLS_msn", http.StatusBadRequest)
		return
	}
	or.playlist(w, r, file, render(or.now(), q.Get("_HLS_skip") != ""), age)
}

// wait blocks until ok, for three target durations at most.
func (or *Origin) wait(ctx context.Context, ok func(now float64) bool) bool {
	limit := time.NewTimer(3 * GOPSeconds * time.Second)
	defer limit.Stop()
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for !ok(or.now()) {
		select {
		case <-tick.C:
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// has reports whether the playlist at now lists the part, or the whole segment for part -1; a part past the segment's
// end is the next segment's first.
func (r *rendition) has(now float64, msn, part int) bool {
	if msn >= len(r.segments) {
		return false
	}
	s := r.segments[msn]
	switch {
	case part < 0:
		return s.end() <= now
	case part < len(s.parts):
		return s.parts[part].end <= now
	default:
		return r.has(now, msn+1, 0)
	}
}

// open is the segment that is being made at now; its parts may be none.
func (r *rendition) open(now float64) segment {
	for _, s := range r.segments {
		if s.end() > now {
			n := 0
			for n < len(s.parts) && s.parts[n].end <= now {
				n++
			}
			return segment{msn: s.msn, parts: s.parts[:n]}
		}
	}
	return segment{msn: len(r.segments)}
}

func (or *Origin) playlist(w http.ResponseWriter, r *http.Request, name, text string, age time.Duration) {
	if or.o.Text != nil {
		text = or.o.Text(name, text)
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.apple.mpegurl")
	h.Set("Cache-Control", fmt.Sprintf("max-age=%d", int(age.Seconds())))
	h.Set("Vary", "Accept-Encoding")
	body := []byte(text)
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		var z bytes.Buffer
		zip := gzip.NewWriter(&z)
		_, _ = zip.Write(body)
		_ = zip.Close()
		body = z.Bytes()
		h.Set("Content-Encoding", "gzip")
	}
	or.send(w, name, body)
}

// bytes responds with an init segment, a segment or a part; a hinted part is waited for.
func (or *Origin) bytes(w http.ResponseWriter, r *http.Request, file, stem string) {
	kind, rest, _ := strings.Cut(stem, "_")
	v := or.renditions[kind]
	if v == nil {
		http.NotFound(w, r)
		return
	}
	msnText, partText, isPart := strings.Cut(rest, ".")
	msn, err := strconv.Atoi(msnText)
	n := -1
	if isPart && err == nil {
		n, err = strconv.Atoi(partText)
	}
	var data []byte
	switch {
	case strings.HasPrefix(rest, "init"):
		data = v.track.Init
	case err != nil || msn < 0 || msn >= len(v.segments) || n >= len(v.segments[msn].parts):
		http.NotFound(w, r)
		return
	case n >= 0:
		// The next part may be asked for before it is there.
		if open := v.open(or.now()); msn > open.msn+1 ||
			!or.wait(r.Context(), func(now float64) bool { return v.has(now, msn, n) }) {
			http.NotFound(w, r)
			return
		}
		data = v.segments[msn].parts[n].data
	default:
		if !v.has(or.now(), msn, -1) {
			http.NotFound(w, r)
			return
		}
		data = v.segments[msn].data()
	}
	if or.o.Data != nil {
		data = or.o.Data(file, data)
	}
	h := w.Header()
	h.Set("Content-Type", map[bool]string{true: "video/mp4", false: "audio/mp4"}[v.name == "video"])
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	or.send(w, file, data)
}

func (or *Origin) text(w http.ResponseWriter, r *http.Request, file, stem string) {
	n, err := strconv.Atoi(strings.TrimPrefix(stem, "text_"))
	if err != nil || n < 0 || n >= or.o.Clip.Seconds/GOPSeconds {
		http.NotFound(w, r)
		return
	}
	at := func(s int) string { return fmt.Sprintf("%02d:%02d.000", s/60, s%60) }
	body := fmt.Sprintf("WEBVTT\nX-TIMESTAMP-MAP=LOCAL:00:00:00.000,MPEGTS:0\n\n%s --> %s\nline %d\n", at(n*GOPSeconds),
		at((n+1)*GOPSeconds), n)
	data := []byte(body)
	if or.o.Data != nil {
		data = or.o.Data(file, data)
	}
	w.Header().Set("Content-Type", "text/vtt; charset=utf-8")
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	or.send(w, file, data)
}

func (or *Origin) send(w http.ResponseWriter, name string, body []byte) {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if or.o.Header != nil {
		or.o.Header(name, w.Header())
	}
	_, _ = w.Write(body)
}
