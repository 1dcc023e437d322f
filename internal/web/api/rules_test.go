package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/storage/db/dbtest"
)

// TestRules sends what the services refuse through the real ones: every message reaches the client, names the field
// that the client sent and does not repeat the value.
func TestRules(t *testing.T) {
	t.Parallel()
	const lives, assets = "/video/v1/live-streams", "/video/v1/assets"
	services := openServices(t, dbtest.SQLite(t))
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	w := services.ask(t, http.MethodPost, lives, `{}`)
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	film := made
	w = services.ask(t, http.MethodPost, assets, `{"input":"https://example.com/a.mp4"}`)
	if err := json.Unmarshal(w.Body.Bytes(), &film); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	long := strings.Repeat("VALUE", 110)
	for _, tt := range []struct {
		name, method, path, body string
		want                     []string // the beginnings of messages
	}{
		{
			"mp4_support with static_renditions", "POST", lives,
			`{"new_asset_settings":{"mp4_support":"standard","static_renditions":[{"resolution":"highest"}]}}`,
			[]string{"new_asset_settings.mp4_support"},
		},
		{"drm without the advanced policies", "POST", lives, `{"playback_policy":"drm"}`, []string{"playback_policy"}},
		{
			"drm configuration without drm", "POST", assets,
			`{"input":"https://example.com/a.mp4","advanced_playback_policies":[{"policy":"public","drm_configuration_id":"d"}]}`,
			[]string{"advanced_playback_policies[0].drm_configuration_id"},
		},
		{
			"generated subtitles on the second input", "POST", assets,
			`{"inputs":["https://example.com/a.mp4",{"url":"https://example.com/a.srt","type":"text","text_type":"subtitles","language_code":"en","generated_subtitles":[{"language_code":"en"}]}]}`,
			[]string{"inputs[1].generated_subtitles"},
		},
		{
			"many at once", "POST", lives,
			`{"passthrough":"` + long +
				`","reconnect_window":-1,"latency_mode":"VALUE","max_continuous_duration":59,"meta":{"title":"` + long +
				`"}}`,
			[]string{"passthrough", "reconnect_window", "latency_mode", "max_continuous_duration", "meta.title"},
		},
		{"no inputs", "POST", assets, `{}`, []string{"inputs"}},
		{"an input that is no URL", "POST", assets, `{"input":"VALUE://x"}`, []string{"input"}},
		{
			"a policy by its old name", "POST", lives,
			`{"playback_policy":["public","drm"],"new_asset_settings":{"playback_policy":"drm"}}`,
			[]string{"playback_policy[1]", "new_asset_settings.playback_policy"},
		},
		{
			"inputs by their old name", "POST", assets,
			`{"input":[{},{"url":"https://example.com/a.srt","type":"text"}]}`,
			[]string{"input[0].url", "input[1].language_code", "input[1].text_type"},
		},
		{"one input in place of an array", "POST", assets, `{"inputs":{"url":"VALUE"}}`, []string{"inputs.url"}},
		{
			"URLs in place of inputs", "POST", assets, `{"inputs":["https://example.com/a.mp4","VALUE"]}`,
			[]string{"inputs[1].type"},
		},
		{"a URL in an array", "POST", assets, `{"input":["VALUE"]}`, []string{"input[0]"}},
		{
			"inputs by both names", "POST", assets,
			`{"input":"https://example.com/a.mp4","inputs":"https://example.com/b.mp4"}`,
			[]string{"input"},
		},
		{
			"policies by both ways", "POST", lives,
			`{"playback_policy":"public","advanced_playback_policies":[{"policy":"public"}]}`,
			[]string{"playback_policy and advanced_playback_policies"},
		},
		{"a clip of nothing", "POST", assets, `{"input":{"url":"mux://assets/VALUE0"}}`, nil},
		{
			"a text track in inputs without text_type", "POST", assets,
			`{"inputs":["https://example.com/a.mp4",{"url":"https://example.com/a.srt","type":"text","language_code":"en"}]}`,
			[]string{"inputs[1].text_type"},
		},
		{
			"patch", "PATCH", lives + "/" + made.Data.ID, `{"reconnect_window":1801,"meta":{"title":"` + long + `"}}`,
			[]string{"reconnect_window", "meta.title"},
		},
		{"thumbnail time", "PATCH", assets + "/" + film.Data.ID, `{"thumbnail_time":-1}`, []string{"thumbnail_time"}},
		{
			"simulcast target", "POST", lives + "/" + made.Data.ID + "/simulcast-targets",
			`{"url":"http://VALUE/app","passthrough":"` + long + `"}`,
			[]string{"url", "passthrough"},
		},
		{
			"simulcast target with a password", "POST", lives + "/" + made.Data.ID + "/simulcast-targets",
			`{"url":"rtmp://a:VALUE@example.com/app"}`,
			[]string{"url"},
		},
		{"playback ID", "POST", lives + "/" + made.Data.ID + "/playback-ids", `{}`, []string{"policy"}},
		{"cursor", "GET", assets + "?cursor=VALUE", ``, []string{"cursor"}},
	} {
		w := services.ask(t, tt.method, tt.path, tt.body)
		var e Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusBadRequest ||
			e.Detail.Type != typeInvalid {
			t.Errorf("%s: %d %s", tt.name, w.Code, w.Body)
		}
		for _, want := range tt.want {
			found := false
			for _, m := range e.Detail.Messages {
				found = found || strings.HasPrefix(m, want+" ")
			}
			if !found {
				t.Errorf("%s: no message about %s: %q", tt.name, want, e.Detail.Messages)
			}
		}
		if strings.Contains(w.Body.String(), "VALUE") {
			t.Errorf("%s: the value is repeated: %s", tt.name, w.Body)
		}
	}
}

