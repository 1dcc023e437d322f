package watch

import (
	"context"
	"html"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/web/static/statictest"
)

// shared knows playback IDs that are shown to other sites, and some that are not.
func shared(ctx context.Context, v Viewer) (About, error) {
	switch v.PlaybackID {
	case "wide":
		return About{Title: hostile, State: Video, Public: true, Width: 3840, Height: 2160}, nil
	case "tall":
		return About{Title: "Tall", State: Video, Public: true, Width: 1080, Height: 1920}, nil
	case "sound":
		return About{Title: "Sound", State: Video, Public: true}, nil
	case "live":
		return About{State: OnAir, Public: true}, nil
	case "idle":
		return About{Title: "Soon", State: Idle, Public: true}, nil
	case "recorded":
		return About{Title: "Over", State: Ended, Public: true, Recording: "rec", Width: 1280, Height: 720}, nil
	case "closed", "unframed":
		return About{Title: "Closed", State: Video, Public: true, Width: 1280, Height: 720}, nil
	case "errored":
		return About{Title: "Errored", State: Video}, nil
	}
	return described(ctx, v)
}

// elsewhere is the pages of a service with an address, as other sites see them.
func elsewhere(base string) http.Handler {
	framers := func(_ context.Context, id string) (string, error) {
		switch id {
		case "closed":
			return "'none'", nil
		case "unframed":
			return "", fault.New(fault.Unavailable, "the database is away")
		case "tall":
			return "https://a.example", nil
		}
		return "", nil
	}
	return Handler(Options{Describe: shared, PublicURL: base, Framers: framers})
}

var (
	tag  = regexp.MustCompile(`<meta (?:property|name)="((?:og|twitter):[^"]+)" content="([^"]*)">`)
	link = regexp.MustCompile(`<link rel="(canonical|alternate)"[^>]* href="([^"]*)"`)
)

// told gives the tags of a page that are for other sites, as they read them, beside its whole text.
func told(t *testing.T, h http.Handler, target string) (tags map[string]string, page string) {
	t.Helper()
	page = statictest.Get(t, h, "GET", target, "User-Agent", "Test").Body.String()
	tags = map[string]string{}
	for _, found := range append(tag.FindAllStringSubmatch(page, -1), link.FindAllStringSubmatch(page, -1)...) {
		if _, twice := tags[found[1]]; twice {
			t.Errorf("%s: %s is there twice", target, found[1])
		}
		tags[found[1]] = html.UnescapeString(found[2])
	}
	return tags, page
}

// TestCard checks all tags of a link that shows all there is.
func TestCard(t *testing.T) {
	t.Parallel()
	const base = "https://video.example/tv"
	const image = base + "/wide/thumbnail.jpg?height=1280&width=1280"
	want := map[string]string{
		"canonical": base + "/watch/wide",
		"alternate": base + "/oembed?url=https%3A%2F%2Fvideo.example%2Ftv%2Fwatch%2Fwide",

		"og:site_name": "Millrace", "og:type": "video.other", "og:title": hostile, "og:url": base + "/watch/wide",
		"og:image": image, "og:image:type": "image/jpeg", "og:image:width": "1280", "og:image:height": "720",
		"og:image:alt": hostile, "og:video:url": base + "/embed/wide", "og:video:secure_url": base + "/embed/wide",
		"og:video:type": "text/html", "og:video:width": "1280", "og:video:height": "720",

		"twitter:card": "player", "twitter:title": hostile, "twitter:image": image, "twitter:image:alt": hostile,
		"twitter:player": base + "/embed/wide", "twitter:player:width": "1280", "twitter:player:height": "720",
	}
	got, page := told(t, elsewhere(base), "/watch/wide?start=5")
	if !maps.Equal(got, want) {
		t.Errorf("tags\n%q, want\n%q", got, want)
	}
	if strings.Contains(page, "<script>") || regexp.MustCompile(`["'] onclick=`).MatchString(page) {
		t.Errorf("the title became more than a text: %s", page)
	}
	if !strings.Contains(page, `type="application/json+oembed"`) {
		t.Errorf("oEmbed is not announced: %s", page)
	}
}

// TestCards checks the kinds of cards: with less to show there are fewer tags, of what is not for everybody there is
// none.
func TestCards(t *testing.T) {
	t.Parallel()
	h := elsewhere("http://h.example:8080")
	const image, video, player, oembed = "og:image", "og:video:url", "twitter:player", "alternate"
	for target, want := range map[string]struct {
		kind  string            // of the card; empty: there are no tags
		tags  map[string]string // some of them
		lacks []string
	}{
		"/watch/tall": {"player", map[string]string{
			"og:image:width": "720", "og:image:height": "1280",
			"twitter:player:width": "405", "twitter:player:height": "720",
		}, nil},
		"/watch/live": {"player", map[string]string{
			"og:title": "Live stream", image: "http://h.example:8080/live/thumbnail.jpg?height=1280&width=1280",
			"og:video:width": "1280", "og:video:height": "720",
		}, []string{"og:image:width", "og:video:secure_url"}},
		"/watch/recorded": {"player", map[string]string{
			image: "http://h.example:8080/rec/thumbnail.jpg?height=1280&width=1280",
			video: "http://h.example:8080/embed/recorded",
		}, nil},
		"/watch/idle": {"summary", map[string]string{"og:title": "Soon"}, []string{image, "twitter:image", player}},
		"/watch/sound": {
			"summary", map[string]string{video: "http://h.example:8080/embed/sound"}, []string{image, player},
		},
		"/watch/closed": {
			"summary_large_image", map[string]string{"og:title": "Closed"}, []string{video, player, oembed},
		},
		"/watch/unframed": {"summary_large_image", nil, []string{video, player, oembed}},

		"/watch/signed?token=right": {},
		"/watch/signed":             {},
		"/watch/errored":            {},
		"/watch/unknown":            {},
		"/watch/away":               {},
		"/embed/wide":               {},
	} {
		got, page := told(t, h, target)
		if want.kind == "" {
			if len(got) > 0 {
				t.Errorf("%s tells other sites %q", target, got)
			}
			continue
		}
		if got["twitter:card"] != want.kind {
			t.Errorf("%s: the card is %q, want %q: %s", target, got["twitter:card"], want.kind, page)
		}
		for name, value := range want.tags {
			if got[name] != value {
				t.Errorf("%s: %s is %q, want %q", target, name, got[name], value)
			}
		}
		for name := range got {
			if slices.Contains(want.lacks, name) {
				t.Errorf("%s: there is %s: %q", target, name, got[name])
			}
		}
	}
	if got, _ := told(t, Handler(Options{Describe: shared}), "/watch/wide"); len(got) > 0 {
		t.Errorf("without an address of its own it tells %q", got)
	}
}
