// Package clipping creates an asset from an excerpt of another one. The new asset plays the other one's segments where
// they are stored; only the segments at both ends are re-encoded (package clip). It must never know what kinds of files
// there are, HTTP or SQL. It starts no goroutine.
package clipping

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/media/clip"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/delivered"
	"millrace/internal/media/download"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
)

// patience is how long a clip of a live asset waits for what was asked for to be on record.
const patience, again = 30 * time.Second, time.Second

// Clipper makes clips.
type Clipper struct {
	Assets  asset.Reader
	Store   blob.Store
	Library *ondemand.Library // of stored files, for clips of them
	Encoder *encode.Engine
	Now     func() time.Time
}

// Excerpt is what a clip is to have of its source.
type Excerpt struct {
	source   asset.Asset
	timeline *timeline.Timeline // the source's
	from, to float64            // seconds of it
}

// Find finds the excerpt that an asset is to be made of. Errors: fault.Invalid where there is no such excerpt;
// job.Snooze where it is not on record yet.
func (c *Clipper) Find(ctx context.Context, a asset.Asset, in assetopt.Input) (Excerpt, error) {
	source, err := c.Assets.Find(ctx, a.SourceAsset)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			return Excerpt{}, fault.New(fault.Invalid, "inputs[0].url: the asset to clip has been deleted")
		}
		return Excerpt{}, err
	}
	t, err := mediastore.Timeline(ctx, c.Store, c.Assets, source)
	if err != nil {
		return Excerpt{}, fmt.Errorf("read timeline of %s: %w", source.ID, err)
	}
	from, to := in.ClipRange()
	to, whole := wanted(t, source, a, to)
	if !whole && source.IsLive && c.Now().Sub(a.CreatedAt) < patience {
		return Excerpt{}, job.Snooze(again)
	}
	length := t.Duration().Seconds()
	if from >= length {
		return Excerpt{}, fault.New(fault.Invalid,
			"inputs[0].start_time: must be before the end of the source, which lasts %.3f seconds", length)
	}
	return Excerpt{source: source, timeline: t, from: from, to: math.Min(to, length)}, nil
}

// Make stores the clip's timeline and gives what the asset has then, its tracks with it.
func (c *Clipper) Make(ctx context.Context, a asset.Asset, in assetopt.Input, s Excerpt) (asset.Finished, error) {
	if err := c.alternates(ctx, s.timeline, s.source); err != nil {
		return asset.Finished{}, err
	}
	part, err := c.cut(ctx, a, s.timeline, s.from, s.to)
	if err != nil {
		return asset.Finished{}, err
	}
	f, err := assetfile.WriteIndex(ctx, c.Store, a, part)
	if err != nil {
		return asset.Finished{}, err
	}
	for i := range f.Tracks {
		inherit(&f.Tracks[i], s.source, in)
	}
	texts, err := c.texts(ctx, a, s.source, part.ZeroTime()-s.timeline.ZeroTime(), part.Duration())
	if err != nil {
		return asset.Finished{}, err
	}
	f.Tracks = append(f.Tracks, texts...)
	return f, nil
}

// File is the first part of an excerpt, at most so long, as one MP4 file.
func (c *Clipper) File(ctx context.Context, a asset.Asset, s Excerpt, most time.Duration) (io.Reader, error) {
	part, err := c.cut(ctx, a, s.timeline, s.from, math.Min(s.to, s.from+most.Seconds()))
	if err != nil {
		return nil, err
	}
	var renditions []download.Rendition
	for _, l := range part.Renditions {
		if l.ID == timeline.MainVideo || l.ID == timeline.MainAudio {
			renditions = append(renditions, download.Rendition{
				Kind: l.Kind, Timescale: l.Timescale, First: part.First, Chunks: l.Chunks, Source: c.rendition(l, part),
			})
		}
	}
	f, err := download.Plan(ctx, part.ZeroTime(), renditions)
	if err != nil {
		return nil, fmt.Errorf("plan file of the excerpt: %w", err)
	}
	return f.Reader(ctx), nil
}

// wanted is where the clip ends; without an end that is what had been recorded when it was asked for. whole tells that
// all of it is on record.
func wanted(t *timeline.Timeline, source, clip asset.Asset, to float64) (end float64, whole bool) {
	spans := t.Spans()
	if !math.IsInf(to, 1) {
		return to, to <= spans[len(spans)-1]
	}
	if source.LiveStream == "" {
		return to, true
	}
	for i, m := range t.Marks {
		if i > 0 && m.Start.After(clip.CreatedAt) {
			return spans[i], true
		}
	}
	return to, false
}

// cut makes the clip's timeline; what is made for it is stored as the clip's own.
func (c *Clipper) cut(
	ctx context.Context, a asset.Asset, t *timeline.Timeline, from, to float64,
) (*timeline.Timeline, error) {
	cutter := clip.Cutter{
		Source: func(l *timeline.Rendition) delivered.Source { return c.rendition(l, t) }, Encoder: c.Encoder,
		Put: func(ctx context.Context, key string, data []byte) error {
			return c.Store.Put(ctx, key, bytes.NewReader(data))
		},
	}
	part, err := cutter.Cut(ctx, t, from, to, objectkey.Media(a.Media))
	if errors.Is(err, clip.ErrEmpty) || errors.Is(err, clip.ErrCodec) {
		return nil, fault.Wrap(fault.Invalid, err, "inputs[0]: %s", err)
	}
	return part, err
}

// rendition is a rendition of a recording as viewers get it.
func (c *Clipper) rendition(l *timeline.Rendition, t *timeline.Timeline) delivered.Source {
	return mediastore.Recordings{Blob: c.Store, Library: c.Library}.Rendition(l, t.First)
}

// alternates makes renditions of a source's further audio tracks, which are cut with the others.
func (c *Clipper) alternates(ctx context.Context, t *timeline.Timeline, source asset.Asset) error {
	for _, s := range source.Tracks {
		if s.Type != asset.AudioTrack || s.Status != asset.TrackReady || s.Object == "" {
			continue
		}
		f, err := c.Library.File(ctx, s.Object)
		if err != nil {
			if fault.Is(err, fault.NotFound) { // the track was deleted a moment ago
				continue
			}
			return fmt.Errorf("open audio track %s: %w", s.ID, err)
		}
		i := slices.IndexFunc(f.Tracks, func(x *mp4.Track) bool { return x.Kind == frame.Audio })
		if i < 0 {
			continue
		}
		l := ondemand.Follow(f.Tracks[i], s.Object, s.Rendition, t.Spans(), t.ZeroTime())
		if slices.ContainsFunc(l.Chunks, func(c timeline.Chunk) bool { return !c.Gap }) {
			t.Renditions = append(t.Renditions, l)
		}
	}
	return nil
}
