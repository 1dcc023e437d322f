package send

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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

// service is as much of one as a sender sees. It loses the connection when so many more bytes have come, as often as
// cuts says.
type service struct {
	*httptest.Server

	mu     sync.Mutex
	cuts   []int
	over   bool // the upload that was made first has ended
	fails  int  // further requests that are responded to with 503
	got    []byte
	asked  []string // policies
	titles []string
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /video/v1/uploads", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			New struct {
				Policies []string `json:"playback_policies"`
				Meta     struct {
					Title string `json:"title"`
				} `json:"meta"`
			} `json:"new_asset_settings"`
		}
		id, secret, _ := r.BasicAuth()
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || id != "id" || secret != "secret" {
			http.Error(w, `{"error":{"messages":["the access token is wrong"]}}`, http.StatusUnauthorized)
			return
		}
		s.asked, s.titles = append(s.asked, in.New.Policies...), append(s.titles, in.New.Meta.Title)
		fmt.Fprintf(w, `{"data":{"id":"u1","url":%q}}`, s.URL+"/put")
	})
	mux.HandleFunc("GET /video/v1/uploads/u1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"id":"u1","asset_id":"a1"}}`)
	})
	mux.HandleFunc("GET /video/v1/assets/a1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"data":{"playback_ids":[{"id":"p1"}]}}`)
	})
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
	if s.over {
		s.over = false
		http.Error(w, `{"error":{"messages":["the upload is timed_out"]}}`, http.StatusGone)
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
		"cut in the middle":        func(s *service) { s.cuts = []int{300000} },
		"cut behind the last byte": func(s *service) { s.cuts = []int{len(data)} },
		"busy for a moment":        func(s *service) { s.fails, s.cuts = 1, []int{1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			set(s)
			var reported int64
			o := Options{
				Server: s.URL, TokenID: "id", Secret: "secret", Policy: "signed", Progress: func(sent, size int64) {
					if reported = sent; size != int64(len(data)) {
						t.Errorf("%d of %d", sent, size)
					}
				},
			}
			send := New(o)
			send.pause = time.Millisecond
			made, err := send.File(t.Context(), file(t, data))
			if want := (Result{"u1", "a1", "p1"}); err != nil || made != want || !bytes.Equal(s.got, data) ||
				s.asked[0] != "signed" || s.titles[0] != "film.mp4" {
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
	if _, err := send.File(t.Context(), file(t, []byte("x"))); err == nil ||
		!strings.Contains(err.Error(), "401: the access token is wrong") {
		t.Errorf("a wrong token: %v", err)
	}
	s.got = []byte("what nobody has sent")
	send = New(Options{Server: s.URL, TokenID: "id", Secret: "secret", Policy: "public"})
	if _, err := send.File(t.Context(), file(t, []byte("x"))); err == nil ||
		!strings.Contains(err.Error(), "400: a gap") {
		t.Errorf("a gap: %v", err)
	}
	for path, want := range map[string]string{
		"/no/such/file": "no such file", t.TempDir(): "is not a file", file(t, nil): "is empty",
	} {
		if _, err := send.File(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// interrupt sends a file in a process that is ended when it has lost the connection behind so many bytes.
func (s *service) interrupt(t *testing.T, o Options, path string, at int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s.cuts, o.Say = []int{at}, func(string) { cancel() }
	_, err := New(o).File(ctx, path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !errors.Is(err, context.Canceled) || len(s.got) != at {
		t.Fatalf("it was not interrupted: %v, %d bytes", err, len(s.got))
	}
}

// TestGoesOn: what an earlier process has sent is not sent again, and what has ended is sent from its first byte.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, tt := range map[string]struct {
		between func(t *testing.T, s *service, o *Options, path string)
		uploads int
		says    string
		left    int // notes of uploads that nobody asks for any more
	}{
		"the same command": {nil, 1, "50 % of it was sent before", 0},
		"it has timed out": {func(_ *testing.T, s *service, _ *Options, _ string) {
			s.over, s.got = true, nil
		}, 2, "has ended (the upload is timed_out): the file is sent from its first byte", 0},
		"another title": {
			func(_ *testing.T, s *service, o *Options, _ string) { o.Title, s.got = "B", nil }, 2, "", 1,
		},
		"another policy": {
			func(_ *testing.T, s *service, o *Options, _ string) { o.Policy, s.got = "public", nil }, 2, "", 1,
		},
		"the file has changed": {func(t *testing.T, s *service, _ *Options, path string) {
			t.Helper()
			s.got = nil
			if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, 2, "", 1},
		"a note that was written by half": {func(t *testing.T, s *service, o *Options, _ string) {
			t.Helper()
			s.got = nil
			for _, note := range notes(t, o.Notes) {
				if err := os.Truncate(note, 10); err != nil {
					t.Fatal(err)
				}
			}
		}, 2, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newService(t)
			path := file(t, data)
			var said []string
			o := Options{
				Server: s.URL, TokenID: "id", Secret: "secret", Policy: "signed",
				Notes: filepath.Join(t.TempDir(), "notes"),
				Say:   func(text string) { said = append(said, text) },
			}
			s.interrupt(t, o, path, len(data)/2)
			if tt.between != nil {
				s.mu.Lock()
				tt.between(t, s, &o, path)
				s.mu.Unlock()
			}
			again := New(o)
			again.pause = time.Millisecond
			made, err := again.File(t.Context(), path)
			if want := (Result{"u1", "a1", "p1"}); err != nil || made != want || !bytes.Equal(s.got, data) {
				t.Errorf("%+v, %v, %d bytes", made, err, len(s.got))
			}
			if text := strings.Join(said, "; "); len(s.asked) != tt.uploads || !strings.Contains(text, tt.says) {
				t.Errorf("%d uploads; said: %s", len(s.asked), text)
			}
			if made, err = New(o).File(t.Context(), path); err != nil || made.Asset != "a1" ||
				len(s.asked) != tt.uploads {
				t.Errorf("one that was sent: %+v, %v, %d uploads", made, err, len(s.asked))
			}
			again.Forget(path)
			if left := notes(t, o.Notes); len(left) != tt.left {
				t.Errorf("notes are left: %v", left)
			}
		})
	}
}

// notes are the files of a folder. None may be read by others: they have the URLs of uploads.
func notes(t *testing.T, dir string) (found []string) {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		info, err := e.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("note %v: %v", info, err)
		}
		found = append(found, filepath.Join(dir, e.Name()))
	}
	return found
}

// TestNotes: one process sends a file at a time; old notes are removed; what was not even begun leaves none.
func TestNotes(t *testing.T) {
	t.Parallel()
	s := newService(t)
	path := file(t, []byte("film"))
	o := Options{Server: s.URL, TokenID: "id", Secret: "secret", Policy: "public", Notes: t.TempDir()}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	held, err := New(o).note(path, info)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = New(o).File(t.Context(), path); !errors.Is(err, errHeld) {
		t.Errorf("a second process: %v", err)
	}
	held.close()
	old := filepath.Join(o.Notes, "old.json")
	if err = errors.Join(os.WriteFile(old, nil, 0o600),
		os.Chtimes(old, time.Time{}, time.Now().Add(-3*KeptFor))); err != nil {
		t.Fatal(err)
	}
	o.Secret = "wrong"
	if _, err = New(o).File(t.Context(), path); err == nil {
		t.Error("a wrong token is taken")
	}
	if left := notes(t, o.Notes); len(left) != 0 {
		t.Errorf("notes are left: %v", left)
	}
}

// TestChanged: a file that is written to while it is sent is not passed off as whole.
func TestChanged(t *testing.T) {
	t.Parallel()
	s := newService(t)
	path := file(t, []byte("film"))
	o := Options{Server: s.URL, TokenID: "id", Secret: "secret", Policy: "public", Progress: func(int64, int64) {
		if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Error(err)
		}
	}}
	if _, err := New(o).File(t.Context(), path); err == nil ||
		!strings.Contains(err.Error(), "changed while it was sent") {
		t.Errorf("%v", err)
	}
}
