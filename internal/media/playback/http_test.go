package playback_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"millrace/internal/fault"
	"millrace/internal/leaktest"
	"millrace/internal/media/hls"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
	"millrace/internal/media/watching"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const id = "playbackid01"

// source knows one playback ID; it is the presentation as well.
type source struct {
	permit   playback.Permit
	requests []playback.Request
	err      error // of everything
	asked    []string
	closed   *int
	meter    *metering.Counter
	waited   int64 // the newest segment that was asked for
	sounds   int   // renditions in the multivariant playlist beyond the first
	playlist func(rendition string, r playback.Reload, compressed bool) (playback.Text, error)
}

func (s *source) Open(_ context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	s.requests = append(s.requests, r)
	s.asked = append(s.asked, r.PlaybackID+" "+strings.Join(r.Tokens, " "))
	if s.err != nil {
		return nil, s.permit, s.err
	}
	if r.PlaybackID != id {
		return nil, playback.Permit{}, fault.New(fault.NotFound, "no such playback ID")
	}
	return s, s.permit, nil
}

func (s *source) Media() string { return "m1" }

func (*source) Began() time.Time { return time.Time{} }

// Image returns what it was asked for.
func (s *source) Image(_ context.Context, name, query, base string) (playback.Image, error) {
	if !strings.HasPrefix(name, "thumbnail.") && !strings.HasPrefix(name, "storyboard.") {
		return playback.Image{}, fault.New(fault.NotFound, "there is no such image")
	}
	body := playback.Body{Data: []byte(name + " " + query + " " + base), Type: "image/x-test"}
	return playback.Image{Body: body, MaxAge: 7}, nil
}

func (s *source) Description() playback.Description { return playback.Description{} }

func (s *source) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) { return nil, errNone() }

func (s *source) File(context.Context, string) (playback.File, error) {
	return playback.File{}, errNone()
}

func (s *source) Master(context.Context, string, string, string) (playback.File, error) {
	return playback.File{}, errNone()
}

func errNone() error { return fault.New(fault.NotFound, "there is none") }

func (s *source) Earlier(_ context.Context, media string) (playback.Presentation, error) {
	if media != "m0" {
		return nil, fault.New(fault.NotFound, "there is no such broadcast")
	}
	return s, nil
}

func (s *source) Multivariant(context.Context, playback.Clip) (*hls.Multivariant, error) {
	m := &hls.Multivariant{
		Renditions: []hls.Rendition{{Type: "AUDIO", GroupID: "audio", Name: "Default", URI: "a.m3u8"}},
		Variants:   []hls.Variant{{Bandwidth: 1, Codecs: []string{"avc1"}, Audio: "audio", URI: "v.m3u8"}},
	}
	for i := range s.sounds {
		m.Renditions = append(m.Renditions, hls.Rendition{
			Type: "AUDIO", GroupID: "audio", Name: fmt.Sprint(i), URI: fmt.Sprintf("a%d.m3u8", i),
		})
	}
	return m, nil
}

func (s *source) Pictures(context.Context) ([]hls.Picture, error) { return nil, nil }

func (s *source) Playlist(
	_ context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	if s.playlist != nil {
		return s.playlist(rendition, r, compressed)
	}
	if rendition != "v" {
		return playback.Text{}, fault.New(fault.NotFound, "no such rendition")
	}
	text := fmt.Appendf(nil, "#EXTM3U %d %d %v", r.MSN, r.Part, r.Skip)
	if compressed {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(text) // a buffer takes everything
		_ = z.Close()
		text = b.Bytes()
	}
	return playback.Text{Data: text, MaxAge: 1}, nil
}

const stored = "0123456789"

// Covers knows 2 seconds of each segment, and of the others when they were asked for.
func (s *source) Covers(_ context.Context, _ string, r hls.Resource, c playback.Clip) (bool, error) {
	at := float64(2 * r.MSN)
	return r.Init >= 0 || r.MSN > s.waited || at < c.To && at+2 > c.From, nil
}

