package app

import (
	"maps"
	"net/url"
	"path"
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
			made := func() edited {
				page := one.makes("/dashboard/live", tt.from)
				api := "/video/v1/live-streams" + page[strings.LastIndex(page, "/"):]
				return edited{page + "/edit", tt.from, tt.to, func(u *owner) map[string]any { return u.object(api) }}
			}
			samples := one.changesAlike(made(), made(), tt.goLacks...)
			if note := "can't send: " + tt.note + "."; !strings.Contains(samples["Go"], note) {
				t.Errorf("Go does not say that it %s\n%s", note, samples["Go"])
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
		note     string   // what of it the Go library can't send
		goLacks  []string // the members
	}{
		"opened": {closed, open, 2, "", nil},
		"closed": {
			open, closed, 2, "allow_no_user_agent of false, allow_high_risk_user_agent of false",
			[]string{"user_agent"},
		},
		"the domains alone": {closed, other, 1, "", nil},
	} {
		made := func() edited {
			v := u.newRule(tt.from)
			read := func(u *owner) map[string]any { return u.object(rulesAPI + v) }
			return edited{rulesPage + v, tt.from, tt.to, read}
		}
		saved, changed := made(), made()
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			samples := u.with(t).changesAlike(saved, changed, tt.goLacks...)
			if n := strings.Count(samples["curl"], "curl -X PUT "); n != tt.requests {
				t.Errorf("%d requests, want %d:\n%s", n, tt.requests, samples["curl"])
			}
			if tt.note != "" && !strings.Contains(samples["Go"], "can't send: "+tt.note+".") {
				t.Errorf("Go does not say that it can't send %s\n%s", tt.note, samples["Go"])
			}
		})
	}
}

// edited is something that a form changes.
type edited struct {
	form     string // its address: the ID is at the end, or before /edit
	from, to url.Values
	read     func(*owner) map[string]any // as it is now, without what each has of its own
}

// changesAlike has the form change one thing, and the code that the form shows another one, in each language: it makes
// the same of it, but for members that the Go library can't send. It gives the code.
func (o *owner) changesAlike(saved, changed edited, goLacks ...string) map[string]string {
	o.t.Helper()
	o.makes(saved.form, saved.to)
	want, before := saved.read(o), changed.read(o)
	samples := o.samples(changed.form+"/code", changed.to)
	of := path.Base(strings.TrimSuffix(changed.form, "/edit"))
	for language, program := range o.programs(o.t, samples) {
		if got := program().id; got != of {
			o.t.Errorf("%s prints %q, want %q:\n%s", language, got, of, samples[language])
		}
		got := changed.read(o)
		if language == "Go" {
			got = but(got, want, goLacks)
		}
		if !reflect.DeepEqual(got, want) {
			o.t.Errorf("%s makes of it\n%v\nand the form\n%v:\n%s", language, got, want, samples[language])
		}
		o.makes(changed.form, changed.from)
		if again := changed.read(o); !reflect.DeepEqual(again, before) || reflect.DeepEqual(again, want) {
			o.t.Fatalf("it is not as it was: %v", again)
		}
	}
	return samples
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
