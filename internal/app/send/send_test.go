package send

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// service is as much of one as a sender sees. It loses the connection when so many more bytes have come, as often as cuts says.
type service struct {
	*httptest.Server

	mu    sync.Mutex
	cuts  []int
	fails int // further requests that are responded to with 503
	got   []byte
	asked []string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /video/v1/uploads", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			New struct {
				Policies []string `json:"playback_policies"`
			} `json:"new_asset_settings"`
		}
		id, secret, _ := r.BasicAuth()
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || id != "id" || secret != "secret" {
			http.Error(w, `{"error":{"messages":["the access token is wrong"]}}`, http.StatusUnauthorized)
			return
		}
		s.asked = append(s.asked, in.New.Policies...)
		fmt.Fprintf(w, `{"data":{"id":"u1","url":%q}}`, s.URL+"/put")
	})
	mux.HandleFunc("GET /video/v1/uploads/u1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"id":"u1","asset_id":"a1"}}`) })
	mux.HandleFunc("GET /video/v1/assets/a1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{"playback_ids":[{"id":"p1"}]}}`) })
	mux.HandleFunc("PUT /put", s.put)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *service) put(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails > 0 {
		s.fails--
		http.Error(w, "busy", http.StatusServiceUnavailable)
		return
	}
	var first, last, total int
	if _, err := fmt.Sscanf(r.Header.Get("Content-Range"), "bytes %d-%d/%d", &first, &last, &total); err == nil {
		if first != len(s.got) || last != total-1 {
			http.Error(w, `{"error":{"messages":["a gap"]}}`, http.StatusBadRequest)
			return
		}
		if len(s.cuts) > 0 {
			part, _ := io.ReadAll(io.LimitReader(r.Body, int64(s.cuts[0])))
			s.got, s.cuts = append(s.got, part...), s.cuts[1:]
			panic(http.ErrAbortHandler)
		}
		rest, _ := io.ReadAll(r.Body)
		s.got = append(s.got, rest...)
	} else if _, err = fmt.Sscanf(r.Header.Get("Content-Range"), "bytes */%d", &total); err != nil {
		http.Error(w, `{"error":{"messages":["no range"]}}`, http.StatusBadRequest)
		return
	}
	if len(s.got) == total {
		return
	}
	if len(s.got) > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(s.got)-1))
	}
	w.WriteHeader(http.StatusPermanentRedirect)
}

func file(t *testing.T, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "film.mp4")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFile: the file arrives as it is, whatever happens to the connection.
func TestFile(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, set := range map[string]func(s *service){
		"at once": func(*service) {}, "cut before the first byte": func(s *service) { s.cuts = []int{0} },
		"cut in the middle": func(s *service) { s.cuts = []int{300000} }, "cut behind the last byte": func(s *service) { s.cuts = []int{len(data)} },
		"busy for a moment": func(s *service) { s.fails, s.cuts = 1, []int{1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			set(s)
			var reported int64
			o := Options{Server: s.URL, TokenID: "id", Secret: "secret", Policy: "signed", Progress: func(sent, size int64) {
				if reported = sent; size != int64(len(data)) {
					t.Errorf("%d of %d", sent, size)
				}
			}}
			send := New(o)
			send.pause = time.Millisecond
			made, err := send.File(t.Context(), file(t, data))
			if want := (Result{"u1", "a1", "p1"}); err != nil || made != want || !bytes.Equal(s.got, data) || s.asked[0] != "signed" {
				t.Errorf("%+v, %v, %d bytes", made, err, len(s.got))
			}
			if reported != int64(len(data)) && name == "at once" {
				t.Errorf("the last report is %d", reported)
			}
		})
	}
}

// TestRefused: what asking again does not change ends it, with the service's own words.
func TestRefused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	send := New(Options{Server: s.URL, TokenID: "id", Secret: "wrong", Policy: "public"})
	if _, err := send.File(t.Context(), file(t, []byte("x"))); err == nil || !strings.Contains(err.Error(), "401: the access token is wrong") {
		t.Errorf("a wrong token: %v", err)
	}
	s.got = []byte("what nobody has sent")
	send = New(Options{Server: s.URL, TokenID: "id", Secret: "secret", Policy: "public"})
	if _, err := send.File(t.Context(), file(t, []byte("x"))); err == nil || !strings.Contains(err.Error(), "400: a gap") {
		t.Errorf("a gap: %v", err)
	}
	for path, want := range map[string]string{"/no/such/file": "no such file", t.TempDir(): "is not a file", file(t, nil): "is empty"} {
		if _, err := send.File(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
