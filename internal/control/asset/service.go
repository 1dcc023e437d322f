package asset

import (
	"context"
	"errors"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/control/field"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// The events of an asset and of its tracks.
const (
	EventCreated       = "video.asset.created"
	EventReady         = "video.asset.ready"
	EventErrored       = "video.asset.errored"
	EventUpdated       = "video.asset.updated"
	EventDeleted       = "video.asset.deleted"
	EventLiveCompleted = "video.asset.live_stream_completed"
	EventNonStandard   = "video.asset.non_standard_input_detected"
	EventWarning       = "video.asset.warning" // its data are a Warned
	EventTrackCreated  = "video.asset.track.created"
	EventTrackReady    = "video.asset.track.ready"
	EventTrackErrored  = "video.asset.track.errored"
	EventTrackDeleted  = "video.asset.track.deleted"

	// Of a single file that static_renditions asks for; the data are a StaticRendition.
	EventStaticCreated = "video.asset.static_rendition.created"
	EventStaticReady   = "video.asset.static_rendition.ready"
	EventStaticErrored = "video.asset.static_rendition.errored"
	EventStaticDeleted = "video.asset.static_rendition.deleted" // not when the whole asset is
	EventStaticSkipped = "video.asset.static_rendition.skipped"
	// Of all files that mp4_support asks for.
	EventMP4Preparing = "video.asset.static_renditions.preparing"
	EventMP4Ready     = "video.asset.static_renditions.ready"
	EventMP4Deleted   = "video.asset.static_renditions.deleted"
	EventMP4Errored   = "video.asset.static_renditions.errored"

	EventMasterPreparing = "video.asset.master.preparing"
	EventMasterReady     = "video.asset.master.ready"
	EventMasterDeleted   = "video.asset.master.deleted"
	EventMasterErrored   = "video.asset.master.errored"

	// EventObject and its neighbours are the kinds of objects of these events.
	EventObject      = "asset"
	EventTrackObject = "track"
	EventFileObject  = "static_rendition"
)

// The states of Progress.
const (
	Ingesting   = "ingesting"
	Transcoding = "transcoding"
	Completed   = "completed"
	Live        = "live"
	InError     = "errored"
	unmeasured  = -1
)

// rows are assets as they are stored.
type rows struct {
	store   Store
	changed func(id.Asset)
}

func (o Options) rows() rows {
	if o.Changed == nil {
		o.Changed = func(id.Asset) {}
	}
	return rows{o.Store, o.Changed}
}

// Service makes the changes of assets and their tracks that are asked for. It owns no goroutine; all its methods may be
// called at the same time, as may those of Work.
type Service struct {
	rows        rows
	drm         playbackid.Configurations
	recognition assetopt.Recognition
}

var _ API = (*Service)(nil)

// New makes a service; nothing starts.
func New(o Options) *Service {
	return &Service{rows: o.rows(), drm: o.DRM, recognition: o.Recognition}
}

// checked says all that is wrong with in, and gives the asset that it is a clip of; nil: it is none.
func (s *Service) checked(ctx context.Context, env id.Environment, in CreateInput) (*Asset, error) {
	var l fault.List
	var source *Asset
	if of, clip := in.clipOf(); clip {
		found, err := s.rows.store.Get(ctx, env, of)
		switch {
		case fault.Is(err, fault.NotFound):
			l.At("inputs[0].url", "must name an asset that exists")
		case err != nil:
			return nil, err
		default:
			source = &found
		}
	}
	if err := l.Take(in.Check(source)); err != nil {
		return nil, err
	}
	return source, l.Err()
}

// Create makes a preparing asset from URLs or as a clip. Events created, track.created; job JobIngest, and JobExpire of
// a test.
func (s *Service) Create(ctx context.Context, env id.Environment, in CreateInput, now time.Time) (Asset, error) {
	source, err := s.checked(ctx, env, in)
	if err != nil {
		return Asset{}, err
	}
	in.Options.AdvancedPolicies, err = s.drm.Choose(
		ctx, env, "advanced_playback_policies", in.Options.AdvancedPolicies)
	if err != nil {
		return Asset{}, err
	}
	if err = s.recognition.CheckInputs(ctx, env, "inputs", in.Options.Inputs); err != nil {
		return Asset{}, err
	}
	var played []playbackid.Request // by which the source of a clip is
	now = change.Stamp(now)
	a := Asset{
		ID:          id.Asset(id.NewOrdered(now)),
		Environment: env,
		Status:      Preparing,
		Progress:    Progress{State: Ingesting},
		Origin:      FromURL,
		Options:     in.Options.WithQuality(assetopt.ForAsset, in.DefaultQuality).WithDefaults(assetopt.ForAsset),
		PlaybackIDs: playbackid.NewAll(in.Options.PlaybackPolicies, in.Options.AdvancedPolicies),
		Media:       id.Media(id.New()),
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	if source != nil {
		played = playbackid.RequestsOf(source.PlaybackIDs)
		// From now on, so that the source may be deleted without taking the bytes away.
		a.Origin, a.SourceAsset, a.Uses = FromClip, source.ID, append([]id.Media{source.Media}, source.Uses...)
	}
	err = s.drm.CheckClear(ctx, env, in.Options.Requests(), in.Options.MasterAccess == assetopt.Temporary, played...)
	if err != nil {
		return Asset{}, err
	}
	c, err := begin(a)
	if err != nil {
		return Asset{}, err
	}
	if err := s.rows.store.Insert(ctx, c); err != nil {
		return Asset{}, err
	}
	return c.Asset, nil
}

// begin is the change that makes an asset whose file is to be ingested. Events created, track.created; job JobIngest,
// and JobExpire of a test.
func begin(a Asset) (Change, error) {
	tracks, err := extraTracks(a.ID, a.Options.Inputs, a.CreatedAt)
	if err != nil {
		return Change{}, err
	}
	a.Tracks = tracks
	c := Change{Asset: a, Tracks: tracks, Events: tell(a, a.CreatedAt, EventCreated), Jobs: []job.Insert{a.ingestJob()}}
	c.expire(a.CreatedAt)
	for _, t := range tracks {
		c.Events = append(c.Events, tellTrack(a.Environment, t, a.CreatedAt, EventTrackCreated))
	}
	c.wantFiles()
	return c, nil
}

// Uploaded is the change that makes the asset of an uploaded file. Events created, track.created; job JobIngest, and
// JobExpire of a test.
func (s *Service) Uploaded(u NewUpload, now time.Time) (Change, error) {
	now = change.Stamp(now)
	o := u.Options.WithDefaults(assetopt.ForUpload)
	o.Test = o.Test || u.Test
	if len(o.Inputs) == 0 {
		o.Inputs = []assetopt.Input{{}} // the file
	}
	return begin(Asset{
		ID:          id.Asset(id.NewOrdered(now)),
		Environment: u.Environment,
		Status:      Preparing,
		Progress:    Progress{State: Ingesting},
		Origin:      FromUpload,
		Upload:      u.Upload,
		Options:     o,
		PlaybackIDs: playbackid.NewAll(o.PlaybackPolicies, o.AdvancedPolicies),
		Media:       u.Media,
		CreatedAt:   now,
		UpdatedAt:   now,
	})
}

// Get reads an asset of env.
func (s *Service) Get(ctx context.Context, env id.Environment, a id.Asset) (Asset, error) {
	return s.rows.store.Get(ctx, env, a)
}

// List reads assets of env, newest first.
func (s *Service) List(ctx context.Context, env id.Environment, q ListQuery) ([]Asset, string, error) {
	var err error
	if q.Page, q.Limit, err = field.Page(q.Page, q.Limit); err != nil {
		return nil, "", err
	}
	return s.rows.store.List(ctx, env, q)
}

// Some reads assets of env by their IDs.
func (s *Service) Some(ctx context.Context, env id.Environment, of []id.Asset) ([]Asset, error) {
	if len(of) > MaxSome {
		return nil, fault.New(fault.Invalid, "%d assets are asked for at once, %d is the most", len(of), MaxSome)
	}
	return s.rows.store.Some(ctx, env, of)
}

// Patch changes what the owner may change. Event updated.
func (s *Service) Patch(
	ctx context.Context, env id.Environment, a id.Asset, in PatchInput, now time.Time,
) (Asset, error) {
	wrong := in.Check()
	if wrong != nil && in.ThumbnailTime == nil {
		return Asset{}, wrong
	}
	return s.change(ctx, env, a, now, func(c *Change) error {
		var l fault.List
		_ = l.Take(wrong) // it is Invalid
		if t := in.ThumbnailTime; t != nil && *t != nil {
			c.Asset.checkThumbnail(&l, **t)
		}
		if err := l.Err(); err != nil {
			return err
		}
		if in.Passthrough != nil {
			c.Asset.Options.Passthrough = *in.Passthrough
		}
		if in.Meta != nil {
			c.Asset.Options.Meta = in.Meta.Apply(c.Asset.Options.Meta)
		}
		if in.ThumbnailTime != nil {
			c.Asset.ThumbnailTime = *in.ThumbnailTime
		}
		c.tell(EventUpdated)
		return nil
	})
}

// Delete removes an asset with everything that only it refers to. Event deleted; jobs JobPurge. One that is being
// recorded is refused.
func (s *Service) Delete(ctx context.Context, env id.Environment, a id.Asset, now time.Time) error {
	return s.rows.remove(ctx, a, now, func() (Asset, error) { return s.rows.store.Get(ctx, env, a) })
}

// Expire deletes an asset of any environment whose time has come. Event deleted; jobs JobPurge.
func (w *Work) Expire(ctx context.Context, a id.Asset, now time.Time) error {
	return w.rows.remove(ctx, a, now, func() (Asset, error) { return w.rows.store.Find(ctx, a) })
}

// expire asks for the deletion of a test asset.
func (c *Change) expire(now time.Time) {
	if c.Asset.Options.Test {
		end := job.New(JobExpire, string(c.Asset.ID), ExpireArgs{Asset: c.Asset.ID})
		end.At = now.Add(TestLife)
		c.ask(end)
	}
}

// SetExempt exempts an asset from the retention of its environment, or ends that. No event: nobody sees a difference.
func (s *Service) SetExempt(ctx context.Context, env id.Environment, a id.Asset, exempt bool, now time.Time) error {
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		if c.Asset.Exempt == exempt {
			return errSame
		}
		c.Asset.Exempt = exempt
		return nil
	})
	return err
}

