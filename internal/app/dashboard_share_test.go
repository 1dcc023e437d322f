package app

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// TestEmbedCodeAsOEmbed: the dashboard gives the code of a player that oEmbed gives.
func TestEmbedCodeAsOEmbed(t *testing.T) {
	t.Parallel()
	s := start(t, configuration(t, t.TempDir()))
	u := newOwner(t, s)
	for name, title := range map[string]string{"named": oddName, "without a name": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := u.with(t)
			page := one.reads(one.makes("/dashboard/live", url.Values{
				"title": {title}, "latency_mode": {"low"}, "policy": {"public"}, "recordings": {"same"},
			}))
			watch := regexp.MustCompile(`data-copy="([^"]+/watch/[^"]+)"`).FindStringSubmatch(page)
			code := regexp.MustCompile(`data-copy="(&lt;iframe [^"]+)"`).FindStringSubmatch(page)
			if watch == nil || code == nil {
				t.Fatalf("there is no watch link or no embed code: %s", page)
			}
			var card struct {
				HTML string `json:"html"`
			}
			got := one.reads("/oembed?url=" + url.QueryEscape(watch[1]))
			if err := json.Unmarshal([]byte(got), &card); err != nil {
				t.Fatalf("%v: %s", err, got)
			}
			if shown := html.UnescapeString(code[1]); shown != card.HTML || !strings.HasPrefix(shown, "<iframe ") {
				t.Errorf("the dashboard has\n%s\nand oEmbed\n%s", shown, card.HTML)
			}
		})
	}
}

// reads gives a page of the dashboard, or another one.
func (o *owner) reads(path string) string {
	o.t.Helper()
	got := ask(o.t, o.http, http.MethodGet, o.base+path, "", func(r *http.Request) {
		r.Header.Set("Cookie", o.cookie)
	})
	if got.status != http.StatusOK {
		o.t.Fatalf("%s responds with %d: %s", path, got.status, got.body)
	}
	return got.body
}
