package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/id"
)

type contextKey int

const (
	requestKey contextKey = iota
	identityKey
	namesKey
)

const requestIDHeader = "X-Request-Id"

// patience is how long a response may take. What it waits for is a database that hangs: clients are told before they
// give up by themselves.
const patience = 30 * time.Second

var errLate = errors.New("nothing has responded in time")

func requestID(ctx context.Context) string {
	v, _ := ctx.Value(requestKey).(string)
	return v
}

// observe is the outermost layer: it names the request, bounds its time, catches panics and writes the access log.
// Query strings and headers are not logged: stream keys and tokens are in them.
func (s *server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := s.now()
		requestName := id.NewUUID()
		ctx := event.WithRequest(context.WithValue(r.Context(), requestKey, requestName), requestName)
		if !EndlessPath(r.URL.Path) {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, patience, errLate)
			defer cancel()
		}
		r = r.WithContext(ctx)
		h := w.Header()
		h.Set(requestIDHeader, requestName)
		h.Set("Cache-Control", "no-store") // responses carry stream keys
		h.Set("X-Content-Type-Options", "nosniff")
		rec := &recorder{ResponseWriter: w}
		defer func() {
			if p := recover(); p != nil {
				s.recovered(rec, r, p)
			}
			s.log.DebugContext(r.Context(), "api request", slog.String("request_id", requestName),
				slog.String("method", clip(r.Method)),
				slog.String("path", clip(r.URL.Path)), slog.Int("status", rec.status), slog.Int64("bytes", rec.bytes),
				slog.Duration("duration", s.now().Sub(start)))
		}()
		next.ServeHTTP(rec, r)
	})
}

func (s *server) recovered(rec *recorder, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http's own way to drop a connection
	}
	s.log.ErrorContext(r.Context(), "request panicked", slog.String("request_id", requestID(r.Context())),
		slog.Any("error", p), slog.String("stack", string(debug.Stack())))
	if rec.status == 0 {
		writeError(rec, internalError(r.Context()))
	}
}

// clip keeps a log line short, whatever a client sends.
func clip(s string) string {
	if len(s) > 256 {
		return s[:256]
	}
	return s
}

// recorder remembers what the response was.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// statusOf is the status of a response that has been written; a panic leaves none.
func statusOf(w http.ResponseWriter) int {
	if rec, ok := w.(*recorder); ok && rec.status != 0 {
		return rec.status
	}
	return http.StatusInternalServerError
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
