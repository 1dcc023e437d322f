package permit_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/media/playback"
	"millrace/internal/permit"
)

// nobody is a response writer that costs nothing.
type nobody struct{ head http.Header }

func (n *nobody) Header() http.Header         { return n.head }
func (n *nobody) WriteHeader(int)             {}
func (n *nobody) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkServe is what playback costs of its own, public and below a signed path, without the connection.
func BenchmarkServe(b *testing.B) {
	n, _ := nodes(b)
	s := &service{node: n}
	s.Guard = permit.New(permit.Options{Signing: n.keys, Restrictions: n.restrictions})
	h := playback.New(playback.Options{Source: s, Logger: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	h.ServeHTTP(w,
		httptest.NewRequestWithContext(b.Context(), http.MethodGet,
			"/"+signedID+".m3u8?token="+n.keypair(b, "env").token(nil), nil))
	_, path, _ := strings.Cut(w.Body.String(), signedID)
	path, _, _ = strings.Cut(path, "/m1/")
	for name, at := range map[string]string{"public": publicID, "signed": signedID + path} {
		for what, rest := range map[string]string{
			"playlist": "/m1/v.m3u8?_HLS_msn=7&_HLS_part=1", "segment": "/m1/v/7.m4s",
		} {
			b.Run(what+"/"+name, func(b *testing.B) {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/"+at+rest, nil)
				w := &nobody{head: http.Header{}}
				b.ReportAllocs()
				for b.Loop() {
					clear(w.head)
					h.ServeHTTP(w, r)
				}
			})
		}
	}
}
