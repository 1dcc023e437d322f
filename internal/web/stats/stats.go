// Package stats serves the numbers of current viewers to pages: GET /counts?token=…, from any origin; the token is the
// permission. It must never know how tokens are made or viewers told apart. It starts no goroutine.
package stats

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"millrace/internal/control/audience"
	"millrace/internal/fault"
	"millrace/internal/web/header"
)

// Counter counts; audience.Service fits.
type Counter interface {
	Count(ctx context.Context, r audience.Request, now time.Time) (audience.Counts, error)
}

// Options is what Handler needs.
type Options struct {
	Counter Counter
	Now     func() time.Time
	Logger  *slog.Logger
}

// counts is one entry of a response.
type counts struct {
	Views     int    `json:"views"`
	Viewers   int    `json:"viewers"`
	UpdatedAt string `json:"updated_at"`
}

// Handler serves GET and HEAD of /counts.
func Handler(o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("X-Content-Type-Options", "nosniff")
		if header.Open(w, r) {
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			head.Set("Allow", "GET, HEAD, OPTIONS")
			refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "The method must be one of GET, HEAD, OPTIONS")
			return
		}
		asked := audience.Request{Token: r.URL.Query().Get("token"), Referrers: r.Header["Referer"], UserAgents: r.Header["User-Agent"]}
		c, err := o.Counter.Count(r.Context(), asked, o.Now())
		if err != nil {
			o.fail(w, r, err)
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"data": []counts{{c.Views, c.Viewers, c.UpdatedAt.UTC().Format("2006-01-02T15:04:05Z")}}})
	})
}

// fail writes an error; nothing but a fault's own sentences is shown.
func (o Options) fail(w http.ResponseWriter, r *http.Request, err error) {
	messages := fault.Messages(err)
	switch fault.KindOf(err) {
	case fault.Invalid, fault.Conflict, fault.TooLarge, fault.NotReady:
		refuse(w, http.StatusBadRequest, "invalid_parameters", messages...)
	case fault.Denied, fault.Unauthorized:
		refuse(w, http.StatusForbidden, "forbidden", messages...)
	case fault.NotFound:
		refuse(w, http.StatusNotFound, "not_found", messages...)
	case fault.TooMany:
		refuse(w, http.StatusTooManyRequests, "too_many_requests", messages...)
	case fault.Unavailable:
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "unavailable", "The service is not available at the moment; try again")
	case fault.Internal:
		if r.Context().Err() == nil {
			o.Logger.ErrorContext(r.Context(), "viewer counts failed", "error", err)
		}
		refuse(w, http.StatusInternalServerError, "internal_error", "The service could not respond because of an error of its own")
	}
}

func refuse(w http.ResponseWriter, status int, typ string, messages ...string) {
	writeJSON(w, status, map[string]any{"error": map[string]any{"type": typ, "messages": append([]string{}, messages...)}})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}
