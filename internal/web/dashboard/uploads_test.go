package dashboard_test

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/upload"
	"millrace/internal/id"
)

const jsonAccepted = "application/json"

// toldFile is a response about an upload.
type toldFile struct {
	ID     string `json:"id"`
	Status string `json:"status"`
	URL    string `json:"url"`
	Asset  string `json:"asset"`
	Error  string `json:"error"`
}

func fileOf(t *testing.T, w *httptest.ResponseRecorder, status int) (f toldFile) {
	t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != jsonAccepted {
		t.Fatalf("status %d %s, want %d: %s", w.Code, w.Header(), status, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// begun makes an upload as a page does.
func (s *site) begun(t *testing.T, name string, header ...string) toldFile {
	t.Helper()
	form := url.Values{"name": {name}}
	return fileOf(t, s.ask(t, s.cookie, "/dashboard/uploads", form, append(header, "Accept", jsonAccepted)...), 200)
}

// TestUpload: what a page is told of an upload that it makes, and whose asset that becomes.
func TestUpload(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://h")
	f := s.begun(t, "film.mp4", "Origin", "http://h")
	u, err := s.uploads.Get(t.Context(), s.env(t), id.Upload(f.ID), s.now)
	if err != nil {
		t.Fatal(err)
	}
	if f.Status != "waiting" || f.URL != "/uploads/"+u.Secret || u.CORSOrigin != "http://h" || u.Timeout != 86400 ||
		u.Options.Meta.Title != "film.mp4" || len(u.Options.PlaybackPolicies) != 1 ||
		u.Options.PlaybackPolicies[0] != playbackid.Public {
		t.Errorf("told %+v of %+v", f, u)
	}
	if other := s.begun(t, "b.mp4"); other.URL == "" { // the browser told no origin
		t.Errorf("told %+v", other)
	}
	read := func() toldFile {
		return fileOf(t, s.ask(t, s.cookie, "/dashboard/uploads/"+f.ID, nil, "Accept", jsonAccepted), 200)
	}
	if again := read(); again != f {
		t.Errorf("told %+v, want %+v", again, f)
	}
	a := s.asset(t, "film.mp4")
	change, err := s.uploads.Completed(u, a.ID, s.now)
	if err == nil {
		err = s.db.Uploads().Save(t.Context(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
	if done := read(); done.Status != "asset_created" || done.URL != "" ||
		done.Asset != "/dashboard/assets/"+string(a.ID) {
		t.Errorf("told %+v", done)
	}
}

// TestUploadNames: the name of a file is what the asset is called, as far as that may be.
func TestUploadNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://h")
	for name, want := range map[string]string{
		"":                          "",
		" a b.mp4 ":                 "a b.mp4",
		"a\x00\n\u009bb.mp4":        "ab.mp4",
		"\xff.mp4":                  ".mp4",
		hostile:                     hostile,
		strings.Repeat("é", 600):    strings.Repeat("é", 512),
		strings.Repeat("\u202e", 3): strings.Repeat("\u202e", 3),
	} {
		f := s.begun(t, name)
		u, err := s.uploads.Get(t.Context(), s.env(t), id.Upload(f.ID), s.now)
		if err != nil || u.Options.Meta.Title != want {
			t.Errorf("%q is called %q, want %q: %v", name, u.Options.Meta.Title, want, err)
		}
	}
}

// TestUploadCancelled: an upload that was cancelled takes nothing, once; others are not there.
func TestUploadCancelled(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://h")
	at := "/dashboard/uploads/" + s.begun(t, "film.mp4").ID
	s.now = s.now.Add(time.Second)
	cancel := func(at string, status int) toldFile {
		return fileOf(t, s.ask(t, s.cookie, at+"/cancel", url.Values{}, "Accept", jsonAccepted), status)
	}
	if f := cancel(at, 200); f.Status != string(upload.Cancelled) || f.URL != "" {
		t.Errorf("told %+v", f)
	}
	if f := cancel(at, 409); !strings.Contains(f.Error, "Only an upload that is waiting can be cancelled") {
		t.Errorf("told %+v", f)
	}
	if f := cancel("/dashboard/uploads/none", 404); f.Error == "" {
		t.Errorf("told %+v", f)
	}
	s.audited(t, strings.TrimPrefix(at, "/dashboard/uploads/"), "upload", "cancel-direct-upload create-direct-upload")
}

// TestUploadRefused: who may not write uploads nothing and learns no secret, and the page offers it not.
func TestUploadRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://h")
	f := s.begun(t, "film.mp4")
	reader := s.signIn(t, access.VideoRead)
	if w := s.ask(t, reader, "/dashboard/uploads", url.Values{}, "Accept", jsonAccepted); w.Code != 403 {
		t.Errorf("a reader makes an upload: %d", w.Code)
	}
	w := s.ask(t, reader, "/dashboard/uploads/"+f.ID, nil, "Accept", jsonAccepted)
	if got := fileOf(t, w, 200); got.URL != "" || got.Status != "waiting" {
		t.Errorf("a reader is told %+v", got)
	}
	if w := s.ask(t, "", "/dashboard/uploads/"+f.ID, nil, "Accept", jsonAccepted); w.Code != 401 {
		t.Errorf("who is not signed in is told %d", w.Code)
	}
	for cookie, want := range map[string]bool{s.cookie: true, reader: false} {
		page := s.ask(t, cookie, "/dashboard/assets", nil).Body.String()
		if got := strings.Contains(page, "uploads.js") && strings.Contains(page, "data-files"); got != want {
			t.Errorf("the page offers uploads: %v, want %v", got, want)
		}
	}
}
