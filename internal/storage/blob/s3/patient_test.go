package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// piped responds with what a test writes, as a transport does: the end of the request ends it.
type piped struct{ r *io.PipeReader }

func (p piped) RoundTrip(r *http.Request) (*http.Response, error) {
	context.AfterFunc(r.Context(), func() { _ = p.r.CloseWithError(r.Context().Err()) })
	return &http.Response{Body: p.r}, nil
}

// TestResponseThatStalls ends, whenever it does; one that goes on slowly, or is read slowly, does not.
func TestResponseThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://s3/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := patient{piped{r}, time.Minute}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		go func() {
			for range 5 {
				time.Sleep(50 * time.Second)
				_, _ = w.Write([]byte("x"))
			}
		}()
		one := make([]byte, 1)
		for i := range 5 {
			if _, err := resp.Body.Read(one); err != nil {
				t.Fatalf("byte %d after %s: %v", i, time.Since(began), err)
			}
			time.Sleep(10 * time.Minute) // a viewer who has paused
		}
		began = time.Now()
		if _, err := resp.Body.Read(one); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// TestRequestThatStalls ends, too: the other end of the connection takes nothing more.
func TestRequestThatStalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		c := &pressed{near, time.Minute}
		go func() {
			time.Sleep(50 * time.Second)
			_, _ = io.ReadFull(far, make([]byte, 1))
		}()
		if n, err := c.Write([]byte("x")); n != 1 || err != nil {
			t.Errorf("slowly: %v", err)
		}
		began := time.Now()
		if _, err := c.Write([]byte("y")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		_, _ = near.Close(), far.Close()
	})
}

// TestBucketThatStalls in the middle of an object is as one that can't be reached.
func TestBucketThatStalls(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write(bytes.Repeat([]byte("x"), 500))
		_ = http.NewResponseController(w).Flush()
		<-over
	}))
	defer srv.Close()
	defer close(over)
	b, err := Open(t.Context(), Options{
		Bucket: "b", Endpoint: srv.URL, AccessKeyID: "id", SecretAccessKey: "key", PathStyle: true,
		stall: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	r, _, err := b.Read(t.Context(), "k", 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	data, err := io.ReadAll(r)
	if len(data) != 500 || fault.KindOf(err) != fault.Unavailable || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, then %v of kind %d", len(data), err, fault.KindOf(err))
	}
}

// mute takes requests, with a byte of their bodies every so often, and never responds.
type mute struct{ pause time.Duration }

func (m mute) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		for one := make([]byte, 1); ; {
			if _, err := r.Body.Read(one); err != nil {
				break
			}
			time.Sleep(m.pause)
		}
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSilentStorage keeps nobody who reads an object waiting, and is Unavailable to them, as one that can't be reached.
// What is sent may take any time as long as it goes on. What the storage may have to work for has time.
func TestSilentStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, query, body string
		want                time.Duration
	}{
		{http.MethodGet, "x-id=GetObject", "", headTime},
		{http.MethodHead, "", "", headTime},
		{http.MethodPut, "x-id=PutObject", "", takenTime},
		{http.MethodPut, "x-id=UploadPart", "0123456789", 10*20*time.Second + takenTime},
		{http.MethodGet, "list-type=2", "", responseTimeout},
		{http.MethodPost, "uploadId=1", "", responseTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			req, err := http.NewRequestWithContext(ctx, c.method, "http://s3/a?"+c.query, strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			resp, err := patient{mute{20 * time.Second}, time.Minute}.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if took := time.Since(began); err == nil || took != c.want {
				t.Errorf("%s ?%s: after %s: %v", c.method, c.query, took, err)
			}
			if err = explain(ctx, err, "read a"); !fault.Away(err) || fault.CodeOf(err) != Code {
				t.Errorf("%s ?%s: %v", c.method, c.query, err)
			}
		})
	}
}

// early responds before it has the body, of which it reads a byte afterwards.
type early struct{ body chan io.Reader }

func (e early) RoundTrip(r *http.Request) (*http.Response, error) {
	e.body <- r.Body
	return &http.Response{Body: io.NopCloser(strings.NewReader("x"))}, nil
}

// TestBodyBehindTheResponse ends nothing, although it goes on.
func TestBodyBehindTheResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := early{make(chan io.Reader, 1)}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://s3/a", strings.NewReader("y"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := patient{e, time.Minute}.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = (<-e.body).Read(make([]byte, 1))
		time.Sleep(2 * takenTime)
		r, _ := resp.Body.(*responseBody)
		if cause := context.Cause(r.ctx); cause != nil {
			t.Errorf("the response ended: %v", cause)
		}
		_ = resp.Body.Close()
	})
}

// opened is a bucket behind a transport.
func opened(t *testing.T, base http.RoundTripper, create bool) (*Bucket, error) {
	t.Helper()
	return Open(t.Context(), Options{
		Bucket: "b", Endpoint: "http://s3", AccessKeyID: "id", SecretAccessKey: "key", PathStyle: true, Create: create,
		base: base,
	})
}

// response is how a storage responds.
type response func(*http.Request) (*http.Response, error)

