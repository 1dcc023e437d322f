package broadcast

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/fault"
)

const (
	// refusalTime bounds how long it may take until a machine refuses a connection.
	refusalTime = time.Second
	// mostBehind is for how much of the time before a broadcast was taken up slate is written behind what an ended
	// process has recorded.
	mostBehind = 15 * time.Second
)

// search takes up broadcasts that nobody leads. Run's goroutine alone uses it, one broadcast after the other, but for
// what it counts.
type search struct {
	svc   *Service
	began time.Time
	blind time.Time // when it last failed
	// What the last look has left to a node with a copy, of processes that have ended.
	left map[live.Writer]bool

	own, ended, expired atomic.Int64
}

// Adoptions count the broadcasts that this node has taken up without their encoders.
type Adoptions struct {
	Own     int64 // of an earlier process of this node, or lost here by a defect
	Ended   int64 // of a node whose process had ended
	Expired int64 // of a node whose row had long been out of date
}

// Adoptions counts the broadcasts that were taken up since the process began.
func (svc *Service) Adoptions() Adoptions {
	s := &svc.search
	return Adoptions{Own: s.own.Load(), Ended: s.ended.Load(), Expired: s.expired.Load()}
}

// look takes up broadcasts that nobody leads: those of this node before its last end, those of nodes that are gone, and
// those that a defect has ended here.
func (sr *search) look(ctx context.Context, starting bool) error {
	svc, now := sr.svc, sr.svc.opt.Now()
	if starting {
		sr.began = now
	}
	orphans, err := svc.opt.Streams.Orphans(ctx, svc.opt.Owner, starting)
	if err != nil {
		sr.blind = svc.opt.Now()
		return err
	}
	// While the database was away nobody could renew a row: those that live have not all come back to it.
	unsure := now.Sub(sr.blind) < live.OrphanedAfter
	if unsure || svc.opt.Spectator || svc.broadcasts.draining() {
		orphans = slices.DeleteFunc(orphans, func(o live.Orphan) bool { return o.Node != svc.opt.Owner.Node })
	}
	for _, h := range svc.observer.missing() {
		switch s, err := svc.opt.Streams.Find(ctx, h.Stream); {
		case err == nil && s.Owner == svc.opt.Owner && s.Epoch == h.Epoch && s.Generation == h.Generation:
			orphans = append(orphans, live.Orphan{Stream: s})
		case err != nil && !fault.Is(err, fault.NotFound):
			return err
		}
	}
	chosen, at := sr.chosen(ctx, orphans), svc.opt.Now()
	for _, o := range chosen {
		if o.Unlocked && svc.opt.Now().Sub(at) >= searchOthersEvery { // its process may be back: the next look knows
			sr.left[o.Writer()] = true
			continue
		}
		if svc.broadcasts.leads(o.ID) && o.Owner == svc.opt.Owner {
			continue
		}
		switch err := sr.tryAdopt(ctx, o); {
		case err == nil:
		case fault.Is(err, fault.Conflict), fault.Is(err, fault.NotFound): // ended, or another node was faster
			svc.opt.Logger.DebugContext(ctx, "broadcast needs no recovery", "live_stream_id", o.ID, "asset_id",
				o.ActiveAsset, "reason", err)
		default:
			svc.opt.Logger.ErrorContext(ctx, "recover broadcast", "live_stream_id", o.ID, "asset_id", o.ActiveAsset,
				"error", err)
		}
	}
	return nil
}

