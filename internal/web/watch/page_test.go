package watch

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/web/static/statictest"
)

// TestFramers checks that each page says who may embed it: where that can't be found out nobody may, and a frame of
// which nothing is known may say that.
func TestFramers(t *testing.T) {
	t.Parallel()
	h := Handler(Options{Framers: func(_ context.Context, id string) (string, error) {
		switch id {
		case "away":
			return "", fault.New(fault.Unavailable, "the database is away")
		case "unknown":
			return "", fault.New(fault.NotFound, "there is none")
		}
		return map[string]string{"closed": "'none'", "some": "https://a.example https://*.b.example"}[id], nil
	}})
	for target, want := range map[string]string{
		"/watch/closed":  "; frame-ancestors 'none'",
		"/watch/some":    "; frame-ancestors https://a.example https://*.b.example",
		"/watch/open":    "",
		"/watch/away":    "; frame-ancestors 'none'",
		"/watch/unknown": "; frame-ancestors 'none'",
		"/embed/closed":  "; frame-ancestors 'none'",
		"/embed/some":    "; frame-ancestors https://a.example https://*.b.example",
		"/embed/open":    "; frame-ancestors *",
		"/embed/away":    "; frame-ancestors 'none'",
		"/embed/unknown": "; frame-ancestors *",
	} {
		head := statictest.Get(t, h, "GET", target).Header()
		if got := head.Get("Content-Security-Policy"); got != policy+want {
			t.Errorf("%s: %q", target, got)
		}
		if got := head.Get("X-Frame-Options"); got != "" {
			t.Errorf("%s: X-Frame-Options %q", target, got)
		}
		if got := head.Get("Referrer-Policy"); got != "no-referrer" {
			t.Errorf("%s: Referrer-Policy %q", target, got)
		}
	}
	head := statictest.Get(t, everybody(), "GET", "/embed/asset").Header()
	if got := head.Get("Content-Security-Policy"); got != policy+"; frame-ancestors *" {
		t.Errorf("without rules: %q", got)
	}
}

// TestEmbed checks that the embed page is the player alone, with all that the player needs.
func TestEmbed(t *testing.T) {
	t.Parallel()
	ids := regexp.MustCompile(` id="([^"]+)"`)
	of := func(target string) (out map[string]int) {
		out = map[string]int{}
		page := statictest.Get(t, everybody(), "GET", target).Body.String()
		for _, found := range ids.FindAllStringSubmatch(page, -1) {
			out[found[1]]++
		}
		return out
	}
	watch, embed := of("/watch/asset"), of("/embed/asset")
	for name := range watch {
		if embed[name] != 1 {
			t.Errorf("the embed page has %d of #%s, which the player looks for", embed[name], name)
		}
	}
	page := statictest.Get(t, everybody(), "GET", "/embed/asset").Body.String()
	if strings.Contains(page, `class="about"`) || !strings.Contains(page, `<body class="embed"`) {
		t.Errorf("there is a page around the player: %s", page)
	}
}

// TestPoster checks that the embed page names a picture only where everybody may see one.
func TestPoster(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		about About
		want  string
	}{
		"asset":         {About{State: Video, Public: true, Width: 16, Height: 9}, "x/thumbnail.jpg"},
		"sound":         {About{State: Video, Public: true}, ""},
		"signed":        {About{State: Video, Width: 16, Height: 9}, ""},
		"live":          {About{State: OnAir, Public: true}, "x/thumbnail.jpg"},
		"live, signed":  {About{State: OnAir}, ""},
		"idle":          {About{State: Idle, Public: true}, ""},
		"ended":         {About{State: Ended, Public: true, Width: 16, Height: 9}, ""},
		"recorded":      {About{State: Ended, Public: true, Recording: "r"}, "r/thumbnail.jpg"},
		"recorded only": {About{State: Ended, Recording: "r"}, ""}, // nothing of what is signed
	} {
		h := Handler(Options{Describe: func(context.Context, Viewer) (About, error) { return tt.about, nil }})
		want := ""
		if tt.want != "" {
			want = "../" + tt.want + "?height=1280&amp;width=1280"
		}
		page := statictest.Get(t, h, "GET", "/embed/x").Body.String()
		if !strings.Contains(page, `data-poster="`+want+`"`) {
			t.Errorf("%s: want %q in %s", name, want, page)
		}
	}
}
