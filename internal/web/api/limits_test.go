package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"millrace/internal/web/limit"
)

// TestRateLimits: a token and an address may send ten seconds' worth of requests at once, and are then told how long to
// wait; others are not held up. What has no token counts for its address.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	clock := noon
	ask := func(h http.Handler, token, from string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/video/v1/assets", nil)
		if r.RemoteAddr = from; token != "" {
			r.SetBasicAuth(permitsOnly+token, tokenValue)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	expect := func(what string, w *httptest.ResponseRecorder, status int, wait string) {
		t.Helper()
		if w.Code != status || w.Header().Get("Retry-After") != wait {
			t.Errorf("%s: %d, Retry-After %q, want %d, %q: %s", what, w.Code, w.Header().Get("Retry-After"), status,
				wait, w.Body)
		}
	}
	options := func(l Limits) Options {
		o := (&notebook{}).options()
		o.Now, o.Callers.Limits = func() time.Time { return clock }, l
		return o
	}
	const here, there = "192.0.2.1:5000", "198.51.100.1:5000"

	byToken := New(options(Limits{Token: limit.New(1)}))
	for range 10 {
		expect("ten at once", ask(byToken, "video;read", here), http.StatusOK, "")
	}
	expect("the eleventh", ask(byToken, "video;read", here), http.StatusTooManyRequests, "1")
	expect("the same token from elsewhere", ask(byToken, "video;read", there), http.StatusTooManyRequests, "1")
	expect("another token", ask(byToken, "video;read,video;write", here), http.StatusOK, "")
	clock = clock.Add(time.Second)
	expect("a second later", ask(byToken, "video;read", here), http.StatusOK, "")
	expect("and at once again", ask(byToken, "video;read", here), http.StatusTooManyRequests, "1")

	byAddress := New(options(Limits{Address: limit.New(1)}))
	for range 5 {
		expect("no token", ask(byAddress, "", "[2001:db8::1]:5000"), http.StatusUnauthorized, "")
		expect("with a token", ask(byAddress, "video;read", "[2001:db8::2]:5000"), http.StatusOK, "")
	}
	expect("no token, the eleventh", ask(byAddress, "", "[2001:db8::3]:5000"), http.StatusTooManyRequests, "1")
	expect("with a token, the eleventh", ask(byAddress, "video;read", "[2001:db8::3]:5001"), http.StatusTooManyRequests,
		"1")
	expect("another /64", ask(byAddress, "video;read", "[2001:db8:0:1::1]:5000"), http.StatusOK, "")
	expect("another address", ask(byAddress, "video;read", there), http.StatusOK, "")
}
