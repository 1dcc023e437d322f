package asset

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/change"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Work makes the changes of those who make assets: broadcasts, and jobs.
type Work struct{ rows rows }

var (
	_ Recorder   = (*Work)(nil)
	_ Ingester   = (*Work)(nil)
	_ TrackMaker = (*Work)(nil)
	_ FileMaker  = (*Work)(nil)
)

// NewWork needs the store of o, and its Changed; nothing starts.
func NewWork(o Options) *Work { return &Work{o.rows()} }

// Find reads an asset of any environment.
func (w *Work) Find(ctx context.Context, a id.Asset) (Asset, error) { return w.rows.store.Find(ctx, a) }

// Users lists the assets that own or use m.
func (w *Work) Users(ctx context.Context, m id.Media) ([]Asset, error) {
	return w.rows.store.Users(ctx, m)
}

// Unfinished lists assets on which work may be left.
func (w *Work) Unfinished(ctx context.Context) ([]Asset, error) { return w.rows.store.Unfinished(ctx) }

// Timeline reads entries of a growing timeline.
func (w *Work) Timeline(ctx context.Context, a id.Asset, from int64) ([]TimelineEntry, error) {
	return w.rows.store.Timeline(ctx, a, from)
}

// Record makes the asset of a broadcast; see Recorder.
func (w *Work) Record(ctx context.Context, r NewRecording, now time.Time) (Asset, error) {
	now = change.Stamp(now)
	a := Asset{
		ID:          r.ID,
		Environment: r.Environment,
		Status:      Preparing,
		Progress:    Progress{State: Live, Percent: unmeasured},
		Origin:      r.Origin,
		LiveStream:  r.LiveStream,
		IsLive:      true,
		Options:     r.Options.WithDefaults(assetopt.ForLive),
		PlaybackIDs: playbackid.NewAll(r.Options.PlaybackPolicies, r.Options.AdvancedPolicies),
		Media:       r.Media,
		CreatedAt:   now,
		UpdatedAt:   now,
	}
	if a.Origin == "" {
		a.Origin = FromLiveRTMP
	}
	if a.Options.Test && !r.Test { // a test stream has a limit of its own
		a.Limit = TestLength.Seconds()
	}
	a.Options.Test = a.Options.Test || r.Test
	a.Tracks = liveTracks(a.ID, r.Texts, now)
	a.Tracks = append(a.Tracks, recordedTracks(a.ID, a.Options.Inputs, a.Tracks, now)...)
	c := Change{Asset: a, Tracks: a.Tracks, Events: tell(a, now, EventCreated)}
	for _, t := range a.Tracks {
		c.Events = append(c.Events, tellTrack(a.Environment, t, now, EventTrackCreated))
	}
	c.wantFiles()
	err := w.rows.store.Insert(ctx, c)
	if fault.Is(err, fault.Conflict) { // made before a crash
		return w.rows.store.Find(ctx, r.ID)
	}
	if err != nil {
		return Asset{}, err
	}
	return c.Asset, nil
}

// Grow appends; see Maker.
func (w *Work) Grow(ctx context.Context, a id.Asset, g Growth, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if !c.Asset.growing() {
			return fault.New(fault.Conflict, "the asset does not grow any more")
		}
		c.grow(g)
		return nil
	})
}

// Append adds entries alone; see Recorder.
func (w *Work) Append(ctx context.Context, a id.Asset, by Writer, entries []TimelineEntry) error {
	return w.rows.store.Append(ctx, a, by, entries)
}

func (c *Change) grow(g Growth) {
	c.By, c.Entries = g.By, g.Entries
	if n := len(g.Entries); n > 0 {
		c.Asset.Entries = max(c.Asset.Entries, g.Entries[n-1].Sequence+1)
	}
	if g.Facts != nil {
		c.Asset.Facts = *g.Facts
	}
	if g.Recordings != nil {
		c.Asset.Recordings = g.Recordings
	}
	if g.Inputs != nil {
		c.Asset.InputInfo = g.Inputs
	}
	if g.Progress != nil {
		c.Asset.Progress = *g.Progress
	}
	c.Tracks = append(c.Tracks, c.Asset.merge(g.Tracks, c.Asset.UpdatedAt)...)
}

