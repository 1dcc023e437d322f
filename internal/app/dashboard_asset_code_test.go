package app

import (
	"bufio"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path"
	"reflect"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// TestAssetFormsAsCode: what the forms on the page of an asset, and on those of its tracks, show as code makes and
// changes the same as the forms do.
func TestAssetFormsAsCode(t *testing.T) {
	t.Parallel()
	programtest.NodePackages(t, sdkFolder)
	goLibrary(t)
	u := newOwner(t, start(t, configuration(t, t.TempDir(), "--fetch-allow", "127.0.0.0/8")))
	tone := programtest.SharedMedia(t, "tone.m4a", "-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac")
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, tone)
	}))
	t.Cleanup(files.Close)
	saved, changed := u.readyAsset(files.URL+"/a.m4a"), u.readyAsset(files.URL+"/a.m4a")
	u.comparesNames(saved, changed)
	u.comparesNewTracks(saved, changed)
	u.comparesTracks(saved, changed)
}

func (u *owner) comparesNames(saved, changed string) {
	u.t.Helper()
	none := url.Values{"title": {""}, "passthrough": {""}}
	full := url.Values{"title": {oddName}, "passthrough": {oddName}}
	for name, tt := range map[string]struct {
		from, to url.Values
		note     string   // what of it the Go library can't send
		goLacks  []string // the members
	}{
		"set":     {none, full, "", nil},
		"cleared": {full, none, "meta of null, empty passthrough", []string{"meta", "passthrough"}},
	} {
		at := func(page string) edited {
			u.makes(page, tt.from)
			return edited{page, tt.from, tt.to, func(u *owner) map[string]any { return u.object(apiOf(page)) }}
		}
		program := u.changesAlike(at(saved), at(changed), tt.goLacks...)["Go"]
		if strings.Contains(program, "can't send") != (tt.note != "") || !strings.Contains(program, tt.note) {
			u.t.Errorf("%s: Go does not say that it can't send %q:\n%s", name, tt.note, program)
		}
	}
}

// comparesNewTracks deletes each track before the next one is made: two can't have one name.
func (u *owner) comparesNewTracks(saved, changed string) {
	u.t.Helper()
	for name, form := range map[string]url.Values{
		"captions": {
			"track_type": {"text"}, "track_url": {noFile + "?it's=$HOME"}, "language_code": {"pt-BR"},
			"track_name": {oddName}, "closed_captions": {"1"},
		},
		"sound, without a name": {"track_type": {"audio"}, "track_url": {noFile}, "language_code": {"fi"}},
	} {
		u.makes(saved+"/tracks", form)
		first, want := u.newTrack(saved)
		u.makes(saved+"/tracks/"+first+"/delete", url.Values{})
		samples := u.samples(changed+"/tracks/code", form)
		for language, program := range u.programs(u.t, samples) {
			printed := program().id
			made, got := u.newTrack(changed)
			if made != printed || !reflect.DeepEqual(got, want) {
				u.t.Errorf("%s: %s prints %s and makes\n%v %v\nand the form\n%v:\n%s",
					name, language, printed, made, got, want, samples[language])
			}
			u.makes(changed+"/tracks/"+made+"/delete", url.Values{})
		}
	}
}

func (u *owner) comparesTracks(saved, changed string) {
	u.t.Helper()
	plain := url.Values{"name": {"One"}, "language_code": {"en"}}
	for name, tt := range map[string]struct {
		to  url.Values
		not string // a member that is not sent
	}{
		"all of it": {
			url.Values{"name": {oddName}, "language_code": {"fi"}, "closed_captions": {"1"}}, "nothing",
		},
		"the name of the language": {url.Values{"name": {""}, "language_code": {"sv"}}, "closed_captions"},
	} {
		made := func(page string) edited {
			u.makes(page+"/tracks", url.Values{
				"track_type": {"text"}, "track_url": {noFile}, "language_code": {"en"}, "track_name": {"One"},
			})
			id, _ := u.newTrack(page)
			return edited{page + "/tracks/" + id, plain, tt.to, func(u *owner) map[string]any {
				_, v := u.newTrack(page)
				return v
			}}
		}
		one, other := made(saved), made(changed)
		if program := u.changesAlike(one, other)["Node"]; strings.Contains(program, tt.not) {
			u.t.Errorf("%s: %s is sent, which is as it was:\n%s", name, tt.not, program)
		}
		u.makes(one.form+"/delete", url.Values{})
		u.makes(other.form+"/delete", url.Values{})
	}
}

// noFile is an address at which there is nothing: a track of it has no length that could differ.
const noFile = "http://127.0.0.1:1/a.vtt"

// apiOf is where the API has the asset of a page.
func apiOf(page string) string { return "/video/v1/assets/" + path.Base(page) }

// readyAsset makes an asset of a URL, and gives the address of its page once that offers what needs one that is ready.
func (u *owner) readyAsset(file string) string {
	u.t.Helper()
	page := u.makes("/dashboard/assets", url.Values{"url": {file}, "policy": {"public"}})
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodGet, u.base+page+"/follow", nil)
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Cookie", u.cookie)
	r.Header.Set("Accept", "text/event-stream")
	response, err := u.http.Do(r)
	if err != nil {
		u.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `id="track-form"`) {
			return page
		}
	}
	u.t.Fatalf("%s is not ready: %v", page, lines.Err())
	return ""
}

// newTrack is the last track of an asset: its ID, and the rest, without what each has of its own.
func (u *owner) newTrack(page string) (id string, v map[string]any) {
	u.t.Helper()
	tracks, _ := u.read(apiOf(page))["tracks"].([]any)
	if len(tracks) == 0 {
		u.t.Fatal("there is no track")
	}
	v, _ = tracks[len(tracks)-1].(map[string]any)
	id, _ = v["id"].(string)
	v = maps.Clone(v)
	alike(v)
	return id, v
}
