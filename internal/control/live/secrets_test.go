package live_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
)

// TestEventsHoldNoSecrets: none of the places in which a stream has secrets is in what its events store, and all come
// back.
func TestEventsHoldNoSecrets(t *testing.T) {
	t.Parallel()
	s := live.Stream{ID: "s", StreamKey: "SECRET1", SRTPassphrase: "SECRET2", Settings: live.Settings{
		Passthrough: "kept", ReconnectSlateURL: "https://u:SECRETa@host/slate.png?sig=SECRETb",
		NewAsset: &assetopt.Options{
			Inputs: []assetopt.Input{{}, {URL: "https://host/logo.png?sig=SECRETc#SECRETd", Name: "logo"}},
		}, SimulcastTargets: []live.SimulcastTarget{
			{ID: "a", URL: "rtmp://host/app", StreamKey: "SECRET3"},
			{ID: "b", URL: "rtmps://host:443/app/SECRET4"},
			{ID: "c", URL: "rtmp://host/app?key=SECRET5", StreamKey: "SECRET6"},
			{ID: "d", URL: "srt://host:9000?streamid=SECRET7&passphrase=SECRET8"},
			{ID: "e", URL: "rtmp://host/app/instance", StreamKey: "SECRET9"},
			{ID: "f", URL: "rtmp://%zz/SECRET"},
		},
	}}
	text, err := json.Marshal(s.WithoutSecrets())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "SECRET") {
		t.Errorf("a secret is left: %s", text)
	}
	for _, kept := range []string{
		"kept", "rtmp://host/app", "rtmps://host:443/app", "srt://host:9000", "rtmp://host/app/instance",
		"https://host/slate.png", "https://host/logo.png", "logo",
	} {
		if !strings.Contains(string(text), `"`+kept+`"`) {
			t.Errorf("%s is gone: %s", kept, text)
		}
	}
	var stored live.Stream
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	full := stored.WithSecrets(s)
	if full.StreamKey != s.StreamKey || full.SRTPassphrase != s.SRTPassphrase {
		t.Errorf("keys %+v", full)
	}
	if full.Settings.ReconnectSlateURL != s.Settings.ReconnectSlateURL ||
		!slices.EqualFunc(full.Settings.NewAsset.Inputs, s.Settings.NewAsset.Inputs, sameInput) {
		t.Errorf("URLs %+v", full.Settings)
	}
	other := s
	other.Settings.ReconnectSlateURL, other.Settings.NewAsset = "https://host/other.png?sig=SECRET",
		&assetopt.Options{Inputs: []assetopt.Input{{}, {URL: "https://host/other.png"}}}
	if full := stored.WithSecrets(other).Settings; full.ReconnectSlateURL != "https://host/slate.png" ||
		full.NewAsset.Inputs[1].URL != "https://host/logo.png" {
		t.Errorf("URLs that are others now: %+v", full)
	}
	for i, got := range full.Settings.SimulcastTargets {
		if got != s.Settings.SimulcastTargets[i] {
			t.Errorf("target %+v, want %+v", got, s.Settings.SimulcastTargets[i])
		}
	}
	if gone := stored.WithSecrets(live.Stream{}); len(gone.Settings.SimulcastTargets) != 6 ||
		gone.Settings.SimulcastTargets[0].URL != "rtmp://host/app" {
		t.Errorf("of a stream that is gone: %+v", gone)
	}
}

func sameInput(a, b assetopt.Input) bool { return a.URL == b.URL && a.Name == b.Name }
