package asset

import (
	"context"
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// noEngine is the type of error of a track whose language no engine takes.
const noEngine = "no_speech_engine"

// generatedTracks makes the preparing tracks that are recognised in an audio track, those with a chosen name or those
// without.
func generatedTracks(
	a id.Asset, of id.Track, in []assetopt.GeneratedSubtitle, others []Track, chosen bool, now time.Time,
) ([]Track, error) {
	var out []Track
	for _, g := range in {
		if (g.Name != "") != chosen {
			continue
		}
		g = g.Named()
		t := Track{
			ID:           id.Track(id.New()),
			Asset:        a,
			Type:         TextTrack,
			Status:       TrackPreparing,
			TextType:     Subtitles,
			TextSource:   GeneratedVOD,
			LanguageCode: g.LanguageCode,
			Name:         g.Name,
			Passthrough:  g.Passthrough,
			CreatedAt:    now,
			Speech:       &Speech{Language: g.LanguageCode, Of: of},
		}
		t.Rendition = string(t.ID)
		if err := t.nameAmong(append(slices.Clip(others), out...), chosen); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// GenerateTracks adds text tracks that are recognised in an audio track; see API.
func (s *Service) GenerateTracks(
	ctx context.Context, env id.Environment, a id.Asset, of id.Track, in []assetopt.GeneratedSubtitle, now time.Time,
) ([]Track, error) {
	var l fault.List
	if len(in) == 0 {
		l.At("generated_subtitles", "is required: at least one entry")
	}
	assetopt.CheckRecordedGenerated(&l, "generated_subtitles", in)
	if err := l.Err(); err != nil {
		return nil, err
	}
	if err := s.recognition.Check(ctx, env, "generated_subtitles", in); err != nil {
		return nil, err
	}
	var made []Track
	_, err := s.change(ctx, env, a, now, func(c *Change) error {
		i, err := c.Asset.track(of)
		if err != nil {
			return err
		}
		if err = c.Asset.mayGenerate(c.Asset.Tracks[i], len(in)); err != nil {
			return err
		}
		sound := of
		if c.Asset.Tracks[i].Primary {
			sound = ""
		}
		made = nil
		for _, chosen := range []bool{true, false} {
			some, bad := generatedTracks(a, sound, in, append(slices.Clip(c.Asset.Tracks), made...), chosen,
				c.Asset.UpdatedAt)
			if bad != nil {
				return bad
			}
			made = append(made, some...)
		}
		c.Asset.Tracks, c.Tracks = append(slices.Clip(c.Asset.Tracks), made...), made
		for _, t := range made {
			c.Events = append(c.Events, tellTrack(env, t, c.Asset.UpdatedAt, EventTrackCreated))
			if c.Asset.whole() {
				c.ask(c.Asset.speechJob(t))
			}
		}
		return nil
	})
	return made, err
}

func (a *Asset) mayGenerate(of Track, n int) error {
	switch {
	case of.Type != AudioTrack:
		return fault.New(fault.Invalid, "the track must be an audio track")
	case a.Status != Ready:
		return fault.New(fault.Conflict, "subtitles can be generated only for an asset that is ready")
	case a.IsLive:
		return fault.New(fault.Conflict,
			"the asset is being recorded: set generated_subtitles of its live stream, or wait for its end")
	case of.Status != TrackReady:
		return fault.New(fault.Conflict, "the audio track is not ready")
	case len(a.Tracks)+n > maxTracks:
		return fault.New(fault.Conflict, "an asset may have at most %d tracks; delete one first", maxTracks)
	}
	return nil
}

// waitsForSpeech reports whether t is to be made of sound that is there as a whole.
func (t Track) waitsForSpeech() bool {
	return t.Status == TrackPreparing && t.Speech != nil && !t.OfBroadcast()
}

// recognise asks for the jobs of the tracks that are made of sound, now that the asset is whole.
func (c *Change) recognise() {
	for _, t := range c.Asset.Tracks {
		if t.waitsForSpeech() {
			c.ask(c.Asset.speechJob(t))
		}
	}
}

// TrackProgress says how much of a preparing track is made; see TrackMaker.
func (w *Work) TrackProgress(ctx context.Context, a id.Asset, track id.Track, percent float64, now time.Time) error {
	return w.rows.advance(ctx, a, now, func(c *Change) error {
		i, err := c.Asset.track(track)
		if err != nil {
			return err
		}
		t := c.Asset.Tracks[i]
		if t.Status != TrackPreparing {
			return errSame
		}
		t.Progress, t.Pace = progressed(t.Pace, percent, now)
		c.put(i, t)
		return nil
	})
}
