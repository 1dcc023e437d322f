package app

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"regexp"
	"strings"
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
		leads := regexp.MustCompile(`href="` + path + `/([\w-]+)">I have saved it<`).FindStringSubmatch(made.body)
		if made.status != http.StatusCreated || leads == nil {
			t.Fatalf("%s responds with %d: %s", path, made.status, made.body)
		}
		want := u.object(api + leads[1])
		samples := map[string]string{}
		for _, language := range []string{"curl", "Node", "Go"} {
			samples[language] = u.samples(path+"/code", with(language))[language]
		}
		for language, program := range u.programs(t, samples) {
			printed := program()
			got := u.object(api + printed.id)
			if !strings.HasPrefix(printed.secret, "whsec_") {
				t.Errorf("%s, %s: it prints the secret %q:\n%s", name, language, printed.secret, samples[language])
			}
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

// TestWebhookEditAsCode: what the form that changes a webhook shows as code changes the same as the form does.
func TestWebhookEditAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir())))
	all := url.Values{"which": {"all"}}
	some := url.Values{"which": {"chosen"}, "group": {"Live streams"}, "type": {"video.asset.ready"}}
	for name, tt := range map[string]struct {
		from, to url.Values
		moves    bool
		not      string // a member that is not sent
	}{
		"other types":       {all, some, false, "address"},
		"everything":        {some, all, false, "address"},
		"the address alone": {some, some, true, "event_types"},
	} {
		made := func(which string) edited {
			const at = "https://example.com/"
			with := func(form url.Values, moved bool) url.Values {
				form = maps.Clone(form)
				form.Set("address", at+which+"/"+url.PathEscape(name))
				if moved {
					form.Set("address", form.Get("address")+"/it's`$HOME`")
				}
				return form
			}
			v := edited{from: with(tt.from, false), to: with(tt.to, tt.moves)}
			page := regexp.MustCompile(`href="(/dashboard/webhooks/[\w-]+)">I have saved it<`).
				FindStringSubmatch(u.send("/dashboard/webhooks", v.from).body)
			if page == nil {
				t.Fatal("no webhook is made")
			}
			v.form = page[1]
			v.read = func(u *owner) map[string]any {
				got := u.object("/system/v1/webhooks/" + path.Base(v.form))
				address, _ := got["address"].(string)
				got["address"] = strings.TrimPrefix(address, at+which) // of its own
				return got
			}
			return v
		}
		saved, changed := made("saved"), made("changed")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			samples := u.with(t).changesAlike(saved, changed)
			if strings.Contains(samples["Node"], tt.not) {
				t.Errorf("%s is sent, which is as it was:\n%s", tt.not, samples["Node"])
			}
		})
	}
}