// Retire deletes an asset of any environment on the condition that gone says of it as it is by then; otherwise it is
// fault.Conflict. Event deleted; jobs JobPurge.
func (w *Work) Retire(ctx context.Context, a id.Asset, gone func(*Asset) bool, now time.Time) error {
	return w.rows.remove(ctx, a, now, func() (Asset, error) {
		old, err := w.rows.store.Find(ctx, a)
		if err == nil && !gone(&old) {
			err = change.Final(fault.New(fault.Conflict, "the asset is to stay"))
		}
		return old, err
	})
}

func (r rows) remove(ctx context.Context, a id.Asset, now time.Time, read func() (Asset, error)) error {
	now = change.Stamp(now)
	err := change.Retry(func() error {
		old, err := read()
		if err != nil {
			return err
		}
		if old.IsLive {
			return change.Final(fault.New(fault.Conflict,
				"the asset is being recorded; complete, disable or delete its live stream first"))
		}
		c := Change{From: old.Status, Asset: old, Deleted: now, Events: tell(old, now, EventDeleted)}
		for _, m := range append([]id.Media{old.Media}, old.Uses...) {
			if m != "" { // the key holds the asset too: each deletion has to look again who else uses the bytes
				c.Jobs = append(c.Jobs, job.New(JobPurge, string(m)+"/"+string(a), PurgeArgs{Media: m}))
			}
		}
		return r.store.Delete(ctx, c)
	})
	if err == nil {
		r.changed(a)
	}
	return err
}

