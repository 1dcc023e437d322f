package watch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/web/static/statictest"
)

// hostile is a title that would like to be more than a text.
const hostile = `</title><script>alert(1)</script>"' onclick=x {{.}} ` + "\u202e"

// described knows some playback IDs.
func described(_ context.Context, v Viewer) (About, error) {
	switch v.PlaybackID {
	case "titled":
		return About{Title: hostile, State: Ended, Recording: "recorded"}, nil
	case "asset":
		return About{State: Video}, nil
	case "idle":
		return About{State: Idle}, nil
	case "signed":
		if slices.Equal(v.Tokens, []string{"right"}) && slices.Equal(v.UserAgents, []string{"Test"}) {
			return About{Title: "Secret", State: OnAir}, nil
		}
		return About{}, fault.New(fault.Denied, "no")
	case "away":
		return About{}, fault.New(fault.Unavailable, "the database is away")
	}
	return About{}, fault.New(fault.NotFound, "there is none")
}

func everybody() http.Handler { return Handler(Options{Describe: described}) }

// TestTitle checks that each page has its title, as a text, for those who may watch.
func TestTitle(t *testing.T) {
	t.Parallel()
	h := everybody()
	for target, want := range map[string]struct{ title, heading, state, recording string }{
		"titled":                         {hostile, hostile, "ended", "recorded"},
		"asset":                          {"Video · Millrace", "Video", "video", ""},
		"idle":                           {"Live stream · Millrace", "Live stream", "idle", ""},
		"signed?token=right":             {"Secret", "Secret", "live", ""},
		"signed?token=wrong":             {"Private video · Millrace", "Private video", "", ""},
		"signed":                         {"Private video · Millrace", "Private video", "", ""},
		"signed?token=right&token=right": {"Private video · Millrace", "Private video", "", ""},
		"away":                           {"Video · Millrace", "Video", "", ""},
		"unknown":                        {"Video · Millrace", "Video", "", ""},
	} {
		for _, under := range []string{"/watch/", "/embed/"} {
			page := statictest.Get(t, h, "GET", under+target, "User-Agent", "Test").Body.String()
			for what, want := range map[string]string{
				`<title>(.*?)</title>`: want.title, `<h1[^>]*>(.*?)</h1>`: want.heading,
				`data-about="(.*?)"`: want.state, `data-recording="(.*?)"`: want.recording,
			} {
				found := regexp.MustCompile(what).FindStringSubmatch(page)
				if len(found) != 2 || html.UnescapeString(found[1]) != want {
					t.Errorf("%s%s: %s is %q, want %q", under, target, what, found, want)
				}
			}
			if strings.Contains(page, "<script>") {
				t.Errorf("%s%s: the title became more than a text: %s", under, target, page)
			}
		}
	}
}

// TestAbout checks what the page is told after the end of a broadcast.
func TestAbout(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]struct {
		status int
		body   string
	}{
		"idle/about":               {200, `{"state":"idle"}`},
		"signed/about?token=right": {200, `{"title":"Secret","state":"live"}`},
		"signed/about":             {403, "Forbidden\n"},
		"unknown/about":            {404, "Not Found\n"},
		"away/about":               {503, "Service Unavailable\n"},
	} {
		res := statictest.Get(t, everybody(), "GET", "/watch/"+target, "User-Agent", "Test")
		if res.Code != want.status || res.Body.String() != want.body {
			t.Errorf("%s: %d %q, want %d %q", target, res.Code, res.Body, want.status, want.body)
		}
		if c := res.Header().Get("Cache-Control"); want.status == 200 && c != "private, no-cache" {
			t.Errorf("%s: Cache-Control %q", target, c)
		}
	}
	res := statictest.Get(t, everybody(), "GET", "/watch/titled/about")
	var got About
	want := About{Title: hostile, State: Ended, Recording: "recorded"}
	if err := json.Unmarshal(res.Body.Bytes(), &got); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if res = statictest.Get(t, Handler(Options{}), "GET", "/watch/idle/about"); res.Code != 404 {
		t.Errorf("nothing is known: status %d, want 404", res.Code)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	statictest.Status(t, everybody(), map[string]statictest.Want{
		"page":             {Method: "GET", Target: "/watch/abcDEF0123-_", Status: 200},
		"page with token":  {Method: "GET", Target: "/watch/abc?token=x.y.z", Status: 200},
		"head":             {Method: "HEAD", Target: "/watch/abc", Status: 200},
		"post":             {Method: "POST", Target: "/watch/abc", Status: 405},
		"slash":            {Method: "GET", Target: "/watch/abc/?token=x", Status: 301, Location: "../abc?token=x"},
		"no id":            {Method: "GET", Target: "/watch/", Status: 404},
		"outside":          {Method: "GET", Target: "/other/abc", Status: 404},
		"odd id":           {Method: "GET", Target: "/watch/a%3Cscript%3E", Status: 404},
		"long id":          {Method: "GET", Target: "/watch/" + strings.Repeat("a", 129), Status: 404},
		"nested":           {Method: "GET", Target: "/watch/a/b", Status: 404},
		"about nothing":    {Method: "GET", Target: "/watch/about/about", Status: 404},
		"about an odd id":  {Method: "GET", Target: "/watch/a%3Cscript%3E/about", Status: 404},
		"about, head":      {Method: "HEAD", Target: "/watch/idle/about", Status: 200},
		"about, post":      {Method: "POST", Target: "/watch/idle/about", Status: 405},
		"embed":            {Method: "GET", Target: "/embed/abc?autoplay&muted=1&start=1m30s&token=x.y.z", Status: 200},
		"embed, head":      {Method: "HEAD", Target: "/embed/abc", Status: 200},
		"embed, post":      {Method: "POST", Target: "/embed/abc", Status: 405},
		"embed, slash":     {Method: "GET", Target: "/embed/abc/?start=5", Status: 301, Location: "../abc?start=5"},
		"embed nothing":    {Method: "GET", Target: "/embed/", Status: 404},
		"embed an odd id":  {Method: "GET", Target: "/embed/a%3Cscript%3E", Status: 404},
		"embed, nested":    {Method: "GET", Target: "/embed/abc/about", Status: 404},
		"script":           {Method: "GET", Target: "/watch/assets/watch.js", Status: 200},
		"module":           {Method: "GET", Target: "/watch/assets/controls.js", Status: 200},
		"unknown asset":    {Method: "GET", Target: "/watch/assets/other.js", Status: 404},
		"page is no asset": {Method: "GET", Target: "/watch/assets/watch.html", Status: 404},
		"folder":           {Method: "GET", Target: "/watch/assets/", Status: 404},
		"upwards":          {Method: "GET", Target: "/watch/assets/../../watch.go", Status: 404},
	})
}

