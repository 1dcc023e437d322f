package ingest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"millrace/internal/bridge/measure"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/sniff"
	"millrace/internal/media/encode"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/settle"
)

// rewrite cuts a file of another container, or of codecs that not every player plays, into segments while ffmpeg unpacks or encodes it.
// Each is stored as it comes and put on record, so that the asset can be watched from its first segment on. A second run, after a crash,
// goes over it again: what is on record already stays. anew says what of an MP4 can't stay; nil for other containers.
func (w *Worker) rewrite(ctx context.Context, a asset.Asset, in assetopt.Input, path string, kind sniff.Format, anew *errAnew) error {
	format := encode.Format(kind.Demuxer())
	info, err := w.opt.Desk.Probe(ctx, w.opt.Engine, path, format)
	if err != nil {
		return err
	}
	if format == encode.MPEGTS || format == encode.MPEGPS {
		forgetLength(&info)
	}
	if anew == nil { // an MP4 was described by its own index
		if err = w.found(ctx, a, describe(in, kind, info)); err != nil {
			return err
		}
	}
	c, err := w.conformed(ctx, a, info, anew != nil && anew.picture || !format.Timed())
	if err != nil {
		return err
	}
	if anew != nil { // what its index says, beside what ffprobe does
		c.reasons.GOP, c.reasons.Bitrate = anew.reasons.GOP, anew.reasons.Bitrate
		c.reasons.VideoEditList, c.reasons.AudioEditList = anew.reasons.VideoEditList, anew.reasons.AudioEditList
		if anew.sound && c.audio != nil && c.args.Sound == nil {
			c.args.Sound = &encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
		}
	}
	if format == encode.MPEGTS {
		if err = w.oneSound(ctx, &c, path); err != nil {
			return err
		}
	}
	if err = w.tellUnusual(ctx, a, c.reasons); err != nil {
		return err
	}
	if info.Duration > ondemand.MaxDuration+time.Second && c.args.Length == 0 {
		return unusable(ondemand.ErrTooLong)
	}
	c.args.Input, c.args.Format = path, format
	if a.Options.NormalizeAudio && c.audio != nil {
		if err = w.level(ctx, &c); err != nil {
			return err
		}
	}
	if c.copies() {
		if err = w.decodes(ctx, path, format, c.video != nil); err != nil {
			return err
		}
	}
	whole, err := w.segments(ctx, a, &c, info)
	if err != nil {
		return err
	}
	if err = w.tellMissing(ctx, a, &c, whole); err != nil {
		return err
	}
	if err = w.tellCutOff(ctx, a, path, c.says(info), whole.Duration().Seconds()); err != nil {
		return err
	}
	return w.finish(ctx, a, whole)
}

// segments stores the segments of a file while ffmpeg unpacks or encodes it, and puts them on record.
func (w *Worker) segments(ctx context.Context, a asset.Asset, c *conform, info encode.Info) (whole *timeline.Timeline, err error) {
	have, err := w.opt.Assets.Timeline(ctx, a.ID, 0)
	if err != nil {
		return nil, err
	}
	r := &record{w: w, asset: a, have: have, long: info.Duration.Seconds(), state: asset.Ingesting, before: downloaded}
	if c.args.Picture != nil || c.args.Sound != nil {
		r.state, r.before = asset.Transcoding, 0
	}
	if c.args.Length > 0 {
		r.long = min(r.long, c.args.Length.Seconds())
	}
	err = w.opt.Engine.Rewrite(ctx, c.args, func(ctx context.Context, mp4 io.Reader) error {
		as := ondemand.StreamOptions{Prefix: settle.Prefix(a.Media), Hold: w.hold(ctx)}
		if c.args.Picture != nil {
			as.KeyInterval = encode.KeyInterval
		}
		return guarded(func() (err error) { // it has a goroutine of its own
			reader := cmaf.NewReader(mp4, cmaf.ReaderOptions{})
			whole, err = ondemand.Stream(reader, as, func(s ondemand.Sealed) error { return r.add(ctx, s) })
			return err
		})
	})
	if err == nil {
		err = r.flush(ctx)
	}
	if err != nil {
		return nil, refused(err)
	}
	return whole, nil
}

// forgetLength leaves out lengths that no asset may have. Those of MPEG streams are only what lies between its first and its last clock time: where
// recordings with clocks of their own follow each other that can be a day, and how long it lasts is known when it has been read.
func forgetLength(info *encode.Info) {
	if info.Duration <= ondemand.MaxDuration {
		return
	}
	info.Duration = 0
	for i := range info.Tracks {
		info.Tracks[i].Duration = 0
	}
}

// level has the sound made as loud as assets are to be; what is so already stays as it is.
func (w *Worker) level(ctx context.Context, c *conform) error {
	as := encode.Sound{SampleRate: c.audio.SampleRate, Channels: c.audio.Channels}
	s, err := w.opt.Engine.Level(ctx, encode.LoudnessArgs{
		Input: c.args.Input, Format: c.args.Format, Audio: c.args.Audio, Length: c.args.Length, Sound: as,
	}, asset.Loudness)
	if err == nil && (c.args.Sound != nil || s != as) {
		c.args.Sound = &s
	}
	return err
}

// refused marks what is the file's fault.
func refused(err error) error {
	if fault.KindOf(err) != fault.Internal {
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
	lanes := measure.Lanes(&r.timeline)
	facts := measure.Facts(r.asset, lanes, done)
	g := asset.Growth{Entries: r.rows, Facts: &facts, Tracks: measure.Tracks(lanes, done)}
	if r.long > 0 {
		g.Progress = &asset.Progress{State: r.state, Percent: float64(int(min(r.before+(100-r.before)*done/r.long, 99)))}
	}
	err := r.w.opt.Assets.Grow(ctx, r.asset.ID, g, now)
	if err != nil && fault.KindOf(err) == fault.NotFound {
		return errGone
	}
	if err != nil {
		return fmt.Errorf("record segments: %w", err)
	}
	r.rows, r.flushed = nil, now
	return nil
}