// answers are how a storage responds, by turns: the last one from then on.
type answers struct {
	mu    sync.Mutex
	all   []response
	asked []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	do := a.all[0]
	if len(a.all) > 1 {
		a.all = a.all[1:]
	}
	a.mu.Unlock()
	return do(r)
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func answer(status int, code string) response {
	return func(*http.Request) (*http.Response, error) {
		body := ""
		if code != "" {
			body = "<Error><Code>" + code + "</Code></Error>"
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// TestAttempts: what a storage says, or a connection that is lost, is tried three times in a few seconds, and what was
// waited for in vain is not waited for again.
func TestAttempts(t *testing.T) {
	t.Parallel()
	lost := func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
	for name, c := range map[string]struct {
		how      response
		attempts int
		read     time.Duration // at most
		write    time.Duration
	}{
		"silent":  {mute{}.RoundTrip, 1, headTime, takenTime},
		"lost":    {lost, 3, 6 * time.Second, 6 * time.Second},
		"refuses": {answer(http.StatusServiceUnavailable, "SlowDown"), 3, 6 * time.Second, 6 * time.Second},
		"broken":  {answer(http.StatusInternalServerError, ""), 3, 6 * time.Second, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answers{all: []response{c.how}}
				b, err := opened(t, a, false)
				if err != nil {
					t.Fatal(err)
				}
				for what, do := range map[string]func() error{
					"read": func() error { _, _, err := b.Read(t.Context(), "k", 0, -1); return err },
					"look": func() error { _, err := b.Stat(t.Context(), "k"); return err },
					"write": func() error {
						return b.Upload(t.Context(), "k", strings.NewReader("x"))
					},
				} {
					most := c.read
					if what == "write" {
						most = c.write
					}
					began, before := time.Now(), a.count()
					err := do()
					if took := time.Since(began); took > most || a.count()-before != c.attempts || !fault.Away(err) {
						t.Errorf("%s: %d attempts in %s: %v", what, a.count()-before, took, err)
					}
				}
			})
		})
	}
}

// TestPiecesAreRepeated: for one piece that was waited for in vain nothing else of a large object is sent again.
func TestPiecesAreRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent := map[string]int{}
		var mu sync.Mutex
		fine := answer(http.StatusOK, "")
		b, err := opened(t, roundTrip(func(r *http.Request) (*http.Response, error) {
			query := r.URL.Query()
			mu.Lock()
			part := query.Get("partNumber")
			sent[r.Method+part]++
			silent := part == "2" && sent["PUT2"] == 1
			mu.Unlock()
			if silent {
				return mute{}.RoundTrip(r)
			}
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			resp, _ := fine(r)
			switch {
			case part != "":
				resp.Header.Set("ETag", part)
			case query.Has("uploads"):
				resp.Body = io.NopCloser(strings.NewReader("<R><UploadId>u</UploadId></R>"))
			default:
				resp.Body = io.NopCloser(strings.NewReader("<R><ETag>e</ETag></R>"))
			}
			return resp, nil
		}), false)
		if err != nil {
			t.Fatal(err)
		}
		large := io.LimitReader(endless{}, smallBytes+1)
		if err = b.Upload(t.Context(), "k", large); err != nil {
			t.Error(err)
		}
		if want := map[string]int{"POST": 2, "PUT1": 1, "PUT2": 2}; !maps.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (rt roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestDeadline: a storage that has not responded by a deadline of the caller's is away, and who gives up is not told
// so.
func TestDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, err := opened(t, mute{}, false)
		if err != nil {
			t.Fatal(err)
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = b.Stat(late, "k"); !fault.Away(err) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("in time: %v", err)
		}
		gone, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err = b.Stat(gone, "k"); fault.Away(err) || !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
	})
}

// TestBucketIsMadeLater: a service starts while its storage is away, and makes the bucket with the first object. It
// does not start where somebody has to mend something.
func TestBucketIsMadeLater(t *testing.T) {
	t.Parallel()
	busy, fine := answer(http.StatusServiceUnavailable, "SlowDown"), answer(http.StatusOK, "")
	for name, away := range map[string]response{"busy": busy, "silent": mute{}.RoundTrip} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := &answers{all: []response{away}}
				began := time.Now()
				b, err := opened(t, a, true)
				if err != nil || time.Since(began) > createTime {
					t.Fatalf("after %s: %v", time.Since(began), err)
				}
				a.all, a.asked = append(a.all[:0], answer(http.StatusNotFound, noSuchBucket), fine), nil
				if err = b.Upload(t.Context(), "k", strings.NewReader("x")); !fault.Away(err) {
					t.Errorf("without a bucket: %v", err)
				}
				if err = b.Upload(t.Context(), "k", strings.NewReader("x")); err != nil {
					t.Error(err)
				}
				if want := []string{"PUT /b/k", "PUT /b", "PUT /b/k"}; !slices.Equal(a.asked, want) {
					t.Errorf("asked %q, want %q", a.asked, want)
				}
			})
		})
	}
	refused := &answers{all: []response{answer(http.StatusForbidden, "AccessDenied")}}
	if _, err := opened(t, refused, true); !errors.Is(err, ErrRefused) {
		t.Errorf("refused: %v", err)
	}
}
