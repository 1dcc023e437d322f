package cli

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	mux.HandleFunc("GET /video/v1/uploads/u", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"id":"u","asset_id":"a"}}`)
	})
	mux.HandleFunc("GET /video/v1/assets/a", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"playback_ids":[{"id":"p"}]}}`)
	})
	file := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(file, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.mp4")
	if err := os.WriteFile(other, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := []string{"MILLRACE_TOKEN_ID=the-token-of-the-test", "MILLRACE_TOKEN_SECRET=a-secret-of-sixteen-or-more"}
	for name, tt := range map[string]struct {
		args, environ []string
		code          int
		want          string
	}{
		"a file":       {[]string{"upload", "--public-url", s.URL, file}, token, ExitOK, "ASSET_ID=a\nPLAYBACK_ID=p\n"},
		"no token":     {[]string{"upload", "--public-url", s.URL, file}, nil, ExitFailed, "needs an access token"},
		"no such file": {[]string{"upload", "--public-url", s.URL, file + "x"}, token, ExitFailed, "no such file"},
		"several files": {
			[]string{"upload", "--public-url", s.URL, file, other},
			token, ExitOK,
			"FILE=" + other + "\nASSET_ID=a\nPLAYBACK_ID=p\n",
		},
		"a title of several": {
			[]string{"upload", "--title", "A", file, other}, token, ExitUsage, "--title is for one file",
		},
		"no title": {[]string{"upload", "--title=", file}, token, ExitUsage, "is not a title"},
		"no file":  {[]string{"upload"}, token, ExitUsage, "upload needs FILE"},
		"an unknown policy": {
			[]string{"upload", "--policy", "drm", file}, token, ExitUsage, "neither public nor signed",
		},
	} {
		var out bytes.Buffer
		if code := Run(t.Context(), tt.args, tt.environ, &out, &out, Actions{}); code != tt.code ||
			!strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %d %s", name, code, out.String())
		}
	}
}

// TestUploadInterrupted: Ctrl-C says how to go on, and ends with 130.
func TestUploadInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	t.Cleanup(s.Close)
	file := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(file, []byte("film"), 0o600); err != nil {
		t.Fatal(err)
	}
	token := []string{"MILLRACE_TOKEN_ID=the-token-of-the-test", "MILLRACE_TOKEN_SECRET=a-secret-of-sixteen-or-more"}
	for home, want := range map[string]string{
		"HOME=" + t.TempDir(): "the same command goes on", "HOME=": "starts from the first byte",
	} {
		var out bytes.Buffer
		code := Run(ctx, []string{"upload", "--public-url", s.URL, file}, append(token, home), &out, &out, Actions{})
		if code != ExitInterrupted || !strings.Contains(out.String(), "interrupted") ||
			!strings.Contains(out.String(), want) {
			t.Errorf("%d %s", code, out.String())
		}
	}
}

// TestNotesFolder follows the XDG Base Directory Specification: what is not absolute does not count.
func TestNotesFolder(t *testing.T) {
	t.Parallel()
	for want, environ := range map[string][]string{
		"/state/millrace/uploads":               {"HOME=/home/a", "XDG_STATE_HOME=/state"},
		"/home/a/.local/state/millrace/uploads": {"HOME=/home/a", "XDG_STATE_HOME=state"},
		"":                                      {"HOME="},
	} {
		if got := notesFolder(environ); got != want {
			t.Errorf("%q: %q, want %q", environ, got, want)
		}
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	show := func(terminal bool) string {
		var out bytes.Buffer
		p := &progress{out: &out, terminal: terminal}
		p.begin("/films/a name that is far too long\x1b[2J.mp4")
		at := time.Unix(1000, 0)
		for i := range int64(11) {
			p.sentBy(at.Add(time.Duration(i)*time.Second), i*1e6, 10e6)
			if i == 3 {
				p.say("the connection was lost")
			}
		}
		p.end()
		return out.String()
	}
	lines := show(false)
	for _, want := range []string{
		"40 % of 10.0 MB\n", " 60 % of 10.0 MB, 1.0 MB/s, 0:04 left\n", ": the connection was lost\n",
		"100 % of 10.0 MB, 1.0 MB/s\n",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is not in\n%s", want, lines)
		}
	}
	if strings.ContainsAny(lines, "\r\x1b") || strings.Count(lines, "\n") != 12 {
		t.Errorf("not for a terminal:\n%q", lines)
	}
	last := show(true)
	last = last[strings.LastIndex(last, "\r"):]
	if want := "\r\"a name that is…  [####################]  100 % of 10.0 MB, 1.0 MB/s\x1b[K\n"; last != want {
		t.Errorf("%q, want %q", last, want)
	}
	for d, want := range map[time.Duration]string{
		59 * time.Second: "0:59", time.Hour + 61*time.Second: "1:01:01", 1e3 * time.Hour: "days",
	} {
		if got := span(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}