// chosen are the orphans that this node takes up now. Of a process that seems to have ended a moment ago these are the
// ones whose viewers are waiting for slate, if its machine refuses connections: all others wait for the process, which
// may be started again, or for their encoders. A node that has copied the broadcast comes first, and others with the
// next look. One that has just been started itself leaves them alone, as whatever has stopped it may have stopped all.
func (sr *search) chosen(ctx context.Context, all []live.Orphan) (now []live.Orphan) {
	svc, before, refuses := sr.svc, sr.left, map[live.Owner]bool{}
	sr.left = map[live.Writer]bool{}
	young := svc.opt.Now().Sub(sr.began) < live.OrphanedAfter
	for _, o := range all {
		if !o.Unlocked {
			now = append(now, o)
			continue
		}
		if young || svc.opt.Others == nil || o.Status() != live.StatusActive || !o.Settings.Slate() {
			continue
		}
		if _, asked := refuses[o.Owner]; !asked {
			refuses[o.Owner] = sr.refuses(ctx, o.Owner)
		}
		switch {
		case !refuses[o.Owner]:
		case before[o.Writer()], sr.copied(ctx, o.Stream):
			now = append(now, o)
		default:
			sr.left[o.Writer()] = true
		}
	}
	return now
}

// refuses reports whether the machine of a process refuses connections.
func (sr *search) refuses(ctx context.Context, o live.Owner) (is bool) {
	ctx, cancel := context.WithTimeout(ctx, refusalTime)
	defer cancel()
	err := fault.Guard(func() error { is = sr.svc.opt.Others.Refuses(ctx, o); return nil })
	return is && err == nil
}

// copied reports whether this node has copied a broadcast.
func (sr *search) copied(ctx context.Context, s live.Stream) bool {
	if sr.svc.opt.Copies == nil {
		return false
	}
	a, err := sr.svc.opt.Assets.Find(ctx, s.ActiveAsset)
	return err == nil && sr.svc.opt.Copies.Has(a.Media)
}

// tryAdopt is adopt; a panic is an error of this broadcast's alone.
func (sr *search) tryAdopt(ctx context.Context, o live.Orphan) error {
	err := fault.Guard(func() error { return sr.adopt(ctx, o) })
	if trace := fault.Trace(err); trace != "" {
		sr.svc.panics.Add(1)
		return fmt.Errorf("adopt: %w%s", err, trace)
	}
	return err
}

// adopt goes on with a broadcast whose owner died: its encoder is away since the owner was heard of last.
func (sr *search) adopt(ctx context.Context, o live.Orphan) error {
	svc := sr.svc
	asked, own := svc.opt.Now(), o.Node == svc.opt.Owner.Node
	taking := taker{all: svc.promises}
	defer taking.done()
	if !own && taking.bound(o.Owner) > 0 {
		return fault.New(fault.Conflict, "the owner of the broadcast has no database, and goes on")
	}
	defer svc.broadcasts.open(o.ID)() // before the row says so: who asks for the broadcast is to wait for it
	s, err := svc.opt.Streams.Adopt(ctx, o.ID, o.Writer(), svc.opt.Owner, asked)
	if err != nil {
		return err
	}
	if s.DisconnectedAt.IsZero() { // disabled meanwhile, and so without a state that would say it
		s.DisconnectedAt = asked
	}
	if err = svc.broadcasts.of(s.ID).supersede(ctx, s); err != nil {
		return err
	}
	a, before, err := svc.record(ctx, s, false)
	if err != nil {
		return err
	}
	count := &sr.own
	switch before.own, before.ended = own, o.Unlocked; {
	case o.Unlocked:
		count = &sr.ended
	case !own:
		count = &sr.expired
	}
	if _, err = svc.start(ctx, s, a, before); err != nil {
		return err
	}
	count.Add(1)
	svc.opt.Logger.InfoContext(ctx, "broadcast recovered", "live_stream_id", s.ID, "asset_id", a.ID, "epoch",
		int64(s.Epoch), "node", o.Node)
	return nil
}

// since is from when on the encoder is missing: slate stands in for it from where what was recorded ends, if that was a
// moment ago. now is of the caller's clock, ends is not.
func (s stored) since(ends, now time.Time) time.Time {
	if behind := now.Sub(ends); s.ended && behind > 0 && behind <= mostBehind {
		return now.Add(-behind)
	}
	return now
}
