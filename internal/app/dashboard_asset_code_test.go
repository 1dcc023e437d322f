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

func (o *owner) comparesNames(saved, changed string) {
	o.t.Helper()
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
			o.makes(page, tt.from)
			return edited{page, tt.from, tt.to, func(u *owner) map[string]any { return u.object(apiOf(page)) }}
		}
		program := o.changesAlike(at(saved), at(changed), tt.goLacks...)["Go"]
		if strings.Contains(program, "can't send") != (tt.note != "") || !strings.Contains(program, tt.note) {
			o.t.Errorf("%s: Go does not say that it can't send %q:\n%s", name, tt.note, program)
		}
	}
}

// comparesNewTracks deletes each track before the next one is made: two can't have one name.
func (o *owner) comparesNewTracks(saved, changed string) {
	o.t.Helper()
	for name, form := range map[string]url.Values{
		"captions": {
			"track_type": {"text"}, "track_url": {noFile + "?it's=$HOME"}, "language_code": {"pt-BR"},
			"track_name": {oddName}, "closed_captions": {"1"},
		},
		"sound, without a name": {"track_type": {"audio"}, "track_url": {noFile}, "language_code": {"fi"}},
	} {
		o.makes(saved+"/tracks", form)
		first, want := o.newTrack(saved)
		o.makes(saved+"/tracks/"+first+"/delete", url.Values{})
		samples := o.samples(changed+"/tracks/code", form)
		for language, program := range o.programs(o.t, samples) {
			printed := program().id
			made, got := o.newTrack(changed)
			if made != printed || !reflect.DeepEqual(got, want) {
				o.t.Errorf("%s: %s prints %s and makes\n%v %v\nand the form\n%v:\n%s",
					name, language, printed, made, got, want, samples[language])
			}
			o.makes(changed+"/tracks/"+made+"/delete", url.Values{})
		}
	}
}

func (o *owner) comparesTracks(saved, changed string) {
	o.t.Helper()
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
			o.makes(page+"/tracks", url.Values{
				"track_type": {"text"}, "track_url": {noFile}, "language_code": {"en"}, "track_name": {"One"},
			})
			id, _ := o.newTrack(page)
			return edited{page + "/tracks/" + id, plain, tt.to, func(u *owner) map[string]any {
				_, v := u.newTrack(page)
				return v
			}}
		}
		one, other := made(saved), made(changed)
		if program := o.changesAlike(one, other)["Node"]; strings.Contains(program, tt.not) {
			o.t.Errorf("%s: %s is sent, which is as it was:\n%s", name, tt.not, program)
		}
		o.makes(one.form+"/delete", url.Values{})
		o.makes(other.form+"/delete", url.Values{})
	}
}

// noFile is an address at which there is nothing: a track of it has no length that could differ.
const noFile = "http://127.0.0.1:1/a.vtt"

// apiOf is where the API has the asset of a page.
func apiOf(page string) string { return "/video/v1/assets/" + path.Base(page) }

// readyAsset makes an asset of a URL, and gives the address of its page once that offers what needs one that is ready.
func (o *owner) readyAsset(file string) string {
	o.t.Helper()
	page := o.makes("/dashboard/assets", url.Values{"url": {file}, "policy": {"public"}})
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodGet, o.base+page+"/follow", nil)
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Cookie", o.cookie)
	r.Header.Set("Accept", "text/event-stream")
	response, err := o.http.Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), `id="track-form"`) {
			return page
		}
	}
	o.t.Fatalf("%s is not ready: %v", page, lines.Err())
	return ""
}

// newTrack is the last track of an asset: its ID, and the rest, without what each has of its own.
func (o *owner) newTrack(page string) (id string, v map[string]any) {
	o.t.Helper()
	tracks, _ := o.read(apiOf(page))["tracks"].([]any)
	if len(tracks) == 0 {
		o.t.Fatal("there is no track")
	}
	v, _ = tracks[len(tracks)-1].(map[string]any)
	id, _ = v["id"].(string)
	v = maps.Clone(v)
	alike(v)
	return id, v
}
