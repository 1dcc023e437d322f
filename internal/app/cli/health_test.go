package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"millrace/internal/config"
)

// TestHealth: only the health page of a Millrace is one.
func TestHealth(t *testing.T) {
	t.Parallel()
	ours := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/healthz" {
				w.Header().Set("Millrace-Version", "1.2.3")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
			}
		}
	}
	for name, tt := range map[string]struct {
		serve http.HandlerFunc
		fault string
	}{
		"up":             {ours(http.StatusNoContent), ""},
		"refused":        {ours(http.StatusServiceUnavailable), "503 Service Unavailable"},
		"redirected":     {ours(http.StatusFound), "302 Found"},
		"something else": {http.NotFound, "which is not"},
		"without a version": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
		}, "which is not"},
		"leaving": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(StateHeader, Leaving)
			ours(http.StatusNoContent)(w, r)
		}, "millrace 1.2.3 is leaving"},
		"nothing": {nil, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.serve)
			t.Cleanup(server.Close)
			address := server.Listener.Addr().String()
			if tt.serve == nil {
				address = "127.0.0.1:1" // of a protocol that nobody runs
			}
			var said strings.Builder
			err := health(t.Context(), &request{cfg: config.Config{HTTPAddr: address}, out: &said})
			if tt.fault == "" && (err != nil || said.String() != "millrace 1.2.3\n") {
				t.Errorf("%v: %q", err, said.String())
			}
			if tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault) || said.Len() > 0) {
				t.Errorf("got %v, %q, want %s", err, said.String(), tt.fault)
			}
		})
	}
}

// TestNearAddress: a listener is reached at an address of its own family.
func TestNearAddress(t *testing.T) {
	t.Parallel()
	for listens, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "[::1]:80",
		"10.0.0.5:8080": "10.0.0.5:8080", "[fd00::1]:80": "[fd00::1]:80", ":0": "", "8080": "",
	} {
		if got, err := nearAddress(listens); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", listens, got, err, want)
		}
	}
}