func TestPageIsClosed(t *testing.T) {
	t.Parallel()
	statictest.Closed(t, everybody(), "/watch/abc", 2, 11)
	statictest.Closed(t, everybody(), "/embed/abc", 2, 11, "frame-ancestors *")
	if c := statictest.Get(t, everybody(), "GET", "/watch/assets/watch.js?v=old").Header().
		Get("Cache-Control"); c != "no-cache" {
		t.Errorf("another version: Cache-Control %q", c)
	}
}

// TestModules checks that what a module imports has an address that changes with the content, as what the page names.
func TestModules(t *testing.T) {
	t.Parallel()
	imported := regexp.MustCompile(`from '\./([^']+)'`)
	for _, name := range []string{"watch.js", "storyboard.js"} {
		script := statictest.Get(t, everybody(), "GET", "/watch/assets/"+name).Body.String()
		found := imported.FindAllStringSubmatch(script, -1)
		if len(found) == 0 {
			t.Errorf("%s imports nothing", name)
		}
		for _, m := range found {
			res := statictest.Get(t, everybody(), "GET", "/watch/assets/"+m[1])
			if c := res.Header().Get("Cache-Control"); res.Code != 200 || !strings.Contains(c, "immutable") {
				t.Errorf("%s imports %s: %d, %q", name, m[1], res.Code, c)
			}
		}
	}
}

func TestCaching(t *testing.T) {
	t.Parallel()
	h := everybody()
	for _, coding := range []string{"", "gzip"} {
		first := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding)
		etag := first.Header().Get("ETag")
		for _, have := range []string{etag, `"x", W/` + etag, "*"} {
			if res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding,
				"If-None-Match", have); res.Code != 304 {
				t.Errorf("%q If-None-Match %s: status %d, want 304", coding, have, res.Code)
			}
		}
		if res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", coding, "If-None-Match",
			`"x"`); res.Code != 200 {
			t.Errorf("%q other ETag: status %d, want 200", coding, res.Code)
		}
	}
}

func TestGzip(t *testing.T) {
	t.Parallel()
	h := everybody()
	plain := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js").Body.Bytes()
	for accept, want := range map[string]bool{
		"gzip": true, "gzip, br": true, "br, GZIP;q=0.5": true, "*": true, "": false, "br": false, "gzip;q=0": false,
		"gzip; q=0.0": false,
	} {
		res := statictest.Get(t, h, "GET", "/watch/assets/hls.min.js", "Accept-Encoding", accept)
		b := res.Body.Bytes()
		if got := res.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: gzip %t, want %t", accept, got, want)
			continue
		}
		if want {
			z, err := gzip.NewReader(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if b, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(b, plain) {
			t.Errorf("Accept-Encoding %q: another body", accept)
		}
	}
}
