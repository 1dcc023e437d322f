package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"millrace/internal/socket"
	"millrace/internal/unsent"
	"millrace/internal/web/dashboard"
	"millrace/internal/web/pace"
	"millrace/internal/web/upload"
)

// connState tells the budget which connections of net/http are at work. Until its first request has come one counts as
// idle.
func connState(nc net.Conn, state http.ConnState) {
	c := counted(nc)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.Busy()
	case http.StateIdle:
		c.Idle()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

// counted is a connection of net/http as it counts against its budget; nil: it counts nowhere.
func counted(nc net.Conn) *socket.Counted {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	if c, ok := nc.(interface{ Whole() *socket.Counted }); ok {
		return c.Whole()
	}
	return nil
}

type countedKey struct{}

// connContext is an http.Server's: requests know their connection.
func connContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(unsent.ConnContext(ctx, nc), countedKey{}, counted(nc))
}

// places lets requests in as long as there are places for their kind, and has bodies keep pace.
func places(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(countedKey{}).(*socket.Counted)
		if c == nil {
			c = &socket.Counted{}
		}
		kind, grace := kindOf(r.URL.Path), pace.Grace
		if kind == uploading {
			grace = pace.UploadGrace
		}
		if !probe(r.URL.Path) {
			if !c.Begin(kind) {
				if r.ProtoMajor == 1 {
					c.Idle() // whoever needs its place may have it
				}
				noPlace(w, r, kind)
				return
			}
			defer c.End(kind)
		}
		w, r, done := pace.Keep(w, r, grace, c)
		defer done()
		next.ServeHTTP(w, r)
	})
}

// kindOf says whose places a request takes.
func kindOf(path string) socket.Kind {
	if strings.HasPrefix(path, upload.Path) {
		return uploading
	}
	for _, at := range []string{"/video", "/system", "/data", "/robots", "/openapi", "/docs", "/whip", dashboard.Path} {
		if strings.HasPrefix(path, at) {
			return calling
		}
	}
	return viewing
}

// probe reports whether a path is one by which a load balancer asks whether the service lives: it does, with places or
// without.
func probe(path string) bool { return path == "/healthz" || path == "/readyz" || path == readyNode }

// noPlace refuses a request for which there is no place. Its connection makes place for one that is.
func noPlace(w http.ResponseWriter, r *http.Request, kind socket.Kind) {
	var why string
	switch kind {
	case uploading:
		why = "too many files are being uploaded: go on in a moment"
	case calling:
		why = "too many requests are at work: ask again in a moment"
	default:
		why = "too many viewers: ask again in a moment"
	}
	head := w.Header()
	if r.ProtoMajor == 1 {
		head.Set("Connection", "close")
		// net/http reads what comes of the body before it responds.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
	}
	head.Set("Content-Type", "application/json")
	head.Set("Cache-Control", "no-store")
	head.Set("Retry-After", "1")
	head.Set("Access-Control-Allow-Origin", "*") // players and uploaders show what is wrong
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = fmt.Fprintf(w, `{"error":{"type":"unavailable","messages":[%q]}}`, why) // the client may have left
}
