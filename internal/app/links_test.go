package app

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestLinks makes a live stream with a public and a signed playback ID, and looks at what other sites are told of links
// to it: under the service's own address, of the public one alone.
func TestLinks(t *testing.T) {
	t.Parallel()
	s := start(t, configuration(t, t.TempDir(), "--public-url", "https://video.example/tv/"))
	token, secret := credentials(t, s.out.String())
	base, c := "http://"+s.addr("http"), client(t, nil)
	made := ask(t, c, http.MethodPost, base+"/video/v1/live-streams",
		`{"playback_policies":["public","signed"],"meta":{"title":"\"><script>Regatta"}}`, func(r *http.Request) {
			r.SetBasicAuth(token, secret)
			r.Header.Set("Content-Type", "application/json")
		})
	var stream struct {
		Data struct {
			PlaybackIDs []struct {
				ID     string `json:"id"`
				Policy string `json:"policy"`
			} `json:"playback_ids"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(made.body), &stream); err != nil || len(stream.Data.PlaybackIDs) != 2 {
		t.Fatalf("status %d: %s", made.status, made.body)
	}
	for _, p := range stream.Data.PlaybackIDs {
		const public = "https://video.example/tv"
		watch, embed := public+"/watch/"+p.ID, public+"/embed/"+p.ID
		open, status := p.Policy == "public", http.StatusUnauthorized
		if open {
			status = http.StatusOK
		}
		page := ask(t, c, http.MethodGet, base+"/watch/"+p.ID, "", nil)
		titled := strings.Contains(page.body, "Regatta")
		tags := strings.Contains(page.body, `<meta property="og:title" content="&#34;&gt;&lt;script&gt;Regatta">`) &&
			strings.Contains(page.body, `<meta property="og:url" content="`+watch+`">`) &&
			strings.Contains(page.body, `<meta property="og:video:url" content="`+embed+`">`)
		if tags != open || strings.Contains(page.body, "og:") != open || titled != open {
			t.Errorf("%s: %s", p.Policy, page.body)
		}
		told := ask(t, c, http.MethodGet, base+"/oembed?url="+url.QueryEscape(watch), "", nil)
		shown := strings.Contains(told.body, "Regatta") && strings.Contains(told.body, embed)
		if told.status != status || shown != open || strings.Contains(told.body, "Regatta") != open {
			t.Errorf("%s: oEmbed says %d %s", p.Policy, told.status, told.body)
		}
		frame := ask(t, c, http.MethodGet, base+"/embed/"+p.ID, "", nil)
		if frame.status != http.StatusOK || strings.Contains(frame.body, "Regatta") != open ||
			!strings.HasSuffix(frame.head.Get("Content-Security-Policy"), "; frame-ancestors *") {
			t.Errorf("%s: the embed page is %d %v %s", p.Policy, frame.status, frame.head, frame.body)
		}
	}
	unknown := base + "/oembed?url=" + url.QueryEscape("https://video.example/tv/watch/"+strings.Repeat("x", 40))
	if got := ask(t, c, http.MethodGet, unknown, "", nil); got.status != http.StatusNotFound {
		t.Errorf("oEmbed of an unknown playback ID says %d %s", got.status, got.body)
	}
}
