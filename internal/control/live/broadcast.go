package live

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// broadcasts makes the changes of those who lead them.
type broadcasts struct{ rows rows }

// NewBroadcasts are those of a store; nothing starts.
func NewBroadcasts(s Store) Broadcasts { return &broadcasts{rows{s}} }

// Connect admits an encoder; see Broadcasts.
func (b *broadcasts) Connect(ctx context.Context, n Connection, now time.Time) (Stream, error) {
	now = change.Stamp(now)
	read := func() (Stream, error) { return b.rows.store.ByKey(ctx, n.StreamKey) }
	return b.rows.change(ctx, now, read, func(c *Change) ([]string, error) {
		st := &c.Stream
		switch {
		case st.State == Disabled:
			return nil, fault.New(fault.Denied, "the live stream is disabled")
		case st.EndWanted != EndNone, st.State == Idle && st.ActiveAsset != "":
			return nil, fault.New(fault.Conflict, "the last broadcast of the live stream is being finished")
		}
		if err := elsewhere(ctx, b.rows.store, c, n); err != nil {
			return nil, err
		}
		events, goesOn, err := b.displace(ctx, c, n.Owner, now)
		if err != nil {
			return nil, err
		}
		if st.State != Idle && !goesOn && !now.Before(st.DisconnectedAt.Add(st.Window())) {
			return nil, fault.New(fault.Conflict,
				"the reconnect window of the live stream has passed and its broadcast is being finished")
		}
		to, ok := Next(st.State, PublisherConnected)
		if !ok {
			return nil, stale()
		}
		switch {
		case st.State == Idle:
			st.Epoch, st.ActiveAsset, st.StartedAt = st.Epoch+1, n.NewAsset, now
			st.Generation, st.Reserved = 0, 0
		case n.Led == nil || st.Writer() != n.Led(st.ID):
			st.Generation++
		}
		st.State, st.Protocol, st.DisconnectedAt, st.Silent, st.Orphaned = to, n.Protocol, time.Time{}, false, false
		st.Owner, c.Seen = n.Owner, now
		st.targets(SourceConnected)
		return append(events, EventConnected), nil
	})
}

// elsewhere is an ElsewhereError where a living node has the broadcast that was not asked to hand it over. Where that
// node's process has ended before its row has expired it makes the change depend on that.
func elsewhere(ctx context.Context, store Store, c *Change, n Connection) error {
	st := c.Stream
	if st.ActiveAsset == "" || st.Owner == n.Owner || st.Writer() == n.Asked {
		return nil
	}
	was, err := store.Standing(ctx, st.Owner, n.Owner)
	if err != nil {
		return err
	}
	left, gone := was.Sure, false
	if was.Alive() && st.Writer() == n.Refused {
		if gone, err = store.Unlocked(ctx, st.Node); err != nil {
			return err
		}
	}
	if gone || !was.Alive() {
		left = 0
		if n.Bound != nil {
			left = n.Bound(st.Owner)
		}
	}
	if left > 0 {
		return &ElsewhereError{st.ID, st.Writer(), left}
	}
	if gone {
		c.Dead, c.Gone = st.Owner, true
	}
	return nil
}

// displace takes the place of the encoder that is connected, if there is one, and reports whether it had never left. It
// is fault.Conflict where that encoder keeps its place: its owner lives, and has not said that it is silent.
func (b *broadcasts) displace(ctx context.Context, c *Change, by Owner, now time.Time) ([]string, bool, error) {
	st := &c.Stream
	lost, ok := Next(st.State, PublisherLost)
	if !ok { // nobody has the encoder
		return nil, false, nil
	}
	was, err := b.rows.store.Standing(ctx, st.Owner, by)
	if err != nil {
		return nil, false, err
	}
	alive := was.Alive() && !c.Gone
	if alive && !st.Silent {
		return nil, false, fault.New(fault.Conflict, "another encoder is connected to the live stream")
	}
	if !st.Silent {
		c.Dead = st.Owner
	}
	st.State, st.DisconnectedAt = lost, st.lastSign(was.Seen, now) // where it lives, no window runs
	st.Orphaned = !alive
	st.targets(SourceLost)
	return []string{EventDisconnected}, alive, nil
}

