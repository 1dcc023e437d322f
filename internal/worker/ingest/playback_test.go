package ingest_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/playback"
	"millrace/internal/presentation"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
	"millrace/test/hlscheck"
)

// watch serves the world's assets to players.
func (w *world) watch() *httptest.Server {
	w.T.Helper()
	log := slog.New(slog.DiscardHandler)
	h := playback.New(playback.Options{Logger: log, Source: presentation.New(presentation.Options{
		Access: access.New(access.Options{Store: w.DB.Access()}), Assets: w.Work, Blob: w.Store,
		Library: ondemand.NewLibrary(workertest.Objects{Store: w.Store}, 1<<20), Now: w.Now, Logger: log,
	})})
	s := httptest.NewServer(h)
	w.T.Cleanup(s.Close)
	return s
}

func url(s *httptest.Server, a asset.Asset) string {
	return s.URL + "/" + string(a.PlaybackIDs[0].ID) + ".m3u8"
}

func get(t *testing.T, s *httptest.Server, url string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Client().Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// What players get of each kind of asset keeps every rule of HLS.
func TestPlaybackConforms(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file   string
		args   []string
		except []string // rules that the file itself breaks
	}{
		"MP4":      {"a.mp4", filmtest.Video(), nil},
		"Matroska": {"a.mkv", filmtest.Video(), nil},
		"MPEG-TS":  {"a.ts", filmtest.Video(), nil},
		"late sound": {
			"a.mp4",
			filmtest.Args(filmtest.Picture("13"), []string{"-itsoffset", "0.7"}, filmtest.Sound("12"), filmtest.H264),
			[]string{"align-start"},
		},
		// hlscheck takes two languages to be heard at once.
		"sound alone": {
			"a.m4a", filmtest.Args(filmtest.Sound("13"), []string{"-c:a", "aac"}),
			[]string{"bandwidth", "average-bandwidth"},
		},
		"mute": {"a.mp4", filmtest.Video("-an"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			a := w.ReadyAsset(filmtest.File(t, tt.file, tt.args...),
				assetopt.Input{
					URL: w.Site.Offer(filmtest.Text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles",
					LanguageCode: "en",
				},
				assetopt.Input{
					URL: w.Site.Offer(filmtest.File(t, "de.mp3", filmtest.Sound("20")...)), Type: "audio",
					LanguageCode: "de",
				})
			server := w.watch()
			w.conforms(url(server, a), append(tt.except, "language")...) // the file's own sound has none
			if name == "MP4" || name == "Matroska" {
				w.conforms(url(server, w.clipped(a, 5, 11)), "language")
			}
		})
	}
}

func (w *world) conforms(url string, except ...string) {
	w.T.Helper()
	r, err := hlscheck.Check(w.Ctx(), hlscheck.Options{URL: url, Decoder: programtest.Path(w.T, "ffmpeg")})
	w.Must(err)
	r.Findings = slices.DeleteFunc(r.Findings, func(f hlscheck.Finding) bool { return slices.Contains(except, f.Rule) })
	if len(r.Findings) > 0 {
		w.T.Errorf("%s", r)
	}
}

// An asset that is still cut is 412 before its first segment, then an EVENT that grows, at last a VOD of the same
// segments.
func TestPlaybackOfPreparing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(filmtest.Usual(t, "a.mkv"))})
	server := w.watch()
	if code, _ := get(t, server, url(server, a)); code != http.StatusPreconditionFailed {
		t.Errorf("status %d before the first segment", code)
	}
	media := strings.TrimSuffix(url(server, a), ".m3u8") + "/" + string(a.Media) + "/v.m3u8"
	var during string
	w.Store.Fail = func(key string) error {
		if strings.HasSuffix(key, "v/2.m4s") {
			if code, _ := get(t, server, url(server, a)); code != http.StatusOK {
				t.Errorf("status %d after the first segment", code)
			}
			_, during = get(t, server, media)
		}
		return nil
	}
	w.Must(w.Do(w.Jobs.Take()[0], 1))
	if !strings.Contains(during, "#EXT-X-PLAYLIST-TYPE:EVENT") || strings.Contains(during, "ENDLIST") ||
		!strings.Contains(during, "v/0.m4s") {
		t.Errorf("while it is cut:\n%s", during)
	}
	_, after := get(t, server, media)
	if !strings.Contains(after, "#EXT-X-PLAYLIST-TYPE:VOD") || !strings.Contains(after, "#EXT-X-ENDLIST") {
		t.Errorf("afterwards:\n%s", after)
	}
	lines := func(s string) []string {
		all := slices.Collect(strings.Lines(s))
		return slices.DeleteFunc(all, func(l string) bool {
			return !strings.HasPrefix(l, "#EXTINF") && !strings.HasPrefix(l, "v/") &&
				!strings.HasPrefix(l, "#EXT-X-TARGET")
		})
	}
	if was := lines(during); len(was) < 3 || !slices.Equal(was, lines(after)[:len(was)]) {
		t.Errorf("what was listed has changed:\n%s\n%s", during, after)
	}
}
