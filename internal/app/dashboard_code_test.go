package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// oddName is one that the quotes of no language may end.
const oddName = "it's \"$HOME\" `id` ${x} \\ \u202e</pre><script>"

// TestFormsAsCode: what a form of the dashboard shows as curl, Node and Go makes the same as the form does. Each is run
// as it is shown, the libraries as they are published.
func TestFormsAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	s := start(t, configuration(t, t.TempDir()))
	u := newOwner(t, s)
	stream := u.makes("/dashboard/live", url.Values{"latency_mode": {"low"}})
	for name, tt := range map[string]struct {
		path, api string
		form      url.Values
		goLacks   string // a member that the Go library does not send
		goNote    string // what of it; empty: all
	}{
		"live stream": {"/dashboard/live", "/video/v1/live-streams", url.Values{
			"title": {oddName}, "latency_mode": {"standard"}, "policy": {"public"}, "recordings": {"signed"},
			"reconnect_window": {"12,5"}, "slate": {"1"}, "reconnect_slate_url": {"https://example.com/a.png?b='c'"},
			"hours": {"1.5"}, "video_quality": {"premium"}, "download": {"1"}, "passthrough": {oddName},
		}, "meta", ""},
		"live stream, as it is offered": {"/dashboard/live", "/video/v1/live-streams", url.Values{
			"latency_mode": {"low"}, "policy": {"public"}, "recordings": {"same"},
		}, "", ""},
		"live stream, for nobody": {"/dashboard/live", "/video/v1/live-streams", url.Values{
			"latency_mode": {"reduced"}, "policy": {"nobody"}, "recordings": {"same"}, "audio_only": {"1"},
			"test": {"1"},
		}, "", ""},
		"asset": {"/dashboard/assets", "/video/v1/assets", url.Values{
			"url": {"http://127.0.0.1:1/film's.mp4"}, "title": {oddName}, "policy": {"signed"},
			"video_quality": {"plus"}, "download": {"1"}, "test": {"1"}, "passthrough": {oddName},
		}, "", ""},
		"simulcast target": {stream + "/targets", "", url.Values{
			"url": {"rtmps://example.com/a'pp"}, "stream_key": {targetKey}, "passthrough": {oddName},
		}, "", ""},
		"playback restriction": {rulesPage, rulesAPI, url.Values{
			"domains": {"*.example.com, b.example"}, "allow_no_referrer": {"1"}, "allow_no_user_agent": {"1"},
			"allow_high_risk_user_agent": {"1"},
		}, "", ""},
		"playback restriction, for nobody": {
			rulesPage, rulesAPI,
			url.Values{"domains": {""}},
			"user_agent",
			"allow_no_user_agent of false, allow_high_risk_user_agent of false",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := u.with(t).makes(tt.path, tt.form)
			samples := u.with(t).samples(tt.path+"/code", tt.form)
			api := tt.api
			if api == "" {
				api = strings.Replace(stream, "/dashboard/live", "/video/v1/live-streams", 1) + "/simulcast-targets"
				made = u.newestTarget(stream)
			}
			if api == rulesAPI {
				made = u.with(t).ruleOf(len(tt.form.Get("domains")) > 0)
			}
			want := u.with(t).object(api + "/" + made[strings.LastIndex(made, "/")+1:])
			for language, id := range u.run(t, samples) {
				got := u.with(t).object(api + "/" + id)
				if language == "Go" && tt.goLacks != "" {
					note := "// This library can't send: " + cmp.Or(tt.goNote, tt.goLacks) + "."
					if !strings.Contains(samples["Go"], note) {
						t.Errorf("it is not said that Go can't send %s:\n%s", tt.goLacks, samples["Go"])
					}
					got[tt.goLacks] = want[tt.goLacks]
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("%s makes\n%v\nand the form\n%v:\n%s", language, got, want, samples[language])
				}
			}
		})
	}
}

const (
	rulesPage   = "/dashboard/settings/restrictions"
	rulesAPI    = "/video/v1/playback-restrictions"
	targetKey   = "it-is-secret"
	sdkFolder   = "../../test/sdk"
	goSDKFolder = "../../tools/sdk"
)

