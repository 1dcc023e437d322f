package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
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

// mute takes requests and never responds.
type mute struct{}

func (mute) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestSilentStorage keeps nobody who reads an object waiting, and is Unavailable to them, as one that can't be reached.
// What it may have to work for has time.
func TestSilentStorage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		method, query string
		want          time.Duration
	}{
		{http.MethodGet, "x-id=GetObject", headTime},
		{http.MethodHead, "", headTime},
		{http.MethodGet, "list-type=2", responseTimeout},
		{http.MethodPost, "uploadId=1", responseTimeout},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), responseTimeout)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, c.method, "http://s3/a?"+c.query, nil)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			resp, err := patient{mute{}, time.Minute}.RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if took := time.Since(began); err == nil || took != c.want {
				t.Errorf("%s ?%s: after %s: %v", c.method, c.query, took, err)
			}
			if err = explain(t.Context(), err, "read a"); c.want == headTime && !fault.Is(err, fault.Unavailable) {
				t.Errorf("%s ?%s: %v", c.method, c.query, err)
			}
		})
	}
}
