package live

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/control/field"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The events of a live stream.
const (
	EventCreated      = "video.live_stream.created"
	EventConnected    = "video.live_stream.connected"
	EventRecording    = "video.live_stream.recording"
	EventActive       = "video.live_stream.active"
	EventDisconnected = "video.live_stream.disconnected"
	EventIdle         = "video.live_stream.idle"
	EventUpdated      = "video.live_stream.updated"
	EventEnabled      = "video.live_stream.enabled"
	EventDisabled     = "video.live_stream.disabled"
	EventDeleted      = "video.live_stream.deleted"
	EventWarning      = "video.live_stream.warning" // its data are a Warned

	// EventObject is the kind of object of these events.
	EventObject = "live_stream"
)

// rows are streams as they are stored.
type rows struct{ store Store }

// Service makes the changes of live streams that are asked for. It owns no goroutine; all its methods may be called at
// the same time.
type Service struct {
	rows        rows
	drm         playbackid.Configurations
	recognition assetopt.Recognition
	changed     func(id.LiveStream)
	readdressed func(id.LiveStream)
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	if o.Changed == nil {
		o.Changed = func(id.LiveStream) {}
	}
	if o.Readdressed == nil {
		o.Readdressed = func(id.LiveStream) {}
	}
	return &Service{
		rows: rows{o.Store}, drm: o.DRM, recognition: o.Recognition, changed: o.Changed, readdressed: o.Readdressed,
	}
}

// Create makes an idle stream with a fresh key. Event created, and simulcast_target.created for each target.
func (s *Service) Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Stream, error) {
	settings, err := in.settings()
	if err != nil {
		return Stream{}, err
	}
	if err = s.recognition.Check(ctx, env, "generated_subtitles", in.GeneratedSubtitles); err != nil {
		return Stream{}, err
	}
	in.AdvancedPolicies, err = s.drm.Choose(ctx, env, "advanced_playback_policies", in.AdvancedPolicies)
	if err != nil {
		return Stream{}, err
	}
	if settings.NewAsset != nil {
		recordings := *settings.NewAsset
		recordings.AdvancedPolicies, err = s.drm.Choose(
			ctx, env, "new_asset_settings.advanced_playback_policies", recordings.AdvancedPolicies)
		if err != nil {
			return Stream{}, err
		}
		settings.NewAsset = &recordings
	}
	now = change.Stamp(now)
	st := Stream{
		ID:            id.LiveStream(id.NewOrdered(now)),
		Environment:   env,
		StreamKey:     id.NewUUID(),
		SRTPassphrase: id.New(),
		State:         Idle,
		Settings:      settings,
		PlaybackIDs:   playbackid.NewAll(in.PlaybackPolicies, in.AdvancedPolicies),
		CreatedAt:     now,
		UpdatedAt:     now,
	}
	if err = s.checkClear(ctx, st); err != nil {
		return Stream{}, err
	}
	events := append(tell(st, now, EventCreated), tellTargets(Stream{}, st, now)...)
	if err := s.rows.store.Insert(ctx, Change{Stream: st, Events: events}); err != nil {
		return Stream{}, err
	}
	return st, nil
}

// checkClear refuses settings by which what a DRM configuration wants encrypted would leave the service in clear, while
// it is live or as a recording.
func (s *Service) checkClear(ctx context.Context, st Stream) error {
	live := playbackid.RequestsOf(st.PlaybackIDs)
	var recordings assetopt.Options
	if st.Settings.NewAsset != nil {
		recordings = *st.Settings.NewAsset
	}
	all := slices.Concat(live, recordings.Requests())
	if err := s.drm.CheckClear(ctx, st.Environment, all, false); err != nil {
		return err
	}
	master := recordings.MasterAccess == assetopt.Temporary
	return s.drm.CheckClear(ctx, st.Environment, recordings.Requests(), master, live...)
}

// Get reads a stream of env.
func (s *Service) Get(ctx context.Context, env id.Environment, stream id.LiveStream) (Stream, error) {
	return s.rows.store.Get(ctx, env, stream)
}