// goLibrary skips the test where mux-go is neither here nor can be had, unless MILLRACE_TEST_REQUIRE is set.
func goLibrary(t *testing.T) {
	t.Helper()
	programtest.Inputs(t, goSDKFolder)
	out, err := exec.CommandContext(t.Context(), "go", "-C", goSDKFolder, "mod", "download").CombinedOutput()
	if err != nil && os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
		t.Fatalf("go mod download in tools/sdk: %v:\n%s", err, out)
	}
	if err != nil {
		t.Skipf("go mod download in tools/sdk: %v:\n%s", err, out)
	}
}

// owner is signed in to a dashboard, and has an access token.
type owner struct {
	t                    *testing.T
	base, cookie         string
	tokenID, tokenSecret string
	http                 *http.Client
}

func newOwner(t *testing.T, s *service) *owner {
	t.Helper()
	u := &owner{t: t, base: "http://" + s.addr("http"), http: client(t, nil)}
	u.tokenID, u.tokenSecret = credentials(t, s.out.String())
	link := regexp.MustCompile(`/dashboard/link/\w+`).FindString(s.out.String())
	cookie := u.send(link, url.Values{"password": {"correct horse battery"}}).head.Get("Set-Cookie")
	u.cookie, _, _ = strings.Cut(cookie, ";")
	return u
}

// with is the same for another test.
func (o *owner) with(t *testing.T) *owner {
	t.Helper()
	v := *o
	v.t = t
	return &v
}

// send sends a form.
func (o *owner) send(path string, form url.Values) response {
	o.t.Helper()
	return ask(o.t, o.http, http.MethodPost, o.base+path, form.Encode(), func(r *http.Request) {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", o.cookie)
	})
}

// makes sends a form that makes something, and gives the address of its page.
func (o *owner) makes(path string, form url.Values) string {
	o.t.Helper()
	got := o.send(path, form)
	if got.status != http.StatusSeeOther {
		o.t.Fatalf("%s responds with %d: %s", path, got.status, got.body)
	}
	page, _, _ := strings.Cut(got.head.Get("Location"), "#")
	return page
}

