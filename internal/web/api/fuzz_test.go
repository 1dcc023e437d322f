package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"millrace/internal/fault"
)

// FuzzBody sends any bytes through the decoding of every operation that takes a body: it ends in a body that its type
// takes, or in messages that are short, few and for the client.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[]`, `{"playback_policy":"public"}`, `{"playback_policies":["public",7,null]}`,
		`{"inputs":["u",{"url":"u"},[]]}`,
		`{"inputs":{"url":"u","generated_subtitles":{"name":"n"}}}`, `{"input":"u","test":1}`,
		`{"meta":null,"passthrough":null,"name":null}`,
		`{"max_continuous_duration":6e1,"reconnect_window":1e400}`, `{"a":{"b":[{"c":"\u0000"}]}}`,
		`{"passthrough":"\ud800"}`, "{\"x\":\"\xff\"}",
		`{"Passthrough":1,"passthrough":"x","passthrough":"y"}`,
		`{"new_asset_settings":{"input":[["u"]],"advanced_playback_policies":[{"policy":null}]}}`,
		strings.Repeat("[", 100), `{"":0}`, `{"closed_captions":true,"url":"u","type":"text","language_code":"en"}`,
		`{"policy":"drm","drm_configuration_id":5}`,
	} {
		f.Add([]byte(seed))
	}
	s := newServer(Options{})
	type target struct {
		method, path string
		into         func() any
	}
	targets := []target{
		{"POST", "/video/v1/live-streams", func() any { return new(LiveStreamCreate) }},
		{"PATCH", "/video/v1/live-streams/a", func() any { return new(LiveStreamUpdate) }},
		{"POST", "/video/v1/assets", func() any { return new(AssetCreate) }},
		{"PATCH", "/video/v1/assets/a", func() any { return new(AssetUpdate) }},
		{"POST", "/video/v1/assets/a/tracks", func() any { return new(TrackCreate) }},
		{"PATCH", "/video/v1/assets/a/tracks/b", func() any { return new(TrackUpdate) }},
		{"POST", "/video/v1/assets/a/static-renditions", func() any { return new(StaticRenditionCreate) }},
		{
			"PUT", "/video/v1/live-streams/a/new-asset-settings/static-renditions",
			func() any { return new(LiveStaticUpdate) },
		},
		{"POST", "/video/v1/assets/a/playback-ids", func() any { return new(PlaybackIDCreate) }},
		{"POST", "/video/v1/live-streams/a/simulcast-targets", func() any { return new(SimulcastTargetCreate) }},
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, target := range targets {
			clean, shaped, err := s.cleanBody(body, operationFor(t, s, target.method, target.path))
			if err != nil {
				checkMessages(t, err)
				continue
			}
			if out := shaped.names.within([]string{
				"inputs[0].url is required", "new_asset_settings.playback_policies[1] must be",
			}); len(out) != 2 {
				t.Fatalf("messages became %q", out)
			}
			for _, f := range shaped.ignored {
				if len(f.path) > maxPath || strings.ContainsAny(f.path+f.why, "\r\n") {
					t.Fatalf("ignored field %q: %q", f.path, f.why)
				}
			}
			into := target.into()
			if err := json.Unmarshal(clean, into); err != nil {
				t.Fatalf("%s %s: %s passed as %s, but: %v", target.method, target.path, body, clean, err)
			}
			if !json.Valid(body) || !utf8.Valid(body) || strings.Contains(string(clean), `\u0000`) {
				t.Fatalf("%q passed", body)
			}
			switch in := into.(type) {
			case *LiveStreamCreate:
				_, _ = in.input()
			case *LiveStreamUpdate:
				in.input()
			case *AssetCreate:
				_, _ = in.input()
			}
		}
	})
}

func checkMessages(t *testing.T, err error) {
	t.Helper()
	e, ok := errors.AsType[*fault.Error](err)
	if !ok || e.Kind != fault.Invalid || len(e.Messages) == 0 || len(e.Messages) > maxMessages {
		t.Fatalf("error %#v", err)
	}
	for _, m := range fault.Messages(err) {
		if len(m) > maxPath+200 || !utf8.ValidString(m) || strings.ContainsAny(m, "\x00\r\n") {
			t.Fatalf("message %q", m)
		}
	}
}
