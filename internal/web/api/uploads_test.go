package api

import (
	"context"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/event"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// fakeUploads responds with the same uploads every time.
type fakeUploads struct{ *notebook }

func plainUpload() upload.Upload {
	return upload.Upload{
		ID: "upload1", Environment: envID, Status: upload.Waiting, Timeout: 3600, CORSOrigin: "*", Secret: "secret1",
		CreatedAt: noon, UpdatedAt: noon,
	}
}

func fullUpload() upload.Upload {
	u := plainUpload()
	u.Status, u.Asset, u.Test, u.Error = upload.Errored, "asset1", true,
		&upload.Error{Type: "invalid_input", Message: "the file is empty"}
	u.Options = assetopt.Options{Inputs: []assetopt.Input{{Name: "main"}}, Passthrough: "p"}
	u.Length = upload.Length{Size: 1 << 20, Whole: true}
	return u
}

func (f *fakeUploads) Create(
	_ context.Context, _ id.Environment, in upload.CreateInput, _ time.Time,
) (upload.Upload, error) {
	f.note("upload.Create", in)
	return plainUpload(), outcome(in.CORSOrigin)
}

func (f *fakeUploads) Get(_ context.Context, _ id.Environment, u id.Upload, _ time.Time) (upload.Upload, error) {
	f.note("upload.Get", u)
	if u == "plain" {
		return plainUpload(), nil
	}
	return fullUpload(), outcome(string(u))
}

func (f *fakeUploads) List(
	_ context.Context, _ id.Environment, q upload.ListQuery, _ time.Time,
) ([]upload.Upload, error) {
	f.note("upload.List", q)
	return []upload.Upload{plainUpload(), fullUpload()}, nil
}

func (f *fakeUploads) Cancel(_ context.Context, _ id.Environment, u id.Upload, _ time.Time) (upload.Upload, error) {
	f.note("upload.Cancel", u)
	v := plainUpload()
	v.Status = upload.Cancelled
	if u == "denied" {
		return v, fault.New(fault.Denied, "only an upload that is waiting can be cancelled; this one is timed_out")
	}
	return v, outcome(string(u))
}

func TestUploads(t *testing.T) {
	t.Parallel()
	const base = "/video/v1/uploads"
	runScenarios(t, "uploads.txt", []scenario{
		{name: "create", method: "POST", path: base, body: `{"cors_origin":"*"}`, status: 201},
		{name: "create with everything", method: "POST", path: base, status: 201, body: `{
			"timeout":60,"cors_origin":"https://example.com","test":true,"new_asset_settings":{"playback_policies":["public"],"passthrough":"p","meta":{"title":"t"},
			"inputs":[{"name":"main","embedded_subtitles":[{"name":"CC","language_channel":"cc3","language_code":"en","passthrough":"q"}]},{"url":"https://example.com/l.png","overlay_settings":{"width":"10%"}},
			{"url":"https://example.com/s.vtt","type":"text","text_type":"subtitles","language_code":"en"}],"static_renditions":[{"resolution":"highest"}],"test":true}}`},
		{
			name: "create with wrong types", method: "POST", path: base,
			body: `{"timeout":"1","cors_origin":7,"new_asset_settings":[],"test":0}`, status: 400,
		},
		{
			name: "create with policies that differ", method: "POST", path: base,
			body: `{"cors_origin":"*","new_asset_settings":{"playback_policies":["public"],"playback_policy":["signed"]}}`, status: 400,
		},
		{name: "a rule is broken", method: "POST", path: base, body: `{"cors_origin":"many"}`, status: 400},
		{name: "get", method: "GET", path: base + "/plain", status: 200},
		{name: "get one with everything", method: "GET", path: base + "/upload1", status: 200},
		{name: "get an unknown one", method: "GET", path: base + "/absent", status: 404},
		{name: "list", method: "GET", path: base + "?page=2&limit=3", status: 200},
		{name: "list with wrong numbers", method: "GET", path: base + "?page=0", status: 400},
		{name: "cancel", method: "PUT", path: base + "/upload1/cancel", status: 200},
		{name: "cancel one that is not waiting", method: "PUT", path: base + "/denied/cancel", status: 403},
		{name: "cancel an unknown one", method: "PUT", path: base + "/absent/cancel", status: 404},
		{name: "uploads are not deleted", method: "DELETE", path: base + "/upload1", status: 405},
	})
}

// TestUploadEventInputs: inputs are stored and shown without the credentials in their URLs, and sent with them. Early
// versions stored none.
func TestUploadEventInputs(t *testing.T) {
	t.Parallel()
	const full, bare = "https://h.example/logo.png?signature=SECRET", "https://h.example/logo.png"
	today := plainUpload()
	today.Options.Inputs = []assetopt.Input{{}, {URL: full}}
	f := EventForm{
		Environment: func(context.Context, id.Environment) (access.Environment, error) {
			return access.Environment{}, nil
		},
		Upload: func(context.Context, id.Upload) (upload.Upload, error) { return today, nil },
	}
	early := today
	early.Options.Inputs = nil
	for _, c := range []struct {
		stored      upload.Upload
		shown, sent string
	}{{today.WithoutSecrets(), bare, full}, {early, "", full}} {
		e := event.New(envID, upload.EventCreated, upload.EventObject, "upload1", noon, c.stored)
		if strings.Contains(string(e.Data), "SECRET") {
			t.Errorf("stored: %s", e.Data)
		}
		for want, form := range map[string]func(context.Context, event.Event) (Event, error){
			c.shown: f.Show, c.sent: f.Send,
		} {
			v, err := form(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if in := v.Data.object.(Upload).NewAssetSettings.Inputs; len(in) == 2 {
				got = in[1].URL
			}
			if got != want {
				t.Errorf("URL %q, want %q", got, want)
			}
		}
	}
}

// TestUploadEvent: what happened to an upload is shown as the API shows it; its URL only where it is sent, and only
// while it can be used.
func TestUploadEvent(t *testing.T) {
	t.Parallel()
	today := plainUpload()
	f := EventForm{
		Environment: func(context.Context, id.Environment) (access.Environment, error) {
			return access.Environment{}, nil
		},
		Upload:    func(context.Context, id.Upload) (upload.Upload, error) { return today, nil },
		PublicURL: "https://h",
	}
	e := event.New(envID, upload.EventCreated, upload.EventObject, "upload1", noon, plainUpload())
	url := func(show func(context.Context, event.Event) (Event, error)) string {
		shown, err := show(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		data, ok := shown.Data.object.(Upload)
		if !ok || data.ID != "upload1" || data.Status != "waiting" || data.Timeout != 3600 ||
			shown.Object != (EventObject{Type: "upload", ID: "upload1"}) {
			t.Errorf("shown %+v", shown)
		}
		return data.URL
	}
	if got := url(f.Show); got != "" {
		t.Errorf("the event shows %s", got)
	}
	if got := url(f.Send); got != "https://h/uploads/secret1" {
		t.Errorf("the event sends %s", got)
	}
	today.Status = upload.Cancelled
	if got := url(f.Send); got != "" {
		t.Errorf("the event sends %s of an upload that is over", got)
	}
}