func (s *source) Chunk(_ context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	s.waited = max(s.waited, r.MSN)
	what := fmt.Sprintf("%s init %d msn %d part %d", rendition, r.Init, r.MSN, r.Part)
	switch {
	case rendition == "t":
		return playback.Body{Data: []byte("WEBVTT")}, nil
	case rendition == "file":
		return playback.Body{Reader: writerTo{body{strings.NewReader(stored), s.closed}}, Size: int64(len(stored))}, nil
	case rendition == "object":
		return playback.Body{
			Reader: body{strings.NewReader(stored), s.closed}, Size: int64(len(stored)), Watched: s.watched(),
		}, nil
	case rendition == "short":
		return playback.Body{
			Reader: body{strings.NewReader(stored[:4]), s.closed}, Size: int64(len(stored)), Watched: s.watched(),
		}, nil
	case rendition == "empty":
		return playback.Body{Data: []byte{}}, nil
	case rendition != "v":
		return playback.Body{}, fault.New(fault.NotFound, "no such rendition")
	}
	return playback.Body{Data: []byte(what)}, nil
}

// TestTranscriptOfNothing: a track in which nothing is said, or nothing yet, has an empty transcript.
func TestTranscriptOfNothing(t *testing.T) {
	t.Parallel()
	r := serve(t, &source{}, http.MethodGet, "/"+id+"/text/t1.txt", nil)
	if got := text(t, r); r.StatusCode != 200 || got != "" ||
		r.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("%d %q %v", r.StatusCode, got, r.Header)
	}
}

// watched is ten seconds, one for each byte.
func (s *source) watched() metering.Delivery {
	return metering.Delivery{Of: s.meter, Length: 10 * time.Second, Pixels: 1}
}

func (s *source) Sidecar(_ context.Context, track string) (playback.Body, error) {
	switch track {
	case "said":
		return playback.Body{
			Data: []byte("WEBVTT\n\n00:01.000 --> 00:02.000\n<i>good</i> &amp; late\n\n00:02.000 --> " +
				"00:03.000\nevening\n"),
		}, nil
	case "broken":
		return playback.Body{Data: []byte("WEBVTT\n\n00:01.000 -->\n")}, nil
	case "t1":
	default:
		return playback.Body{}, fault.New(fault.NotFound, "no such track")
	}
	return playback.Body{Data: []byte("WEBVTT\n"), Type: "text/vtt; charset=utf-8"}, nil
}

type body struct {
	io.Reader
	closed *int
}

func (b body) Close() error {
	if b.closed != nil {
		*b.closed++
	}
	return nil
}

type writerTo struct{ body }

func (wt writerTo) WriteTo(w io.Writer) (int64, error) { return io.Copy(w, wt.Reader) }

