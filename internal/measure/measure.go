// Package measure describes media in the control plane's terms: it derives the facts and tracks of an asset from its
// renditions. Pure values; it must never know where they come from.
package measure

import (
	"math"

	"millrace/internal/control/asset"
	"millrace/internal/media/frame"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
)

// Rendition is one rendition with every init segment that it has used.
type Rendition struct {
	ID      string
	Kind    frame.Kind
	Inits   []timeline.Init
	Seconds float64 // up to its last media; 0: as long as the whole
}

// Renditions returns the renditions of a timeline.
func Renditions(t *timeline.Timeline) []Rendition {
	out := make([]Rendition, len(t.Renditions))
	for i, l := range t.Renditions {
		out[i] = Rendition{ID: l.ID, Kind: l.Kind, Inits: l.Inits, Seconds: length(l)}
	}
	return out
}

// length is how far a rendition's media reach; gaps at its end do not count.
func length(l *timeline.Rendition) float64 {
	n := len(l.Chunks)
	for n > 0 && l.Chunks[n-1].Gap {
		n--
	}
	var ticks int64
	for _, c := range l.Chunks[:n] {
		ticks += c.Duration
	}
	return float64(ticks) / float64(l.Timescale)
}

// Facts is what a shows of renditions that last so many seconds.
func Facts(a asset.Asset, renditions []Rendition, seconds float64) asset.Facts {
	f := asset.Facts{Duration: Seconds(seconds)}
	for _, l := range renditions {
		switch l.Kind {
		case frame.Video:
			f.HasVideo = true
			f.Width, f.Height, f.FrameRate = largest(l.Inits)
			f.Offered = offered(a, f)
		case frame.Audio:
			f.HasAudio = true
			f.Channels = max(f.Channels, channels(l.Inits))
		case frame.Text:
		}
	}
	return f
}

// offered is the size of the ladder's top where what is stored is larger than the asset's tier; zero where it is
// offered as it is.
func offered(a asset.Asset, f asset.Facts) asset.Size {
	tier := ladder.Tier(a.Options.MaxResolution)
	src := ladder.Source{Width: f.Width, Height: f.Height, FrameRate: f.FrameRate}
	if src.Short() <= 0 || src.Within(tier) {
		return asset.Size{}
	}
	if rungs := ladder.Below(src, ladder.Quality(a.Quality()), tier); len(rungs) > 0 {
		return asset.Size{Width: rungs[0].Width, Height: rungs[0].Height}
	}
	return asset.Size{}
}

// Tracks is the renditions as ready tracks.
func Tracks(renditions []Rendition, seconds float64) []asset.Track {
	var out []asset.Track
	for _, l := range renditions {
		t := asset.Track{Rendition: l.ID, Status: asset.TrackReady, Duration: Seconds(seconds)}
		if l.Seconds > 0 {
			t.Duration = Seconds(l.Seconds)
		}
		switch l.Kind {
		case frame.Video:
			t.Type = asset.VideoTrack
			t.MaxWidth, t.MaxHeight, t.MaxFrameRate = largest(l.Inits)
		case frame.Audio:
			t.Type, t.Primary, t.MaxChannels = asset.AudioTrack, l.ID == timeline.MainAudio, channels(l.Inits)
		case frame.Text:
			continue
		}
		out = append(out, t)
	}
	return out
}

// Seconds rounds to the microsecond.
func Seconds(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// largest is the biggest picture and the highest frame rate; -1 when no rate is known.
func largest(inits []timeline.Init) (width, height int, rate float64) {
	rate = -1
	for _, in := range inits {
		if in.Width*in.Height > width*height {
			width, height = in.Width, in.Height
		}
		if in.FrameRate > 0 {
			rate = max(rate, math.Round(in.FrameRate*1000)/1000)
		}
	}
	return width, height, rate
}

func channels(inits []timeline.Init) int {
	n := 0
	for _, in := range inits {
		n = max(n, in.Channels)
	}
	return n
}
