package e2e

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"testing"

	"millrace/test/rig"
)

// linked follows what other sites are told of a link to a video: its pictures are there and have the sizes that are
// named.
func linked(t *testing.T, s *rig.Server, playbackID string, width, height int) {
	t.Helper()
	page := string(get(t, s.WatchURL(playbackID)))
	tag := func(name string) string {
		found := regexp.MustCompile(`<meta property="` + name + `" content="([^"]*)">`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("there is no %s in %s", name, page)
		}
		return html.UnescapeString(found[1])
	}
	if got, want := tag("og:image:width")+"x"+tag("og:image:height"), fmt.Sprintf("%dx%d", width, height); got != want {
		t.Errorf("%s: the picture has %s, want %s", playbackID, got, want)
	}
	picture(t, tag("og:image"), "jpeg", width, height)
	get(t, tag("og:video:url"))
	var told struct {
		Picture string `json:"thumbnail_url"`
		Width   int    `json:"thumbnail_width"`
		Height  int    `json:"thumbnail_height"`
	}
	body := get(t, s.HTTP+"/oembed?maxwidth=320&url="+url.QueryEscape(tag("og:url")))
	if err := json.Unmarshal(body, &told); err != nil || told.Width != 320 {
		t.Fatalf("oEmbed says %s (%v)", body, err)
	}
	picture(t, told.Picture, "jpeg", told.Width, told.Height)
}
