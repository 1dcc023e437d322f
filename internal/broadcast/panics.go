package broadcast

import (
	"context"
	"fmt"

	"millrace/internal/control/live"
	"millrace/internal/fault"
)

// A panic in a broadcast's goroutine is a defect of this program. It ends that broadcast as the death of the process
// would, is counted, logged and told to the owner of the stream; no other broadcast notices.

// InternalError is the type of the warning that a defect of this program has ended a recording early.
const InternalError = "internal_error"

// Panics counts the panics that have ended a broadcast of this node, or something beside one, since the process began.
func (svc *Service) Panics() int64 { return svc.panics.Load() }

// spawn starts a goroutine of the broadcast; what names it in an error, as a verb and a noun.
func (b *broadcast) spawn(what string, work func()) {
	b.owner.wg.Go(func() {
		if err := fault.Guard(func() error { work(); return nil }); err != nil {
			b.broken(fmt.Errorf("%s: %w%s", what, err, fault.Trace(err)))
		}
	})
}

// broken ends the broadcast, from any goroutine.
func (b *broadcast) broken(why error) {
	if !b.mail.post(func() { b.crash(why) }) {
		b.panicked(why) // it has ended
	}
}

// panicked counts and logs a panic.
func (b *broadcast) panicked(why error) {
	b.owner.panics.Add(1)
	b.log.Error("broadcast broke", "error", why)
}

// crash ends the broadcast when it can not be gone on with; what it has is kept.
func (b *broadcast) crash(why error) {
	b.panicked(why)
	if !b.schedule.ending {
		b.warn(InternalError, "an internal error has ended this recording; what was recorded until then is kept")
	}
	b.writer.Abandon()
	b.end(live.EndCrash)
}

// lead runs the broadcast to its end. After a panic the end is made as after any other crash of what it consists of.
// Should that panic as well, its state in memory is not to be trusted: the broadcast is let go of, and after a while
// this process takes it up from what is stored.
func (b *broadcast) lead(root context.Context) {
	err := fault.Guard(func() error { b.run(root); return nil })
	if err != nil {
		err = fault.Guard(func() error {
			b.crash(fmt.Errorf("lead broadcast: %w%s", err, fault.Trace(err)))
			b.run(root)
			return nil
		})
	}
	if err != nil {
		b.panicked(fmt.Errorf("end broadcast: %w%s", err, fault.Trace(err)))
		b.letGo(err)
	}
	b.leave(root)
}