func serve(t testing.TB, s *source, method, target string, header http.Header) *http.Response {
	t.Helper()
	h := playback.New(playback.Options{Source: s, Base: "https://base", Logger: slog.New(slog.DiscardHandler)})
	r := httptest.NewRequestWithContext(t.Context(), method, "http://x/", nil)
	path, query, _ := strings.Cut(target, "?")
	r.URL.Path, r.URL.RawQuery = path, query
	maps.Copy(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// What is not live has no newest picture: that is said as what is wrong with the request, while everything else may be
// asked for again.
func TestLatestOfWhatIsNotLive(t *testing.T) {
	t.Parallel()
	idle := &source{err: fault.New(fault.NotReady, "not active")}
	for target, want := range map[string]int{
		"/thumbnail.jpg": 412, "/thumbnail.jpg?latest=true": 400, "/thumbnail.jpg?width=3&latest=1": 400,
		"/thumbnail.jpg?latest=false": 412, ".m3u8?latest=true": 412,
	} {
		r := serve(t, idle, http.MethodGet, "/"+id+target, nil)
		_ = r.Body.Close()
		if r.StatusCode != want {
			t.Errorf("%s: %d, want %d", target, r.StatusCode, want)
		}
	}
}

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	defer func() { _ = r.Body.Close() }() // a recorder
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestPaths(t *testing.T) {
	t.Parallel()
	const (
		list  = "application/vnd.apple.mpegurl"
		brief = "public, max-age=1"
		long  = "public, max-age=31536000, immutable"
	)
	master := "URI=\"" + id + "/m1/a.m3u8\""
	for _, tt := range []struct {
		path   string
		status int
		body   string // part of it
		typ    string
		cache  string
	}{
		{"/" + id, 200, master, list, brief},
		{"/" + id + ".m3u8", 200, "\n" + id + "/m1/v.m3u8\n", list, brief},
		{"/" + id + ".m3u8?token=x", 200, master, list, brief},
		{"/" + id + "/m1/v.m3u8", 200, "#EXTM3U -1 -1 false", list, brief},
		{"/" + id + "/m0/v.m3u8", 200, "#EXTM3U -1 -1 false", list, brief},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=7", 200, "#EXTM3U 7 -1 false", list, brief},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=7&_HLS_part=3&_HLS_skip=YES", 200, "#EXTM3U 7 3 true", list, brief},
		{"/" + id + "/m1/v.m3u8?a=b&_HLS_part=0&_HLS_skip=v2&_HLS_msn=0", 200, "#EXTM3U 0 0 true", list, brief},
		{"/" + id + "/m1/v.m3u8?_HLS_skip=NO&_HLS_push=0", 200, "#EXTM3U -1 -1 false", list, brief},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=1&_HLS_msn=2", 200, "#EXTM3U 1 -1 false", list, brief},
		{
			"/" + id + "/m1/v.m3u8?_HLS_msn=99999999999999999999", 200, "#EXTM3U 9223372036854775807 -1 false", list,
			brief,
		},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=-1", 400, "_HLS_msn", "", "no-store"},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=", 400, "_HLS_msn", "", "no-store"},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=1e3", 400, "_HLS_msn", "", "no-store"},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=+1", 400, "_HLS_msn", "", "no-store"},
		{"/" + id + "/m1/v.m3u8?_HLS_part=1", 400, "needs _HLS_msn", "", "no-store"},
		{"/" + id + "/m1/v.m3u8?_HLS_msn=1&_HLS_part=x", 400, "_HLS_part", "", "no-store"},
		{
			"/" + id + "/thumbnail.jpg?width=3", 200, "thumbnail.jpg width=3 https://base/" + id, "image/x-test",
			"public, max-age=7",
		},
		{"/" + id + "/poster.jpg", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/thumbnail.jpg/x", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1/x.m3u8", 404, "no such rendition", "", "no-store"},
		{"/" + id + "/m1/v/init-0.mp4", 200, "v init 0 msn 0 part -1", "video/mp4", long},
		{"/" + id + "/m1/v/7.m4s", 200, "v init -1 msn 7 part -1", "video/iso.segment", long},
		{"/" + id + "/m0/v/7.m4s", 200, "v init -1 msn 7 part -1", "video/iso.segment", long},
		{"/" + id + "/m1/v/7.3.m4s", 200, "v init -1 msn 7 part 3", "video/iso.segment", long},
		{"/" + id + "/m1/t/7.vtt", 200, "WEBVTT", "text/vtt; charset=utf-8", long},
		{"/" + id + "/m1/x/7.m4s", 404, "no such rendition", "", "no-store"},
		{"/" + id + "/m2/v/7.m4s", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1/v/07.m4s", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1/v/x/7.m4s", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1/v", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1/", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/m1", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/", 404, "nothing to play", "", "no-store"},
		{"/" + id + ".m3u8/", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/text/t1.vtt", 200, "WEBVTT", "text/vtt; charset=utf-8", "public, max-age=60"},
		{"/" + id + "/text/t2.vtt", 404, "no such track", "", "no-store"},
		{"/" + id + "/text/said.txt", 200, "good & late evening\n", "text/plain; charset=utf-8", "public, max-age=60"},
		{"/" + id + "/text/broken.txt", 500, "", "", "no-store"},
		{"/" + id + "/text/t2.txt", 404, "no such track", "", "no-store"},
		{"/" + id + "/text/t1.srt", 404, "nothing to play", "", "no-store"},
		{"/" + id + "/text/", 404, "nothing to play", "", "no-store"},
		{"/unknown0000", 404, "no such playback ID", "", "no-store"},
		{"/", 404, "nothing to play", "", "no-store"},
		{"", 404, "nothing to play", "", "no-store"},
		{"//" + id, 404, "nothing to play", "", "no-store"},
		{"/short", 404, "nothing to play", "", "no-store"},
		{"/../" + id, 404, "nothing to play", "", "no-store"},
		{"/" + id + "\x00", 404, "nothing to play", "", "no-store"},
		{"/" + strings.Repeat("a", 300), 404, "nothing to play", "", "no-store"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			r := serve(t, &source{}, http.MethodGet, tt.path, nil)
			got := text(t, r)
			if r.StatusCode != tt.status || !strings.Contains(got, tt.body) || got == "" {
				t.Errorf("%d %q", r.StatusCode, got)
			}
			typ := tt.typ
			if typ == "" {
				typ = "application/json"
				if !strings.HasPrefix(got, `{"error":{"type":"`) {
					t.Errorf("error is %s", got)
				}
			}
			if r.Header.Get("Content-Type") != typ || r.Header.Get("Cache-Control") != tt.cache {
				t.Errorf("%q, %q", r.Header.Get("Content-Type"), r.Header.Get("Cache-Control"))
			}
			if r.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Error("browsers may guess another type")
			}
			if r.Header.Get("Access-Control-Allow-Origin") != "*" ||
				r.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Error("closed to other origins, or open to cookies")
			}
			head := serve(t, &source{}, http.MethodHead, tt.path, nil)
			if head.StatusCode != r.StatusCode || head.Header.Get("Content-Type") != typ {
				t.Errorf("HEAD: %d, %v", head.StatusCode, head.Header)
			}
			if tt.status == 200 && (text(t, head) != "" || head.Header.Get("Content-Length") != fmt.Sprint(len(got))) {
				t.Errorf("HEAD: %v of %d bytes", head.Header, len(got))
			}
		})
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := &source{}
	for _, q := range []string{"", "?token=a.b.c", "?x=1&token=a%2Eb", "?nottoken=1"} {
		serve(t, s, http.MethodGet, "/"+id+".m3u8"+q, nil)
	}
	if want := []string{id + " ", id + " a.b.c", id + " a.b", id + " "}; !slices.Equal(s.asked, want) {
		t.Errorf("asked %q", s.asked)
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{
		"GET": 200, "HEAD": 200, "OPTIONS": 204, "POST": 405, "PUT": 405, "DELETE": 405, "PATCH": 405, "TRACE": 405,
		"get": 405,
	} {
		s := &source{}
		r := serve(t, s, method, "/"+id+"/m1/v/7.m4s", http.Header{
			"Origin": {"https://player.example"}, "Access-Control-Request-Headers": {"range"},
		})
		if r.StatusCode != want || r.Header.Get("Access-Control-Allow-Origin") != "*" ||
			r.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", method, r.StatusCode, r.Header)
		}
		if allowed := r.Header.Get("Access-Control-Allow-Methods") == "GET, HEAD, OPTIONS" &&
			r.Header.Get("Access-Control-Allow-Headers") == "*"; allowed != (method == "OPTIONS") {
			t.Errorf("%s: %v", method, r.Header)
		}
		if want > 200 && len(s.asked) > 0 {
			t.Errorf("%s reached the source", method)
		}
		if want == 405 && r.Header.Get("Allow") != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow %q", method, r.Header.Get("Allow"))
		}
	}
}

