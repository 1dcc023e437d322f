package live

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Connect admits an encoder; see Broadcasts.
func (s *Service) Connect(ctx context.Context, streamKey, protocol string, newAsset id.Asset, node id.Node, lease time.Duration, now time.Time) (Stream, error) {
	now = stamp(now)
	return s.save(ctx, now, func() (Stream, error) { return s.store.ByKey(ctx, streamKey) }, func(st *Stream) ([]string, error) {
		var events []string
		switch {
		case st.State == Disabled:
			return nil, fault.New(fault.Denied, "the live stream is disabled")
		case st.EndWanted != EndNone, st.State == Idle && st.ActiveAsset != "":
			return nil, fault.New(fault.Conflict, "the last broadcast of the live stream is being finished")
		}
		goesOn := false
		if lost, ok := Next(st.State, PublisherLost); ok { // somebody has the encoder
			alive := now.Before(st.LeaseUntil)
			if alive && !st.Silent {
				return nil, fault.New(fault.Conflict, "another encoder is connected to the live stream")
			}
			goesOn = alive                                    // it never left, so no window runs
			st.State, st.DisconnectedAt = lost, st.LeaseUntil // otherwise, whoever it was is gone since then at the latest
			st.targets(SourceLost)
			events = append(events, EventDisconnected)
		}
		if st.State != Idle && !goesOn && !now.Before(st.DisconnectedAt.Add(st.window())) {
			return nil, fault.New(fault.Conflict, "the reconnect window of the live stream has passed and its broadcast is being finished")
		}
		to, ok := Next(st.State, PublisherConnected)
		if !ok {
			return nil, stale()
		}
		if st.State == Idle {
			st.Epoch, st.ActiveAsset, st.StartedAt = st.Epoch+1, newAsset, now
			st.Generation, st.Reserved = 0, 0
		} else {
			st.Generation++
		}
		st.State, st.Protocol, st.DisconnectedAt, st.Silent = to, protocol, time.Time{}, false
		st.Node, st.LeaseUntil = node, stamp(now.Add(lease))
		st.targets(SourceConnected)
		return append(events, EventConnected), nil
	})
}

// Passphrase is the secret of an SRT encoder; see Broadcasts.
func (s *Service) Passphrase(ctx context.Context, streamKey string) (string, error) {
	st, err := s.store.ByKey(ctx, streamKey)
	return st.SRTPassphrase, err
}

// Adopt takes a broadcast over from a dead node; see Broadcasts.
func (s *Service) Adopt(ctx context.Context, stream id.LiveStream, e id.Epoch, node id.Node, lease time.Duration, now time.Time) (Stream, error) {
	now = stamp(now)
	return s.fact(ctx, stream, e, now, func(st *Stream) ([]string, error) {
		if st.Node != node && now.Before(st.LeaseUntil) {
			return nil, fault.New(fault.Conflict, "the owner of the broadcast is alive")
		}
		events := []string{}
		if lost, ok := Next(st.State, PublisherLost); ok {
			st.State, st.Protocol, st.DisconnectedAt, st.Silent = lost, "", st.lastSign(lease, now), false
			st.targets(SourceLost)
			events = append(events, EventDisconnected)
		}
		st.Node, st.LeaseUntil = node, stamp(now.Add(lease))
		st.Generation++
		return events, nil
	})
}

// lastSign is when the owner was heard of last: not before the broadcast began, and not in the future.
func (s Stream) lastSign(lease time.Duration, now time.Time) time.Time {
	sign := stamp(s.LeaseUntil.Add(-lease))
	if sign.Before(s.StartedAt) {
		sign = s.StartedAt
	}
	if sign.After(now) {
		sign = now
	}
	return sign
}

func (s Stream) window() time.Duration {
	return time.Duration(s.Settings.ReconnectWindow * float64(time.Second))
}

// Recording says that first frames were accepted; see Broadcasts.
func (s *Service) Recording(
	ctx context.Context, stream id.LiveStream, e id.Epoch, resumed bool, now time.Time,
) error {
	_, err := s.fact(ctx, stream, e, now, func(st *Stream) ([]string, error) {
		if resumed && st.State == Active {
			return []string{EventRecording}, nil
		}
		return []string{EventRecording}, st.step(FirstFrames)
	})
	return err
}

// Active says that the stream can be played. Event active, and recording when that was not told before.
func (s *Service) Active(ctx context.Context, stream id.LiveStream, e id.Epoch, now time.Time) error {
	_, err := s.fact(ctx, stream, e, now, func(st *Stream) ([]string, error) {
		events := []string{EventActive}
		if st.State == Connected {
			events = []string{EventRecording, EventActive}
		}
		if st.ActiveAt.IsZero() {
			st.ActiveAt = stamp(now)
		}
		return events, st.step(Playable)
	})
	return err
}