// Ready makes a preparing asset ready; see Maker. Tracks that came with the request get their jobs now.
func (w *Work) Ready(ctx context.Context, a id.Asset, g Growth, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if !c.Asset.growing() {
			if c.Asset.Status == Ready {
				return errSame
			}
			return fault.New(fault.Conflict, "the asset does not grow any more")
		}
		c.grow(g)
		c.ready()
		return nil
	})
}

// ready tells of the asset as it is now, so it comes last in a step.
func (c *Change) ready() {
	to, ok := Next(c.Asset.Status, BecamePlayable)
	if !ok {
		return
	}
	c.Asset.Status = to
	c.tell(EventReady)
	for i, t := range c.Asset.Tracks {
		switch {
		case t.Status == TrackPreparing && t.URL != "":
			c.ask(c.Asset.trackJob(t))
		case t.Status == TrackPreparing && t.OfBroadcast() && c.Asset.LiveStream != "":
			t.Status = TrackReady
			c.put(i, t)
			c.Events = append(c.Events, tellTrack(c.Asset.Environment, t, c.Asset.UpdatedAt, EventTrackReady))
		}
	}
}

// EndLive says that the broadcast is over; see Recorder.
func (w *Work) EndLive(ctx context.Context, a id.Asset, by Writer, recordings []Recording, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		c.By = by
		if !c.Asset.IsLive {
			return errSame
		}
		if recordings != nil {
			c.Asset.Recordings = recordings
		}
		c.expire(c.Asset.UpdatedAt)
		if c.Asset.Entries == 0 && c.Asset.Status == Preparing {
			c.fail(Errors{Type: "invalid_input", Messages: []string{"the encoder sent nothing that could be recorded"}})
			return nil
		}
		c.Asset.IsLive = false
		c.Asset.Progress = Progress{State: Completed, Percent: 100}
		c.ask(c.Asset.finishJob())
		return nil
	})
}

// Finish completes an asset; see Ingester.
func (w *Work) Finish(ctx context.Context, a id.Asset, f Finished, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		switch {
		case c.Asset.Index != "" && c.Asset.Status == Ready:
			return errSame
		case c.Asset.Status == Errored:
			return fault.New(fault.Conflict, "the asset is errored")
		case c.Asset.IsLive:
			return fault.New(fault.Conflict, "the asset is still being recorded")
		case f.Index == "":
			return fault.New(fault.Internal, "finish asset: no index")
		}
		c.Asset.Index, c.Asset.Uses, c.Asset.Facts = f.Index, f.Uses, f.Facts
		c.Asset.Progress = Progress{State: Completed, Percent: 100}
		c.Forget = true
		texts := c.found(f.Tracks)
		c.ready()
		for _, t := range texts {
			c.Events = append(c.Events, tellTrack(c.Asset.Environment, t, c.Asset.UpdatedAt, EventTrackReady))
		}
		if c.Asset.LiveStream != "" {
			c.tell(EventLiveCompleted)
		}
		c.makeFiles()
		c.recognise()
		c.readCaptions()
		return nil
	})
}

// found takes over the tracks of a finished timeline, and gives the text tracks that are new: those that were found in
// a file, or that a clip has of its source.
func (c *Change) found(tracks []Track) (texts []Track) {
	before := c.Asset.Tracks
	c.Tracks = c.Asset.merge(tracks, c.Asset.UpdatedAt)
	for _, t := range c.Tracks {
		known := slices.ContainsFunc(before, func(have Track) bool { return have.ID == t.ID })
		if t.Type == TextTrack && !known {
			texts = append(texts, t)
			c.Events = append(c.Events, tellTrack(c.Asset.Environment, t, c.Asset.UpdatedAt, EventTrackCreated))
		}
	}
	return texts
}