// Passphrase is the secret of an SRT encoder; see Broadcasts.
func (b *broadcasts) Passphrase(ctx context.Context, streamKey string) (string, error) {
	st, err := b.rows.store.ByKey(ctx, streamKey)
	return st.SRTPassphrase, err
}

// Adopt takes a broadcast over from a process that is gone; see Broadcasts.
func (b *broadcasts) Adopt(
	ctx context.Context, stream id.LiveStream, from Writer, by Owner, now time.Time,
) (Stream, error) {
	now = change.Stamp(now)
	read := func() (Stream, error) { return b.of(ctx, stream, from) }
	return b.rows.change(ctx, now, read, func(c *Change) ([]string, error) {
		st := &c.Stream
		was, err := b.rows.store.Standing(ctx, from.Owner, by)
		if err != nil {
			return nil, err
		}
		if from.Node != by.Node { // an earlier process of the same node is gone, whatever its row says
			if was.Alive() {
				return nil, fault.New(fault.Conflict, "the owner of the broadcast is alive")
			}
			c.Dead = from.Owner
		}
		events := []string{}
		if lost, ok := Next(st.State, PublisherLost); ok {
			st.State, st.Protocol, st.DisconnectedAt, st.Silent = lost, "", st.lastSign(was.Seen, now), false
			st.Orphaned = true
			st.targets(SourceLost)
			events = append(events, EventDisconnected)
		}
		st.Owner, c.Seen = by, now
		st.Generation++
		return events, nil
	})
}

// lastSign is when the owner was heard of last: not before the broadcast began, and not in the future. One that was
// never heard of is of a version that wrote leases, and DisconnectedAt says when it renewed the last one.
func (s Stream) lastSign(seen, now time.Time) time.Time {
	if seen.IsZero() {
		seen = s.DisconnectedAt
	}
	switch {
	case seen.Before(s.StartedAt):
		return s.StartedAt
	case seen.After(now):
		return now
	}
	return change.Stamp(seen)
}

// Window is how long the broadcast waits for an encoder that is away.
func (s Stream) Window() time.Duration {
	window := time.Duration(s.Settings.ReconnectWindow * float64(time.Second))
	if s.Orphaned {
		return OrphanedWindow(window)
	}
	return window
}

// OrphanedWindow is how long a broadcast with a reconnect window waits for an encoder that its node has lost.
func OrphanedWindow(window time.Duration) time.Duration { return max(window, AfterDeath) }

// Recording says that first frames were accepted; see Broadcasts.
func (b *broadcasts) Recording(
	ctx context.Context, stream id.LiveStream, w Writer, resumed bool, now time.Time,
) error {
	_, err := b.fact(ctx, stream, w, now, func(st *Stream) ([]string, error) {
		if resumed && st.State == Active {
			return []string{EventRecording}, nil
		}
		return []string{EventRecording}, st.step(FirstFrames)
	})
	return err
}

// Active says that the stream can be played. Event active, and recording when that was not told before.
func (b *broadcasts) Active(ctx context.Context, stream id.LiveStream, w Writer, now time.Time) error {
	_, err := b.fact(ctx, stream, w, now, func(st *Stream) ([]string, error) {
		events := []string{EventActive}
		if st.State == Connected {
			events = []string{EventRecording, EventActive}
		}
		if st.ActiveAt.IsZero() {
			st.ActiveAt = change.Stamp(now)
		}
		return events, st.step(Playable)
	})
	return err
}

// Disconnected says that the encoder is away and starts the reconnect window. Event disconnected.
func (b *broadcasts) Disconnected(ctx context.Context, stream id.LiveStream, w Writer, now time.Time) (Stream, error) {
	return b.away(ctx, stream, w, false, now)
}

// Dismissed says that the node has let go of the encoder, as it leaves; see Broadcasts.
func (b *broadcasts) Dismissed(ctx context.Context, stream id.LiveStream, w Writer, now time.Time) (Stream, error) {
	return b.away(ctx, stream, w, true, now)
}

func (b *broadcasts) away(
	ctx context.Context, stream id.LiveStream, w Writer, orphaned bool, now time.Time,
) (Stream, error) {
	return b.fact(ctx, stream, w, now, func(st *Stream) ([]string, error) {
		st.Protocol, st.DisconnectedAt, st.Silent, st.Orphaned = "", change.Stamp(now), false, orphaned
		st.targets(SourceLost)
		return []string{EventDisconnected}, st.step(PublisherLost)
	})
}

