package upload_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const env = id.Environment("env")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("error %v, want one of kind %d", err, want)
	}
}

// each runs a test with a service on each database.
func each(t *testing.T, quota int64, test func(t *testing.T, d *db.DB, s *upload.Service)) {
	t.Helper()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		test(t, d, upload.New(upload.Options{Store: d.Uploads(), Quota: quota}))
	})
}

// happened is the types of all events of the environment, in order.
func happened(t *testing.T, d *db.DB) string {
	t.Helper()
	events, err := d.Events(t.Context(), env, time.Time{}, 1000)
	must(t, err)
	var out []string
	for _, e := range events {
		if text := string(e.Data); strings.Contains(text, "secret") || strings.Contains(text, "media") {
			t.Errorf("event %s shows what the API does not: %s", e.Type, text)
		}
		out = append(out, strings.TrimPrefix(e.Type, "video."))
	}
	return strings.Join(out, " ")
}

func create(t *testing.T, s *upload.Service, in upload.CreateInput) upload.Upload {
	t.Helper()
	if in.CORSOrigin == "" {
		in.CORSOrigin = "*"
	}
	u, err := s.Create(t.Context(), env, in, noon)
	must(t, err)
	return u
}

func TestCreate(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, d *db.DB, s *upload.Service) {
		u := create(t, s, upload.CreateInput{
			Test: true, DefaultQuality: "premium", Options: assetopt.Options{Passthrough: "p"},
		})
		if u.Timeout != 3600 || u.Options.VideoQuality != "premium" || len(u.Secret) < 40 ||
			u.Status != upload.Waiting {
			t.Errorf("got %+v", u)
		}
		got, err := s.Get(t.Context(), env, u.ID, noon)
		must(t, err)
		if !reflect.DeepEqual(got, u) {
			t.Errorf("got %+v, want %+v", got, u)
		}
		if got, err = s.FindSecret(t.Context(), u.Secret, noon); err != nil || got.ID != u.ID {
			t.Errorf("by its secret: %+v, %v", got, err)
		}
		for _, secret := range []string{"", "x", "x\x00", string(u.ID)} {
			_, err = s.FindSecret(t.Context(), secret, noon)
			wantKind(t, err, fault.NotFound)
		}
		_, err = s.Get(t.Context(), "other", u.ID, noon)
		wantKind(t, err, fault.NotFound)
		second, err := s.Create(t.Context(), env, upload.CreateInput{CORSOrigin: "*"}, noon.Add(time.Second))
		must(t, err)
		list, err := s.List(t.Context(), env, upload.ListQuery{Limit: 2}, noon)
		must(t, err)
		if len(list) != 2 || list[0].ID != second.ID || list[1].ID != u.ID {
			t.Errorf("list %+v", list)
		}
		if got := happened(t, d); got != "upload.created upload.created" {
			t.Error(got)
		}
	})
}

