package playback_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/playback"
)

// shop has a file and a master.
type shop struct {
	source

	opened []int64 // offsets
	open   int     // bodies that are not closed
}

const filmBytes = "0123456789"

type filmBody struct {
	io.Reader
	s *shop
}

func (f filmBody) Close() error { f.s.open--; return nil }

func (s *shop) Open(ctx context.Context, r playback.Request) (playback.Presentation, playback.Permit, error) {
	_, permit, err := s.source.Open(ctx, r)
	return s, permit, err
}

func (s *shop) File(_ context.Context, name string) (playback.File, error) {
	switch name {
	case "highest.mp4", "lost.mp4":
		return playback.File{
			Size: int64(len(filmBytes)), Type: "video/mp4", Tag: "tag", Watched: s.watched(),
			Open: func(_ context.Context, off, n int64) (io.ReadCloser, error) {
				if name == "lost.mp4" {
					return nil, fault.New(fault.Unavailable, "storage is away")
				}
				s.opened, s.open = append(s.opened, off), s.open+1
				return filmBody{bytes.NewReader([]byte(filmBytes[off : off+n])), s}, nil
			},
		}, nil
	case "audio.m4a":
		return playback.File{}, fault.New(fault.NotReady, "the file is being made")
	}
	return playback.File{}, fault.New(fault.NotFound, "no such file")
}

func (s *shop) Master(ctx context.Context, asset, expires, signature string) (playback.File, error) {
	if asset != "assetnumber1" || expires != "1" || signature != "good" {
		return playback.File{}, fault.New(fault.Denied, "the address is wrong")
	}
	return s.File(ctx, "highest.mp4")
}