// List reads streams of env, newest first.
func (s *Service) List(ctx context.Context, env id.Environment, q ListQuery) ([]Stream, error) {
	var err error
	if q.Page, q.Limit, err = field.Page(q.Page, q.Limit); err != nil {
		return nil, err
	}
	switch q.Status {
	case "", StatusIdle, StatusActive, StatusDisabled:
	default:
		return nil, fault.At(fault.Invalid, "status", "must be one of: idle, active, disabled")
	}
	return s.rows.store.List(ctx, env, q)
}

// Some reads streams of env by their IDs.
func (s *Service) Some(ctx context.Context, env id.Environment, of []id.LiveStream) ([]Stream, error) {
	if len(of) > MaxSome {
		return nil, fault.New(fault.Invalid, "%d live streams are asked for at once, %d is the most", len(of), MaxSome)
	}
	return s.rows.store.Some(ctx, env, of)
}

// Count counts the streams of env.
func (s *Service) Count(ctx context.Context, env id.Environment) (Numbers, error) {
	return s.rows.store.Count(ctx, env)
}

// Patch changes settings. Event updated.
func (s *Service) Patch(
	ctx context.Context, env id.Environment, stream id.LiveStream, in PatchInput, now time.Time,
) (Stream, error) {
	return s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		var err error
		if st.Settings, err = in.apply(st.Settings, st.ActiveAsset != ""); err == nil {
			err = s.checkClear(ctx, *st)
		}
		return []string{EventUpdated}, err
	})
}

// Delete removes a stream: for the API at once; while a broadcast runs the row stays until its owner has ended it.
// Event deleted.
func (s *Service) Delete(ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time) error {
	now = change.Stamp(now)
	err := change.Retry(func() error {
		st, err := s.rows.store.Get(ctx, env, stream)
		if err != nil {
			return err
		}
		c := begin(st)
		c.Events = tell(st, now, EventDeleted)
		if st.ActiveAsset == "" {
			return s.rows.store.Delete(ctx, c)
		}
		c.Stream.State, c.Stream.EndWanted, c.Stream.DeletedAt = Disabled, EndDelete, now
		c.Stream.Protocol, c.Stream.PlaybackIDs, c.Stream.UpdatedAt = "", nil, now
		return s.rows.store.Save(ctx, c)
	})
	if err == nil {
		s.changed(stream)
		s.readdressed(stream)
	}
	return err
}

// Enable lets encoders connect again. Event enabled; nothing happens when it is enabled already.
func (s *Service) Enable(ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time) error {
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		to, ok := Next(st.State, EnabledByOwner)
		if !ok {
			return nil, nil
		}
		st.State = to
		return []string{EventEnabled}, nil
	})
	return err
}

// Disable refuses encoders from now on; the owner of a running broadcast drops the encoder and ends it. Event disabled;
// nothing happens when it is disabled already.
func (s *Service) Disable(ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time) error {
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		to, ok := Next(st.State, DisabledByOwner)
		if !ok {
			return nil, nil
		}
		st.State, st.Protocol = to, ""
		if st.ActiveAsset != "" {
			st.EndWanted = EndDisable
		}
		return []string{EventDisabled}, nil
	})
	return err
}

// Complete asks the owner of a running broadcast to end it; nothing happens when none runs, or its end is wanted
// already.
func (s *Service) Complete(ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time) error {
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		if st.ActiveAsset == "" || st.EndWanted != EndNone {
			return nil, nil
		}
		st.EndWanted = EndComplete
		return []string{}, nil
	})
	return err
}

// ResetStreamKey gives a stream a new key; the old one is unknown at once, and the owner of a running broadcast drops
// the encoder that came with it. Event updated.
func (s *Service) ResetStreamKey(
	ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time,
) (Stream, error) {
	return s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		st.StreamKey = id.NewUUID()
		return []string{EventUpdated}, nil
	})
}

// AddPlaybackID adds a playback ID. Event updated.
func (s *Service) AddPlaybackID(
	ctx context.Context, env id.Environment, stream id.LiveStream, r playbackid.Request, now time.Time,
) (playbackid.ID, error) {
	var l fault.List
	r.Check(&l, "")
	if err := l.Err(); err != nil {
		return playbackid.ID{}, err
	}
	r, err := s.drm.ChooseOne(ctx, env, "", r)
	if err != nil {
		return playbackid.ID{}, err
	}
	made := playbackid.New(r)
	_, err = s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		if len(st.PlaybackIDs) >= playbackid.Max {
			return nil, playbackid.ErrTooMany()
		}
		st.PlaybackIDs = append(slices.Clip(st.PlaybackIDs), made)
		return []string{EventUpdated}, s.checkClear(ctx, *st)
	})
	return made, err
}

