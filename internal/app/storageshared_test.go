package app

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/storage/blob"
)

// shaky is a storage that is away until a time.
type shaky struct {
	blob.Store

	until time.Time
}

func (s shaky) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	if time.Now().Before(s.until) {
		return false, errors.New("connection refused")
	}
	return s.Store.PutNew(ctx, key, data)
}

// TestStorageUsers: of two databases with one storage, each is told so at its start and each hour, also when the
// storage was away at first. One that is alone is not, however often it is started.
func TestStorageUsers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		databases []string // of the services, in the order of their starts
		away      time.Duration
		lasts     time.Duration
		warnings  int // of the last one
	}{
		"alone":         {[]string{"a"}, 0, 2 * time.Hour, 0},
		"started again": {[]string{"a", "a"}, 0, 2 * time.Hour, 0},
		"two databases": {[]string{"a", "b"}, 0, time.Minute, 1},
		"for long":      {[]string{"a", "b"}, 0, 150 * time.Minute, 3},
		"away at first": {[]string{"a", "b"}, 90 * time.Second, 3 * time.Minute, 1},
		"the first too": {[]string{"a", "b", "a"}, 0, time.Minute, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store, err := blob.OpenURL(t.Context(), folder)
				if err != nil {
					t.Fatal(err)
				}
				var logged *logs
				for _, database := range tt.databases {
					logged = &logs{addrs: map[string]string{}}
					ctx, cancel := context.WithTimeout(t.Context(), tt.lasts)
					away := shaky{store, time.Now().Add(tt.away)}
					err = storageUsers{store: away, database: database, log: slog.New(logged)}.Run(ctx)
					cancel()
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				if len(logged.warns) != tt.warnings {
					t.Errorf("warnings %q", logged.warns)
				}
			})
		})
	}
}
