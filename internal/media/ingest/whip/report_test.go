package whip

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/ingest/ingesttest"
)

// TestRefusalsAreLoggedSparsely has strangers ask many times a second: the log has a line a second of those without a
// key, and of the others, with the number of those that it does not have.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	t.Parallel()
	for name, auth := range map[string]string{"no key": "", "any key": "Bearer guessed"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &ingesttest.Log{}
				s := New(Options{Logger: log.Logger()})
				for range 10 {
					for range 1000 {
						r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/whip", strings.NewReader("v=0"))
						r.Header.Set("Content-Type", typeSDP)
						r.Header.Set("Authorization", auth)
						w := httptest.NewRecorder()
						s.ServeHTTP(w, r)
						if w.Code < 400 || w.Header().Get("Connection") != "close" {
							t.Fatalf("%d %v", w.Code, w.Header())
						}
					}
					time.Sleep(time.Second)
				}
				s.refusals.Flush()
				if lines, told := log.Refusals("publish refused"); lines != 11 || told != 10_000 {
					t.Errorf("%d lines tell of %d refusals, want the first one and one a second", lines, told)
				}
			})
		})
	}
}