func TestErrorResponses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err    error
		status int
		body   string
	}{
		{
			fault.New(fault.Invalid, "bad"), 400,
			`{"error":{"type":"invalid_parameters","message":"bad","messages":["bad"]}}`,
		},
		{fault.New(fault.Denied, "no"), 403, `{"error":{"type":"forbidden","message":"no","messages":["no"]}}`},
		{
			fault.Coded(fault.Denied, "token_expired", "no"), 403,
			`{"error":{"type":"forbidden","code":"token_expired","message":"no","messages":["no"]}}`,
		},
		{
			fault.New(fault.Unauthorized, "who"), 403,
			`{"error":{"type":"forbidden","message":"who","messages":["who"]}}`,
		},
		{fault.New(fault.NotFound, "gone"), 404, `{"error":{"type":"not_found","message":"gone","messages":["gone"]}}`},
		{fault.New(fault.NotReady, "soon"), 412, `{"error":{"type":"not_ready","message":"soon","messages":["soon"]}}`},
		{
			fault.New(fault.Unavailable, "later"), 503,
			`{"error":{"type":"unavailable","message":"later","messages":["later"]}}`,
		},
		{
			fault.Wrap(fault.NotFound, errors.New("secret"), "gone"), 404,
			`{"error":{"type":"not_found","message":"gone","messages":["gone"]}}`,
		},
		{
			errors.New("dial tcp 10.0.0.1: secret"), 500,
			`{"error":{"type":"internal","message":"something went wrong on our side","messages":["something went wrong on our side"]}}`,
		},
	} {
		r := serve(t, &source{err: tt.err}, http.MethodGet, "/"+id, nil)
		if got := text(t, r); r.StatusCode != tt.status || got != tt.body ||
			r.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%v: %d %s", tt.err, r.StatusCode, got)
		}
	}
}

// trickPlay has an image playlist, or a reason why not.
type trickPlay struct {
	*source
	tiles *hls.Tiles
	err   error
}

