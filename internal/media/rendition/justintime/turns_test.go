package justintime_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/turns"
)

// from is a request of a viewer.
func from(ctx context.Context, address string) context.Context {
	return turns.For(ctx, func() string { return address })
}

// TestAddressesTakeTurns: a viewer who crawls over renditions that are not made yet is told that the line is full, and
// delays another viewer by no more than the encoder is at work on; what another viewer waits for too is made although
// the one who asked first has to make way.
func TestAddressesTakeTurns(t *testing.T) {
	t.Parallel()
	fleets(t, func(t *testing.T, f *fleet) {
		f.took = 0 // so that requests come in their order
		node := f.join("a")
		node.encoder.room = make(chan struct{}, 1) // one run has all processors
		of := func(name string) *justintime.Work {
			w := *node.w
			w.Prefix = name
			return &w
		}
		var mu sync.Mutex
		var crawler sync.WaitGroup
		made, full := 0, 0
		for film := range 10 {
			for msn := range int64(8) {
				crawler.Go(func() {
					err := node.Segment(from(t.Context(), "crawler"), of(fmt.Sprint("film", film)), msn)
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil:
						made++
					case fault.Is(err, fault.Unavailable) && errors.Is(err, turns.ErrFull):
						full++
					default:
						t.Error(err)
					}
				})
				synctest.Wait()
			}
		}
		began := time.Now()
		var viewers sync.WaitGroup
		ask := func(address, name string, msn int64, most time.Duration) {
			viewers.Go(func() {
				if err := node.Segment(from(t.Context(), address), of(name), msn); err != nil {
					t.Errorf("%s: %s %d: %v", address, name, msn, err)
				}
				if took := time.Since(began); took > most {
					t.Errorf("%s had to wait for %s %d for %v", address, name, msn, took)
				}
			})
			synctest.Wait()
		}
		// The clock is the test's own, and a segment takes a second. Two of the crawler's are at the encoder. The one
		// that is last in line is what somebody else waits for too, and has to make way for the next viewer.
		ask("together", "film8", 1, 6*time.Second)
		ask("viewer", "film", 0, 4*time.Second)
		viewers.Wait()
		crawler.Wait()
		if full == 0 || made == 0 || made+full != 80 {
			t.Errorf("the crawler got %d segments and was told %d times that the line is full", made, full)
		}
	})
}