// AddPlaybackID adds a playback ID. Event updated.
func (s *Service) AddPlaybackID(
	ctx context.Context, env id.Environment, a id.Asset, r playbackid.Request, now time.Time,
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
	_, err = s.change(ctx, env, a, now, func(c *Change) error {
		if len(c.Asset.PlaybackIDs) >= playbackid.Max {
			return playbackid.ErrTooMany()
		}
		if r.Policy == playbackid.DRM && c.Asset.Options.VideoQuality == "basic" {
			return fault.At(fault.Conflict, "policy", "drm needs an asset with video_quality plus or premium")
		}
		all := append(playbackid.RequestsOf(c.Asset.PlaybackIDs), r)
		if refused := s.drm.CheckClear(ctx, env, all, c.Asset.Master != nil); refused != nil {
			return refused
		}
		c.Asset.PlaybackIDs = append(slices.Clip(c.Asset.PlaybackIDs), made)
		c.tell(EventUpdated)
		return nil
	})
	return made, err
}

// GetPlaybackID reads a playback ID of an asset of env.
func (s *Service) GetPlaybackID(
	ctx context.Context, env id.Environment, a id.Asset, p id.Playback,
) (playbackid.ID, error) {
	old, err := s.rows.store.Get(ctx, env, a)
	if err != nil {
		return playbackid.ID{}, err
	}
	i := playbackid.Index(old.PlaybackIDs, p)
	if i < 0 {
		return playbackid.ID{}, playbackid.ErrUnknown()
	}
	return old.PlaybackIDs[i], nil
}

