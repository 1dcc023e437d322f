package blob_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// bucket is an S3 storage of a kind: what it makes of If-None-Match.
type bucket struct {
	heeds    bool
	refuses  bool // responds that it does not know it
	conflict int  // so often it says that another one is being stored

	mu      sync.Mutex
	objects map[string]string
	seen    []string // since it was last asked
}

func (b *bucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body) // a test's own
	b.mu.Lock()
	defer b.mu.Unlock()
	old, there := b.objects[r.URL.Path]
	condition := r.Header.Get("If-None-Match") == "*"
	did := r.Method
	if condition {
		did += "*"
	}
	b.seen = append(b.seen, did)
	respond := func(status int, code string) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	}
	switch {
	case r.Method == http.MethodPut && condition && b.refuses:
		respond(http.StatusNotImplemented, "NotImplemented")
	case r.Method == http.MethodPut && condition && b.conflict > 0:
		b.conflict--
		respond(http.StatusConflict, "ConditionalRequestConflict")
	case r.Method == http.MethodPut && condition && b.heeds && there:
		respond(http.StatusPreconditionFailed, "PreconditionFailed")
	case r.Method == http.MethodPut:
		b.objects[r.URL.Path] = string(data)
	case !there:
		respond(http.StatusNotFound, "NoSuchKey")
	default:
		_, _ = io.WriteString(w, old)
	}
}

func (b *bucket) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	seen := b.seen
	b.seen = nil
	return seen
}

// What is there stays in a storage of every kind, and what the storage can do is found out with the first object,
// without harm to it.
func TestS3Conditions(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bucket               *bucket
		first, second, there []string // requests
	}{
		"heeds":   {&bucket{heeds: true}, []string{"HEAD", "PUT*", "PUT*"}, []string{"PUT*"}, []string{"PUT*"}},
		"ignores": {&bucket{}, []string{"HEAD", "PUT*", "PUT*"}, []string{"HEAD", "PUT"}, []string{"HEAD"}},
		"refuses": {
			&bucket{refuses: true}, []string{"HEAD", "PUT*", "PUT"}, []string{"HEAD", "PUT"}, []string{"HEAD"},
		},
		"conflict": {
			&bucket{heeds: true, conflict: 2},
			[]string{"HEAD", "PUT*", "PUT*", "PUT*", "PUT*"},
			[]string{"PUT*"},
			[]string{"PUT*"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.bucket.objects = map[string]string{}
			server := httptest.NewServer(tt.bucket)
			t.Cleanup(server.Close)
			s := remoteAt(t, server.URL)
			for i, step := range []struct {
				key, data, stays string
				created          bool
				requests         []string
			}{
				{"a", "one", "one", true, tt.first},
				{"b", "two", "two", true, tt.second},
				{"a", "three", "one", false, tt.there},
			} {
				created, err := s.PutNew(t.Context(), step.key, []byte(step.data))
				if err != nil || created != step.created {
					t.Errorf("%d: created %v, %v", i, created, err)
				}
				if got := tt.bucket.requests(); !slices.Equal(got, step.requests) {
					t.Errorf("%d: requests %v, want %v", i, got, step.requests)
				}
				if got := tt.bucket.objects["/b/"+step.key]; got != step.stays {
					t.Errorf("%d: %q is there, want %q", i, got, step.stays)
				}
			}
		})
	}
}
