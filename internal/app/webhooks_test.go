package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/fetch"
)

// TestPostOfDelivery: an endpoint gets the body with the headers that sign it, and of its response everything that
// deliveries go by comes back.
func TestPostOfDelivery(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "{}" || r.Header.Get("Content-Type") != "application/json" ||
			r.Header.Get("Webhook-Id") != "event1" {
			t.Errorf("got %s with %v, %v", body, r.Header, err)
		}
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, strings.Repeat("x", 2*webhook.KeptBody))
	}))
	t.Cleanup(srv.Close)
	client := fetch.New(fetch.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	t.Cleanup(client.Close)
	got, err := postBy(client)(t.Context(), srv.URL, map[string]string{"Webhook-Id": "event1"}, []byte("{}"))
	if err != nil || got.Status != http.StatusServiceUnavailable || got.RetryAfter != time.Minute ||
		len(got.Body) != webhook.KeptBody || got.Headers["Retry-After"][0] != "60" {
		t.Errorf("%+v, %v", got, err)
	}
}
