package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/measure"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
)

// rewrite cuts a file of another container, or of codecs that not every player plays, into segments while ffmpeg
// unpacks or encodes it. Each is stored as it comes and put on record, so that the asset can be watched from its first
// segment on. A second run, after a crash, goes over it again: what is on record already stays.
func (w *Worker) rewrite(ctx context.Context, a asset.Asset, p *plan) error {
	if p.copies() {
		kind, n := p.leading()
		if err := w.inspector.decodes(ctx, p.args.Input, p.args.Format, kind, n); err != nil {
			return err
		}
	}
	whole, leftOut, err := w.segments(ctx, a, p)
	if err != nil {
		return err
	}
	if err = w.report.leftOut(ctx, a, leftOut); err != nil {
		return err
	}
	if err = w.report.missing(ctx, a, &p.conform, whole); err != nil {
		return err
	}
	if err = w.report.cutOff(ctx, a, p.args.Input, p.says(p.info), whole.Duration().Seconds()); err != nil {
		return err
	}
	texts, err := w.embedded(ctx, a, p.args.Input, p.args.Format, p.info.Tracks)
	if err != nil {
		return err
	}
	return w.finish(ctx, a, whole, texts...)
}

// segments stores the segments of a file while ffmpeg unpacks or encodes it, and puts them on record. leftOut is how
// many pictures could not be used.
func (w *Worker) segments(
	ctx context.Context, a asset.Asset, p *plan,
) (whole *timeline.Timeline, leftOut int, err error) {
	have, err := w.opt.Assets.Timeline(ctx, a.ID, 0)
	if err != nil {
		return nil, 0, err
	}
	r := &record{
		w:      w,
		asset:  a,
		have:   have,
		long:   p.info.Duration.Seconds(),
		state:  asset.Ingesting,
		before: downloaded,
	}
	if p.action == toEncode {
		r.state, r.before = asset.Transcoding, 0
	}
	if p.args.Length > 0 {
		r.long = min(r.long, p.args.Length.Seconds())
	}
	err = w.opt.Engine.Rewrite(ctx, p.args, func(ctx context.Context, mp4 io.Reader) error {
		as := ondemand.StreamOptions{
			Prefix: objectkey.Media(a.Media), Freeze: freeze(ctx, w.opt.Engine), LeftOut: func(n int) { leftOut = n },
		}
		if p.args.Picture != nil {
			as.KeyInterval = encode.KeyInterval
		}
		return fault.Guard(func() (err error) { // it has a goroutine of its own
			reader := cmaf.NewReader(mp4, cmaf.ReaderOptions{})
			whole, err = ondemand.Stream(reader, as, func(s ondemand.Sealed) error { return r.add(ctx, s) })
			return err
		})
	})
	if err == nil {
		err = r.flush(ctx)
	}
	if err != nil {
		return nil, 0, refused(err)
	}
	return whole, leftOut, nil
}

// refused marks what is the file's fault.
func refused(err error) error {
	if !fault.Is(err, fault.Internal) {
		return err
	}
	return unusable(err)
}

// record puts segments into the store and on the asset's record.
type record struct {
	w     *Worker
	asset asset.Asset
	have  []asset.TimelineEntry // by an earlier run
	long  float64               // seconds of the whole, as the file says; 0: unknown

	state  string  // of the progress,
	before float64 // of which so many percent were done before

	next     int64 // sequence of the next row
	rows     []asset.TimelineEntry
	timeline timeline.Timeline
	flushed  time.Time
}

// often is how long segments may wait to be put on record together.
const often = 300 * time.Millisecond

// add stores a segment. One that an earlier run has put on record is stored already.
func (r *record) add(ctx context.Context, s ondemand.Sealed) error {
	known := true
	for _, e := range s.Entries {
		if err := r.timeline.Apply(e); err != nil {
			return err
		}
		row := asset.TimelineEntry{Sequence: r.next, Data: timeline.Encode(e)}
		known = known && r.next < int64(len(r.have)) && bytes.Equal(r.have[r.next].Data, row.Data)
		r.next++
		r.rows = append(r.rows, row)
	}
	if known {
		r.rows = r.rows[:len(r.rows)-len(s.Entries)]
		return nil
	}
	for _, o := range s.Objects {
		if err := r.w.opt.Store.Put(ctx, o.Key, bytes.NewReader(o.Data)); err != nil {
			return fmt.Errorf("store segment: %w", err)
		}
	}
	if r.w.opt.Now().Sub(r.flushed) < often {
		return nil
	}
	return r.flush(ctx)
}

// flush puts what is stored on record: from now on it can be watched.
func (r *record) flush(ctx context.Context) error {
	if len(r.rows) == 0 {
		return nil
	}
	now, done := r.w.opt.Now(), r.timeline.Duration().Seconds()
	renditions := measure.Renditions(&r.timeline)
	facts := measure.Facts(r.asset, renditions, done)
	g := asset.Growth{Entries: r.rows, Facts: &facts, Tracks: measure.Tracks(renditions, done)}
	if r.long > 0 {
		g.Progress = &asset.Progress{
			State:   r.state,
			Percent: float64(int(min(r.before+(100-r.before)*done/r.long, 99))),
		}
	}
	err := r.w.opt.Assets.Grow(ctx, r.asset.ID, g, now)
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("record segments: %w", err)
	}
	r.rows, r.flushed = nil, now
	return nil
}
