package unsent_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/unsent"
)

// reader is a response whose client takes each write after a while, unless that was broken off.
type reader struct {
	head  http.Header
	after time.Duration
	ended chan struct{}
	took  int
}

func (r *reader) Header() http.Header { return r.head }
func (r *reader) WriteHeader(int)     {}

func (r *reader) Write(p []byte) (int, error) {
	select {
	case <-r.ended:
		return 0, os.ErrDeadlineExceeded
	case <-time.After(r.after):
		r.took += len(p)
		return len(p), nil
	}
}

func (r *reader) FlushError() error { return nil }

func (r *reader) SetWriteDeadline(t time.Time) error {
	if !t.After(time.Now()) {
		close(r.ended)
	}
	return nil
}

// TestPatience: a client has so long for each piece, and a handler as long as it likes between two.
func TestPatience(t *testing.T) {
	t.Parallel()
	const pieces = 5
	for name, tt := range map[string]struct {
		after, pause time.Duration
		broken       bool
	}{
		"takes nothing":        {after: unsent.Patience + time.Second, broken: true},
		"takes a piece at 19s": {after: unsent.Patience - time.Second},
		"waits for the server": {pause: time.Hour},
	} {
		for how, send := range map[string]func(w http.ResponseWriter) error{
			"write": func(w http.ResponseWriter) error {
				_, err := w.Write(make([]byte, pieces*unsent.Piece))
				return err
			},
			"copy": func(w http.ResponseWriter) error {
				_, err := io.Copy(w, io.LimitReader(zeros{}, pieces*unsent.Piece))
				return err
			},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &reader{head: http.Header{}, after: tt.after, ended: make(chan struct{})}
					var err error
					handle := func(w http.ResponseWriter, _ *http.Request) {
						if _, err = io.WriteString(w, "first"); err != nil {
							return
						}
						time.Sleep(tt.pause)
						err = send(w)
					}
					h := unsent.Handler(nil, clientaddr.Finder{}, http.HandlerFunc(handle))
					r, bad := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
					if bad != nil {
						t.Fatal(bad)
					}
					r.ProtoMajor = 2
					h.ServeHTTP(w, r)
					if tt.broken {
						if !errors.Is(err, os.ErrDeadlineExceeded) || w.took > 0 {
							t.Errorf("%v, %d bytes were taken", err, w.took)
						}
						return
					}
					if want := len("first") + pieces*unsent.Piece; err != nil || w.took != want {
						t.Errorf("%v, %d bytes were taken, want %d", err, w.took, want)
					}
				})
			})
		}
	}
}

// file counts what it is asked to send by itself.
type file struct {
	reader

	asked []int64
}

func (f *file) ReadFrom(src io.Reader) (int64, error) {
	some, ok := src.(*io.LimitedReader)
	if !ok {
		return 0, errors.New("not bounded")
	}
	if _, ok := some.R.(*strings.Reader); !ok {
		return 0, errors.New("the file is hidden from the system")
	}
	f.asked = append(f.asked, some.N)
	return io.Copy(io.Discard, some)
}

// TestFiles are offered to the system as they are, a stretch at a time.
func TestFiles(t *testing.T) {
	t.Parallel()
	const size = 600 << 10
	w := &file{}
	w.head, w.ended = http.Header{}, make(chan struct{})
	h := unsent.Handler(nil, clientaddr.Finder{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", size+1)), size); n != size || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	h.ServeHTTP(w, r)
	if len(w.asked) != 3 || w.asked[0] != 256<<10 || w.asked[2] != 88<<10 {
		t.Errorf("%v", w.asked)
	}
}