// DeletePlaybackID takes a playback ID away. Event updated.
func (s *Service) DeletePlaybackID(
	ctx context.Context, env id.Environment, a id.Asset, p id.Playback, now time.Time,
) error {
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		i := playbackid.Index(c.Asset.PlaybackIDs, p)
		if i < 0 {
			return playbackid.ErrUnknown()
		}
		if err := s.drm.CheckDelete(ctx, env, c.Asset.PlaybackIDs, p); err != nil {
			return err
		}
		c.Asset.PlaybackIDs = slices.Delete(slices.Clone(c.Asset.PlaybackIDs), i, i+1)
		c.tell(EventUpdated)
		return nil
	})
	return err
}

// tell adds events about the asset as it is now in the change.
func (c *Change) tell(types ...string) {
	c.Events = append(c.Events, tell(c.Asset, c.Asset.UpdatedAt, types...)...)
}

// ask adds jobs.
func (c *Change) ask(jobs ...job.Insert) { c.Jobs = append(c.Jobs, jobs...) }

func tell(a Asset, now time.Time, types ...string) []event.Event {
	a.Options.Inputs = nil // URLs may carry the caller's credentials, and the API does not show them with the asset
	events := make([]event.Event, 0, len(types))
	for _, t := range types {
		events = append(events, event.New(a.Environment, t, EventObject, string(a.ID), now, a.WithoutSecrets()))
	}
	return events
}

func tellTrack(env id.Environment, t Track, now time.Time, typ string) event.Event {
	return event.New(env, typ, EventTrackObject, string(t.ID), now, t).Of(string(t.Asset))
}

// errSame is a step's result when there is nothing to write.
var errSame = errors.New("nothing has changed")

// change makes one step on an asset of env.
func (s *Service) change(
	ctx context.Context, env id.Environment, a id.Asset, now time.Time, step func(c *Change) error,
) (Asset, error) {
	return s.rows.save(ctx, now, func() (Asset, error) { return s.rows.store.Get(ctx, env, a) }, step)
}

// advance makes one step on an asset of any environment.
func (r rows) advance(ctx context.Context, a id.Asset, now time.Time, step func(c *Change) error) error {
	_, err := r.save(ctx, now, func() (Asset, error) { return r.store.Find(ctx, a) }, step)
	return err
}

// save reads, steps and writes, again when somebody else was faster.
func (r rows) save(
	ctx context.Context, now time.Time, read func() (Asset, error), step func(c *Change) error,
) (Asset, error) {
	now = change.Stamp(now)
	var after Asset
	err := change.Retry(func() error {
		old, err := read()
		if err != nil {
			return err
		}
		c := Change{From: old.Status, Asset: old}
		c.Asset.UpdatedAt = now
		if err := step(&c); err != nil {
			after = old
			return change.Final(err)
		}
		c.Kept = slices.Equal(old.PlaybackIDs, c.Asset.PlaybackIDs) && slices.Equal(old.Uses, c.Asset.Uses)
		after = c.Asset
		after.Revision++
		return r.store.Save(ctx, c)
	})
	if errors.Is(err, errSame) {
		return after, nil
	}
	if err != nil {
		return Asset{}, err
	}
	r.changed(after.ID)
	return after, nil
}
