package ingest_test

import (
	"testing"

	"millrace/internal/worker/workertest"
)

// world is a workertest.World and what is asked of it here.
type world struct{ *workertest.World }

func newWorld(t testing.TB, o workertest.Options) *world {
	t.Helper()
	return &world{workertest.New(t, o)}
}
