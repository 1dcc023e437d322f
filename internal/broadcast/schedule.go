package broadcast

import (
	"time"

	"millrace/internal/control/live"
)

// schedule is where a broadcast stands in time, and so what it does next by itself. Pure: its times are the caller's,
// on one clock.
type schedule struct {
	began time.Time // first encoder of the broadcast
	away  time.Time // since when no encoder is connected; zero while one is, or is expected
	// A publication is open. Before, while away is zero, its encoder is expected: it was admitted, and its publication
	// is about to be opened, which may be late where the database is slow.
	open bool
	// When the connected encoder last sent something that can be recorded; if it never did, when it was admitted.
	heard time.Time
	quiet bool // its silence is told
	// When it is let go of, as the node leaves; zero: it is not.
	leave time.Time
	letGo bool // the encoder that is away was let go of

	active time.Time // since when it can be watched; zero before
	test   bool      // it is a test, and may not be active for long

	wanted  live.EndReason // what the owner of the stream asked for
	window  time.Duration  // how long it waits for an encoder that is away
	longest time.Duration  // of the whole broadcast, pauses included

	ending  bool // the end has begun; nothing is decided any more
	adopted bool // taken over from a dead process, and no encoder has come since
}

const (
	// silence is how long an encoder may be connected, or expected, without sending anything that can be recorded.
	silence = 5 * time.Minute
	// hush is after how much silence it loses its place to another connection: a half-dead one must not lock its owner
	// out.
	hush = 5 * time.Second
)

// deadline is the next thing a broadcast does by itself: it ends, or with hangUp it only gives up its encoder, which
// may be one that never came, or with letGo because the node leaves, or with hush it tells that the connected one is
// silent. The zero deadline is none.
type deadline struct {
	at                  time.Time
	end                 live.EndReason
	hangUp, letGo, hush bool
}

// next gives the next deadline; one that is due already has a time that is not after now.
func (sch schedule) next(now time.Time) deadline {
	if sch.ending {
		return deadline{}
	}
	if sch.wanted != live.EndNone {
		return deadline{at: now, end: sch.wanted}
	}
	first := deadline{at: sch.began.Add(sch.longest), end: live.EndMaxDuration}
	sooner := func(t deadline) {
		if t.at.Before(first.at) {
			first = t
		}
	}
	if sch.test && !sch.active.IsZero() {
		sooner(deadline{at: sch.active.Add(live.MaxTest), end: live.EndTest})
	}
	switch {
	case !sch.away.IsZero() && sch.adopted:
		sooner(deadline{at: sch.away.Add(sch.window), end: live.EndCrash})
	case !sch.away.IsZero() && sch.letGo: // which the row does not say yet
		sooner(deadline{at: sch.away.Add(live.OrphanedWindow(sch.window)), end: live.EndWindow})
	case !sch.away.IsZero():
		sooner(deadline{at: sch.away.Add(sch.window), end: live.EndWindow})
	case sch.open && !sch.quiet:
		sooner(deadline{at: sch.heard.Add(hush), hush: true})
	default:
		sooner(deadline{at: sch.heard.Add(silence), hangUp: true})
	}
	if sch.open && !sch.leave.IsZero() {
		sooner(deadline{at: sch.leave, letGo: true})
	}
	return first
}

// came notes that a publication has been opened.
func (sch *schedule) came(now time.Time) {
	sch.away, sch.open, sch.heard, sch.quiet, sch.adopted = time.Time{}, true, now, false, false
	sch.leave, sch.letGo = time.Time{}, false
}

// left notes that the encoder is away, perhaps because it was let go of.
func (sch *schedule) left(at time.Time, letGo bool) { sch.away, sch.open, sch.letGo = at, false, letGo }

// follow takes over what the stream's row says and may have been changed since. now is of the caller's clock, the row's
// times are not.
func (sch *schedule) follow(s live.Stream, now time.Time) {
	if sch.active.IsZero() && !s.ActiveAt.IsZero() {
		sch.active = now.Add(s.ActiveAt.Sub(now))
	}
	sch.test = s.Settings.Test
	sch.wanted = s.EndWanted
	sch.window = s.Window()
	sch.longest = time.Duration(s.Settings.MaxContinuous) * time.Second
}