// Left says that an encoder has gone that was connected still when its broadcast was ended; see Broadcasts.
func (b *broadcasts) Left(ctx context.Context, stream id.LiveStream, e id.Epoch, now time.Time) error {
	_, err := b.rows.save(ctx, now, func() (Stream, error) {
		return b.rows.store.Find(ctx, stream)
	}, func(st *Stream) ([]string, error) {
		if st.Epoch != e || st.ActiveAsset != "" || !st.DeletedAt.IsZero() {
			return nil, nil
		}
		return []string{EventDisconnected}, nil
	})
	if fault.Is(err, fault.NotFound) { // it was deleted
		return nil
	}
	return err
}

// Silence reports whether the connected encoder has been silent for long enough to lose its place to another; see
// Broadcasts.
func (b *broadcasts) Silence(
	ctx context.Context, stream id.LiveStream, w Writer, silent bool, now time.Time,
) (Stream, error) {
	return b.fact(ctx, stream, w, now, func(st *Stream) ([]string, error) {
		if _, connected := Next(st.State, PublisherLost); !connected {
			return nil, stale()
		}
		st.Silent = silent
		return []string{}, nil
	})
}

// End finishes the broadcast; see Broadcasts.
func (b *broadcasts) End(
	ctx context.Context, stream id.LiveStream, w Writer, why EndReason, now time.Time,
) (Stream, error) {
	now = change.Stamp(now)
	var after Stream
	err := change.Retry(func() error {
		st, err := b.of(ctx, stream, w)
		if err != nil {
			return err
		}
		c := begin(st)
		c.Stream.UpdatedAt, c.Stream.Protocol, c.Stream.EndWanted = now, "", EndNone
		var told []event.Event
		if st.cutOff(why) {
			if lost, ok := Next(st.State, PublisherLost); ok { // one that was disabled meanwhile stays so
				c.Stream.State = lost
			}
			told = tell(c.Stream, now, EventDisconnected)
		}
		var types []string
		// the media plane's own wish, not the API's
		if (why == EndDisable || why == EndTest) && st.EndWanted != EndDisable && st.EndWanted != EndDelete {
			if c.Stream.step(DisabledByOwner) == nil {
				types = append(types, EventDisabled)
			}
		}
		if err := c.Stream.step(BroadcastEnded); err != nil {
			return change.Final(err)
		}
		c.Stream.StartedAt, c.Stream.DisconnectedAt, c.Stream.ActiveAt = time.Time{}, time.Time{}, time.Time{}
		c.Stream.Silent, c.Stream.Orphaned = false, false
		if c.Stream.State == Idle {
			types = append(types, EventIdle)
		}
		c.Stream.targets(SourceEnded)
		if st.DeletedAt.IsZero() { // a deleted stream has told its last
			c.Events = append(told, tell(c.Stream, now, types...)...) // which still name the asset
			c.Events = append(c.Events, tellTargets(st, c.Stream, now)...)
		}
		c.Stream.RecentAssets = append(slices.Clip(st.RecentAssets), st.ActiveAsset)
		if n := len(c.Stream.RecentAssets); n > maxRecent {
			c.Stream.RecentAssets = c.Stream.RecentAssets[n-maxRecent:]
		}
		c.Stream.ActiveAsset = ""
		after = c.Stream
		after.Revision++
		if !st.DeletedAt.IsZero() {
			return b.rows.store.Delete(ctx, c)
		}
		return b.rows.store.Save(ctx, c)
	})
	if err != nil {
		return Stream{}, err
	}
	return after, nil
}

// cutOff reports whether the end of the broadcast cuts off an encoder. The state does not say whether one is connected
// when the stream was disabled meanwhile.
func (s Stream) cutOff(why EndReason) bool {
	return s.DisconnectedAt.IsZero() && !why.KeepsLink()
}

