package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/drm"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// drmStore keeps configurations in memory.
type drmStore struct{ all []drm.Configuration }

func (d *drmStore) Create(_ context.Context, name string, set drm.Settings) (drm.Configuration, error) {
	c := drm.Configuration{ID: "drm1", Name: name, CreatedAt: time.Unix(1e9, 0), Settings: set}
	d.all = append(d.all, c)
	return c, nil
}

func (d *drmStore) List(context.Context) ([]drm.Configuration, error) { return d.all, nil }

func (d *drmStore) SetVendors(_ context.Context, c id.DRMConfiguration, v drm.Vendors) error {
	if c != "drm1" {
		return fault.New(fault.NotFound, "the DRM configuration does not exist")
	}
	d.all[0].Vendors = v
	return nil
}

func (d *drmStore) Delete(context.Context, id.DRMConfiguration) error {
	d.all = nil
	return nil
}

func TestDRMCommands(t *testing.T) {
	t.Parallel()
	store, folder := &drmStore{}, t.TempDir()
	run := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), append([]string{"drm-configuration"}, args...), nil, &stdout, &stderr, Actions{
			DRM: func(context.Context, config.Config, id.Environment) (DRMConfigurations, func() error, error) {
				return store, func() error { return nil }, nil
			},
		})
		return code, stdout.String(), stderr.String()
	}
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("fps.cer", "DER")
	vendors := write("vendors.yaml", `
widevine: {url: "https://wv.example/licence", headers: {X-Api-Key: secret1}}
fairplay: {url: "https://fp.example/licence", body: form, certificate_file: fps.cer}
key_provider: {url: "https://keys.example/cpix", headers: {Authorization: "Basic secret2"}, encrypted_keys: true}
`)
	if code, out, problem := run("create", "--name", "films", "--encrypt-audio", "--keys-by-class", "--rotation", "1h",
		"--clear-key", "--vendors-file", vendors); code != 0 || out != "drm1\n" {
		t.Fatalf("create: %d %s %s", code, out, problem)
	}
	got := store.all[0]
	if got.Scheme != drm.CBCS || !got.EncryptAudio || !got.KeysByClass || got.Rotation != time.Hour || !got.ClearKey ||
		got.Name != "films" ||
		got.Widevine.Headers["X-Api-Key"] != "secret1" || got.PlayReady != nil || got.FairPlay.Body != drm.BodyForm ||
		string(got.FairPlay.Certificate) != "DER" ||
		got.FairPlay.URL != "https://fp.example/licence" || !got.KeyProvider.EncryptedKeys ||
		got.KeyProvider.Headers["Authorization"] != "Basic secret2" {
		t.Errorf("made of %+v", got)
	}
	const want = "ID    NAME   SCHEME  ENCRYPTS      KEYS                            SYSTEMS                       " +
		"CREATED\n" +
		"drm1  films  cbcs    video, audio  key provider, by class, every 1h0m0s  ClearKey, Widevine, FairPlay  " +
		"2001-09-09T01:46:40Z\n"
	if code, out, _ := run("list"); code != 0 ||
		strings.Join(strings.Fields(out), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("list: %d\n%s", code, out)
	}
	if code, _, problem := run("set-vendors", "drm1",
		write("none.yaml", "playready: {url: https://pr.example}\n")); code != 0 || store.all[0].Widevine != nil ||
		store.all[0].PlayReady == nil {
		t.Errorf("set-vendors: %d %s", code, problem)
	}
	for text, want := range map[string]string{
		"widewine: {}": "widewine", "- x": "vendors", "widevine: {url: x, key: y}": "key",
		"fairplay: {certificate_file: gone.cer}": "gone.cer", "widevine: 3": "vendors",
	} {
		if code, _, problem := run("set-vendors", "drm1", write("bad.yaml", text)); code != 1 ||
			!strings.Contains(problem, want) {
			t.Errorf("%s: %d %s", text, code, problem)
		}
	}
	for _, args := range [][]string{
		{"create", "--scheme", "cbc1"},
		{"set-vendors", "drm1"},
		{"create", "--rotation", "x"},
		{"create", "--clear-key=maybe"},
	} {
		if code, _, _ := run(args...); code != ExitUsage {
			t.Errorf("%q: %d", args, code)
		}
	}
	if code, _, _ := run("delete", "drm1"); code != 0 || len(store.all) != 0 {
		t.Errorf("delete: %d", code)
	}
}
