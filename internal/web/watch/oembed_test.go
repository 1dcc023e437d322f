package watch

import (
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/web/static/statictest"
)

const public = "https://Video.example/tv"

// asked is the address under which oEmbed is asked for a link; more are further parameters.
func asked(link string, more ...string) string {
	return OEmbedPath + "?url=" + url.QueryEscape(link) + strings.Join(append([]string{""}, more...), "&")
}

// TestOEmbed checks a whole response.
func TestOEmbed(t *testing.T) {
	t.Parallel()
	h := elsewhere(public)
	res := statictest.Get(t, h, "GET", asked(public+"/watch/wide?token=x&start=1m30s", "format=json"))
	var got map[string]any
	if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || res.Code != 200 {
		t.Fatalf("%d %s: %v", res.Code, res.Body, err)
	}
	frame, _ := got["html"].(string)
	delete(got, "html")
	want := map[string]any{
		"type": "video", "version": "1.0", "title": hostile, "provider_name": "Millrace", "provider_url": public,
		"width": 640.0, "height": 360.0, "thumbnail_url": public + "/wide/thumbnail.jpg?height=360&width=640",
		"thumbnail_width": 640.0, "thumbnail_height": 360.0,
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	found := regexp.MustCompile(`^<iframe src="https://Video\.example/tv/embed/wide\?start=1m30s" ` +
		`width="640" height="360" title="([^"]*)" style="border: 0" allow="[a-z; -]+" ` +
		`allowfullscreen></iframe>$`).FindStringSubmatch(frame)
	if found == nil || html.UnescapeString(found[1]) != hostile || strings.ContainsAny(found[1], "<>'") {
		t.Errorf("html is %s", frame)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Access-Control-Allow-Origin": "*", "X-Content-Type-Options": "nosniff",
		"Cache-Control": "public, max-age=60",
	} {
		if res.Header().Get(name) != value {
			t.Errorf("%s: %q, want %q", name, res.Header().Get(name), value)
		}
	}
	head := statictest.Get(t, h, "HEAD", asked(public+"/watch/wide"))
	if head.Code != 200 || head.Body.Len() > 0 {
		t.Errorf("HEAD: %d with %d bytes", head.Code, head.Body.Len())
	}
	preflight := statictest.Get(t, h, "OPTIONS", OEmbedPath)
	if preflight.Code != 204 || preflight.Header().Get("Access-Control-Allow-Methods") != "GET, HEAD, OPTIONS" {
		t.Errorf("preflight: %d %v", preflight.Code, preflight.Header())
	}
}

// TestOEmbedSizes checks that players and pictures have the video's shape and fit into what was asked for.
func TestOEmbedSizes(t *testing.T) {
	t.Parallel()
	h := elsewhere(public)
	type sizes struct {
		Width           int `json:"width"`
		Height          int `json:"height"`
		ThumbnailWidth  int `json:"thumbnail_width"`
		ThumbnailHeight int `json:"thumbnail_height"`
	}
	for target, want := range map[string]sizes{
		asked(public + "/watch/wide"):                                     {640, 360, 640, 360},
		asked(public+"/watch/wide", "maxwidth=320"):                       {320, 180, 320, 180},
		asked(public+"/watch/wide", "maxheight=90"):                       {160, 90, 160, 90},
		asked(public+"/watch/wide", "maxwidth=320", "maxheight=90"):       {160, 90, 160, 90},
		asked(public+"/watch/wide", "maxwidth=1"):                         {1, 1, 1, 1},
		asked(public+"/watch/wide", "maxwidth=9999999"):                   {1920, 1080, 1280, 720},
		asked(public+"/watch/recorded", "maxwidth=1600"):                  {1600, 900, 1280, 720}, // no larger
		asked(public+"/watch/tall", "maxwidth=1000", "maxheight=640"):     {360, 640, 360, 640},
		asked(public + "/watch/sound"):                                    {640, 360, 0, 0},
		asked(public + "/watch/live"):                                     {640, 360, 0, 0}, // nor is its size known
		asked(public+"/embed/idle", "maxwidth=480", "maxheight=99999999"): {480, 270, 0, 0},
	} {
		res := statictest.Get(t, h, "GET", target)
		var got sizes
		if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || got != want {
			t.Errorf("%s: %+v, want %+v (%v)", target, got, want, err)
		}
		if has := strings.Contains(res.Body.String(), "thumbnail"); has != (want.ThumbnailWidth > 0) {
			t.Errorf("%s: %s", target, res.Body)
		}
	}
}

// TestOEmbedStatus checks what is responded to, and how the rest is refused, always as JSON that every site may read.
func TestOEmbedStatus(t *testing.T) {
	t.Parallel()
	h := elsewhere(public)
	for target, want := range map[string]int{
		asked(public + "/watch/wide"):                               200,
		asked(public + "/watch/wide/"):                              200,
		asked(public + "/embed/wide?autoplay"):                      200,
		asked("http://video.EXAMPLE/tv/watch/wide"):                 200, // who pastes it may not know TLS
		asked("https://video.example:443/tv/watch/wide"):            200,
		asked(public+"/watch/wide", "format="):                      200,
		asked(public + "/watch/unknown"):                            404,
		asked(public + "/watch/errored"):                            404,
		asked(public + "/watch/"):                                   404,
		asked(public + "/watch/wide/about"):                         404,
		asked(public + "/watch/assets/watch.js"):                    404,
		asked(public + "/docs"):                                     404,
		asked("https://video.example/watch/wide"):                   404, // another service's on the same host
		asked("https://video.example:8443/tv/watch/wide"):           404,
		asked("https://other.example/tv/watch/wide"):                404,
		asked("https://video.example@other.example/tv/watch/wide"):  404,
		asked("https://x@video.example/tv/watch/wide"):              404,
		asked("javascript://video.example/tv/watch/wide"):           404,
		asked("//video.example/tv/watch/wide"):                      404,
		asked("/tv/watch/wide"):                                     404,
		asked("wide"):                                               404,
		asked("https://video.example/tv/watch/%zz"):                 404,
		asked(public + "/watch/%3Cscript%3E"):                       404,
		asked(public + "/watch/signed"):                             401,
		asked(public + "/watch/signed?token=right"):                 401, // a token is not passed on
		asked(public + "/watch/closed"):                             401,
		asked(public + "/watch/unframed"):                           503,
		asked(public + "/watch/away"):                               503,
		asked(public+"/watch/wide", "format=xml"):                   501,
		asked(public+"/watch/wide", "format=JSON5"):                 501,
		asked(public+"/watch/wide", "maxwidth=0"):                   400,
		asked(public+"/watch/wide", "maxwidth=-1"):                  400,
		asked(public+"/watch/wide", "maxheight=1e3"):                400,
		asked(public+"/watch/wide", "maxheight="):                   400,
		asked(public+"/watch/wide", "url=twice"):                    400,
		asked(public + "/watch/wide?x=" + strings.Repeat("x", 2e3)): 200,
		asked(public + "/watch/wide?x=" + strings.Repeat("x", 4e3)): 400,
		asked(""):                 400,
		OEmbedPath:                400,
		OEmbedPath + "?url=%zz":   400,
		OEmbedPath + "/?url=wide": 404,
	} {
		res := statictest.Get(t, h, "GET", target, "User-Agent", "Test")
		if res.Code != want {
			t.Errorf("%s: %d %s, want %d", target, res.Code, res.Body, want)
		}
		if strings.HasPrefix(target, OEmbedPath+"/") {
			continue
		}
		if !json.Valid(res.Body.Bytes()) || res.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %v %s", target, res.Header(), res.Body)
		}
		if want != 200 && regexp.MustCompile("Secret|Closed|Errored").MatchString(res.Body.String()) {
			t.Errorf("%s tells a title: %s", target, res.Body)
		}
	}
	res := statictest.Get(t, h, "POST", OEmbedPath)
	if res.Code != 405 || res.Header().Get("Allow") == "" {
		t.Errorf("POST: %d %v", res.Code, res.Header())
	}
	res = statictest.Get(t, Handler(Options{Describe: shared}), "GET", asked("https:///watch/wide"))
	if res.Code != 404 {
		t.Errorf("without an address of its own: %d", res.Code)
	}
}

// FuzzOEmbed asks for any address: no title or picture of what is not for everybody is told.
func FuzzOEmbed(f *testing.F) {
	for _, link := range []string{
		public + "/watch/wide", public + "/embed/signed?token=right", "https://[::1]/x", "%", "",
	} {
		f.Add(link)
	}
	h := elsewhere(public)
	f.Fuzz(func(t *testing.T, link string) {
		res := statictest.Get(t, h, "GET", asked(link))
		if !json.Valid(res.Body.Bytes()) || strings.Contains(res.Body.String(), "Secret") {
			t.Errorf("%q: %d %s", link, res.Code, res.Body)
		}
	})
}