// GetPlaybackID reads a playback ID of a stream of env.
func (s *Service) GetPlaybackID(
	ctx context.Context, env id.Environment, stream id.LiveStream, p id.Playback,
) (playbackid.ID, error) {
	st, err := s.rows.store.Get(ctx, env, stream)
	if err != nil {
		return playbackid.ID{}, err
	}
	i := playbackid.Index(st.PlaybackIDs, p)
	if i < 0 {
		return playbackid.ID{}, playbackid.ErrUnknown()
	}
	return st.PlaybackIDs[i], nil
}

// DeletePlaybackID takes a playback ID away. Event updated.
func (s *Service) DeletePlaybackID(
	ctx context.Context, env id.Environment, stream id.LiveStream, p id.Playback, now time.Time,
) error {
	_, err := s.change(ctx, env, stream, now, func(st *Stream) ([]string, error) {
		i := playbackid.Index(st.PlaybackIDs, p)
		if i < 0 {
			return nil, playbackid.ErrUnknown()
		}
		if err := s.drm.CheckDelete(ctx, env, st.PlaybackIDs, p); err != nil {
			return nil, err
		}
		st.PlaybackIDs = slices.Delete(slices.Clone(st.PlaybackIDs), i, i+1)
		return []string{EventUpdated}, nil
	})
	return err
}

// change makes one step on a stream of env and tells the owner of its broadcast. step changes st and names the events;
// with nil nothing has changed and nothing is written, but the owner is still told.
func (s *Service) change(
	ctx context.Context, env id.Environment, stream id.LiveStream, now time.Time,
	step func(st *Stream) ([]string, error),
) (Stream, error) {
	var before []playbackid.ID
	read := func() (Stream, error) {
		st, err := s.rows.store.Get(ctx, env, stream)
		before = slices.Clone(st.PlaybackIDs)
		return st, err
	}
	after, err := s.rows.save(ctx, now, read, step)
	if err == nil {
		s.changed(stream)
		if !slices.Equal(before, after.PlaybackIDs) {
			s.readdressed(stream)
		}
	}
	return after, err
}

// save reads, steps and writes, again when somebody else was faster.
func (r rows) save(
	ctx context.Context, now time.Time, read func() (Stream, error), step func(st *Stream) ([]string, error),
) (Stream, error) {
	return r.change(ctx, now, read, func(c *Change) ([]string, error) { return step(&c.Stream) })
}

// change is save for a step that may also say whose place is taken.
func (r rows) change(
	ctx context.Context, now time.Time, read func() (Stream, error), step func(c *Change) ([]string, error),
) (Stream, error) {
	now = change.Stamp(now)
	var after Stream
	err := change.Retry(func() error {
		st, err := read()
		if err != nil {
			return err
		}
		c := begin(st)
		types, err := step(&c)
		if err != nil {
			return change.Final(err)
		}
		if after = c.Stream; types == nil {
			return nil
		}
		c.Stream.UpdatedAt = now
		after = c.Stream
		after.Revision++
		c.Events = tell(c.Stream, now, types...)
		if st.DeletedAt.IsZero() { // a deleted stream has told its last, and its targets with it
			c.Events = append(c.Events, tellTargets(st, c.Stream, now)...)
		}
		return r.store.Save(ctx, c)
	})
	if err != nil {
		return Stream{}, err
	}
	return after, nil
}

func begin(st Stream) Change { return Change{From: st.State, FromEpoch: st.Epoch, Stream: st} }

// tell makes the events about st.
func tell(st Stream, now time.Time, types ...string) []event.Event {
	events := make([]event.Event, 0, len(types))
	for _, t := range types {
		events = append(events, event.New(st.Environment, t, EventObject, string(st.ID), now, st.WithoutSecrets()))
	}
	return events
}
