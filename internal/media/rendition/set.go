// Package rendition offers the lower renditions of a video, which are encoded from its source. A Set lists them as
// variants of a multivariant playlist and returns their init segments, segments and parts; a Live set follows the live
// edge of a broadcast, a Recorded set reads a recording. Package ladder decides which renditions there are; liveladder
// encodes them while the stream is live, justintime on the first request. It must never know HTTP, resources, or who
// watches. It starts no goroutine.
package rendition

import (
	"context"
	"math"
	"slices"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/ladder"
	"millrace/internal/media/timeline"
)

// Set is the renditions that are made of one video.
type Set interface {
	// Variants are the renditions as playlists list them, each with what all variants share: codecs and bits per second
	// of the sound, groups.
	Variants(shared hls.Variant) Offer
	// Withholds reports whether the video itself is never sent: its first picture already was larger than the tier of
	// its asset allows, and renditions stand in for it. Where a later one is, the video was offered, and stays.
	Withholds() bool
	// Want reports whether a rendition is one of the set, and notes that somebody watches it.
	Want(rendition string) bool
	// Chunk is an init segment, a segment or a part of one of the renditions; what is not there yet is waited for or
	// made. The caller closes it. Errors are faults.
	Chunk(ctx context.Context, rendition string, r hls.Resource) (delivered.Body, error)
}

// Offer is what a video is offered in.
type Offer struct {
	Below []hls.Variant // renditions that are listed, largest first
	// Spare are renditions that take hardly less than the video, largest first: they are listed for who may not have
	// what is larger.
	Spare  []hls.Variant
	Source bool // the video itself is listed too
}

// None is the set without any.
type None struct{}

// Variants implements Set.
func (None) Variants(hls.Variant) Offer { return Offer{Source: true} }

// Withholds implements Set.
func (None) Withholds() bool { return false }

// Want implements Set.
func (None) Want(string) bool { return false }

// Chunk implements Set.
func (None) Chunk(context.Context, string, hls.Resource) (delivered.Body, error) {
	return delivered.Body{}, missing()
}

// Limits are what an asset's settings say of its renditions.
type Limits struct {
	Quality       string // video_quality: basic, plus or premium
	MaxResolution string // max_resolution_tier: 1080p, 1440p or 2160p
}

func (l Limits) quality() ladder.Quality { return ladder.Quality(l.Quality) }

// tier is the most pixels of the shorter side that are offered.
func (l Limits) tier() int { return ladder.Tier(l.MaxResolution) }

func missing() error { return fault.New(fault.NotFound, "there is no such rendition, segment or part") }

// variant is how a rendition is listed whose segments are so many seconds long.
func variant(shared hls.Variant, r ladder.Rung, name string, segment float64) hls.Variant {
	v := shared
	v.Bandwidth += int64(math.Ceil(r.Peak(segment)))
	v.AverageBandwidth += int64(math.Ceil(r.Average()))
	v.Width, v.Height, v.FrameRate = r.Width, r.Height, r.FrameRate
	v.Codecs = append([]string{r.Codec()}, shared.Codecs...)
	v.URI = hls.PlaylistURI(name)
	return v
}

// sources are the pictures that a recording has had. shown reports whether players get them as they come.
func sources(inits []timeline.Init, tier int) (all []ladder.Source, shown bool) {
	shown = true
	for _, in := range inits {
		s := sourceOf(in)
		all, shown = append(all, s), shown && s.Within(tier)
	}
	return all, shown
}

func sourceOf(in timeline.Init) ladder.Source {
	return ladder.Source{
		Width: in.Width, Height: in.Height, FrameRate: in.FrameRate, Range: in.Range, Foreign: !IsH264(in.Codec),
	}
}

// Pictures are the renditions of a video that has had some parameters, itself among them, and of those that are made of
// it: all that viewers may have by any address.
func Pictures(inits []timeline.Init, below Set) []hls.Picture {
	var all []hls.Picture
	offer := below.Variants(hls.Variant{})
	if !below.Withholds() {
		p := hls.Picture{Rendition: timeline.MainVideo, Offered: offer.Source}
		for _, in := range inits {
			p.Short, p.Codecs = max(p.Short, min(in.Width, in.Height)), append(p.Codecs, in.Codec)
		}
		all = append(all, p)
	}
	for _, v := range slices.Concat(offer.Below, offer.Spare) {
		p := hls.Picture{Rendition: hls.RenditionOf(v.URI), Short: v.Short(), Codecs: v.Codecs, Offered: true}
		all = append(all, p)
	}
	return all
}

// Largest is what renditions of a video are made of, at its largest.
func Largest(video *timeline.Rendition) ladder.Source {
	src := ladder.Source{}
	for _, in := range video.Inits {
		if in.Width*in.Height > src.Width*src.Height {
			src.Width, src.Height, src.Range = in.Width, in.Height, in.Range
		}
		src.FrameRate = max(src.FrameRate, in.FrameRate)
	}
	return src
}

// IsH264 reports whether an RFC 6381 name is of H.264.
func IsH264(codec string) bool { return len(codec) > 4 && (codec[:4] == "avc1" || codec[:4] == "avc3") }

// store is where renditions are stored, and who makes what is not there.
type store struct {
	maker   *justintime.Maker
	objects delivered.Objects
}

// open is an init segment or a segment of a rendition. What is not stored yet is made by produce.
func (s store) open(ctx context.Context, key string, forget func(), produce func() error) (delivered.Body, error) {
	b, err := s.objects.Open(ctx, key, 0, -1)
	if fault.Is(err, fault.NotFound) {
		forget()
		if err = produce(); err == nil {
			b, err = s.objects.Open(ctx, key, 0, -1)
		}
	}
	return b, err
}

// init is an init segment.
func (s store) init(ctx context.Context, w *justintime.Work) (delivered.Body, error) {
	return s.open(ctx, w.InitKey(), func() {}, func() error { return s.maker.Init(ctx, w) })
}

// segment is a segment that a viewer waits for.
func (s store) segment(ctx context.Context, w *justintime.Work, msn int64) (delivered.Body, error) {
	return s.open(ctx, w.SegmentKey(msn), func() { s.maker.Forget(w, msn) },
		func() error { return s.maker.Segment(ctx, w, msn) })
}

// background is a segment that no viewer waits for.
func (s store) background(ctx context.Context, w *justintime.Work, msn int64) (delivered.Body, error) {
	return s.open(ctx, w.SegmentKey(msn), func() { s.maker.Forget(w, msn) }, func() error {
		_, err := s.maker.Fill(ctx, w, msn)
		return err
	})
}
