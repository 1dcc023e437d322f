// Package header sets response headers: those that make browsers protect a page, and those that let other sites' pages
// read a response. It must never know what is on the pages. It starts no goroutine.
package header

import (
	"net/http"
	"strconv"
	"time"
)

// closed is the policy of what is no page: nothing is loaded, nobody may frame it (CSP level 3).
const closed = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Closed has responses begin with the strictest headers; pages that need more set their own.
func Closed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", closed)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer") // there may be a token in the address
		next.ServeHTTP(w, r)
	})
}

// Strict has browsers come back over TLS only, for a time (RFC 6797); 0: it adds nothing.
func Strict(maxAge time.Duration, next http.Handler) http.Handler {
	if maxAge <= 0 {
		return next
	}
	value := "max-age=" + strconv.FormatInt(int64(maxAge.Seconds()), 10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Strict-Transport-Security", value)
		next.ServeHTTP(w, r)
	})
}