func (t trickPlay) Open(context.Context, playback.Request) (playback.Presentation, playback.Permit, error) {
	return t, playback.Permit{}, nil
}

func (t trickPlay) Tiles(context.Context, playback.Clip) (*hls.Tiles, error) { return t.tiles, t.err }

// Anyone who asks for an image playlist as well can watch without them: only their own playlist says why they are not
// there.
func TestPicturesForWindingAreLeftOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		s    trickPlay
		list int
	}{
		"there": {
			trickPlay{
				tiles: &hls.Tiles{
					Width: 2, Height: 2, Columns: 1, Rows: 1, Images: []hls.Tiled{{URI: "i", Duration: time.Second}},
				},
			}, http.StatusOK,
		},
		"none":   {trickPlay{err: fault.New(fault.NotFound, "none")}, http.StatusNotFound},
		"busy":   {trickPlay{err: fault.New(fault.Unavailable, "busy")}, http.StatusServiceUnavailable},
		"broken": {trickPlay{err: errors.New("ffmpeg")}, http.StatusInternalServerError},
	} {
		tt.s.source = &source{}
		h := playback.New(playback.Options{Source: tt.s, Logger: slog.New(slog.DiscardHandler)})
		get := func(target string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
			return w
		}
		if w := get("/" + id + ".m3u8?roku_trick_play=true"); w.Code != http.StatusOK ||
			strings.Contains(w.Body.String(), "IMAGE-STREAM-INF") != (tt.s.err == nil) {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
		if w := get("/" + id + "/m1/tiles.m3u8"); w.Code != tt.list {
			t.Errorf("%s: %d\n%s", name, w.Code, w.Body)
		}
	}
}

// What is asked to be different about a playlist is asked of the others too, where it says how far they are.
func TestReportsHaveTheQuery(t *testing.T) {
	t.Parallel()
	s := &source{playlist: func(_ string, _ playback.Reload, compressed bool) (playback.Text, error) {
		if compressed {
			t.Error("a text that has to be changed is compressed")
		}
		return playback.Text{Data: []byte("#EXTM3U\n#EXT-X-RENDITION-REPORT:URI=\"a.m3u8\",LAST-MSN=7\n")}, nil
	}}
	for query, want := range map[string]string{
		"exclude_pdt=true&_HLS_msn=7&_HLS_part=2": "a.m3u8?exclude_pdt=true",
		"asset_start_time=3&asset_end_time=9":     "a.m3u8?asset_end_time=9&asset_start_time=3",
	} {
		r := serve(t, s, http.MethodGet, "/"+id+"/m1/v.m3u8?"+query, http.Header{"Accept-Encoding": {"gzip"}})
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(z); err != nil || !strings.Contains(string(got), `REPORT:URI="`+want+`",LAST-MSN=7`) {
			t.Errorf("%s: %s, %v", query, got, err)
		}
	}
}

func TestCompression(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.8": true, "GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false,
		"identity": false, "deflate,gzip": true, "gzipped": false, "gzip;q=1": true,
	} {
		r := serve(t, &source{}, http.MethodGet, "/"+id+"/m1/v.m3u8", http.Header{"Accept-Encoding": {accept}})
		got := text(t, r)
		packed := r.Header.Get("Content-Encoding") == "gzip"
		if packed != want || r.Header.Get("Vary") != "Accept-Encoding" ||
			r.Header.Get("Content-Length") != fmt.Sprint(len(got)) {
			t.Errorf("%q: %v", accept, r.Header)
		}
		if packed {
			z, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if plain, err := io.ReadAll(z); err != nil || string(plain) != "#EXTM3U -1 -1 false" {
				t.Errorf("%q: %s, %v", accept, plain, err)
			}
		}
	}
	for _, sounds := range []int{0, 30} { // what fits a packet too
		r := serve(t, &source{sounds: sounds}, http.MethodGet, "/"+id+".m3u8", http.Header{"Accept-Encoding": {"gzip"}})
		got, plain := text(t, r), text(t, serve(t, &source{sounds: sounds}, http.MethodGet, "/"+id+".m3u8", nil))
		if r.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("multivariant playlist of %d bytes: not compressed", len(plain))
		} else {
			z, err := gzip.NewReader(strings.NewReader(got))
			if err != nil {
				t.Fatal(err)
			}
			if unpacked, err := io.ReadAll(z); err != nil || string(unpacked) != plain {
				t.Errorf("unpacked %s, %v", unpacked, err)
			}
		}
	}
	if r := serve(t, &source{}, http.MethodGet, "/"+id+"/m1/v/7.m4s", http.Header{
		"Accept-Encoding": {"gzip"},
	}); r.Header.Get("Content-Encoding") != "" {
		t.Error("media is compressed")
	}
}