// TestDownload asks for files in every way of RFC 9110 that a player or a browser has.
func TestDownload(t *testing.T) {
	t.Parallel()
	const film = "/" + id + "/highest.mp4"
	for _, tt := range []struct {
		name, method, path string
		head               []string // pairs
		status             int
		body               string
		want               []string // pairs
	}{
		{
			"whole", "GET", film, nil, 200, filmBytes,
			[]string{
				"Content-Type", "video/mp4", "Etag", `"tag"`, "Accept-Ranges", "bytes", "Content-Length", "10",
				"Cache-Control", "public, max-age=3600", "Content-Disposition", "", "Access-Control-Allow-Origin", "*",
			},
		},
		{"head", "HEAD", film, nil, 200, "", []string{"Content-Length", "10", "Etag", `"tag"`}},
		{"head has no ranges", "HEAD", film, []string{"Range", "bytes=2-3"}, 200, "", []string{"Content-Length", "10"}},
		{"range", "GET", film, []string{"Range", "bytes=2-3"}, 206, "23", []string{"Content-Range", "bytes 2-3/10"}},
		{
			"to the end", "GET", film,
			[]string{"Range", "bytes=7-"},
			206, "789",
			[]string{"Content-Range", "bytes 7-9/10"},
		},
		{"the last", "GET", film, []string{"Range", "bytes=-1"}, 206, "9", nil},
		{
			"behind the end", "GET", film + "?download=x.mp4",
			[]string{"Range", "bytes=10-"},
			416, "",
			[]string{"Content-Range", "bytes */10", "Content-Disposition", ""},
		},
		{"several ranges", "GET", film, []string{"Range", "bytes=0-1,3-4"}, 200, filmBytes, nil},
		{"the same still", "GET", film, []string{"Range", "bytes=2-3", "If-Range", `"tag"`}, 206, "23", nil},
		{"another by now", "GET", film, []string{"Range", "bytes=2-3", "If-Range", `"old"`}, 200, filmBytes, nil},
		{"known", "GET", film, []string{"If-None-Match", `"a", W/"tag"`}, 304, "", []string{"Etag", `"tag"`}},
		{"not known", "GET", film, []string{"If-None-Match", `"a"`}, 200, filmBytes, nil},
		{"not the one", "GET", film, []string{"If-Match", `"a"`}, 412, "", nil},
		{
			"named", "GET", film + "?download=my%20film.mp4", nil, 200, filmBytes,
			[]string{"Content-Disposition", `attachment; filename="my film.mp4"`},
		},
		{
			"named in Greek", "GET", film + "?download=%CF%86.mp4", nil, 200, filmBytes,
			[]string{"Content-Disposition", `attachment; filename*=utf-8''%CF%86.mp4`},
		},
		{
			"named to break out", "GET", film + "?download=..%2F%0D%0AX:%20y%00%22.mp4", nil, 200, filmBytes,
			[]string{"Content-Disposition", `attachment; filename="..X: y\".mp4"`, "X", ""},
		},
		{
			"named at length", "GET", film + "?download=" + strings.Repeat("a", 300), nil, 200, filmBytes,
			[]string{"Content-Disposition", "attachment; filename=" + strings.Repeat("a", 255)},
		},
		{
			"named at great length", "GET", film + "?download=" + strings.Repeat("a", 60_000), nil, 200, filmBytes,
			[]string{"Content-Disposition", "attachment; filename=" + strings.Repeat("a", 255)},
		},
		{
			"cut inside a letter", "GET", film + "?download=" + strings.Repeat("%CF%86", 200), nil, 200, filmBytes,
			[]string{"Content-Disposition", "attachment; filename*=utf-8''" + strings.Repeat("%CF%86", 127)},
		},
		{"no name", "GET", film + "?download=", nil, 200, filmBytes, []string{"Content-Disposition", ""}},
		{"being made", "GET", "/" + id + "/audio.m4a", nil, 412, "", nil},
		{"unknown", "GET", "/" + id + "/low.mp4", nil, 404, "", nil},
		{
			"storage away", "GET", "/" + id + "/lost.mp4", nil, 503, "",
			[]string{"Etag", "", "Content-Type", "application/json"},
		},
		{"unknown playback ID", "GET", "/playbackid02/highest.mp4", nil, 404, "", nil},
		{"post", "POST", film, nil, 405, "", nil},
		{
			"master", "GET", "/master/assetnumber1.mp4?expires=1&signature=good", nil, 200, filmBytes,
			[]string{"Cache-Control", "private, no-store"},
		},
		{
			"master named", "GET", "/master/assetnumber1.mp4?expires=1&signature=good&download=m.mp4",
			[]string{"Range", "bytes=-2"},
			206, "89",
			[]string{"Content-Disposition", "attachment; filename=m.mp4"},
		},
		{"master with another end", "GET", "/master/assetnumber1.mp4?expires=2&signature=good", nil, 403, "", nil},
		{"master without signature", "GET", "/master/assetnumber1.mp4", nil, 403, "", nil},
		{"master of another kind", "GET", "/master/assetnumber1", nil, 404, "", nil},
		{"master of nothing", "GET", "/master/a/b.mp4", nil, 404, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := &shop{}
			h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
			r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil)
			for i := 0; i < len(tt.head); i += 2 {
				r.Header.Set(tt.head[i], tt.head[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status || tt.status < 300 && w.Body.String() != tt.body ||
				tt.status == http.StatusNotModified && w.Body.Len() > 0 {
				t.Errorf("status %d, want %d: %q", w.Code, tt.status, w.Body)
			}
			for i := 0; i < len(tt.want); i += 2 {
				if got := w.Header().Get(tt.want[i]); got != tt.want[i+1] {
					t.Errorf("%s: %q, want %q", tt.want[i], got, tt.want[i+1])
				}
			}
			if s.open != 0 {
				t.Errorf("%d bodies are left open", s.open)
			}
		})
	}
}

// TestNoDownloads of what has none.
func TestNoDownloads(t *testing.T) {
	t.Parallel()
	h := playback.New(playback.Options{Source: &source{}, Logger: slog.New(slog.DiscardHandler)})
	for _, path := range []string{"/" + id + "/highest.mp4", "/master/assetnumber1.mp4?expires=1&signature=good"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// TestOwnsNoDownloads leaves files to the server that can be told that they take long, and keeps segments.
func TestOwnsNoDownloads(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("a", 30)
	for path, want := range map[string]bool{
		long + "/highest.mp4": false, long + "/audio.m4a": false, long + "/m/v/init0.mp4": true,
		long + "/m/v/1.m4s": true, long + ".m3u8": true,
		"/master/assetnumber1.mp4": false,
	} {
		if playback.Owns(path) != want {
			t.Errorf("%s: %t", path, !want)
		}
	}
}

// FuzzDownloadName puts any text into the name: the response has one header line, and is no server's fault.
func FuzzDownloadName(f *testing.F) {
	f.Add("a.mp4")
	f.Add("\x00\r\nX: y\"\\")
	f.Add(strings.Repeat("é", 200))
	f.Fuzz(func(t *testing.T, name string) {
		h := playback.New(playback.Options{Source: &shop{}, Logger: slog.New(slog.DiscardHandler)})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+id+"/highest.mp4", nil)
		q := r.URL.Query()
		q.Set("download", name)
		r.URL.RawQuery = q.Encode()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if d := w.Header().Get("Content-Disposition"); w.Code != http.StatusOK || strings.ContainsAny(d, "\r\n\x00/") {
			t.Errorf("%d %q", w.Code, d)
		}
	})
}