// TestUnsupportedFields: a field that asks for what this service does not have is refused as the operations are,
// whatever else is wrong with the request.
func TestUnsupportedFields(t *testing.T) {
	t.Parallel()
	services := openServices(t, dbtest.SQLite(t))
	for _, tt := range []struct {
		path, body, typ string
		want            []string // the beginnings of messages
	}{
		{
			"assets", `{"input":"https://example.com/a.mp4","generate_shots":true}`, typeUnsupported,
			[]string{"generate_shots "},
		},
		{
			"live-streams", `{"new_asset_settings":{"generate_shots":true}}`, typeUnsupported,
			[]string{"new_asset_settings.generate_shots "},
		},
		{
			"uploads", `{"cors_origin":"*","new_asset_settings":{"generate_shots":true}}`, typeUnsupported,
			[]string{"new_asset_settings.generate_shots "},
		},
		{
			"assets", `{"input":"https://example.com/a.mp4","directives":[{"name":"summarize"}]}`, typeUnsupported,
			[]string{"directives "},
		},
		{
			"live-streams", `{"new_asset_settings":{"directives":[{}]}}`, typeUnsupported,
			[]string{"new_asset_settings.directives "},
		},
		{
			"uploads", `{"cors_origin":"*","new_asset_settings":{"directives":[{}]}}`, typeUnsupported,
			[]string{"new_asset_settings.directives "},
		},
		{
			"assets", `{"input":"ftp://example.com","generate_shots":true}`, typeUnsupported,
			[]string{"input ", "generate_shots "},
		},
		{
			"assets", `{"input":"ftp://example.com","generate_shots":false,"directives":[]}`, typeInvalid,
			[]string{"input "},
		},
	} {
		w := services.ask(t, http.MethodPost, "/video/v1/"+tt.path, tt.body)
		var e Error
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusBadRequest ||
			e.Detail.Type != tt.typ ||
			len(e.Detail.Messages) != len(tt.want) {
			t.Errorf("%s %s: %d %s", tt.path, tt.body, w.Code, w.Body)
			continue
		}
		for _, want := range tt.want {
			if !slices.ContainsFunc(e.Detail.Messages, func(m string) bool { return strings.HasPrefix(m, want) }) {
				t.Errorf("%s %s: no message about %s: %q", tt.path, tt.body, want, e.Detail.Messages)
			}
		}
	}
}

// TestClearing sets fields of an asset and a live stream and clears them by null, member by member.
func TestClearing(t *testing.T) {
	t.Parallel()
	services := openServices(t, dbtest.SQLite(t))
	create := func(path, body string) string {
		var made struct {
			Data struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		w := services.ask(t, http.MethodPost, path, body)
		if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return path + "/" + made.Data.ID
	}
	stream := create("/video/v1/live-streams", `{"meta":{"title":"t","creator_id":"c"}}`)
	film := create("/video/v1/assets", `{"input":"https://example.com/a.mp4","meta":{"title":"t","creator_id":"c"}}`)
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               string // of the response afterwards
	}{
		{"PATCH", film, `{"meta":{"title":null,"creator_id":"c"}}`, 200, `"meta":{"creator_id":"c"}`},
		{"PATCH", stream, `{"meta":{"title":null,"creator_id":"c"}}`, 200, `"meta":{"creator_id":"c"}`},
		{"PATCH", film, `{"thumbnail_time":0}`, 200, `"thumbnail_time":0`},
		{"PATCH", film, `{"thumbnail_time":null}`, 200, `!thumbnail_time`},
		{"PATCH", film, `{"thumbnail_time":2.5}`, 200, `"thumbnail_time":2.5`},
		{"PATCH", film, `{"passthrough":"p"}`, 200, `"thumbnail_time":2.5`},
		{"DELETE", film + "/thumbnail-time", ``, 204, `!thumbnail_time`},
		{"DELETE", film + "/thumbnail-time", ``, 204, `!thumbnail_time`},
	} {
		w := services.ask(t, tt.method, tt.path, tt.body)
		if w.Code != tt.status || tt.status == http.StatusNoContent && w.Body.Len() > 0 {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, w.Code, w.Body)
		}
		now := services.ask(t, http.MethodGet, strings.TrimSuffix(tt.path, "/thumbnail-time"), "").Body.String()
		want, absent := strings.CutPrefix(tt.want, "!")
		if strings.Contains(now, want) == absent {
			t.Errorf("after %s %s %s: %s, want %s", tt.method, tt.path, tt.body, now, tt.want)
		}
	}
}

