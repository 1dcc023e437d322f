package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/config"
)

// TestUpload: the command creates an upload with the token of the environment, sends the file and prints what was made.
func TestUpload(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	mux.HandleFunc("POST /video/v1/uploads", func(w http.ResponseWriter, r *http.Request) {
		if id, secret, _ := r.BasicAuth(); id != "the-token-of-the-test" || secret != "a-secret-of-sixteen-or-more" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"data":{"id":"u","url":%q}}`, s.URL+"/put")
	})
	mux.HandleFunc("PUT /put", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /video/v1/uploads/u", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"id":"u","asset_id":"a"}}`) })
	mux.HandleFunc("GET /video/v1/assets/a", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"playback_ids":[{"id":"p"}]}}`) })
	file := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(file, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := []string{"MILLRACE_TOKEN_ID=the-token-of-the-test", "MILLRACE_TOKEN_SECRET=a-secret-of-sixteen-or-more"}
	for name, tt := range map[string]struct {
		args, environ []string
		code          int
		want          string
	}{
		"a file":            {[]string{"upload", "--public-url", s.URL, file}, token, config.ExitOK, "ASSET_ID=a\nPLAYBACK_ID=p\n"},
		"no token":          {[]string{"upload", "--public-url", s.URL, file}, nil, config.ExitFailed, "needs an access token"},
		"no such file":      {[]string{"upload", "--public-url", s.URL, file + "x"}, token, config.ExitFailed, "no such file"},
		"no file":           {[]string{"upload"}, token, config.ExitUsage, "upload needs FILE"},
		"an unknown policy": {[]string{"upload", "--policy", "drm", file}, token, config.ExitUsage, "neither public nor signed"},
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), tt.args, tt.environ, &out, &out, Actions{}); code != tt.code || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %d %s", name, code, out.String())
		}
	}
}
