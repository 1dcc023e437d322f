package metrics

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
)

// TestViewers: requests, bytes and the time to the first byte are counted by what was asked for and how it is played.
func TestViewers(t *testing.T) {
	t.Parallel()
	m := New("")
	h := m.Viewers(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "absent") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if o, ok := w.(playback.Observer); ok {
			o.Playing(strings.HasPrefix(r.URL.Path, "/live"))
		}
		_, _ = io.Copy(w, strings.NewReader("byt"))
		_, _ = w.Write([]byte("es"))
	}))
	const below = "/live/m/v/"
	for _, path := range []string{
		"/live.m3u8", "/live", "/absent.m3u8", "/live/m/v.m3u8", "/live/m/v.m3u8?_HLS_msn=7", below + "init-0.mp4",
		below + "7.m4s", below + "8.m4s", below + "7.0.m4s", "/live/text/t.vtt", "/live/thumbnail.jpg?time=3",
		below + strings.Repeat("x", 300), "/asset/m/v/7.m4s",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code == http.StatusOK && w.Body.String() != "bytes" {
			t.Errorf("%s: %q", path, w.Body)
		}
	}
	text := scrape(t, m)
	expect(t, text,
		`millrace_playback_requests_total{code="2xx",kind="multivariant",mode="live"} 2`,
		`millrace_playback_requests_total{code="4xx",kind="multivariant",mode="none"} 1`,
		`millrace_playback_requests_total{code="2xx",kind="segment",mode="on_demand"} 1`,
		`millrace_playback_sent_bytes_total{kind="segment",mode="live"} 10`,
		`millrace_playback_sent_bytes_total{kind="segment",mode="on_demand"} 5`,
		`millrace_playback_sent_bytes_total{kind="multivariant",mode="none"} 0`,
		`millrace_playback_first_byte_seconds_count{kind="segment",mode="live"} 2`,
	)
	for _, kind := range []string{"playlist", "reload", "init", "part", "text", "image", "other"} {
		expect(t, text, `millrace_playback_requests_total{code="2xx",kind="`+kind+`",mode="live"} 1`)
	}
	if strings.Contains(text, `first_byte_seconds_count{kind="multivariant",mode="none"}`) {
		t.Error("the time of a refusal counts")
	}
}

// TestViewersThatLeave: a blocked playlist request that its viewer gives up is no failure of the service; a storage
// that is away is one.
func TestViewersThatLeave(t *testing.T) {
	t.Parallel()
	m := New("")
	ctx, leave := context.WithCancel(t.Context())
	source := playback.New(playback.Options{
		Logger: slog.New(slog.DiscardHandler), Source: opener(func(ctx context.Context) error {
			if leave == nil {
				return fault.New(fault.Unavailable, "the storage is away")
			}
			leave()
			<-ctx.Done()
			return context.Cause(ctx)
		}),
	})
	h := m.Viewers(source)
	const (
		path = "/abcdefghijklmnopqrstuvwx/m/v.m3u8?_HLS_msn=7"
		gone = `millrace_playback_requests_total{code="left",kind="reload",mode="none"} 1`
	)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	expect(t, scrape(t, m), gone)
	leave = nil
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	expect(t, scrape(t, m), gone, `millrace_playback_requests_total{code="5xx",kind="reload",mode="none"} 1`)
}

// TestWatching: viewers and lookups are read when they are asked for.
func TestWatching(t *testing.T) {
	t.Parallel()
	m := New("")
	viewers := 3
	m.Watching(func() int { return viewers })
	var encrypted, followed metering.Lookups
	m.Cache("encrypted", &encrypted)
	m.Cache("followed", &followed)
	viewers = 4
	encrypted.Count(true)
	encrypted.Count(true)
	encrypted.Count(false)
	expect(t, scrape(t, m), `millrace_viewers 4`,
		`millrace_cache_lookups_total{cache="encrypted",result="hit"} 2`,
		`millrace_cache_lookups_total{cache="encrypted",result="miss"} 1`,
		`millrace_cache_lookups_total{cache="followed",result="hit"} 0`,
	)
}

// opener is a source of nothing but errors.
type opener func(context.Context) error

func (o opener) Master(ctx context.Context, _, _, _ string) (playback.File, error) {
	return playback.File{}, o(ctx)
}

func (o opener) Open(ctx context.Context, _ playback.Request) (playback.Presentation, playback.Permit, error) {
	return nil, playback.Permit{}, o(ctx)
}
