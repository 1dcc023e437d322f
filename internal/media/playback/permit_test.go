package playback_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/playback"
)

const below = "/" + id + "/signed-x.1"

// TestPermitsAndCaches: what was sent for a token is kept by nobody, and what is below its path only as long as that is
// good.
func TestPermitsAndCaches(t *testing.T) {
	t.Parallel()
	token := playback.Permit{Signed: true, Path: "signed-x.1"}
	path := playback.Permit{Signed: true, Path: "signed-x.1", Until: time.Now().Add(30 * time.Second), Shared: true}
	long, restricted, over := path, path, path
	long.Until, restricted.Shared, over.Until = time.Now().Add(1e9*time.Second), false, time.Now().Add(-time.Second)
	for name, tt := range map[string]struct {
		permit playback.Permit
		want   map[string]string // a pattern by path
	}{
		"public": {playback.Permit{}, map[string]string{
			"/" + id: "public, max-age=1", "/" + id + "/m1/v/7.m4s": "public, max-age=31536000, immutable",
			"/" + id + "/thumbnail.jpg": "public, max-age=7",
		}},
		"token": {token, map[string]string{
			"/" + id + ".m3u8?token=a": "private, no-store", "/" + id + "/text/t1.vtt?token=a": "private, no-store",
			"/" + id + "/thumbnail.jpg?token=a": "private, no-store",
			"/" + id + "/m1/v/7.m4s?token=a":    "private, no-store",
		}},
		"path": {path, map[string]string{
			below + "/m1/v.m3u8": "public, max-age=1", below + "/m1/v/7.m4s": "public, max-age=(29|30), immutable",
			below + "/text/t1.vtt": "public, max-age=(29|30)",
		}},
		"long path": {long, map[string]string{below + "/m1/v/7.m4s": "public, max-age=31536000, immutable"}},
		"restricted": {
			restricted,
			map[string]string{
				below + "/m1/v.m3u8":  "private, max-age=1",
				below + "/m1/v/7.m4s": "private, max-age=(29|30), immutable",
			},
		},
		"over": {over, map[string]string{below + "/m1/v/7.m4s": "public, max-age=0, immutable"}},
	} {
		for path, want := range tt.want {
			got := serve(t, &source{permit: tt.permit}, http.MethodGet, path, nil)
			if c := got.Header.Get("Cache-Control"); got.StatusCode != http.StatusOK ||
				!regexp.MustCompile("^"+want+"$").MatchString(c) {
				t.Errorf("%s: %s: %d, %s, want %s", name, path, got.StatusCode, c, want)
			}
		}
	}
}

