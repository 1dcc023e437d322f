package asset

import (
	"slices"
	"time"

	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/id"
)

// embeddedTracks makes the preparing tracks of the captions in a file's video, those with a chosen name or those
// without.
func embeddedTracks(
	a id.Asset, in []assetopt.EmbeddedSubtitle, others []Track, chosen bool, now time.Time,
) ([]Track, error) {
	var out []Track
	for i, e := range assetopt.NamedEmbedded(in) {
		if (in[i].Name != "") != chosen {
			continue
		}
		t := Track{
			ID:             id.Track(id.New()),
			Asset:          a,
			Type:           TextTrack,
			Status:         TrackPreparing,
			TextType:       Subtitles,
			TextSource:     Embedded,
			LanguageCode:   e.LanguageCode,
			Name:           e.Name,
			ClosedCaptions: true,
			Passthrough:    e.Passthrough,
			Channel:        e.LanguageChannel,
			CreatedAt:      now,
		}
		t.Rendition = string(t.ID)
		if err := t.nameAmong(append(slices.Clip(others), out...), chosen); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// WaitsForCaptions lists the tracks that are to be made of the captions in the asset's pictures when it is whole.
func (a *Asset) WaitsForCaptions() []Track {
	if a.LiveStream != "" { // they are read while it is recorded
		return nil
	}
	var out []Track
	for _, t := range a.Tracks {
		if t.Status == TrackPreparing && t.Channel != "" {
			out = append(out, t)
		}
	}
	return out
}

// readCaptions asks for the job that makes tracks of captions, now that the asset is whole.
func (c *Change) readCaptions() {
	if len(c.Asset.WaitsForCaptions()) > 0 {
		c.ask(c.Asset.captionsJob())
	}
}

func (a *Asset) captionsJob() job.Insert {
	return job.New(JobCaptions, string(a.ID), CaptionsArgs{Asset: a.ID, Media: a.Media})
}
