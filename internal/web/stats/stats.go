// Package stats serves the number of current viewers to pages: GET /counts?token=…, from any origin; the token grants
// access. It must never know how tokens are made or viewers told apart. It starts no goroutine.
package stats

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"millrace/internal/control/audience"
	"millrace/internal/web/header"
	"millrace/internal/web/respond"
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
			respond.Refuse(w, http.StatusMethodNotAllowed, respond.Error{
				Type: "method_not_allowed", Messages: []string{"The method must be one of GET, HEAD, OPTIONS"},
			})
			return
		}
		asked := audience.Request{
			Token:      r.URL.Query().Get("token"),
			Referrers:  r.Header["Referer"],
			UserAgents: r.Header["User-Agent"],
		}
		c, err := o.Counter.Count(r.Context(), asked, o.Now())
		if err != nil {
			respond.Counts.Fail(w, r, err, func(ctx context.Context, err error) {
				o.Logger.ErrorContext(ctx, "viewer counts failed", "error", err)
			})
			return
		}
		respond.JSON(w, http.StatusOK, map[string]any{
			"data": []counts{{c.Views, c.Viewers, c.UpdatedAt.UTC().Format("2006-01-02T15:04:05Z")}},
		})
	})
}
