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
// may be one that never came, or with hush it tells that the connected one is silent. The zero deadline is none.
type deadline struct {
	at           time.Time
	end          live.EndReason
	hangUp, hush bool
}

// next gives the next deadline; one that is due already has a time that is not after now.
func (c schedule) next(now time.Time) deadline {
	if c.ending {
		return deadline{}
	}
	if c.wanted != live.EndNone {
		return deadline{at: now, end: c.wanted}
	}
	first := deadline{at: c.began.Add(c.longest), end: live.EndMaxDuration}
	sooner := func(t deadline) {
		if t.at.Before(first.at) {
			first = t
		}
	}
	if c.test && !c.active.IsZero() {
		sooner(deadline{at: c.active.Add(live.MaxTest), end: live.EndTest})
	}
	switch {
	case !c.away.IsZero() && c.adopted:
		sooner(deadline{at: c.away.Add(c.window), end: live.EndCrash})
	case !c.away.IsZero():
		sooner(deadline{at: c.away.Add(c.window), end: live.EndWindow})
	case c.open && !c.quiet:
		sooner(deadline{at: c.heard.Add(hush), hush: true})
	default:
		sooner(deadline{at: c.heard.Add(silence), hangUp: true})
	}
	return first
}

// came notes that a publication has been opened.
func (c *schedule) came(now time.Time) {
	c.away, c.open, c.heard, c.quiet, c.adopted = time.Time{}, true, now, false, false
}

// left notes that the encoder is away.
func (c *schedule) left(at time.Time) { c.away, c.open = at, false }

// follow takes over what the stream's row says and may have been changed since. now is of the caller's clock, the row's
// times are not.
func (c *schedule) follow(s live.Stream, now time.Time) {
	if c.active.IsZero() && !s.ActiveAt.IsZero() {
		c.active = now.Add(s.ActiveAt.Sub(now))
	}
	c.test = s.Settings.Test
	c.wanted = s.EndWanted
	c.window = time.Duration(s.Settings.ReconnectWindow * float64(time.Second))
	c.longest = time.Duration(s.Settings.MaxContinuous) * time.Second
}
