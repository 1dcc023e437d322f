package app

import (
	"math"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"testing"

	"millrace/internal/programtest"
)

// TestTokenFormAsCode: what the form of an access token shows as code makes the same as the form does, and the secret
// that it prints is the token's.
func TestTokenFormAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir())))
	const path = "/dashboard/settings/tokens"
	for name, tt := range map[string]struct {
		form url.Values
		days float64 // until it expires
	}{
		"for ever":    {url.Values{"name": {oddName}, "permission": {"video:read", "system:read"}}, 0},
		"for a month": {url.Values{"name": {"Upload page"}, "permission": {"video:write"}, "days": {"30"}}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := u.with(t)
			made := one.send(path, tt.form)
			key := regexp.MustCompile(`data-line="Token ID">([^<]+)<`).FindStringSubmatch(made.body)
			if made.status != http.StatusCreated || key == nil {
				t.Fatalf("%s responds with %d: %s", path, made.status, made.body)
			}
			want, days := one.token(key[1])
			if days != tt.days {
				t.Errorf("the form makes one for %v days", days)
			}
			samples := one.samples(path+"/code", tt.form)
			for language, program := range one.programs(t, samples) {
				printed := program()
				if got, ends := one.token(printed.id); ends != days || !reflect.DeepEqual(got, want) {
					t.Errorf("%s makes\n%v for %v days, and the form\n%v for %v:\n%s",
						language, got, ends, want, days, samples[language])
				}
				who := ask(t, one.http, http.MethodGet, one.base+"/system/v1/whoami", "", func(r *http.Request) {
					r.SetBasicAuth(printed.id, printed.secret)
				})
				if who.status != http.StatusOK {
					t.Errorf("%s prints %+v, which is refused with %d", language, printed, who.status)
				}
			}
		})
	}
}

// token reads one over the API, and the days from when it was made until it expires; 0: it does not.
func (o *owner) token(id string) (v map[string]any, days float64) {
	o.t.Helper()
	v = o.read("/system/v1/access-tokens/" + id)
	if v["expires_at"] != nil {
		days = math.Round((o.number(v["expires_at"]) - o.number(v["created_at"])) / (24 * 3600))
		delete(v, "expires_at")
	}
	alike(v)
	return v, days
}

// number reads one that is text in the API.
func (o *owner) number(value any) float64 {
	o.t.Helper()
	text, _ := value.(string)
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		o.t.Fatal(err)
	}
	return n
}
