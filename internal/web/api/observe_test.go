package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/access"
)

// hanging is a database that does not respond.
type hanging struct{ access.API }

func (hanging) Authenticate(ctx context.Context, _ access.Credentials, _ time.Time) (access.Identity, error) {
	<-ctx.Done()
	return access.Identity{}, fmt.Errorf("read token: %w", ctx.Err())
}

// TestDatabaseThatHangs is told to clients while they still wait, and forgotten with those who have left.
func TestDatabaseThatHangs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leaves time.Duration
		status int
		took   time.Duration
	}{
		"waits":  {time.Hour, http.StatusServiceUnavailable, patience},
		"leaves": {time.Second, http.StatusInternalServerError, time.Second}, // which nobody reads
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client, leave := context.WithTimeout(t.Context(), tt.leaves)
				defer leave()
				r := httptest.NewRequestWithContext(client, http.MethodGet, "/video/v1/live-streams", nil)
				r.SetBasicAuth(tokenID, tokenValue)
				w, began := httptest.NewRecorder(), time.Now()
				New(Options{Callers: Callers{Access: hanging{}}}).ServeHTTP(w, r)
				if w.Code != tt.status || time.Since(began) != tt.took {
					t.Errorf("%d %s after %v", w.Code, w.Body, time.Since(began))
				}
			})
		})
	}
}