func TestByteRanges(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		asked  string
		status int
		body   string
		says   string
	}{
		{"", 200, stored, ""},
		{"bytes=0-", 206, stored, "bytes 0-9/10"},
		{"bytes=0-9", 206, stored, "bytes 0-9/10"},
		{"bytes=0-0", 206, "0", "bytes 0-0/10"},
		{"bytes=3-5", 206, "345", "bytes 3-5/10"},
		{"bytes=8-99999999999999999999", 206, "89", "bytes 8-9/10"},
		{"bytes=9-", 206, "9", "bytes 9-9/10"},
		{"bytes=-3", 206, "789", "bytes 7-9/10"},
		{"bytes=-30", 206, stored, "bytes 0-9/10"},
		{"bytes=10-", 416, "", "bytes */10"},
		{"bytes=99999999999999999999-", 416, "", "bytes */10"},
		{"bytes=-0", 416, "", "bytes */10"},
		{"bytes=5-3", 200, stored, ""},
		{"bytes=0-1,4-5", 200, stored, ""},
		{"bytes=", 200, stored, ""},
		{"bytes=-", 200, stored, ""},
		{"bytes=a-b", 200, stored, ""},
		{"bytes=--1", 200, stored, ""},
		{"items=0-1", 200, stored, ""},
	} {
		for _, rendition := range []string{"file", "object"} {
			closed := 0
			r := serve(t, &source{closed: &closed}, http.MethodGet, "/"+id+"/m1/"+rendition+"/7.m4s", http.Header{
				"Range": {tt.asked},
			})
			got := text(t, r)
			if r.StatusCode != tt.status || r.Header.Get("Content-Range") != tt.says || closed != 1 {
				t.Errorf("%s %q: %d %v, closed %d times", rendition, tt.asked, r.StatusCode, r.Header, closed)
			}
			if tt.status != 416 &&
				(got != tt.body || r.Header.Get("Content-Length") != fmt.Sprint(len(tt.body)) ||
					r.Header.Get("Accept-Ranges") != "bytes") {
				t.Errorf("%s %q: %q %v", rendition, tt.asked, got, r.Header)
			}
		}
	}
	media := "v init -1 msn 7 part 3"
	r := serve(t, &source{}, http.MethodGet, "/"+id+"/m1/v/7.3.m4s", http.Header{"Range": {"bytes=2-5"}})
	if got := text(t, r); r.StatusCode != 206 || got != media[2:6] ||
		r.Header.Get("Content-Range") != fmt.Sprintf("bytes 2-5/%d", len(media)) {
		t.Errorf("in memory: %d %q %v", r.StatusCode, got, r.Header)
	}
	if r := serve(t, &source{}, http.MethodGet, "/"+id+"/m1/v/7.m4s", http.Header{
		"Range": {"bytes=0-1"}, "If-Range": {`"x"`},
	}); r.StatusCode != 200 {
		t.Errorf("with a condition: %d", r.StatusCode)
	}
	if r := serve(t, &source{}, http.MethodHead, "/"+id+"/m1/v/7.m4s", http.Header{
		"Range": {"bytes=0-1"},
	}); r.StatusCode != 200 {
		t.Errorf("HEAD: %d", r.StatusCode)
	}
	if r := serve(t, &source{}, http.MethodGet, "/"+id+"/m1/empty/7.m4s", http.Header{
		"Range": {"bytes=0-"},
	}); r.StatusCode != 416 {
		t.Errorf("of nothing: %d", r.StatusCode)
	}
}