func TestCreateRules(t *testing.T) {
	t.Parallel()
	s := upload.New(upload.Options{})
	for _, tt := range []struct {
		name string
		in   upload.CreateInput
		want string
	}{
		{"no origin", upload.CreateInput{}, "cors_origin is required"},
		{"no URL", upload.CreateInput{CORSOrigin: "example.com"}, "cors_origin must be an absolute http or https URL"},
		{"a password", upload.CreateInput{CORSOrigin: "https://u:p@example.com"}, "cors_origin must be an origin"},
		{
			"too short",
			upload.CreateInput{CORSOrigin: "*", Timeout: new(59)},
			"timeout must be a number from 60 to 604800",
		},
		{
			"too long",
			upload.CreateInput{CORSOrigin: "*", Timeout: new(604801)},
			"timeout must be a number from 60 to 604800",
		},
		{
			"a URL for the file",
			upload.CreateInput{
				CORSOrigin: "*", Options: assetopt.Options{Inputs: []assetopt.Input{{URL: "https://h/x"}}},
			},
			"new_asset_settings.inputs[0].url must not be set: the first input of an upload is the uploaded file",
		},
		{
			"an overlay without a URL",
			upload.CreateInput{
				CORSOrigin: "*",
				Options:    assetopt.Options{Inputs: []assetopt.Input{{}, {Overlay: &assetopt.Overlay{}}}},
			},
			"new_asset_settings.inputs[1].url is required",
		},
	} {
		_, err := s.Create(t.Context(), env, tt.in, noon)
		if m := fault.Messages(err); len(m) != 1 || !strings.HasPrefix(m[0], tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		set, origin string
		want        bool
	}{
		{"*", "https://a.example", true},
		{"*", "null", true},
		{"https://a.example", "https://a.example", true},
		{"https://A.example:443/", "https://a.example", true},
		{"http://localhost:3000", "http://localhost:3000", true},
		{"http://localhost:3000", "http://localhost", false},
		{"https://a.example", "http://a.example", false},
		{"https://a.example", "https://a.example.evil", false},
		{"https://a.example", "null", false},
		{"https://a.example", "", false},
	} {
		if got := (&upload.Upload{CORSOrigin: tt.set}).Allows(tt.origin); got != tt.want {
			t.Errorf("%s of %s: %v", tt.origin, tt.set, got)
		}
	}
}

// TestCompleted: the file came, and then no asset could be made of it.
func TestCompleted(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, d *db.DB, s *upload.Service) {
		ctx := t.Context()
		assets := asset.New(asset.Options{Store: d.Assets()})
		u := create(t, s, upload.CreateInput{
			Test: true, Options: assetopt.Options{Passthrough: "p", Inputs: []assetopt.Input{
				{Name: "main"}, {URL: "https://h/x.vtt", Type: "text", TextType: "subtitles", LanguageCode: "en"},
			}},
		})
		made, err := assets.Uploaded(asset.NewUpload{
			Upload: u.ID, Environment: env, Options: u.Options, Test: u.Test, Media: u.Media,
		}, noon.Add(time.Second))
		must(t, err)
		done, err := s.Completed(u, made.Asset.ID, noon.Add(time.Second))
		must(t, err)
		must(t, d.CompleteUpload(ctx, done, made))
		wantKind(t, d.CompleteUpload(ctx, done, made), fault.Conflict)
		u, err = s.Get(ctx, env, u.ID, noon)
		must(t, err)
		a, err := assets.Get(ctx, env, u.Asset)
		must(t, err)
		if u.Status != upload.AssetCreated || a.Upload != u.ID || a.Origin != asset.FromUpload || a.Media != u.Media ||
			!a.Options.Test || a.Options.Passthrough != "p" || len(a.Tracks) != 1 {
			t.Errorf("upload %+v, asset %+v", u, a)
		}
		if found, _, failed := assets.List(ctx, env, asset.ListQuery{Upload: u.ID}); failed != nil || len(found) != 1 {
			t.Errorf("assets of the upload: %+v, %v", found, failed)
		}
		_, err = s.Cancel(ctx, env, u.ID, noon)
		wantKind(t, err, fault.Denied)
		must(t, s.Expire(ctx, u.ID, noon.Add(time.Hour)))
		wrong := asset.Errors{Type: "invalid_input", Messages: []string{"m"}}
		must(t, asset.NewWork(asset.Options{Store: d.Assets()}).Fail(ctx, a.ID, wrong, noon.Add(2*time.Second)))
		if n, failed := d.Unfinished(ctx, asset.JobUploadFail, string(a.ID)); failed != nil || n != 1 {
			t.Errorf("%d jobs say that the asset failed, %v", n, failed)
		}
		for range 2 {
			must(t, s.Fail(ctx, u.ID, upload.Error{Type: "invalid_input", Message: "m"}, noon.Add(3*time.Second)))
		}
		u, err = s.Get(ctx, env, u.ID, noon)
		must(t, err)
		if u.Status != upload.Errored || u.Error == nil || u.Error.Message != "m" || u.Asset == "" {
			t.Errorf("upload %+v", u)
		}
		want := "upload.created upload.asset_created asset.created asset.track.created asset.errored " +
			"asset.track.errored upload.errored"
		if got := happened(t, d); got != want {
			t.Errorf("events\n%s, want\n%s", got, want)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, d *db.DB, s *upload.Service) {
		ctx := t.Context()
		u := create(t, s, upload.CreateInput{})
		got, err := s.Cancel(ctx, env, u.ID, noon.Add(time.Second))
		must(t, err)
		if got.Status != upload.Cancelled {
			t.Errorf("got %+v", got)
		}
		if n, failed := d.Unfinished(ctx, upload.JobClear, string(u.ID)); failed != nil || n != 1 {
			t.Errorf("%d jobs clear up, %v", n, failed)
		}
		wantKind(t, s.Quit(ctx, u.ID, noon), fault.Denied)
		_, err = s.Completed(got, "a", noon)
		wantKind(t, err, fault.Conflict)
		wantKind(t, s.Declare(ctx, u.ID, upload.Length{Size: 1}), fault.Conflict)
		_, err = s.Cancel(ctx, env, "unknown", noon)
		wantKind(t, err, fault.NotFound)
		if got := happened(t, d); got != "upload.created upload.cancelled" {
			t.Error(got)
		}
	})
}

