package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/storage/db/dbtest"
)

// TestNamesAreLines: a name takes no control characters, and passthrough, which nothing is called by, does.
func TestNamesAreLines(t *testing.T) {
	t.Parallel()
	h := hooked(t, dbtest.SQLite(t))
	const streams, assets, tokens = "/video/v1/live-streams", "/video/v1/assets", "/system/v1/access-tokens"
	for _, tt := range []struct{ path, body, refused string }{
		{streams, `{"meta":{"title":"X"}}`, "meta.title"},
		{streams, `{"meta":{"creator_id":"X"}}`, "meta.creator_id"},
		{streams, `{"meta":{"external_id":"X"}}`, "meta.external_id"},
		{streams, `{"new_asset_settings":{"meta":{"title":"X"}}}`, "new_asset_settings.meta.title"},
		{
			streams, `{"embedded_subtitles":[{"name":"X","language_channel":"cc1","language_code":"en"}]}`,
			"embedded_subtitles[0].name",
		},
		{streams, `{"generated_subtitles":[{"name":"X","language_code":"en"}]}`, "generated_subtitles[0].name"},
		{
			streams,
			`{"passthrough":"X","simulcast_targets":[{"url":"rtmp://a.example/b","stream_key":"c","passthrough":"X"}]}`,
			"",
		},
		{assets, `{"inputs":[{"url":"https://a.example/b"}],"meta":{"title":"X"}}`, "meta.title"},
		{
			assets,
			`{"inputs":[{"url":"https://a.example/b"},{"url":"https://a.example/c","type":"text","name":"X","language_code":"en"}]}`,
			"inputs[1].name",
		},
		{assets, `{"inputs":[{"url":"https://a.example/b"}],"passthrough":"X"}`, ""},
		{tokens, `{"name":"X","permissions":["video:read"]}`, "name"},
	} {
		for _, breaks := range []string{`a\rb`, `a\nevent: over`, `\u2028`, `\u001b]0;x\u0007`} {
			body := strings.ReplaceAll(tt.body, "X", breaks)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tt.path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.SetBasicAuth(tokenID, tokenValue)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			want := `"` + tt.refused + ` must not contain line breaks or other control characters"`
			if tt.refused == "" && w.Code != http.StatusCreated ||
				tt.refused != "" && (w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want)) {
				t.Errorf("%s %s: %d %s", tt.path, body, w.Code, w.Body)
			}
		}
	}
}
