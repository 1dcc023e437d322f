package delivery

import (
	"fmt"
	"runtime"
	"testing"

	"millrace/internal/control/webhook"
)

// TestMemoryOfWaiting: a delivery that waits takes less than 4 KiB, also where each is of a resource of its own.
func TestMemoryOfWaiting(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const n, most = maxWaiting, 4 << 10
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // what lay in pools goes with the second one
	runtime.ReadMemStats(&before)
	e := newEndpoint()
	for i := range n {
		e.add(webhook.Pending{Sequence: int64(i + 1), Resource: fmt.Sprintf("%043d", i)})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / n
	t.Logf("%d bytes for each of %d", each, e.waiting)
	if each > most || e.waiting != n {
		t.Errorf("%d bytes for each of %d", each, e.waiting)
	}
}