// Fail makes a preparing asset errored, with the tracks that waited for it; nothing happens when it is errored already.
func (w *Work) Fail(ctx context.Context, a id.Asset, e Errors, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		switch c.Asset.Status {
		case Errored:
			return errSame
		case Ready:
			return fault.New(fault.Conflict, "the asset is ready already")
		case Preparing:
		}
		c.fail(e)
		return nil
	})
}

func (c *Change) fail(e Errors) {
	to, ok := Next(c.Asset.Status, WorkFailed)
	if !ok {
		return
	}
	c.Asset.Status, c.Asset.IsLive, c.Asset.Errors = to, false, &e
	c.Asset.Progress = Progress{State: InError, Percent: unmeasured}
	var failedTracks []Track
	for i, t := range c.Asset.Tracks {
		if failed, ok := NextTrack(t.Status, WorkFailed); ok {
			t.Status, t.Errors = failed,
				&Errors{Type: e.Type, Messages: []string{"the asset that the track belongs to is errored"}}
			c.put(i, t)
			failedTracks = append(failedTracks, t)
		}
	}
	c.failFiles(Errors{Type: "invalid_input", Messages: []string{"the asset that the file is made of is errored"}})
	c.tell(EventErrored)
	if c.Asset.Upload != "" {
		c.ask(job.New(JobUploadFail, string(c.Asset.ID), UploadFailArgs{Asset: c.Asset.ID, Upload: c.Asset.Upload}))
	}
	for _, t := range failedTracks {
		c.Events = append(c.Events, tellTrack(c.Asset.Environment, t, c.Asset.UpdatedAt, EventTrackErrored))
	}
}

// FailFiles gives up what waits for the asset to be whole; see Ingester. Nothing happens when nothing does.
func (w *Work) FailFiles(ctx context.Context, a id.Asset, e Errors, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if c.Asset.whole() {
			return fault.New(fault.Conflict, "the asset is complete, and each of its files has its own job")
		}
		c.failFiles(e)
		if len(c.Events) == 0 {
			return errSame
		}
		return nil
	})
}

// SetInputInfo stores what was found in the inputs. No event.
func (w *Work) SetInputInfo(ctx context.Context, a id.Asset, info []InputInfo, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		c.Asset.InputInfo = info
		return nil
	})
}

// SetNonStandard tells what is unusual about the first input; see Ingester.
func (w *Work) SetNonStandard(ctx context.Context, a id.Asset, n NonStandard, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if c.Asset.NonStandard != nil && *c.Asset.NonStandard == n {
			return errSame
		}
		c.Asset.NonStandard = &n
		c.tell(EventNonStandard)
		return nil
	})
}

// SetProgress stores how far the work is. No event; fault.Conflict when there is none to do any more.
func (w *Work) SetProgress(ctx context.Context, a id.Asset, p Progress, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		if !c.Asset.growing() {
			return fault.New(fault.Conflict, "the asset does not grow any more")
		}
		c.Asset.Progress = p
		return nil
	})
}

// Warn tells of a warning; see Maker.
func (w *Work) Warn(ctx context.Context, a id.Asset, warning Warning, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		c.Events = append(c.Events,
			event.New(c.Asset.Environment, EventWarning, EventObject, string(a), c.Asset.UpdatedAt, Warned{
				ID: a, Environment: c.Asset.Environment, Status: c.Asset.Status, LiveStream: c.Asset.LiveStream,
				SourceAsset: c.Asset.SourceAsset, Upload: c.Asset.Upload, Passthrough: c.Asset.Options.Passthrough,
				CreatedAt: c.Asset.CreatedAt, Warning: warning,
			}))
		return nil
	})
}
