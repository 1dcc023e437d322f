package playback_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/playback"
)

// titled is a presentation that says what it is.
type titled struct {
	source

	what playback.Description
}

func (t *titled) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	_, permit, err := t.source.Open(ctx, r)
	return t, permit, err
}

func (t *titled) Description() playback.Description { return t.what }

func fetch(t *testing.T, s playback.Source, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	title := `A "film" <of> 😀`
	for name, tt := range map[string]struct {
		what   playback.Description
		want   string // of the first entry
		linked bool
	}{
		"a film":     {playback.Description{Title: title, Duration: 12500 * time.Millisecond}, title, true},
		"live":       {playback.Description{Title: title}, title, true},
		"no title":   {playback.Description{Duration: time.Minute}, "", false},
		"not at all": {},
	} {
		s := &titled{what: tt.what}
		w := fetch(t, s, http.MethodGet, "/"+id+"/metadata.json")
		var got []struct {
			Start    *float64 `json:"start-time"`
			Duration float64  `json:"duration"`
			Metadata []struct {
				Key   string `json:"key"`
				Value string `json:"value"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %v %s", name, w.Code, err, w.Body)
		}
		said := ""
		if len(got) == 1 && len(got[0].Metadata) == 1 && got[0].Metadata[0].Key == "title" {
			said = got[0].Metadata[0].Value
		}
		if len(got) != 1 || got[0].Start == nil || *got[0].Start != 0 ||
			got[0].Duration != tt.what.Duration.Seconds() || got[0].Metadata == nil || said != tt.want {
			t.Errorf("%s: %s", name, w.Body)
		}
		const link = "#EXT-X-SESSION-DATA:DATA-ID=\"com.apple.hls.chapters\",URI=\"" + id + "/metadata.json\"\n"
		if list := fetch(t, s, http.MethodGet, "/"+id+".m3u8").Body.String(); strings.Contains(list,
			link) != tt.linked || strings.Contains(list, "SESSION-DATA") != tt.linked {
			t.Errorf("%s:\n%s", name, list)
		}
	}
}
