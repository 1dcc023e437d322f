package justintime

import (
	"context"
	"errors"
	"fmt"

	"millrace/internal/fault"
)

// What another node makes is not made here: a run claims its segments once it has a processor, so that what is claimed
// is being made. Where the first one is another's, a run that somebody waits for waits until it is stored, and one that
// only runs ahead ends.

// rounds is how many other nodes, one after another, a run waits for that then have not made it.
const rounds = 3

// errStored ends a run whose segment another node has stored meanwhile.
var errStored = errors.New("it is stored")

// encode makes the segments of a run.
func (r *run) encode(ctx context.Context) error {
	r.done = func(...string) {}
	defer func() { r.done() }()
	for round := 1; ; round++ {
		err := r.once(ctx)
		if errors.Is(err, errStored) {
			return nil
		}
		if !errors.Is(err, errElsewhere) || !r.m.patience(r) {
			return err
		}
		key := r.w.SegmentKey(r.from)
		r.alone = !r.m.opt.Claims.Wait(ctx, key) || round == rounds
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		stored, err := r.m.opt.Store.Has(ctx, key)
		if err != nil {
			return fmt.Errorf("look for segment: %w", err)
		}
		if stored {
			r.m.shorten(r, 1)
			r.m.made(r, r.from)
			return nil
		}
	}
}

// claim asks for the run's segments, and leaves out from the first one on that another node makes or has made.
func (r *run) claim(ctx context.Context) error {
	if r.m.opt.Claims == nil || r.alone {
		return nil
	}
	keys := make([]string, len(r.tickets))
	for i := range keys {
		keys[i] = r.w.SegmentKey(r.from + int64(i))
	}
	n, done := r.m.opt.Claims.Claim(ctx, keys, func() { r.m.prefer(r) })
	if n == 0 {
		return errElsewhere
	}
	r.done = done
	mine := n
	for i, key := range keys[:n] {
		stored, err := r.m.opt.Store.Has(ctx, key)
		if err != nil {
			return fmt.Errorf("look for segment: %w", err)
		}
		if stored {
			n = i
			break
		}
	}
	if rest := keys[max(n, 1):mine]; n < mine && len(rest) > 0 {
		done(rest...)
	}
	r.m.shorten(r, max(n, 1))
	if n == 0 {
		r.m.made(r, r.from)
		return errStored
	}
	return nil
}

// begun reports whether a run has a processor.
func (m *Maker) begun(r *run, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.started = is
}

// patience reports whether a run waits for what another node makes; else it is given up.
func (m *Maker) patience(r *run) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.waiting == 0 {
		m.remove(r)
		return false
	}
	r.started = false
	return true
}

// hasten says that another node waits for a run.
func (m *Maker) prefer(r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !r.asked {
		r.asked = true
		close(r.hurry)
	}
}

// shorten has a run make its first n segments. Anyone who waits for another one asks again.
func (m *Maker) shorten(r *run, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range r.tickets[n:] {
		t.err = fault.Wrap(fault.Unavailable, errElsewhere, "the segment was given up: ask for it again")
		close(t.done)
	}
	r.tickets = r.tickets[:n]
}
