package ingest

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
	"millrace/internal/media/captions"
	"millrace/internal/media/clip"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/settle"
)

// patience is how long a clip of a live asset waits for what was asked for to be on record.
const patience, again = 30 * time.Second, time.Second

// clip makes an asset that plays a stretch of another one's segments where they are, with its tracks.
func (w *Worker) clip(ctx context.Context, a asset.Asset, in assetopt.Input) error {
	if err := w.found(ctx, a, asset.InputInfo{Settings: in}); err != nil {
		return err
	}
	source, err := w.opt.Assets.Find(ctx, a.SourceAsset)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.Invalid, "inputs[0].url: the asset to clip has been deleted")
		}
		return err
	}
	t, err := settle.Timeline(ctx, w.opt.Store, w.opt.Assets, source)
	if err != nil {
		return fmt.Errorf("read timeline of %s: %w", source.ID, err)
	}
	from, to := in.ClipRange()
	to, whole := wanted(t, source, a, to)
	if !whole && source.IsLive && w.opt.Now().Sub(a.CreatedAt) < patience {
		return job.Snooze(again)
	}
	length := t.Duration().Seconds()
	if from >= length {
		return fault.New(fault.Invalid, "inputs[0].start_time: must be before the end of the source, which lasts %.3f seconds", length)
	}
	if a.Options.Test {
		return w.testClip(ctx, a, in, t, from, math.Min(to, length))
	}
	if err = w.alternates(ctx, t, source); err != nil {
		return err
	}
	part, err := w.cut(ctx, a, t, from, math.Min(to, length))
	if err != nil {
		return err
	}
	f, err := settle.Write(ctx, w.opt.Store, a, part)
	if err != nil {
		return err
	}
	for i := range f.Tracks {
		inherit(&f.Tracks[i], source, in)
	}
	texts, err := w.texts(ctx, a, source, part.ZeroTime()-t.ZeroTime(), part.Duration())
	if err != nil {
		return err
	}
	f.Tracks = append(f.Tracks, texts...)
	err = w.opt.Assets.Finish(ctx, a.ID, f, w.opt.Now())
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return errGone
	}
	return err
}

// wanted is where the clip ends; without an end that is what had been recorded when it was asked for. whole tells that all of it is on
// record.
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
func (w *Worker) cut(ctx context.Context, a asset.Asset, t *timeline.Timeline, from, to float64) (*timeline.Timeline, error) {
	c := clip.Cutter{
		Source: delivered{w, t}, Encoder: w.opt.Engine,
		Put: func(ctx context.Context, key string, data []byte) error {
			return w.opt.Store.Put(ctx, key, bytes.NewReader(data))
		},
	}
	part, err := c.Cut(ctx, t, from, to, settle.Prefix(a.Media))
	if errors.Is(err, clip.ErrEmpty) || errors.Is(err, clip.ErrCodec) {
		return nil, fault.Wrap(fault.Invalid, err, "inputs[0]: %s", err)
	}
	return part, err
}

// delivered is a recording's media as viewers get it; it implements clip.Source.
type delivered struct {
	w *Worker
	t *timeline.Timeline
}

// Init implements clip.Source.
func (d delivered) Init(ctx context.Context, l *timeline.Lane, n int) ([]byte, error) {
	if in := l.Inits[n]; in.Object != "" {
		return d.w.whole(ctx, in.Object)
	}
	return d.w.opt.Library.Init(ctx, *l.Source)
}

// Segment implements clip.Source.
func (d delivered) Segment(ctx context.Context, l *timeline.Lane, msn int64) ([]byte, error) {
	c := l.Chunks[msn-d.t.First]
	if c.Object != "" {
		data, err := d.w.whole(ctx, c.Object)
		if err == nil && l.Inits[c.Init].Still {
			data, err = ondemand.Still(data, msn, c)
		}
		return data, err
	}
	return d.w.opt.Library.Chunk(ctx, *l.Source, msn, c)
}

// longest is the largest segment there is, in bytes.
const longest = 256 << 20

// whole reads an object.
func (w *Worker) whole(ctx context.Context, key string) ([]byte, error) {
	r, err := w.opt.Store.Get(ctx, key, 0, -1)
	if err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	defer func() { _ = r.Close() }() // it was only read
	if r.Size > longest {
		return nil, fault.New(fault.Internal, "a segment has %d bytes", r.Size)
	}
	data := make([]byte, r.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("read media: %w", err)
	}
	return data, nil
}

// alternates makes renditions of a source's further audio tracks, which are cut with the others.
func (w *Worker) alternates(ctx context.Context, t *timeline.Timeline, source asset.Asset) error {
	for _, s := range source.Tracks {
		if s.Type != asset.AudioTrack || s.Status != asset.TrackReady || s.Object == "" {
			continue
		}
		f, err := w.opt.Library.File(ctx, s.Object)
		if err != nil {
			if fault.KindOf(err) == fault.NotFound { // the track was deleted a moment ago
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
			t.Lanes = append(t.Lanes, l)
		}
	}
	return nil
}

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
func (w *Worker) texts(ctx context.Context, a, source asset.Asset, from float64, long time.Duration) ([]asset.Track, error) {
	var out []asset.Track
	taken := map[string]bool{}
	for _, t := range a.Tracks {
		taken[t.Name] = taken[t.Name] || t.Type == asset.TextTrack
	}
	for _, s := range source.Tracks {
		if s.Type != asset.TextTrack || s.Status != asset.TrackReady || s.Object == "" {
			continue
		}
		d, err := w.document(ctx, s.Object)
		if err != nil {
			if fault.KindOf(err) == fault.NotFound { // the track was deleted a moment ago
				continue
			}
			return nil, fmt.Errorf("copy text track %s: %w", s.ID, err)
		}
		start := time.Duration(math.Round(from * float64(time.Second)))
		if d = d.Trim(start, start+long).Shift(-start); d.Len() == 0 { // nothing is said in the clip
			continue
		}
		key := settle.TracksPrefix(a.Media) + string(s.ID) + ".vtt"
		if err := w.opt.Store.Put(ctx, key, bytes.NewReader(d.AppendVTT(nil))); err != nil {
			return nil, fmt.Errorf("store text track: %w", err)
		}
		name := s.Name
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s (%d)", s.Name, n)
		}
		taken[name] = true
		out = append(out, asset.Track{
			Type: asset.TextTrack, Status: asset.TrackReady, TextType: s.TextType, TextSource: s.TextSource, LanguageCode: s.LanguageCode,
			Name: name, ClosedCaptions: s.ClosedCaptions, Rendition: string(s.ID), Object: key, Duration: d.End().Seconds(),
		})
	}
	return out, nil
}

func (w *Worker) document(ctx context.Context, key string) (captions.Document, error) {
	r, err := w.opt.Store.Get(ctx, key, 0, -1)
	if err != nil {
		return captions.Document{}, err
	}
	defer func() { _ = r.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(r, 2*captions.MaxInput))
	if err != nil {
		return captions.Document{}, fmt.Errorf("read text track: %w", err)
	}
	return captions.Parse(data)
}
