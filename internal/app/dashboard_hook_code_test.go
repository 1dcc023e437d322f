package app

import (
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"testing"

	"millrace/internal/programtest"
)

// TestWebhookFormAsCode: what the form of a webhook shows as curl, Node and Go makes the same as the form does. Two
// webhooks can't have one address, so each has its own.
func TestWebhookFormAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir())))
	const path, api = "/dashboard/webhooks", "/system/v1/webhooks/"
	for name, form := range map[string]url.Values{
		"everything": {"which": {"all"}},
		"some": {
			"which": {"chosen"}, "group": {"Live streams"}, "type": {"video.asset.ready", "system.webhook.test"},
		},
	} {
		at := func(which string) string { return "https://example.com/" + name + "/it's`$HOME`?for=" + which }
		with := func(which string) url.Values {
			form.Set("address", at(which))
			return form
		}
		made := u.send(path, with("form"))
		leads := regexp.MustCompile(`href="` + path + `/([\w-]+)">I have kept it<`).FindStringSubmatch(made.body)
		if made.status != http.StatusCreated || leads == nil {
			t.Fatalf("%s responds with %d: %s", path, made.status, made.body)
		}
		want := u.object(api + leads[1])
		samples := map[string]string{}
		for _, language := range []string{"curl", "Node", "Go"} {
			samples[language] = u.samples(path+"/code", with(language))[language]
		}
		for language, id := range u.run(t, samples) {
			got := u.object(api + id)
			if got["address"] != at(language) {
				t.Errorf("%s, %s: its address is %v", name, language, got["address"])
			}
			if got["address"] = want["address"]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s makes\n%v\nand the form\n%v:\n%s", name, language, got, want, samples[language])
			}
		}
	}
	if got := u.send(path+"/code", url.Values{"which": {"all"}}); got.status != http.StatusOK {
		t.Errorf("nothing filled in: %d", got.status)
	}
}