// Warn tells of a warning; see Broadcasts.
func (b *broadcasts) Warn(ctx context.Context, stream id.LiveStream, by Writer, w Warning, now time.Time) error {
	now = change.Stamp(now)
	return change.Retry(func() error {
		st, err := b.of(ctx, stream, by)
		if err != nil {
			return err
		}
		c := begin(st)
		c.Stream.UpdatedAt = now
		c.Events = append(c.Events, event.New(st.Environment, EventWarning, EventObject, string(st.ID), now, Warned{
			ID:          st.ID,
			Environment: st.Environment,
			State:       st.State,
			ActiveAsset: st.ActiveAsset,
			Passthrough: st.Settings.Passthrough,
			CreatedAt:   st.CreatedAt,
			Warning:     w,
		}))
		return b.rows.store.Save(ctx, c)
	})
}

// Hold reads the row of a broadcast that w leads; see Broadcasts.
func (b *broadcasts) Hold(ctx context.Context, stream id.LiveStream, w Writer) (Stream, time.Duration, error) {
	st, sure, err := b.rows.store.Hold(ctx, stream, w.Owner)
	if err == nil && !st.ledBy(w) {
		err = stale()
	}
	return st, sure, err
}

// Held lists what a process leads; see Broadcasts.
func (b *broadcasts) Held(ctx context.Context, o Owner) ([]Held, time.Duration, error) {
	return b.rows.store.Held(ctx, o)
}

// Reserve writes media sequence numbers; see Broadcasts.
func (b *broadcasts) Reserve(ctx context.Context, o Owner, all []Reservation) ([]id.LiveStream, error) {
	return b.rows.store.Reserve(ctx, o, all)
}

// See notes that a process was there; see Broadcasts.
func (b *broadcasts) See(ctx context.Context, o Owner, now time.Time) error {
	return b.rows.store.See(ctx, o, change.Stamp(now))
}

// ForgetOwners removes what is noted of processes that are gone for long.
func (b *broadcasts) ForgetOwners(ctx context.Context, now time.Time) error {
	return b.rows.store.ForgetOwners(ctx, now)
}

// Orphans lists the broadcasts that nobody leads; see Broadcasts.
func (b *broadcasts) Orphans(ctx context.Context, by Owner, starting bool) (out []Orphan, err error) {
	store := b.rows.store
	var late []Stream
	if !starting { // nearly always there are none, and nothing else is asked
		if late, err = store.Orphans(ctx, by, false, 0); err != nil || len(late) == 0 {
			return nil, err
		}
	}
	long, err := store.Orphans(ctx, by, starting, OrphanedAfter)
	if err != nil {
		return nil, err
	}
	listed, free := map[id.LiveStream]bool{}, map[id.Node]bool{}
	for _, s := range long {
		out, listed[s.ID] = append(out, Orphan{Stream: s}), true
	}
	for _, s := range late {
		if listed[s.ID] || s.Node == by.Node {
			continue
		}
		if _, known := free[s.Node]; !known {
			if free[s.Node], err = store.Unlocked(ctx, s.Node); err != nil {
				return nil, err
			}
		}
		if free[s.Node] {
			out = append(out, Orphan{s, true})
		}
	}
	return out, nil
}

// Find reads a stream of any environment.
func (b *broadcasts) Find(ctx context.Context, stream id.LiveStream) (Stream, error) {
	return b.rows.store.Find(ctx, stream)
}

// Broadcasting lists the streams with a broadcast, deleted ones among them.
func (b *broadcasts) Broadcasting(ctx context.Context) ([]Stream, error) {
	return b.rows.store.Broadcasting(ctx)
}

// fact makes one step of the broadcast that w leads.
func (b *broadcasts) fact(
	ctx context.Context, stream id.LiveStream, w Writer, now time.Time, step func(*Stream) ([]string, error),
) (Stream, error) {
	return b.rows.save(ctx, now, func() (Stream, error) { return b.of(ctx, stream, w) }, step)
}

// of reads a stream whose broadcast w leads.
func (b *broadcasts) of(ctx context.Context, stream id.LiveStream, w Writer) (Stream, error) {
	st, err := b.rows.store.Find(ctx, stream)
	if err == nil && !st.ledBy(w) {
		return Stream{}, change.Final(stale())
	}
	return st, err
}

func (s *Stream) step(f Fact) error {
	to, ok := Next(s.State, f)
	if !ok {
		return stale()
	}
	s.State = to
	return nil
}

func stale() error {
	return fault.New(fault.Conflict, "the broadcast is over or in a state that does not allow this")
}
