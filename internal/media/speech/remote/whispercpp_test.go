package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/speech"
)

// recorded is an answer of whisper.cpp's server; see testdata/whispercpp.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "whispercpp", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestWhisperCPPAnswers: what the server has answered becomes words with their times: tokens are put together, over the
// end of a segment, too, and what is no speech is left out.
func TestWhisperCPPAnswers(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"speech": "And@320-460 so,@460-1060 my@1060-1240 fellow@1370-2100 Americans,@3280-4000 ask@4150-4230 " +
			"not@4320-4520 what@4680-4870 your@4870-5220 country@5220-5830 can@5830-5990 do@6070-6240 " +
			"for@6240-6520",
		"broken-word": "ask@320-430 what@430-970 you@1020-1430 can@1430-1860 do@1860-2100 for@2100-2580 your@2580-3150 " +
			"country@3290-4160 on@4160-4280 the@4280-4880 Donaudampfschifffahrtsgesellschaft,@4880-9990 " +
			"too.@10030-10990",
		"blank": "",
		"music": "Welcome@3340-4500 back.@4500-6000 ♪@6330-6540 La@6680-7860 la@7860-8120 la@9290-10280 " +
			"♪@10360-10990",
		"detected": "Schöne@340-1240 Grüße@1240-2100 aus@2100-2880 München!@3290-4990",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := parse(recorded(t, name), 11*time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if got := shown(r.Words); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			language, sure := "en", 0.0
			if name == "detected" {
				language, sure = "de", 1
			}
			if r.Language != language || r.Confidence != sure {
				t.Errorf("language %s by %f", r.Language, r.Confidence)
			}
		})
	}
}

// TestTry: whether a server can't be reached, refuses, answers something else or is busy.
func TestTry(t *testing.T) {
	t.Parallel()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"status":"ok"}`) }
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	blank := says(http.StatusOK, string(recorded(t, "blank")))
	loads := says(http.StatusServiceUnavailable, `{"status":"loading model"}`)
	for name, tt := range map[string]struct {
		health, inference http.HandlerFunc
		path, want        string
		busy              bool
	}{
		"well":                 {ok, blank, "", "", false},
		"at another path":      {ok, blank, "/v1/audio/transcriptions", "", false},
		"still loads":          {loads, ok, "", "loading", true},
		"refuses":              {ok, says(http.StatusForbidden, ""), "", "refuses the key (403)", false},
		"has no such path":     {ok, says(http.StatusNotFound, "File Not Found"), "", "--inference-path", false},
		"can't read it":        {ok, says(http.StatusBadRequest, "Invalid request"), "", "status 400", false},
		"fails":                {ok, says(http.StatusInternalServerError, "500"), "", "status 500", false},
		"answers with a page":  {ok, says(http.StatusOK, "<html>"), "", "is the URL right", false},
		"answers with nothing": {ok, says(http.StatusOK, ""), "", "is the URL right", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mux := http.NewServeMux()
			mux.HandleFunc("GET /health", tt.health)
			path := tt.path
			if path == "" {
				path = "/inference"
			}
			mux.HandleFunc("POST "+path, tt.inference)
			server := httptest.NewServer(mux)
			defer server.Close()
			e := NewHTTP(HTTPOptions{
				Name: "whisper", Flavour: WhisperCPP, URL: server.URL + tt.path, Client: server.Client(),
			})
			tries(t, e.Try(t.Context()), tt.want, tt.busy)
		})
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	e := NewHTTP(HTTPOptions{Name: "whisper", Flavour: WhisperCPP, URL: gone.URL, Client: gone.Client()})
	tries(t, e.Try(t.Context()), "does it run?", false)
}

// TestTryOfABusyServer: one that says that it is ready and recognises nothing in time has something else to do.
func TestTryOfABusyServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost {
				<-r.Context().Done()
				return nil, context.Cause(r.Context())
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
		})
		e := NewHTTP(HTTPOptions{
			Name: "whisper", Flavour: WhisperCPP, URL: "http://server", Client: &http.Client{Transport: server},
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		tries(t, e.Try(ctx), "has not recognised 2 s of sound in time", true)
	})
}

// tries looks at the outcome of a try; want is part of what is said, and empty where all is well.
func tries(t *testing.T, err error, want string, busy bool) {
	t.Helper()
	switch {
	case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want %q", err, want)
	case errors.Is(err, speech.ErrBusy) != busy:
		t.Errorf("busy is %t: %v", !busy, err)
	}
}
