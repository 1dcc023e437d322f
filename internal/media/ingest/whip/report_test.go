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

// TestRefusalsAreLoggedSparsely has strangers ask many times a second: the log has a line a second of those without a key, and five of the
// others, with the number of those that it does not have.
func TestRefusalsAreLoggedSparsely(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		auth  string
		lines int
	}{"no key": {"", 10}, "any key": {"Bearer guessed", 20 + 9*5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &ingesttest.Log{}
				s := New(Options{Logger: log.Logger()})
				for range 10 {
					for range 1000 {
						r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/whip", strings.NewReader("v=0"))
						r.Header.Set("Content-Type", typeSDP)
						r.Header.Set("Authorization", tt.auth)
						w := httptest.NewRecorder()
						s.ServeHTTP(w, r)
						if w.Code < 400 || w.Header().Get("Connection") != "close" {
							t.Fatalf("%d %v", w.Code, w.Header())
						}
					}
					time.Sleep(time.Second)
				}
				if n := strings.Count(log.String(), "publish refused"); n != tt.lines {
					t.Errorf("%d lines, want %d", n, tt.lines)
				}
				if !strings.Contains(log.String(), "not_logged=99") {
					t.Errorf("nothing tells how many are left out:\n%s", log)
				}
			})
		})
	}
}
