package receive

import (
	"context"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// quiet is how long nothing may come from a writer before another one takes its place: its client may have lost the
	// connection long ago.
	quiet = time.Second
	// patience is how long who wants to write waits for that; clearPatience how long the one who clears up does.
	patience, clearPatience = 3 * time.Second, 30 * time.Second
)

func busy() error {
	return fault.New(fault.TooMany, "another request is writing to this upload at the moment; ask again in a second")
}

// place is what the one writer of an upload has.
type place struct {
	files     *Files
	upload    id.Upload
	interrupt func()
	last      atomic.Int64 // when something came, Unix nanoseconds
	left      chan struct{}
	giveBack  func(...string) // what keeps other nodes out
}

func (p *place) came(now time.Time) { p.last.Store(now.UnixNano()) }

// enter makes the caller the one writer. One that has been quiet is asked to leave; who clears up asks at once.
func (f *Files) enter(ctx context.Context, u id.Upload, interrupt func(), within time.Duration) (*place, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, busy())
	defer cancel()
	mine := &place{files: f, upload: u, interrupt: interrupt, left: make(chan struct{})}
	mine.came(f.opt.Now())
	for {
		other := f.claim(mine)
		if other == nil {
			break
		}
		if err := other.await(ctx, f.opt.Now, within > patience); err != nil {
			return nil, err
		}
	}
	if f.opt.Claims == nil {
		return mine, nil
	}
	key := []string{"uploads/" + string(u)}
	for {
		n, done := f.opt.Claims.Claim(ctx, key, mine.wanted)
		if n == len(key) {
			mine.giveBack = done
			return mine, nil
		}
		if !f.opt.Claims.Wait(ctx, key[0]) || ctx.Err() != nil {
			mine.leave()
			return nil, busy()
		}
	}
}

// claim makes p the one writer, or says who is.
func (f *Files) claim(p *place) (other *place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if other = f.held[p.upload]; other == nil {
		f.held[p.upload] = p
	}
	return other
}

// await waits until p is left, and asks for that when it has been quiet, or at once.
func (p *place) await(ctx context.Context, now func() time.Time, atOnce bool) error {
	for {
		rest := quiet - now().Sub(time.Unix(0, p.last.Load()))
		if atOnce || rest <= 0 {
			p.interrupt()
			rest = quiet
		}
		t := time.NewTimer(rest)
		select {
		case <-p.left:
			t.Stop()
			return nil
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return context.Cause(ctx)
		}
	}
}

// wanted is told, once or more, that another node waits.
func (p *place) wanted() {
	if p.files.opt.Now().Sub(time.Unix(0, p.last.Load())) >= quiet {
		p.interrupt()
	}
}

func (p *place) leave() {
	p.files.mu.Lock()
	delete(p.files.held, p.upload)
	p.files.mu.Unlock()
	if p.giveBack != nil {
		p.giveBack()
	}
	close(p.left)
}
