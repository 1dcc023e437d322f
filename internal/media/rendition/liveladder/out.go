package liveladder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/flv"
)

// out is one rung of an encoder. Its methods but read are called with the run's lock.
type out struct {
	x    *encoderRun
	rung Rung
	mark
	pics []pic // that are in no part yet
	last int64 // ticks: presentation of the picture that came last
}

// pic is a picture that came out.
type pic struct {
	rank int // in its segment, by presentation
	key  bool
	data []byte
}

// maxTag bounds a picture that comes out, in bytes.
const maxTag = 32 << 20

// read takes what the encoder gives of the rung. Nothing is published before those that came before are done.
func (o *out) read(ctx context.Context, in io.Reader) error {
	for _, a := range o.x.job.after {
		select {
		case <-a.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for tags := flv.NewReader(in, maxTag); ; {
		tag, err := tags.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read picture: %w", err)
		}
		switch {
		case !tag.Config:
			o.came(tag)
		case o.x.c.opt.Parameters != nil:
			o.x.c.opt.Parameters(o.rung, tag.Data)
		}
	}
}

// came puts a picture where it belongs.
func (o *out) came(tag flv.Tag) {
	x := o.x
	x.mu.Lock()
	defer x.mu.Unlock()
	x.moved, x.gave = x.c.opt.Now(), true
	s, rank := x.match(o, tag.PTS)
	if s == nil {
		return // of no picture that went in, or of a segment that is given up
	}
	o.last = s.shown[rank]
	for s.msn > o.msn { // what is missing of the segments before does not come any more
		o.conclude()
	}
	first := o.parts == 0 && len(o.pics) == 0
	again := len(o.pics) == 0 && o.parts > 0 && len(o.x.job.stood) > 0 // behind what another encoder has made
	switch {
	case o.parts > 0 && o.last <= o.shown:
		return
	case !tag.Key && (first || again && o.stood()):
		o.skip(o.msn+1, "it does not begin with a key frame")
		return
	}
	o.pics = append(o.pics, pic{rank, tag.Key, tag.Data})
	o.advance()
	x.forget()
}

// stood reports whether nothing of the segment was added to what another encoder has made of it.
func (o *out) stood() bool {
	m := o.x.job.stood[o.rung.ID]
	return m.msn == o.msn && m.parts == o.parts
}

// match finds the picture that went in for one that came out.
func (e *encoderRun) match(o *out, pts time.Duration) (*fedSegment, int) {
	scale := int64(e.c.opt.Timescale)
	at := int64(pts/time.Millisecond)*scale/1000 - e.lead() + e.in.base
	near, found, rank := scale/400, (*fedSegment)(nil), 0 // milliseconds, rounded
	for _, s := range e.went {
		if s.msn < o.msn {
			continue
		}
		i, _ := slices.BinarySearch(s.shown, at)
		for _, k := range [...]int{i - 1, i} {
			if k >= 0 && k < len(s.shown) && abs(s.shown[k]-at) < near {
				near, found, rank = abs(s.shown[k]-at), s, k
			}
		}
	}
	return found, rank
}

func abs(v int64) int64 { return max(v, -v) }

// making is the segment that is being made; nil before it has begun.
func (o *out) making() *fedSegment {
	for _, s := range o.x.went {
		if s.msn == o.msn {
			return s
		}
	}
	return nil
}

// advance publishes the parts that are whole, and the segment with the last one.
func (o *out) advance() {
	s := o.making()
	if s == nil {
		return
	}
	for o.parts < len(s.parts) {
		end := s.parts[o.parts].Samples
		if n := len(o.pics); n == 0 || o.pics[n-1].rank < end-1 {
			return
		}
		if !o.publish(s) {
			return
		}
	}
	if s.done {
		o.finish()
	}
}

// conclude ends the segment with what there is of it.
func (o *out) conclude() {
	s, msn := o.making(), o.msn
	for s != nil && o.msn == msn && o.parts < len(s.parts) {
		if !o.publish(s) {
			return
		}
	}
	if o.msn == msn && s != nil && s.done && o.parts > 0 {
		o.finish()
	}
	if o.msn == msn {
		o.skip(msn+1, "pictures are missing")
	}
}

// publish makes a part of the pictures that are in it. One without any ends the segment: it is made again, as a whole.
func (o *out) publish(s *fedSegment) bool {
	end, at := s.parts[o.parts], s.times[0]
	if o.parts > 0 {
		at = s.parts[o.parts-1].Time
	}
	n := 0
	for n < len(o.pics) && o.pics[n].rank < end.Samples {
		n++
	}
	if n == 0 {
		o.skip(o.msn+1, "a part without a picture")
		return false
	}
	samples, begins := make([]cmaf.Sample, n), at
	for i, p := range o.pics[:n] {
		until := end.Time
		if i+1 < n {
			until = s.times[o.pics[i+1].rank]
		}
		long, offset := until-at, s.shown[p.rank]-at
		if long < 0 || long > math.MaxUint32 || offset < 0 || offset > math.MaxInt32 {
			o.skip(o.msn+1, "pictures in no order")
			return false
		}
		samples[i] = cmaf.Sample{Duration: uint32(long), CompositionOffset: int32(offset), Sync: p.key, Data: p.data}
		at = until
	}
	key := samples[0].Sync && !o.x.c.opt.Output.Dependent(o.rung.ID, o.msn, o.parts)
	samples[0].Sync = key
	had := len(o.buf)
	o.buf = cmaf.AppendFragment(o.buf, uint32(o.msn+1), cmaf.TrackID, uint64(begins), samples)
	o.shown = s.shown[o.pics[n-1].rank]
	o.pics = slices.Delete(o.pics, 0, n)
	if !o.x.c.uploads.room(len(o.buf) - had) {
		o.x.c.opt.Logger.Warn("segment of a rung not made live: storage does not keep up", "rendition", o.rung.ID,
			"media_sequence", o.msn)
		o.skip(o.msn+1, "storage does not keep up")
		return false
	}
	if !o.x.c.opt.Output.AppendPart(o.rung.ID, o.msn, o.parts, o.buf, end.Time-begins, key) {
		o.skip(o.msn+1, "too late")
		return false
	}
	o.parts++
	return true
}

// finish publishes the segment.
func (o *out) finish() {
	if o.x.c.opt.Output.Seal(o.rung.ID, o.msn) {
		o.x.c.uploads.put(made{rung: o.rung, msn: o.msn, data: o.buf})
	}
	o.mark, o.pics = mark{msn: o.msn + 1}, nil
}

// skip gives up what is before a segment.
func (o *out) skip(msn int64, why string) {
	if msn <= o.msn {
		return
	}
	o.x.c.opt.Logger.Debug("segment of a rung given up", "rendition", o.rung.ID, "media_sequence", o.msn,
		"end_media_sequence", msn, "reason", why)
	o.mark, o.pics = mark{msn: msn}, nil
	o.x.c.opt.Output.Skip(o.rung.ID, msn)
}

// leave gives up what nobody makes any more.
func (o *out) leave() {
	switch {
	case o.x.next != nil && len(o.x.next.stood) == 0:
		o.skip(o.x.next.from, "another encoder goes on")
	case o.x.next == nil && o.x.to != 0:
		o.skip(o.x.to, "another encoder goes on")
	}
}