// TestExpire: the end of its time is seen at once, and written down by its job, without an event.
func TestExpire(t *testing.T) {
	t.Parallel()
	each(t, 0, func(t *testing.T, d *db.DB, s *upload.Service) {
		ctx := t.Context()
		u := create(t, s, upload.CreateInput{Timeout: new(60)})
		last, over := noon.Add(time.Minute-time.Millisecond), noon.Add(time.Minute)
		wantKind(t, s.Expire(ctx, u.ID, last), fault.NotReady)
		for now, want := range map[time.Time]upload.Status{last: upload.Waiting, over: upload.TimedOut} {
			got, err := s.Get(ctx, env, u.ID, now)
			must(t, err)
			listed, err := s.List(ctx, env, upload.ListQuery{}, now)
			must(t, err)
			found, err := s.FindSecret(ctx, u.Secret, now)
			must(t, err)
			if got.Status != want || listed[0].Status != want || found.Status != want {
				t.Errorf("at %v: %s, %s, %s", now, got.Status, listed[0].Status, found.Status)
			}
		}
		_, err := s.Cancel(ctx, env, u.ID, over)
		wantKind(t, err, fault.Denied)
		_, err = s.Completed(u, "a", over)
		wantKind(t, err, fault.Conflict)
		for range 2 {
			must(t, s.Expire(ctx, u.ID, over))
		}
		if n, failed := d.Unfinished(ctx, upload.JobClear, string(u.ID)); failed != nil || n != 1 {
			t.Errorf("%d jobs clear up, %v", n, failed)
		}
		if got := happened(t, d); got != "upload.created" {
			t.Error(got)
		}
	})
}

// TestQuota: what waits counts, and what is over does not.
func TestQuota(t *testing.T) {
	t.Parallel()
	each(t, 100, func(t *testing.T, _ *db.DB, s *upload.Service) {
		ctx := t.Context()
		a, b := create(t, s, upload.CreateInput{}), create(t, s, upload.CreateInput{})
		must(t, s.Declare(ctx, a.ID, upload.Length{Size: 60}))
		must(t, s.Declare(ctx, a.ID, upload.Length{Size: 60}))
		err := s.Declare(ctx, b.ID, upload.Length{Size: 41})
		wantKind(t, err, fault.Unavailable)
		if m := fault.Messages(err); !errors.Is(err, upload.ErrQuota) || len(m) != 1 ||
			!strings.Contains(m[0], "100 bytes") || !strings.Contains(m[0], "60 of them") {
			t.Error(err)
		}
		wantKind(t, s.Declare(ctx, b.ID, upload.Length{Size: 101}), fault.TooLarge) // whatever the others have
		must(t, s.Declare(ctx, b.ID, upload.Length{Size: 40}))
		must(t, s.Quit(ctx, a.ID, noon))
		must(t, s.Declare(ctx, b.ID, upload.Length{Size: 100}))
		other, err := s.Create(ctx, "other", upload.CreateInput{CORSOrigin: "*"}, noon)
		must(t, err)
		must(t, s.Declare(ctx, other.ID, upload.Length{Size: 100}))
		got, err := s.Find(ctx, b.ID)
		must(t, err)
		if got.Size != 100 {
			t.Errorf("size %d", got.Size)
		}
	})
}

// TestStates: every status but the first is the end, or leads there.
func TestStates(t *testing.T) {
	t.Parallel()
	facts := []upload.Fact{upload.FileCame, upload.TimePassed, upload.OwnerQuit, upload.AssetFailed}
	want := map[upload.Status][]upload.Status{
		upload.Waiting:      {upload.AssetCreated, upload.TimedOut, upload.Cancelled, upload.Errored},
		upload.AssetCreated: {"", "", "", upload.Errored},
	}
	for _, from := range []upload.Status{
		upload.Waiting, upload.AssetCreated, upload.Errored, upload.Cancelled, upload.TimedOut,
	} {
		var got []upload.Status
		for _, f := range facts {
			to, _ := upload.Next(from, f)
			got = append(got, to)
		}
		if w := want[from]; w != nil && !slices.Equal(got, w) ||
			w == nil &&
				strings.Join([]string{string(got[0]), string(got[1]), string(got[2]), string(got[3])}, "") != "" {
			t.Errorf("from %s: %v", from, got)
		}
	}
}

// TestEncryptedOnly: of what is uploaded nothing is given in clear where a DRM configuration says so.
func TestEncryptedOnly(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	s := upload.New(upload.Options{
		Store: d.Uploads(), DRM: func(context.Context, id.Environment, string) (playbackid.Configuration, error) {
			return playbackid.Configuration{EncryptedOnly: true}, nil
		},
	})
	drm := playbackid.Request{Policy: playbackid.DRM, DRMConfigurationID: "e"}
	for name, tt := range map[string]struct {
		policies []playbackid.Request
		master   string
		ok       bool
	}{
		"encrypted":        {[]playbackid.Request{drm}, "", true},
		"public beside it": {[]playbackid.Request{drm, {Policy: playbackid.Public}}, "", false},
		"with a master":    {[]playbackid.Request{drm}, assetopt.Temporary, false},
	} {
		o := assetopt.Options{AdvancedPolicies: tt.policies, MasterAccess: tt.master}
		_, err := s.Create(t.Context(), env, upload.CreateInput{Options: o, CORSOrigin: "*"}, noon)
		if (err == nil) != tt.ok || err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
