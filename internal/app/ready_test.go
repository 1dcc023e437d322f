package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/storage/blob"
)

// TestReadiness follows what the service needs, asks it no more than once a second, and waits no longer than it may
// take.
func TestReadiness(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broken, hanging atomic.Bool
		asked := 0
		logged := &logs{addrs: map[string]string{}}
		r := &readiness{log: slog.New(logged), needs: []need{
			{name: "database", ask: func(context.Context) error {
				asked++
				if broken.Load() {
					return errors.New("connection refused")
				}
				return nil
			}},
			{name: "storage", ask: func(ctx context.Context) error {
				if hanging.Load() {
					<-ctx.Done()
				}
				return ctx.Err()
			}},
		}}
		look := func(status int, text string) {
			t.Helper()
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			if w.Code != status || w.Body.String() != text {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Body, status, text)
			}
		}
		for range 100 {
			look(http.StatusOK, "database: ok\nstorage: ok\n")
		}
		if asked != 1 {
			t.Errorf("the database is asked %d times", asked)
		}
		broken.Store(true)
		for range 3 {
			time.Sleep(2 * time.Second)
			look(http.StatusServiceUnavailable, "database: does not respond\nstorage: ok\n")
		}
		broken.Store(false)
		hanging.Store(true)
		time.Sleep(2 * time.Second)
		began := time.Now()
		look(http.StatusServiceUnavailable, "database: ok\nstorage: does not respond\n")
		if time.Since(began) != readyTime {
			t.Errorf("it takes %v", time.Since(began))
		}
		hanging.Store(false)
		time.Sleep(2 * time.Second)
		look(http.StatusOK, "database: ok\nstorage: ok\n")
		if len(logged.warns) != 2 {
			t.Errorf("the log has %q", logged.warns)
		}
	})
}

// TestReadinessOfLeaver: a node that leaves is not ready from then on, whatever was found a moment ago, and a load
// balancer is told so though the database is away.
func TestReadinessOfLeaver(t *testing.T) {
	t.Parallel()
	leaving, away := false, errors.New("connection refused")
	r := &readiness{
		log: slog.New(slog.DiscardHandler), leaving: func() bool { return leaving },
		needs: []need{{name: "database", ask: func(context.Context) error { return away }}},
	}
	h := router(http.NotFoundHandler(), http.NotFoundHandler(), nil, nil, r, nil, nil, nil, nil)
	look := func(path string, status int, text, state string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if got := w.Header().Get(cli.StateHeader); w.Code != status || w.Body.String() != text || got != state {
			t.Errorf("GET %s is %d %q, state %q; want %d %q, %q", path, w.Code, w.Body, got, status, text, state)
		}
	}
	look("/readyz/node", http.StatusOK, "this node: ok\n", "")
	look("/healthz", http.StatusNoContent, "", "")
	away = nil
	look("/readyz", http.StatusOK, "database: ok\n", "")
	leaving = true
	look("/readyz", http.StatusServiceUnavailable, "database: ok\nthis node: leaving\n", "")
	look("/readyz/node", http.StatusServiceUnavailable, "this node: leaving\n", "")
	look("/healthz", http.StatusNoContent, "", "leaving")
}

// TestReachable is a storage that responds, whether or not it has anything.
func TestReachable(t *testing.T) {
	t.Parallel()
	store, err := blob.OpenURL(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if err = reachable(t.Context(), store); err != nil {
		t.Error(err)
	}
	away, err := blob.OpenURL(t.Context(),
		"s3://b?endpoint=http%3A%2F%2F127.0.0.1%3A1&access_key_id=a&secret_access_key=b")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = away.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := reachable(ctx, away); err == nil {
		t.Error("a storage that is not there is reached")
	}
}
