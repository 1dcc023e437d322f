package retention

import (
	"context"
	"iter"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	// MaxListed is how many assets a preview names.
	MaxListed = 100
	// mostCounted is how many assets a preview looks at.
	mostCounted = 20_000
	page        = 100
)

// Service keeps policies and says what they delete. It owns no goroutine; all its methods may be called at the same
// time.
type Service struct{ store Store }

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(s Store) *Service { return &Service{s} }

// Policy reads the policy of an environment; see Store.
func (s *Service) Policy(ctx context.Context, env id.Environment) (Policy, error) {
	return s.store.Policy(ctx, env)
}

// Set changes the policy; see API.
func (s *Service) Set(ctx context.Context, env id.Environment, l Limits, grace time.Duration) (Policy, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return Policy{}, err
	}
	p, err := wanted(env, l, grace, now)
	if err != nil {
		return Policy{}, err
	}
	return p, s.store.Set(ctx, p)
}

func wanted(env id.Environment, l Limits, grace time.Duration, now time.Time) (Policy, error) {
	if grace == 0 {
		grace = DefaultGrace
	}
	var p fault.List
	_ = p.Take(l.Check()) // it is Invalid
	if grace < MinGrace || grace > MaxGrace {
		p.At("grace_hours", "must be from %d to %d", int(MinGrace.Hours()), int(MaxGrace.Hours()))
	}
	now = change.Stamp(now)
	return Policy{Environment: env, Limits: l, StartsAt: now.Add(grace), UpdatedAt: now}, p.Err()
}

// TurnOff ends all deletions.
func (s *Service) TurnOff(ctx context.Context, env id.Environment) error {
	return s.store.Remove(ctx, env)
}

// Preview says what would be deleted; see API.
func (s *Service) Preview(ctx context.Context, env id.Environment, l Limits, grace time.Duration) (Preview, error) {
	now, err := s.store.Now(ctx)
	if err != nil {
		return Preview{}, err
	}
	p, err := s.store.Policy(ctx, env)
	if err != nil {
		return Preview{}, err
	}
	if p.Limits != l || grace != 0 {
		if p, err = wanted(env, l, grace, now); err != nil {
			return Preview{}, err
		}
	}
	out := Preview{Policy: p, Until: later(p.StartsAt, now).Add(Horizon)}
	if out.Stored, err = s.store.Stored(ctx, env); err != nil {
		return Preview{}, err
	}
	if !p.On() {
		return out, nil
	}
	w := newWalk(p, out.Stored, now, out.Until)
	w.most = mostCounted
	for due, err := range s.walk(ctx, w) {
		if err != nil {
			return Preview{}, err
		}
		out.Count++
		out.Bytes += w.freed
		if len(out.First) < MaxListed {
			out.First = append(out.First, due)
		}
	}
	out.Partly = w.seen >= mostCounted
	return out, nil
}

// Due gives what the policy of an environment deletes now, oldest first; nothing, when it is off or its grace period is
// not over. What is deleted meanwhile counts as such.
func (s *Service) Due(ctx context.Context, p Policy, now time.Time) iter.Seq2[Due, error] {
	return func(yield func(Due, error) bool) {
		if !p.On() || now.Before(p.StartsAt) {
			return
		}
		stored, err := s.store.Stored(ctx, p.Environment)
		if err != nil {
			yield(Due{}, err)
			return
		}
		s.walk(ctx, newWalk(p, stored, now, now))(yield)
	}
}

// walk yields what is due, page by page.
func (s *Service) walk(ctx context.Context, w *walk) iter.Seq2[Due, error] {
	return func(yield func(Due, error) bool) {
		for w.most == 0 || w.seen < w.most {
			some, err := s.store.Candidates(ctx, w.policy.Environment, w.behind, page)
			if err != nil {
				yield(Due{}, err)
				return
			}
			for i := range some {
				due, is, more := w.step(&some[i])
				if is && !yield(due, nil) || !more {
					return
				}
			}
			if len(some) < page {
				return
			}
		}
	}
}

// walk decides about one asset after another, oldest first.
type walk struct {
	policy            Policy
	now, start, until time.Time
	excess            int64            // bytes beyond the limit
	left              map[id.Media]int // users of media that several have, without those that are gone
	freed             int64            // by the last one that was due
	behind            Place
	seen, most        int // most is by pages; 0: all of them
}

func newWalk(p Policy, stored Stored, now, until time.Time) *walk {
	w := &walk{policy: p, now: now, start: later(p.StartsAt, now), until: until, left: map[id.Media]int{}}
	if p.MaxBytes > 0 {
		w.excess = stored.Bytes - p.MaxBytes
	}
	return w
}

// step decides about an asset; more is false when none that is younger can be due.
func (w *walk) step(c *Candidate) (due Due, is, more bool) {
	w.behind = Place{c.Asset.CreatedAt, c.Asset.ID}
	w.seen++
	if w.excess <= 0 && (w.policy.MaxAgeDays == 0 || c.Asset.CreatedAt.Add(w.policy.maxAge()).After(w.until)) {
		return Due{}, false, false
	}
	if Spared(&c.Asset, w.now) {
		return Due{}, false, true
	}
	due = Due{Asset: c.Asset}
	if len(c.Media) > 0 {
		due.Bytes, due.Measured = c.Media[0].Bytes, c.Media[0].Measured
	}
	if w.policy.MaxAgeDays > 0 {
		due.At, due.Reason = later(since(&c.Asset).Add(w.policy.maxAge()), w.start), ByAge
	}
	// What is not measured is no part of the excess, and to delete it would end none of it.
	if w.excess > 0 && due.Measured && (due.Reason == "" || due.At.After(w.start)) {
		due.At, due.Reason = w.start, BySize
	}
	if due.Reason == "" || due.At.After(w.until) {
		return Due{}, false, true
	}
	w.freed = w.frees(c)
	w.excess -= w.freed
	if len(c.Media) > 0 && w.left[c.Media[0].ID] > 0 {
		// What its clips do not need is deleted too. How much that is, is measured before more goes for it.
		w.excess -= c.Media[0].Bytes
	}
	return due, true, true
}

// frees counts the bytes of media that nobody has any more when c is gone.
func (w *walk) frees(c *Candidate) (bytes int64) {
	for _, m := range c.Media {
		n, known := w.left[m.ID]
		if !known {
			n = m.Users
		}
		n--
		if w.left[m.ID] = n; n <= 0 {
			bytes += m.Bytes
		}
	}
	return bytes
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
