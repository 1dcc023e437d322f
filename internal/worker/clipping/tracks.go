package clipping

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/objectkey"
	"millrace/internal/mediastore"
)

// inherit gives a track of the clip the name and language of the source's, unless the request has its own.
func inherit(t *asset.Track, source asset.Asset, in assetopt.Input) {
	if (in.Name != "" || in.LanguageCode != "") && (t.Type != asset.AudioTrack || t.Primary) {
		return
	}
	for _, s := range source.Tracks {
		if s.Rendition == t.Rendition && s.Type == t.Type {
			t.Name, t.LanguageCode = s.Name, s.LanguageCode
		}
	}
}

// texts copies the source's text tracks, cut to the clip: from is where in the source it begins, in seconds.
func (c *Clipper) texts(
	ctx context.Context, a, source asset.Asset, from float64, long time.Duration,
) ([]asset.Track, error) {
	var out []asset.Track
	taken := map[string]bool{}
	for _, t := range a.Tracks {
		taken[t.Name] = taken[t.Name] || t.Type == asset.TextTrack
	}
	for _, s := range source.Tracks {
		if s.Type != asset.TextTrack || s.Status != asset.TrackReady || s.Object == "" {
			continue
		}
		d, err := mediastore.Document(ctx, c.Store, s.Object)
		if err != nil {
			if fault.Is(err, fault.NotFound) { // the track was deleted a moment ago
				continue
			}
			return nil, fmt.Errorf("copy text track %s: %w", s.ID, err)
		}
		start := time.Duration(math.Round(from * float64(time.Second)))
		if d = d.Trim(start, start+long).Shift(-start); d.Len() == 0 { // nothing is said in the clip
			continue
		}
		key := objectkey.Track(a.Media, s.ID, "vtt")
		if err := c.Store.Put(ctx, key, bytes.NewReader(d.AppendVTT(nil))); err != nil {
			return nil, fmt.Errorf("store text track: %w", err)
		}
		name := s.Name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s (%d)", s.Name, n)
		}
		taken[name] = true
		out = append(out, asset.Track{
			Type:           asset.TextTrack,
			Status:         asset.TrackReady,
			TextType:       s.TextType,
			TextSource:     s.TextSource,
			LanguageCode:   s.LanguageCode,
			Name:           name,
			ClosedCaptions: s.ClosedCaptions,
			Forced:         s.Forced,
			Channel:        s.Channel,
			Rendition:      string(s.ID),
			Object:         key,
			Duration:       d.End().Seconds(),
		})
	}
	return out, nil
}
