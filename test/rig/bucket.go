package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// How a bucket responds.
const (
	BucketThere   = "there"
	BucketRefuses = "refuses connections" // and has broken off those that there were
	BucketSlow    = "503 SlowDown"
	BucketBroken  = "500 InternalError"
	BucketSilent  = "silent"
)

// Bucket stands between nodes and the S3 server. It ends with the test.
type Bucket struct {
	URL string // of an empty storage behind it

	t       testing.TB
	address string
	through http.Handler

	mu      sync.Mutex
	how     string
	changed chan struct{} // closed when how is another
	server  *http.Server  // nil while connections are refused
}

// StartBucket starts one that is there.
func StartBucket(t testing.TB) *Bucket {
	t.Helper()
	storage, err := url.Parse(strings.TrimPrefix(Scaled.Empty(t)[1], "MILLRACE_STORAGE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	query := storage.Query()
	to, err := url.Parse(query.Get("endpoint"))
	if err != nil {
		t.Fatal(err)
	}
	// At an address of this machine at which nobody else listens: nobody takes its port while connections are refused.
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(250), rand.IntN(250), 1+rand.IntN(250))
	b := &Bucket{t: t, address: net.JoinHostPort(host, "0"), how: BucketRefuses, changed: make(chan struct{})}
	b.through = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	b.Be(BucketThere)
	t.Cleanup(func() { b.Be(BucketRefuses) })
	query.Set("endpoint", "http://"+b.address)
	storage.RawQuery = query.Encode()
	b.URL = storage.String()
	return b
}

// Be has it respond in another way. Requests that it was silent to are broken off.
func (b *Bucket) Be(how string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.how, b.changed = how, make(chan struct{})
	switch {
	case how == BucketRefuses && b.server != nil:
		_ = b.server.Close() // with all its connections
		b.server = nil
	case how != BucketRefuses && b.server == nil:
		b.listen()
	}
}

func (b *Bucket) listen() {
	b.t.Helper()
	ln, err := new(net.ListenConfig).Listen(context.WithoutCancel(b.t.Context()), "tcp", b.address)
	if err != nil {
		b.t.Fatal(err)
	}
	b.address = ln.Addr().String()
	s := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	b.server = s
	go func() {
		if err := s.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			b.t.Errorf("bucket: %v", err)
		}
	}()
}

// ServeHTTP implements http.Handler.
func (b *Bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	how, changed := b.how, b.changed
	b.mu.Unlock()
	switch how {
	case BucketThere:
		b.through.ServeHTTP(w, r)
	case BucketSlow:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	case BucketBroken:
		refuse(w, http.StatusInternalServerError, "InternalError")
	case BucketSilent:
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	default:
		panic(http.ErrAbortHandler)
	}
}

// refuse responds with an error as S3 does.
func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>Try again.</Message></Error>", code)
}