// deaf is a viewer who is gone when the response comes.
type deaf struct{ *httptest.ResponseRecorder }

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestNoPermitInTheLog: neither a token nor the path that it was exchanged for is logged: either lets in who reads it.
func TestNoPermitInTheLog(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source *source
		path   string
		want   string
	}{
		"failed, path":  {&source{err: io.ErrUnexpectedEOF}, below + "/m1/v.m3u8", "/" + id + "/signed-…/m1/v.m3u8"},
		"failed, token": {&source{err: io.ErrUnexpectedEOF}, "/" + id + ".m3u8?token=secret", "/" + id + ".m3u8"},
		"gone, path":    {&source{}, below + "/m1/v.m3u8", "/" + id + "/signed-…/m1/v.m3u8"},
		"gone, token":   {&source{}, "/" + id + ".m3u8?token=secret", "/" + id + ".m3u8"},
	} {
		var log strings.Builder
		logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		h := playback.New(playback.Options{Source: tt.source, Logger: logger})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, tt.path, nil)
		h.ServeHTTP(deaf{httptest.NewRecorder()}, r)
		got := log.String()
		secret := strings.Contains(got, "secret") || strings.Contains(got, "signed-x")
		if !strings.Contains(got, `"path":"`+tt.want+`"`) || secret {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestSignedPlaylists: URIs are below the path, without token and modifiers, and only what a token says holds.
func TestSignedPlaylists(t *testing.T) {
	t.Parallel()
	permit := playback.Permit{Signed: true, Path: "signed-x.1", Query: "exclude_pdt=true"}
	s := &source{permit: permit}
	got := text(t, serve(t, s, http.MethodGet, "/"+id+".m3u8?token=secret&asset_start_time=nonsense", nil))
	for _, want := range []string{"\n" + id + "/signed-x.1/m1/v.m3u8\n", `URI="` + id + `/signed-x.1/m1/a.m3u8"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Contains(got, "?") {
		t.Errorf("has a query:\n%s", got)
	}
	permit.Until = time.Now().Add(time.Hour)
	s = &source{permit: permit, playlist: func(_ string, r playback.Reload, _ bool) (playback.Text, error) {
		if r.MSN != 7 || r.Part != 2 || !r.Skip || r.Clip != (playback.Clip{}) {
			t.Errorf("asked for %+v", r)
		}
		return playback.Text{
			Data: []byte("#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:x\n#EXT-X-RENDITION-REPORT:URI=\"a.m3u8\"\n"),
		}, nil
	}}
	got = text(t,
		serve(t, s, http.MethodGet,
			below+"/m1/v.m3u8?_HLS_msn=7&_HLS_part=2&_HLS_skip=YES&low_latency=false&asset_start_time=5", nil))
	if got != "#EXTM3U\n#EXT-X-RENDITION-REPORT:URI=\"a.m3u8\"\n" {
		t.Error(got)
	}
	image := text(t, serve(t, &source{permit: playback.Permit{Signed: true, Query: "time=3&width=640"}}, http.MethodGet,
		"/"+id+"/thumbnail.webp?token=a&width=3840&program_time=5&format=webp&height=9", nil))
	if want := "thumbnail.webp format=webp&program_time=5&time=3&width=640 "; !strings.HasPrefix(image, want) {
		t.Errorf("asked for %q, want %q", image, want)
	}
}

// TestStoryboardBelowAPath: the pictures of a storyboard are those of the stretch that the token allows, by either kind
// of time.
func TestStoryboardBelowAPath(t *testing.T) {
	t.Parallel()
	const asset, program = "asset_end_time=20&asset_start_time=10", "program_end_time=1020&program_start_time=1010"
	for _, tt := range [][3]string{ // what the token says, what is asked for, what is given
		{"", asset, asset},
		{"", program, program},
		{asset, "asset_start_time=5&asset_end_time=15.5", "asset_end_time=15.5&asset_start_time=10"},
		{asset, "asset_start_time=12&asset_end_time=99", "asset_end_time=20&asset_start_time=12"},
		{program, "program_start_time=1005&program_end_time=1015.5", "program_end_time=1015.5&program_start_time=1010"},
		{program, "program_start_time=1012&program_end_time=1099", "program_end_time=1020&program_start_time=1012"},
		{
			"program_start_time=1010", "program_start_time=1010&program_end_time=1015.5",
			"program_end_time=1015.5&program_start_time=1010",
		},
	} {
		permit := playback.Permit{Signed: true, Path: "signed-x.1", Until: time.Now().Add(time.Hour), Query: tt[0]}
		got := text(t, serve(t, &source{permit: permit}, http.MethodGet, below+"/storyboard.jpg?"+tt[1], nil))
		if want := "storyboard.jpg " + tt[2] + " "; !strings.HasPrefix(got, want) {
			t.Errorf("%q below %q: asked for %q, want %q", tt[1], tt[0], got, want)
		}
	}
}

// TestRequests: what the source is asked about a request.
func TestRequests(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]playback.Request{
		"/" + id:                                   {},
		"/" + id + "?token=":                       {Tokens: []string{""}},
		"/" + id + ".m3u8?token=a.b-c_d":           {Tokens: []string{"a.b-c_d"}},
		"/" + id + ".m3u8?token=a&x=y&token=b":     {Tokens: []string{"a", "b"}},
		"/" + id + ".m3u8?t%6Fken=a&token=b":       {Tokens: []string{"a", "b"}},
		"/" + id + ".m3u8?Token=a&xtoken=b":        {},
		"/" + id + "/thumbnail.jpg?token=a":        {Tokens: []string{"a"}, Use: playback.ToThumbnail},
		"/" + id + "/thumbnail.png":                {Use: playback.ToThumbnail},
		"/" + id + "/thumbnail.webp":               {Use: playback.ToThumbnail},
		"/" + id + "/animated.gif":                 {Use: playback.ToAnimated},
		"/" + id + "/animated.webp":                {Use: playback.ToAnimated},
		"/" + id + "/storyboard.jpg":               {Use: playback.ToStoryboard},
		"/" + id + "/storyboard.png":               {Use: playback.ToStoryboard},
		"/" + id + "/storyboard.webp":              {Use: playback.ToStoryboard},
		"/" + id + "/storyboard.vtt":               {Use: playback.ToStoryboard},
		"/" + id + "/storyboard.json":              {Use: playback.ToStoryboard},
		"/" + id + "/metadata.json":                {},
		"/" + id + "/thumbnail.mp4":                {},
		"/" + id + "/animated.m4a":                 {},
		"/" + id + "/m1/tiles.m3u8":                {},
		"/" + id + "/m1/storyboard.jpg":            {},
		"/" + id + "/thumbnail.jpg/v.m3u8":         {},
		"/" + id + "/text/t1.txt":                  {},
		"/" + id + "/high.mp4":                     {},
		"/" + id + "/text/thumbnail.vtt":           {},
		"/" + id + "/m1/v/7.m4s":                   {},
		below + "/m1/v.m3u8?_HLS_msn=1":            {Path: "signed-x.1"},
		below + "/m1/v/7.m4s":                      {Path: "signed-x.1"},
		below + "/text/t1.vtt":                     {Path: "signed-x.1"},
		below + "/metadata.json":                   {Path: "signed-x.1"},
		below + "/m1/tiles.m3u8":                   {Path: "signed-x.1"},
		below + "/storyboard.jpg?asset_end_time=5": {Path: "signed-x.1", Use: playback.ToStoryboard},
	} {
		s := &source{}
		serve(t, s, http.MethodGet, target, http.Header{"Referer": {"https://a.test/"}, "User-Agent": {"player"}})
		if len(s.requests) != 1 {
			t.Errorf("%s: asked %d times", target, len(s.requests))
			continue
		}
		got := s.requests[0]
		if got.PlaybackID != id || got.Path != want.Path || got.Use != want.Use ||
			!slices.Equal(got.Tokens, want.Tokens) ||
			!slices.Equal(got.Referrers, []string{"https://a.test/"}) ||
			!slices.Equal(got.UserAgents, []string{"player"}) {
			t.Errorf("%s: %+v", target, got)
		}
	}
	for _, target := range []string{
		below, below + "/", below + ".m3u8", below + "/thumbnail.jpg", below + "/animated.gif", below + "/high.mp4",
		below + "/x", below + "/../m1/v.m3u8",
		below + "//m1/v.m3u8", "/" + id + "/signed-/m1/v/7.m4s/x", "/signed-x.1/" + id + "/m1/v.m3u8",
	} {
		s := &source{permit: playback.Permit{Signed: true, Path: "signed-x.1", Until: time.Now().Add(time.Hour)}}
		if got := serve(t, s, http.MethodGet, target, nil); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", target, got.StatusCode)
		}
	}
}

func TestCarried(t *testing.T) {
	t.Parallel()
	all := url.Values{
		"max_resolution":   {"720p"},
		"asset_start_time": {"3"},
		"width":            {"640"},
		"low_latency":      {"false"},
		"rendition_order":  {"desc"},
	}
	for use, want := range map[playback.Use]string{
		playback.ToWatch:      "asset_start_time=3&low_latency=false&max_resolution=720p",
		playback.ToStoryboard: "asset_start_time=3",
	} {
		if got := playback.Carried(all, use); got != want {
			t.Errorf("%s: %q, want %q", strconv.Itoa(int(use)), got, want)
		}
	}
}

// TestNamesOfNothing: a name that is not in the list of names is not found, with any token and without one, and the
// permit is never consulted: a spelling that resembles an image's name doesn't make the token of an image enough.
func TestNamesOfNothing(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"", "thumbnail", "thumbnail.", "thumbnail.jpeg", "thumbnail.gif", "thumbnail.JPG", "Thumbnail.jpg",
		"thumbnail.jpg.png", "thumbnail.jpg.m3u8", "thumbnail.vtt", "thumbnail.json", "thumbnails.jpg", ".jpg",
		"animated", "animated.jpg", "animated.png", "animated.GIF",
		"storyboard", "storyboard.gif", "storyboard.txt", "storyboard.vtt.json",
		"metadata", "metadata.", "metadata.JSON", "metadata.jsonl", "metadata.xml", "metadata.json.jpg",
		"Metadata.json",
		"chapters.json", "key.bin", "t1.vtt", "7.m4s", "v.m3u8", "text", "text.vtt", "m1", "signed", "a.b.c",
	} {
		for _, in := range []string{"/" + id + "/", below + "/"} {
			s := &source{}
			got := serve(t, s, http.MethodGet, in+name, nil)
			if got.StatusCode != http.StatusNotFound || len(s.requests) > 0 {
				t.Errorf("%s%s: %d, asked %+v", in, name, got.StatusCode, s.requests)
			}
		}
	}
}
