package rendition

import (
	"math"
	"slices"

	"millrace/internal/media/frame"
	"millrace/internal/media/hls"
	"millrace/internal/media/timeline"
)

// Types of renditions (EXT-X-MEDIA), and the groups of them that variants name.
const (
	sound, soundGroup = "AUDIO", "audio"
	text, textGroup   = "SUBTITLES", "subtitles"
)

// Listing gathers what a multivariant playlist lists: a video with what is made of it, and what is played beside it, in
// the order in which it is added. Sound that is alone is a variant itself.
type Listing struct {
	picture hls.Variant // without what all variants share
	shared  hls.Variant
	beside  []hls.Rendition
	sounds  int
}

// Track is the media of a rendition that is listed.
type Track struct {
	ID            string
	Inits         []timeline.Init // that players meet
	Peak, Average float64         // bits per second
}

// Picture adds the video; as says how large it is, how many pictures it has a second, and of their captions.
func (l *Listing) Picture(t Track, as hls.Variant) {
	as.URI, as.Bandwidth, as.AverageBandwidth = hls.PlaylistURI(t.ID), roundUp(t.Peak), roundUp(t.Average)
	addCodecs(&as, t.Inits)
	for _, in := range t.Inits {
		if in.Range != frame.SDR { // high where a player may meet it
			as.Range = string(in.Range)
		}
	}
	l.picture, l.shared.NoCaptions = as, as.NoCaptions
}

// Sound adds sound. A player plays one at a time: variants take what the one takes that takes most.
func (l *Listing) Sound(t Track, as hls.Rendition) {
	as.Type, as.GroupID, as.Autoselect, as.URI = sound, soundGroup, true, hls.PlaylistURI(t.ID)
	addCodecs(&l.shared, t.Inits)
	l.shared.Bandwidth = max(l.shared.Bandwidth, roundUp(t.Peak))
	l.shared.AverageBandwidth = max(l.shared.AverageBandwidth, roundUp(t.Average))
	l.beside, l.sounds = append(l.beside, as), l.sounds+1
}

// Text adds subtitles.
func (l *Listing) Text(id string, as hls.Rendition) {
	as.Type, as.GroupID, as.Autoselect, as.URI = text, textGroup, true, hls.PlaylistURI(id)
	l.shared.Subtitles = textGroup
	l.beside = append(l.beside, as)
}

// Multivariant lists it all, with what is made of the video below it.
func (l *Listing) Multivariant(below Set, independent bool) *hls.Multivariant {
	m, v := &hls.Multivariant{Independent: independent, Renditions: l.beside}, l.picture
	first := slices.IndexFunc(l.beside, func(r hls.Rendition) bool { return r.Type == sound })
	if v.URI == "" && first >= 0 {
		v.URI = l.beside[first].URI
	}
	if l.picture.URI == "" && l.sounds == 1 {
		m.Renditions = slices.Delete(slices.Clone(l.beside), first, first+1)
	} else if l.sounds > 0 {
		l.shared.Audio = soundGroup
	}
	offer := below.Variants(l.shared)
	if offer.Source {
		v.Bandwidth, v.AverageBandwidth = v.Bandwidth+l.shared.Bandwidth, v.AverageBandwidth+l.shared.AverageBandwidth
		v.Codecs = append(v.Codecs, l.shared.Codecs...)
		v.Audio, v.Subtitles = l.shared.Audio, l.shared.Subtitles
		m.Variants = []hls.Variant{v}
	}
	m.Variants, m.Spare = append(m.Variants, offer.Below...), offer.Spare
	return m
}

// addCodecs names every codec that a player of a variant meets, once each: it must be able to play all of them.
func addCodecs(v *hls.Variant, inits []timeline.Init) {
	for _, in := range inits {
		if !slices.Contains(v.Codecs, in.Codec) {
			v.Codecs = append(v.Codecs, in.Codec)
		}
	}
}

func roundUp(bits float64) int64 { return int64(math.Ceil(bits)) }
