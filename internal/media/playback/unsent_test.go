package playback_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/media/playback"
	"millrace/internal/unsent"
)

// TestUnsent: a response whose bytes find no room is refused before it begins, with a reason and the time to ask again.
func TestUnsent(t *testing.T) {
	t.Parallel()
	const size = 64 << 10
	text := bytes.Repeat([]byte("#EXTINF:2,\nv/1.m4s\n"), size/18)
	large := func(string, playback.Reload, bool) (playback.Text, error) {
		return playback.Text{Data: bytes.Clone(text), MaxAge: 1}, nil
	}
	limits := func(all, address int64) unsent.Limits {
		return unsent.Limits{All: all, Address: address, Connection: 1 << 20}
	}
	const room, tooMany, busy = 1 << 20, http.StatusTooManyRequests, http.StatusServiceUnavailable
	for name, tt := range map[string]struct {
		limits unsent.Limits
		path   string
		major  int
		want   int
	}{
		"text of an address":           {limits(room, size/2), "/m1/v.m3u8", 1, tooMany},
		"text of all":                  {limits(size/2, room), "/m1/v.m3u8", 1, busy},
		"text of a clip":               {limits(room, size/2), "/m1/v.m3u8?asset_start_time=1", 1, tooMany},
		"piece of a file, HTTP/2":      {limits(room, unsent.Piece), "/m1/file/1.m4s", 2, tooMany},
		"piece of a file, HTTP/1.1":    {limits(room, unsent.Piece), "/m1/file/1.m4s", 1, http.StatusOK},
		"a little, which counts as no": {limits(1, 1), "/m1/t/1.vtt", 1, http.StatusOK},
		"room":                         {limits(room, room), "/m1/v.m3u8", 1, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := unsent.New(tt.limits)
			release, err := b.Hold(t.Context(), "192.0.2.1", 1) // httptest's address
			if err != nil {
				t.Fatal(err)
			}
			h := playback.New(playback.Options{
				Source: &source{playlist: large}, Logger: slog.New(slog.DiscardHandler), Unsent: b,
			})
			ask := func() *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+id+tt.path, http.NoBody)
				r.ProtoMajor = tt.major
				h.ServeHTTP(w, r)
				return w
			}
			w := ask()
			if w.Code != tt.want {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if refused := w.Code != http.StatusOK; refused != (w.Header().Get("Retry-After") != "") ||
				refused && !strings.Contains(w.Body.String(), "ask again") {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
			release()
			if n := b.Held(); n != 0 {
				t.Errorf("%d bytes are held behind the response", n)
			}
			if w = ask(); w.Code != http.StatusOK {
				t.Errorf("with room: %d %s", w.Code, w.Body)
			}
		})
	}
}

// TestMadeOnce: those who ask for the same playlist with the same modifiers get the same bytes.
func TestMadeOnce(t *testing.T) {
	t.Parallel()
	text := []byte("#EXTM3U\n#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05Z\n#EXTINF:2,\nv/1.m4s\n")
	s := &source{playlist: func(string, playback.Reload, bool) (playback.Text, error) {
		return playback.Text{Data: text, MaxAge: 1}, nil
	}}
	h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	ask := func(query string) []byte {
		w := &written{head: http.Header{}}
		path := "/" + id + "/m1/v.m3u8" + query
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		return w.data
	}
	first, second, other := ask("?exclude_pdt=true"), ask("?exclude_pdt=true"), ask("?exclude_pdt=false")
	if bytes.Contains(first, []byte("DATE-TIME")) || &first[0] != &second[0] {
		t.Errorf("made twice: %q, %q", first, second)
	}
	if !bytes.Equal(other, text) {
		t.Errorf("another: %q", other)
	}
	text = []byte("#EXTM3U\n#EXTINF:2,\nv/2.m4s\n")
	if newer := ask("?exclude_pdt=true"); !bytes.Equal(newer, text) {
		t.Errorf("a newer one: %q", newer)
	}
}

// written keeps the very bytes that were written.
type written struct {
	head http.Header
	data []byte
}

func (w *written) Header() http.Header { return w.head }
func (w *written) WriteHeader(int)     {}
func (w *written) Write(p []byte) (int, error) {
	w.data = p
	return len(p), nil
}