// samples are what a form shows as code, by language.
func (o *owner) samples(path string, form url.Values) map[string]string {
	o.t.Helper()
	got := o.send(path, form)
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)<p class="lang">(\w+)</p>.*?<pre[^>]*>(.*?)</pre>`).
		FindAllStringSubmatch(got.body, -1) {
		out[m[1]] = html.UnescapeString(m[2])
		for name, values := range form {
			if name == "stream_key" && strings.Contains(m[2], values[0]) {
				o.t.Errorf("%s has the key: %s", m[1], m[2])
			}
		}
	}
	if got.status != http.StatusOK || len(out) != 3 {
		o.t.Fatalf("%s responds with %d: %s", path, got.status, got.body)
	}
	return out
}

// run runs each sample, which makes something, and gives its ID.
func (o *owner) run(t *testing.T, samples map[string]string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for language, program := range o.programs(t, samples) {
		out[language] = program().id
	}
	return out
}

// outcome is what a sample prints: an ID, and a secret that is shown once; empty: there is none.
type outcome struct{ id, secret string }

// programs are the samples by language.
func (o *owner) programs(t *testing.T, samples map[string]string) map[string]func() outcome {
	t.Helper()
	dir := t.TempDir()
	packages, err := filepath.Abs(filepath.Join(sdkFolder, "node_modules"))
	if err == nil {
		err = os.Symlink(packages, filepath.Join(dir, "node_modules"))
	}
	for name, text := range map[string]string{"a.mjs": samples["Node"], "a.go": samples["Go"]} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	programtest.Path(t, "curl")
	node := programtest.Path(t, "node")
	printed := func(text string) outcome {
		id, secret, _ := strings.Cut(text, " ")
		return outcome{id, secret}
	}
	return map[string]func() outcome{
		"curl": func() outcome { return outcomeOf(t, o.program(t, dir, "sh", "-c", "set -e; "+samples["curl"])) },
		"Node": func() outcome { return printed(o.program(t, dir, node, "a.mjs")) },
		"Go": func() outcome {
			return printed(o.program(t, goSDKFolder, "go", "run", filepath.Join(dir, "a.go")))
		},
	}
}

// outcomeOf is that of a response of the API, or the last one of several.
func outcomeOf(t *testing.T, body string) outcome {
	t.Helper()
	var one struct {
		Data struct {
			ID            string `json:"id"`
			Secret        string `json:"secret"`
			SigningSecret string `json:"signing_secret"`
		} `json:"data"`
	}
	for d := json.NewDecoder(strings.NewReader(body)); ; {
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return outcome{one.Data.ID, cmp.Or(one.Data.Secret, one.Data.SigningSecret)}
		} else if err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
}

// program runs one with the secrets that samples name in its environment, and gives what it prints.
func (o *owner) program(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MUX_TOKEN_ID="+o.tokenID, "MUX_TOKEN_SECRET="+o.tokenSecret,
		"STREAM_KEY="+targetKey)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v:\n%s%s", name, args, err, out, &problems)
	}
	return strings.TrimSpace(string(out))
}

// read reads one over the API.
func (o *owner) read(path string) map[string]any {
	o.t.Helper()
	got := ask(o.t, o.http, http.MethodGet, o.base+path, "", func(r *http.Request) {
		r.SetBasicAuth(o.tokenID, o.tokenSecret)
	})
	var one struct {
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal([]byte(got.body), &one); err != nil || got.status != http.StatusOK {
		o.t.Fatalf("%s: %d: %s", path, got.status, got.body)
	}
	return one.Data
}

// object reads one over the API, without what each has of its own.
func (o *owner) object(path string) map[string]any {
	o.t.Helper()
	v := o.read(path)
	delete(v, "tracks") // come with the file
	alike(v)
	return v
}

// alike takes out what each has of its own, and what it is by now.
func alike(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, own := range []string{
			"id", "created_at", "updated_at", "srt_passphrase", "status", "progress", "error",
			"errors",
		} {
			delete(v, own)
		}
		if v["stream_key"] != targetKey {
			delete(v, "stream_key")
		}
		for _, part := range v {
			alike(part)
		}
	case []any:
		for _, part := range v {
			alike(part)
		}
	}
}

// newestTarget is the ID of the last simulcast target of a live stream.
func (o *owner) newestTarget(stream string) string {
	o.t.Helper()
	path := strings.Replace(stream, "/dashboard/live", "/video/v1/live-streams", 1)
	targets, _ := o.read(path)["simulcast_targets"].([]any)
	if len(targets) == 0 {
		o.t.Fatal("there is no target")
	}
	last, _ := targets[len(targets)-1].(map[string]any)
	id, _ := last["id"].(string)
	return "/" + id
}

// ruleOf is the end of the address of the first playback restriction that has domains, or has none.
func (o *owner) ruleOf(domains bool) string {
	o.t.Helper()
	for _, v := range o.rules() {
		if len(v.Referrer.Domains) > 0 == domains {
			return "/" + v.ID
		}
	}
	o.t.Fatal("there is none")
	return ""
}

// newRule has the form make a playback restriction and is the end of its address: the list's first may be another one
// of the same millisecond.
func (o *owner) newRule(form url.Values) string {
	o.t.Helper()
	before := o.rules()
	o.makes(rulesPage, form)
	for _, v := range o.rules() {
		if !slices.ContainsFunc(before, func(b listedRule) bool { return b.ID == v.ID }) {
			return "/" + v.ID
		}
	}
	o.t.Fatal("there is no new one")
	return ""
}

// listedRule is a playback restriction of a list of the API.
type listedRule struct {
	ID       string `json:"id"`
	Referrer struct {
		Domains []string `json:"allowed_domains"`
	} `json:"referrer"`
}

// rules are the playback restrictions, newest first.
func (o *owner) rules() []listedRule {
	o.t.Helper()
	got := ask(o.t, o.http, http.MethodGet, o.base+rulesAPI, "", func(r *http.Request) {
		r.SetBasicAuth(o.tokenID, o.tokenSecret)
	})
	var all struct {
		Data []listedRule `json:"data"`
	}
	if err := json.Unmarshal([]byte(got.body), &all); err != nil {
		o.t.Fatalf("%v: %s", err, got.body)
	}
	return all.Data
}
