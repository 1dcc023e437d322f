package app

import (
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// TestEditAsCode: what the form of a live stream's settings shows as code changes the same as the form does.
func TestEditAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir())))
	plain := url.Values{
		"latency_mode": {"low"}, "hours": {"12"}, "video_quality": {"plus"},
		"policy": {"public"}, "recordings": {"same"},
	}
	full := url.Values{
		"title": {oddName}, "latency_mode": {"standard"}, "reconnect_window": {"12,5"}, "slate": {"1"},
		"reconnect_slate_url": {"https://example.com/a.png?b='c'"}, "video_quality": {"premium"}, "hours": {"1.5"},
		"passthrough": {oddName}, "policy": {"public"}, "recordings": {"same"},
	}
	for name, tt := range map[string]struct {
		from, to url.Values
		note     string   // what of it the Go library can't send
		goLacks  []string // the members
	}{
		"set": {plain, full, "meta", []string{"meta"}},
		"cleared": {
			full, plain, "meta, reconnect_window of null, use_slate_for_standard_latency of false, " +
				"empty reconnect_slate_url, empty passthrough",
			[]string{
				"meta", "reconnect_window", "use_slate_for_standard_latency", "reconnect_slate_url", "passthrough",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := u.with(t)
			saved, changed := one.makes("/dashboard/live", tt.from), one.makes("/dashboard/live", tt.from)
			api := func(page string) string { return "/video/v1/live-streams" + page[strings.LastIndex(page, "/"):] }
			one.makes(saved+"/edit", tt.to)
			want, before := one.object(api(saved)), one.object(api(changed))
			samples := one.samples(changed+"/edit/code", tt.to)
			if note := "can't send: " + tt.note + "."; !strings.Contains(samples["Go"], note) {
				t.Errorf("Go does not say that it %s\n%s", note, samples["Go"])
			}
			for language, program := range one.programs(t, samples) {
				if !strings.HasSuffix(changed, program()) {
					t.Errorf("%s prints another ID:\n%s", language, samples[language])
				}
				got := one.object(api(changed))
				if language == "Go" {
					got = but(got, want, tt.goLacks)
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s makes of it\n%v\nand the form\n%v:\n%s", language, got, want, samples[language])
				}
				if back := one.send(changed+"/edit", tt.from); back.status != http.StatusSeeOther {
					t.Fatalf("it is not as it was: %d: %s", back.status, back.body)
				}
				again := one.object(api(changed))
				if !reflect.DeepEqual(again, before) || reflect.DeepEqual(again, want) {
					t.Fatalf("it is not as it was: %v", again)
				}
			}
		})
	}
}

// TestRestrictionEditAsCode: what the form that changes a playback restriction shows as code changes the same as the
// form does: by a request for each part that differs.
func TestRestrictionEditAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir())))
	closed := url.Values{"domains": {"a.example"}}
	open := url.Values{
		"domains": {"*.example.com, b.example"}, "allow_no_referrer": {"1"}, "allow_no_user_agent": {"1"},
		"allow_high_risk_user_agent": {"1"},
	}
	other := url.Values{"domains": {""}}
	for name, tt := range map[string]struct {
		from, to url.Values
		requests int
		goLacks  string // a member that the Go library does not send
		note     string // what of it
	}{
		"opened": {closed, open, 2, "", ""},
		"closed": {
			open, closed, 2, "user_agent",
			"allow_no_user_agent of false, allow_high_risk_user_agent of false",
		},
		"the domains alone": {closed, other, 1, "", ""},
	} {
		made := func() string {
			u.makes(rulesPage, tt.from)
			return "/" + u.rules()[0].ID
		}
		saved, changed := made(), made()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := u.with(t)
			one.makes(rulesPage+saved, tt.to)
			want, before := one.object(rulesAPI+saved), one.object(rulesAPI+changed)
			samples := one.samples(rulesPage+changed+"/code", tt.to)
			if n := strings.Count(samples["curl"], "curl -X PUT "); n != tt.requests {
				t.Errorf("%d requests, want %d:\n%s", n, tt.requests, samples["curl"])
			}
			if tt.note != "" && !strings.Contains(samples["Go"], "can't send: "+tt.note+".") {
				t.Errorf("Go does not say that it can't send %s\n%s", tt.note, samples["Go"])
			}
			for language, program := range one.programs(t, samples) {
				if id := program(); "/"+id != changed {
					t.Errorf("%s prints %q, want %q:\n%s", language, id, changed, samples[language])
				}
				got := one.object(rulesAPI + changed)
				if language == "Go" && tt.goLacks != "" {
					got = but(got, want, []string{tt.goLacks})
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s makes of it\n%v\nand the form\n%v:\n%s", language, got, want, samples[language])
				}
				one.makes(rulesPage+changed, tt.from)
				again := one.object(rulesAPI + changed)
				if !reflect.DeepEqual(again, before) || reflect.DeepEqual(again, want) {
					t.Fatalf("it is not as it was: %v", again)
				}
			}
		})
	}
}

// but is an object whose members with these names are those of another one.
func but(o, other map[string]any, names []string) map[string]any {
	o = maps.Clone(o)
	for _, name := range names {
		delete(o, name)
		if value, is := other[name]; is {
			o[name] = value
		}
	}
	return o
}
