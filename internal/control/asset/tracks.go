package asset

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/control/language"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// AddTrack adds a preparing track to a ready asset. Event track.created; job JobTrackIngest.
func (s *Service) AddTrack(
	ctx context.Context, env id.Environment, a id.Asset, in TrackInput, now time.Time,
) (Track, error) {
	if err := in.check(); err != nil {
		return Track{}, err
	}
	var t Track
	_, err := s.change(ctx, env, a, now, func(c *Change) (err error) {
		if c.Asset.Status != Ready {
			return fault.New(fault.Conflict, "tracks can be added only to an asset that is ready")
		}
		if len(c.Asset.Tracks) >= maxTracks {
			return fault.New(fault.Conflict, "an asset may have at most %d tracks; delete one first", maxTracks)
		}
		if t, err = in.track(a, c.Asset.Tracks, c.Asset.UpdatedAt); err != nil {
			return err
		}
		c.Asset.Tracks = append(slices.Clip(c.Asset.Tracks), t)
		c.Tracks = []Track{t}
		c.Events = append(c.Events, tellTrack(env, t, c.Asset.UpdatedAt, EventTrackCreated))
		c.ask(c.Asset.trackJob(t))
		return nil
	})
	return t, err
}

// liveTracks makes the preparing tracks of a broadcast's texts.
func liveTracks(a id.Asset, texts []LiveText, now time.Time) []Track {
	var out []Track
	for _, x := range texts {
		t := Track{
			ID:             id.Track(id.New()),
			Asset:          a,
			Type:           TextTrack,
			Status:         TrackPreparing,
			TextType:       Subtitles,
			TextSource:     x.Source,
			LanguageCode:   x.LanguageCode,
			Name:           x.Name,
			ClosedCaptions: x.ClosedCaptions,
			Passthrough:    x.Passthrough,
			Channel:        x.Channel,
			CreatedAt:      now,
		}
		t.Rendition, t.Speech = string(t.ID), x.Speech
		if named, err := named(t, out); err == nil {
			t = named
		} else {
			t.Name = counted(t.Name, t, out)
		}
		if x.Problem != "" {
			t.Status, t.Errors = TrackErrored, &Errors{Type: noEngine, Messages: []string{x.Problem}}
		}
		out = append(out, t)
		if x.Speech != nil { // of the same name: the one stands in for the other
			t.ID, t.TextSource = id.Track(id.New()), GeneratedFinal
			t.Rendition = string(t.ID)
			out = append(out, t)
		}
	}
	return out
}

// OfBroadcast reports whether t is a text track that is made while its asset is recorded. One that can't be made, as
// there is no engine for its language, is none.
func (t Track) OfBroadcast() bool {
	return t.Type == TextTrack && t.URL == "" && t.Status != TrackErrored &&
		(t.TextSource == Embedded || t.TextSource == GeneratedLive)
}

// InPictures reports whether t is the closed captions of the asset's pictures.
func (t Track) InPictures() bool { return t.TextSource == Embedded && t.Channel != "" }

// StandsInFor reports whether t is what was said in a broadcast, recognised once more, and live is what was recognised
// while it ran. Their names and languages may have been changed since: what they were asked for is what they have in
// common.
func (t Track) StandsInFor(live Track) bool {
	return t.TextSource == GeneratedFinal && t.Status == TrackReady && live.TextSource == GeneratedLive &&
		t.Speech != nil && live.Speech != nil &&
		t.Speech.Language == live.Speech.Language
}

// PatchTrack changes a text or audio track. Event updated of the asset, since tracks have none.
func (s *Service) PatchTrack(
	ctx context.Context, env id.Environment, a id.Asset, track id.Track, in TrackPatch, now time.Time,
) (Track, error) {
	var t Track
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		i, err := c.Asset.track(track)
		if err != nil {
			return err
		}
		if t, err = in.apply(c.Asset.Tracks[i], c.Asset.Tracks); err != nil {
			return err
		}
		c.put(i, t)
		c.tell(EventUpdated)
		return nil
	})
	return t, err
}