// TestStorageThatBreaksOff: the connection is closed in the middle of the body, so that nobody takes half a segment for
// a whole one.
func TestStorageThatBreaksOff(t *testing.T) {
	t.Parallel()
	server := broken(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/"+id+"/m1/short/7.m4s", nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := server.Client().Do(req)
	if errors.Is(err, io.EOF) { // so little is broken off before the head is sent
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }() // it was only read
	if got, err := io.ReadAll(r.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestStorageThatBreaksOffOverHTTP2: the stream is reset and not ended. Not every player and cache counts what came.
func TestStorageThatBreaksOffOverHTTP2(t *testing.T) {
	t.Parallel()
	server := broken(t)
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err = io.WriteString(conn, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	var head bytes.Buffer
	e := hpack.NewEncoder(&head)
	for _, f := range [][2]string{
		{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", "/" + id + "/m1/short/7.m4s"},
	} {
		if err = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
			t.Fatal(err)
		}
	}
	framer := http2.NewFramer(conn, conn)
	ask := http2.HeadersFrameParam{StreamID: 1, BlockFragment: head.Bytes(), EndStream: true, EndHeaders: true}
	if err = errors.Join(framer.WriteSettings(), framer.WriteHeaders(ask)); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		if _, reset := frame.(*http2.RSTStreamFrame); reset {
			return
		}
		// of HEADERS it is the same flag
		if frame.Header().StreamID == 1 && frame.Header().Flags.Has(http2.FlagDataEndStream) {
			t.Fatal("the response ends as a whole one")
		}
	}
}

// broken serves what its storage breaks off, over HTTP/1.1 and HTTP/2.
func broken(t *testing.T) *httptest.Server {
	t.Helper()
	h := playback.New(playback.Options{Source: &source{}, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func TestRequestThatIsGivenUpIsNeverAnEmpty200(t *testing.T) {
	t.Parallel()
	s := &source{
		playlist: func(string, playback.Reload, bool) (playback.Text, error) {
			return playback.Text{}, context.Canceled
		},
	}
	h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/"+id+"/m1/v.m3u8", nil))
	if w.Code != http.StatusServiceUnavailable || w.Body.Len() == 0 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"/" + id, "/" + id + "/m1/v.m3u8", "/" + id + "/m1/v/7.3.m4s", "/" + id + "/text/t1.vtt", "/x/../y", "//",
	} {
		f.Add(s, "_HLS_msn=1&_HLS_part=2&_HLS_skip=YES&token=x", "bytes=1-2", "gzip;q=0.5")
	}
	f.Fuzz(func(t *testing.T, path, query, ranged, accept string) {
		r := serve(t, &source{}, http.MethodGet, path+"?"+query, http.Header{
			"Range": {ranged}, "Accept-Encoding": {accept},
		})
		got := text(t, r)
		switch r.StatusCode {
		case 200, 206:
			if r.Header.Get("Content-Length") != fmt.Sprint(len(got)) || got == "" {
				t.Errorf("%q: %d bytes, %v", path, len(got), r.Header)
			}
		case 400, 403, 404, 416:
			if !strings.HasPrefix(got, `{"error":`) || r.Header.Get("Cache-Control") != "no-store" {
				t.Errorf("%q: %d %q", path, r.StatusCode, got)
			}
		default:
			t.Errorf("%q: %d", path, r.StatusCode)
		}
	})
}

// blank is a response writer that costs nothing.
type blank struct{ head http.Header }

func (b *blank) Header() http.Header         { return b.head }
func (b *blank) WriteHeader(int)             {}
func (b *blank) Write(p []byte) (int, error) { return len(p), nil }

func BenchmarkServe(b *testing.B) {
	media := make([]byte, 600<<10)
	s := &fixed{Body: playback.Body{Data: media}, Text: playback.Text{Data: media[:2000], MaxAge: 1}}
	h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	for name, path := range map[string]string{
		"segment": "/" + id + "/m1/v/7.m4s", "playlist": "/" + id + "/m1/v.m3u8?_HLS_msn=7&_HLS_part=1",
	} {
		b.Run(name, func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, nil)
			r.Header.Set("Accept-Encoding", "gzip, deflate, br")
			w := &blank{head: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.head)
				h.ServeHTTP(w, r)
			}
		})
	}
}

// fixed returns the same for everything.
type fixed struct {
	source
	playback.Body
	playback.Text
}

func (f *fixed) Open(context.Context, playback.Request) (playback.Presentation, playback.Permit, error) {
	return f, playback.Permit{}, nil
}

func (f *fixed) Playlist(context.Context, string, playback.Reload, bool) (playback.Text, error) {
	return f.Text, nil
}

func (f *fixed) Chunk(context.Context, string, hls.Resource) (playback.Body, error) {
	return f.Body, nil
}

// TestDeliveredIsCounted by the bytes that went out.
func TestDeliveredIsCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, method, path, ranges string
		want                       time.Duration
	}{
		{"a segment", "GET", "/m1/object/1.m4s", "", 10 * time.Second},
		{"a range of one", "GET", "/m1/object/1.m4s", "bytes=2-4", 3 * time.Second},
		{"its end", "GET", "/m1/object/1.m4s", "bytes=-2", 2 * time.Second},
		{"nothing of it", "GET", "/m1/object/1.m4s", "bytes=10-", 0},
		{"its head", "HEAD", "/m1/object/1.m4s", "", 0},
		{"one that breaks off", "GET", "/m1/short/1.m4s", "", 4 * time.Second},
		{"what does not count", "GET", "/m1/v/1.m4s", "", 0},
		{"a file", "GET", "/highest.mp4", "", 10 * time.Second},
		{"a range of a file", "GET", "/highest.mp4", "bytes=5-5", time.Second},
		{"the head of a file", "HEAD", "/highest.mp4", "", 0},
		{"a file that is away", "GET", "/lost.mp4", "", 0},
	} {
		var m metering.Meter
		h := playback.New(playback.Options{
			Source: &shop{source: source{meter: m.Counter(metering.Asset{ID: "a"})}},
			Logger: slog.New(slog.DiscardHandler),
		})
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "/"+id+tt.path, nil)
		if tt.ranges != "" {
			r.Header.Set("Range", tt.ranges)
		}
		func() {
			defer func() { _ = recover() }() // what breaks off does
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if got := m.Take()[metering.Asset{ID: "a"}]; got != (metering.Lengths{metering.Tier720: tt.want}) {
			t.Errorf("%s: %v, want %s", tt.name, got, tt.want)
		}
	}
}