// TestDefaultDRM: a drm policy without a configuration has the environment's only one. Where there is none, or a
// choice, it is refused.
func TestDefaultDRM(t *testing.T) {
	t.Parallel()
	services := openServices(t, dbtest.SQLite(t))
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	const drm = `"advanced_playback_policies":[{"policy":"public"},{"policy":"drm"}]`
	plain := services.ask(t, http.MethodPost, "/video/v1/live-streams", `{}`)
	if err := json.Unmarshal(plain.Body.Bytes(), &made); err != nil || plain.Code != http.StatusCreated {
		t.Fatalf("%d %s", plain.Code, plain.Body)
	}
	stream := "/video/v1/live-streams/" + made.Data.ID
	requests := []struct{ path, body, field string }{
		{"/video/v1/live-streams", `{` + drm + `}`, "advanced_playback_policies[1]."},
		{
			"/video/v1/live-streams", `{"new_asset_settings":{` + drm + `}}`,
			"new_asset_settings.advanced_playback_policies[1].",
		},
		{"/video/v1/assets", `{"input":"https://example.com/a.mp4",` + drm + `}`, "advanced_playback_policies[1]."},
		{
			"/video/v1/uploads", `{"cors_origin":"*","new_asset_settings":{` + drm + `}}`,
			"new_asset_settings.advanced_playback_policies[1].",
		},
		{stream + "/playback-ids", `{"policy":"drm"}`, ""},
	}
	refused := func(when string) {
		t.Helper()
		for _, r := range requests {
			w := services.ask(t, http.MethodPost, r.path, r.body)
			if w.Code != http.StatusBadRequest ||
				!strings.Contains(w.Body.String(), `"`+r.field+"drm_configuration_id must be given") {
				t.Errorf("%s: %s: %d %s", when, r.path, w.Code, w.Body)
			}
		}
	}
	configure := func() {
		t.Helper()
		if w := services.ask(t, http.MethodPost, "/test/drm", ""); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	refused("without a configuration")
	configure()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	w := services.ask(t, http.MethodGet, "/video/v1/drm-configurations", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || len(list.Data) != 1 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	for _, r := range requests {
		w := services.ask(t, http.MethodPost, r.path, r.body)
		if w.Code != http.StatusCreated ||
			strings.Count(w.Body.String(), `"drm_configuration_id":"`+list.Data[0].ID+`"`) != 1 {
			t.Errorf("with one configuration: %s: %d %s", r.path, w.Code, w.Body)
		}
	}
	configure()
	refused("with two configurations")
}

// TestActiveAsset: a live stream names the asset of its broadcast from when there is one, which is after its encoder
// was let in, and not before.
func TestActiveAsset(t *testing.T) {
	t.Parallel()
	services := openServices(t, dbtest.SQLite(t))
	var made struct {
		Data struct {
			ID  string `json:"id"`
			Key string `json:"stream_key"`
		} `json:"data"`
	}
	w := services.ask(t, http.MethodPost, "/video/v1/live-streams", `{}`)
	if err := json.Unmarshal(w.Body.Bytes(), &made); err != nil || w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	names := func() (n int) {
		for _, path := range []string{"/video/v1/live-streams/" + made.Data.ID, "/video/v1/live-streams"} {
			w := services.ask(t, http.MethodGet, path, "")
			if w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			n += strings.Count(w.Body.String(), `"active_asset_id":"recording1"`)
		}
		return n
	}
	st, err := services.broadcasts.Connect(t.Context(), live.Connection{
		StreamKey: made.Data.Key, Protocol: "rtmp", NewAsset: "recording1", Owner: live.Owner{Node: "node", Run: "run"},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if n := names(); n != 0 {
		t.Errorf("before there is an asset %d of 2 responses name it", n)
	}
	_, err = services.assets.Record(t.Context(), asset.NewRecording{
		ID: st.ActiveAsset, Environment: st.Environment, LiveStream: st.ID, Media: "media1",
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if n := names(); n != 2 {
		t.Errorf("when there is an asset %d of 2 responses name it", n)
	}
}
