package stats

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/audience"
	"millrace/internal/fault"
)

type counter func(r audience.Request) (audience.Counts, error)

func (c counter) Count(_ context.Context, r audience.Request, now time.Time) (audience.Counts, error) {
	v, err := c(r)
	v.UpdatedAt = now
	return v, err
}

func TestCounts(t *testing.T) {
	t.Parallel()
	results := map[string]error{
		"good": nil, "bad": fault.New(fault.Denied, "no"), "video": fault.New(fault.Invalid, "aud"),
		"gone": fault.New(fault.NotFound, "gone"),
		"many": fault.New(fault.TooMany, "many"), "away": fault.New(fault.Unavailable, "secret"),
		"broken": errors.New("secret"),
	}
	for _, tt := range []struct {
		method, token string
		status        int
		want          string
	}{
		{"GET", "good", 200, `{"data":[{"views":3,"viewers":2,"updated_at":"2026-03-01T12:00:00Z"}]}`},
		{"GET", "bad", 403, `{"error":{"type":"forbidden","messages":["no"]}}`},
		{"GET", "video", 400, `{"error":{"type":"invalid_parameters","messages":["aud"]}}`},
		{"GET", "gone", 404, `{"error":{"type":"not_found","messages":["gone"]}}`},
		{"GET", "many", 429, `{"error":{"type":"too_many_requests","messages":["many"]}}`},
		{"GET", "away", 503, `"unavailable"`},
		{"GET", "broken", 500, `"internal_error"`},
		{"POST", "good", 405, `"method_not_allowed"`},
		{"OPTIONS", "", 204, ""},
	} {
		var log bytes.Buffer
		h := Handler(Options{
			Counter: counter(func(r audience.Request) (audience.Counts, error) {
				if !slices.Equal(r.Referrers, []string{"https://a.test/", "https://b.test/"}) ||
					!slices.Equal(r.UserAgents, []string{"player"}) {
					t.Errorf("asked by %+v", r)
				}
				return audience.Counts{Views: 3, Viewers: 2}, results[r.Token]
			}),
			Now:    func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC) },
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), tt.method, "/counts?token="+tt.token, nil)
		r.Header = http.Header{"Referer": {"https://a.test/", "https://b.test/"}, "User-Agent": {"player"}}
		h.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) ||
			strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s %s: %d %s", tt.method, tt.token, w.Code, w.Body)
		}
		if w.Header().Get("Access-Control-Allow-Origin") != "*" ||
			(log.Len() > 0) != (tt.status == http.StatusInternalServerError) {
			t.Errorf("%s %s: %v, logged %q", tt.method, tt.token, w.Header(), &log)
		}
	}
}