// TestWatchingIsNoted: a viewer who is sent media watches, and nobody else.
func TestWatchingIsNoted(t *testing.T) {
	t.Parallel()
	var r watching.Register
	h := playback.New(playback.Options{Source: &source{}, Watching: &r, Logger: slog.New(slog.DiscardHandler)})
	for _, ask := range []struct {
		method, path, address, player string
		want                          int // who watch afterwards
	}{
		{"GET", ".m3u8", "192.0.2.1:1", "A", 0},
		{"GET", "/m1/v.m3u8", "192.0.2.1:1", "A", 0},
		{"HEAD", "/m1/object/1.m4s", "192.0.2.1:1", "A", 0},
		{"GET", "/m1/v/1.m4s", "192.0.2.1:1", "A", 0},
		{"GET", "/m1/object/1.m4s", "192.0.2.1:1", "A", 1},
		{"GET", "/m1/object/2.m4s", "192.0.2.1:2", "A", 1},
		{"GET", "/m1/object/2.m4s", "192.0.2.1:2", "B", 2},
		{"GET", "/m1/object/2.m4s", "192.0.2.2:2", "B", 3},
	} {
		req := httptest.NewRequestWithContext(t.Context(), ask.method, "/"+id+ask.path, nil)
		req.RemoteAddr = ask.address
		req.Header.Set("User-Agent", ask.player)
		h.ServeHTTP(httptest.NewRecorder(), req)
		if got := r.Now(time.Now())[watching.Key(id)].Count(); got != ask.want {
			t.Errorf("%d watch after %v", got, ask)
		}
	}
}

// TestCountingAllocatesNothing: what is counted of a segment costs no allocation.
func TestCountingAllocatesNothing(t *testing.T) { //nolint:paralleltest // AllocsPerRun
	var m metering.Meter
	serving := func(s *source, r *watching.Register) float64 {
		h := playback.New(playback.Options{Source: s, Watching: r, Logger: slog.New(slog.DiscardHandler)})
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+id+"/m1/object/1.m4s", nil)
		req.Header.Set("User-Agent", "player")
		w := &nowhere{http.Header{}}
		least := math.Inf(1) // a sync.Pool forgets at random under the race detector
		for range 1000 {
			least = min(least, testing.AllocsPerRun(1, func() {
				clear(w.header)
				h.ServeHTTP(w, req)
			}))
		}
		return least
	}
	plain := serving(&source{}, nil)
	if counted := serving(&source{meter: m.Counter(metering.Asset{ID: "a"})}, &watching.Register{}); counted > plain {
		t.Errorf("%v allocations for a segment, %v without counting", counted, plain)
	}
	if m.Take()[metering.Asset{ID: "a"}][metering.Tier720] < 1000*10*time.Second {
		t.Error("it is not counted")
	}
}

// nowhere is a response that nobody reads.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) WriteHeader(int)             {}
func (n *nowhere) Write(p []byte) (int, error) { return len(p), nil }
