package rig

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// How a bucket responds.
const (
	BucketThere  = "there"
	BucketBroken = "broken off" // each connection, without a response
	BucketSlow   = "503 SlowDown"
	BucketSilent = "silent"
)

// Bucket stands between nodes and the S3 server. It ends with the test.
type Bucket struct {
	URL string // of an empty storage behind it

	through http.Handler
	mu      sync.Mutex
	how     string
	changed chan struct{} // closed when how is another
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
	b := &Bucket{how: BucketThere, changed: make(chan struct{})}
	b.through = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // it is signed
	}}
	front := httptest.NewServer(b)
	t.Cleanup(func() { b.Be(BucketThere); front.Close() })
	query.Set("endpoint", front.URL)
	storage.RawQuery = query.Encode()
	b.URL = storage.String()
	return b
}

// Be has it respond in another way. Requests that it was silent to are broken off.
func (b *Bucket) Be(how string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.how, b.changed = how, make(chan struct{})
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
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write([]byte("<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"))
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