// DeleteTrack removes a text or alternate audio track. Event track.deleted; job JobPurge for its file.
func (s *Service) DeleteTrack(
	ctx context.Context, env id.Environment, a id.Asset, track id.Track, now time.Time,
) error {
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		i, err := c.Asset.track(track)
		if err != nil {
			return err
		}
		t := c.Asset.Tracks[i]
		if t.Type == VideoTrack || t.Primary {
			return fault.New(fault.Conflict,
				"the video track and the primary audio track can't be deleted; text and other audio tracks can")
		}
		c.Asset.Tracks = slices.Delete(slices.Clone(c.Asset.Tracks), i, i+1)
		c.Dropped = []id.Track{track}
		c.Events = append(c.Events, tellTrack(env, t, c.Asset.UpdatedAt, EventTrackDeleted))
		c.ask(job.New(JobPurge, string(c.Asset.Media)+"/"+string(track), PurgeArgs{Media: c.Asset.Media}))
		return nil
	})
	return err
}

// TrackReady ends a preparing track with what was made of it. Event track.ready; nothing happens when it is ready
// already.
func (w *Work) TrackReady(ctx context.Context, a id.Asset, done Track, now time.Time) error {
	return w.endTrack(ctx, a, done.ID, BecamePlayable, now, func(t *Track) {
		t.Object, t.Duration, t.MaxChannels, t.Progress, t.Pace = done.Object, done.Duration, done.MaxChannels, 0, nil
		if t.Speech != nil && t.Speech.Language == "auto" {
			t.LanguageCode, t.Confidence = done.LanguageCode, done.Confidence
		}
		if done.Rendition != "" {
			t.Rendition = done.Rendition
		}
	})
}

// TrackFailed ends a preparing track. Event track.errored; nothing happens when it is errored already.
func (w *Work) TrackFailed(ctx context.Context, a id.Asset, track id.Track, e Errors, now time.Time) error {
	return w.endTrack(ctx, a, track, WorkFailed, now, func(t *Track) { t.Errors, t.Progress, t.Pace = &e, 0, nil })
}

func (w *Work) endTrack(
	ctx context.Context, a id.Asset, track id.Track, f Fact, now time.Time, fill func(*Track),
) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		i, err := c.Asset.track(track)
		if err != nil {
			return err
		}
		t := c.Asset.Tracks[i]
		to, ok := NextTrack(t.Status, f)
		if !ok {
			if want, _ := NextTrack(TrackPreparing, f); t.Status == want {
				return errSame
			}
			return fault.New(fault.Conflict, "the track is %s already", t.Status)
		}
		t.Status = to
		fill(&t)
		if t.Name == assetopt.UnknownLanguage && to == TrackReady && t.Speech != nil && t.Speech.Language == "auto" &&
			t.LanguageCode != "und" {
			t.Name = counted(language.EnglishName(t.LanguageCode), t, c.Asset.Tracks)
		}
		c.put(i, t)
		c.Events = append(c.Events, tellTrack(c.Asset.Environment, t, c.Asset.UpdatedAt, trackEvent(to)))
		return nil
	})
}

func trackEvent(s TrackStatus) string {
	if s == TrackReady {
		return EventTrackReady
	}
	return EventTrackErrored
}

// put replaces the track at i.
func (c *Change) put(i int, t Track) {
	c.Asset.Tracks = slices.Clone(c.Asset.Tracks)
	c.Asset.Tracks[i] = t
	if k := slices.IndexFunc(c.Tracks, func(have Track) bool { return have.ID == t.ID }); k >= 0 {
		c.Tracks[k] = t
		return
	}
	c.Tracks = append(c.Tracks, t)
}

func (a Asset) track(t id.Track) (int, error) {
	i := slices.IndexFunc(a.Tracks, func(have Track) bool { return have.ID == t })
	if i < 0 {
		return 0, fault.New(fault.NotFound, "the track does not exist")
	}
	return i, nil
}
