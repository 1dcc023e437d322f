package encode

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"millrace/internal/fault"
)

// TestCrawl has somebody ask for thousands of thumbnails and renditions: as many wait as may, the rest is refused, and
// live streams get all places that they have at any time.
func TestCrawl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const cores = 2
		b := NewBudget(BudgetOptions{Cores: cores})
		ctx, stop := context.WithCancel(t.Context())
		var mu sync.Mutex
		var refused int
		var crawl sync.WaitGroup
		for i := range 3000 {
			crawl.Go(func() {
				release, err := b.Acquire(ctx, []Priority{Images, OnDemand, FirstPlay}[i%3], 1)
				if fault.Is(err, fault.Unavailable) {
					mu.Lock()
					refused++
					mu.Unlock()
				}
				if err == nil {
					<-ctx.Done()
					release()
				}
			})
		}
		synctest.Wait()
		mu.Lock()
		if refused != 3000-maxWaiting-cores {
			t.Errorf("%d were refused", refused)
		}
		mu.Unlock()
		for i := range liveShare * cores {
			release, ok := b.TryAcquire(Live, 1)
			if !ok {
				t.Fatalf("live rendition %d has no place", i)
			}
			defer release()
		}
		stop()
		crawl.Wait()
	})
}