// Disconnected says that the encoder is away and starts the reconnect window. Event disconnected.
func (s *Service) Disconnected(ctx context.Context, stream id.LiveStream, e id.Epoch, now time.Time) (Stream, error) {
	return s.fact(ctx, stream, e, now, func(st *Stream) ([]string, error) {
		st.Protocol, st.DisconnectedAt, st.Silent = "", stamp(now), false
		st.targets(SourceLost)
		return []string{EventDisconnected}, st.step(PublisherLost)
	})
}

// Left says that an encoder has gone that was connected still when its broadcast was ended; see Broadcasts.
func (s *Service) Left(ctx context.Context, stream id.LiveStream, e id.Epoch, now time.Time) error {
	_, err := s.save(ctx, now, func() (Stream, error) { return s.store.Find(ctx, stream) }, func(st *Stream) ([]string, error) {
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

// Silence reports whether the connected encoder has been silent for long enough to lose its place to another; see Broadcasts.
func (s *Service) Silence(ctx context.Context, stream id.LiveStream, e id.Epoch, node id.Node, silent bool, now time.Time) (Stream, error) {
	return s.fact(ctx, stream, e, now, func(st *Stream) ([]string, error) {
		if _, connected := Next(st.State, PublisherLost); !connected || st.Node != node {
			return nil, stale()
		}
		st.Silent = silent
		return []string{}, nil
	})
}

// End finishes the broadcast; see Broadcasts.
func (s *Service) End(ctx context.Context, stream id.LiveStream, e id.Epoch, why EndReason, now time.Time) (Stream, error) {
	now = stamp(now)
	var after Stream
	err := retry(func() error {
		st, err := s.ofEpoch(ctx, stream, e)
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
		if (why == EndDisable || why == EndTest) && st.EndWanted != EndDisable && st.EndWanted != EndDelete { // the media plane's own wish, not the API's
			if c.Stream.step(DisabledByOwner) == nil {
				types = append(types, EventDisabled)
			}
		}
		if err := c.Stream.step(BroadcastEnded); err != nil {
			return stop{err}
		}
		c.Stream.StartedAt, c.Stream.DisconnectedAt, c.Stream.LeaseUntil, c.Stream.Node = time.Time{}, time.Time{}, time.Time{}, ""
		c.Stream.ActiveAt, c.Stream.Silent = time.Time{}, false
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
			return s.store.Delete(ctx, c)
		}
		return s.store.Save(ctx, c)
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
func (s *Service) Warn(ctx context.Context, stream id.LiveStream, e id.Epoch, w Warning, now time.Time) error {
	now = stamp(now)
	return retry(func() error {
		st, err := s.ofEpoch(ctx, stream, e)
		if err != nil {
			return err
		}
		c := begin(st)
		c.Stream.UpdatedAt = now
		c.Events = append(c.Events, event.New(st.Environment, EventWarning, EventObject, string(st.ID), now, Warned{
			ID: st.ID, Environment: st.Environment, State: st.State, ActiveAsset: st.ActiveAsset, Passthrough: st.Settings.Passthrough,
			CreatedAt: st.CreatedAt, Warning: w,
		}))
		return s.store.Save(ctx, c)
	})
}

// Renew extends the lease; the response carries what the API wants of the owner.
func (s *Service) Renew(ctx context.Context, stream id.LiveStream, e id.Epoch, node id.Node, until time.Time, reserved int64) (Stream, error) {
	return s.store.Renew(ctx, stream, e, node, stamp(until), reserved)
}

// Find reads a stream of any environment.
func (s *Service) Find(ctx context.Context, stream id.LiveStream) (Stream, error) {
	return s.store.Find(ctx, stream)
}

// Broadcasting lists the streams with a broadcast, deleted ones among them.
func (s *Service) Broadcasting(ctx context.Context) ([]Stream, error) {
	return s.store.Broadcasting(ctx)
}

// fact makes one step of the broadcast of epoch e.
func (s *Service) fact(ctx context.Context, stream id.LiveStream, e id.Epoch, now time.Time, step func(*Stream) ([]string, error)) (Stream, error) {
	return s.save(ctx, now, func() (Stream, error) { return s.ofEpoch(ctx, stream, e) }, step)
}

// ofEpoch reads a stream whose broadcast is e.
func (s *Service) ofEpoch(ctx context.Context, stream id.LiveStream, e id.Epoch) (Stream, error) {
	st, err := s.store.Find(ctx, stream)
	if err == nil && (st.Epoch != e || st.ActiveAsset == "") {
		return Stream{}, stop{stale()}
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
