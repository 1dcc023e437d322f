package mpegts

import (
	"encoding/binary"
	"slices"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// References that were lost, of H.264. Pictures name their references by their numbers, and a decoder that has them not
// shows what it likes or, as Chromium's where B-frames are references, ends the playback. So a picture that only
// repeats others is put in for each one, with its number, place and effect: what follows is complete. Of a picture that
// lost its end the header says all of this, and its time is known. Of one that left no trace only its number is, by the
// next one's: it is put between two others, half a picture from the next one, and takes the oldest reference's place,
// as most do. Where that is seldom so (x264's strict pyramid) it is not done. Where it was not so, others are held then
// than the encoder had: up to the next IDR, what pictures say of references that are not held is taken out of their
// headers.

// references is what is known of a stream's references; nothing while slices is nil.
type references struct {
	slices *h264.Slices
	held   h264.Held
	num    int  // of the last one
	known  bool // num is
	mended bool // one was put in since the last IDR, of which nothing was known
	choosy int  // of the last pictures that were neither B nor IDR, how many more said which others remain than did not
}

// maxMissing is how many references in a row are stood in for: with more, less of the picture is left than is worth it.
const maxMissing = 4

// tooChoosy is from when on pictures are taken to say, as a rule, which references remain.
const tooChoosy = 4

// sets takes the parameter sets; of streams that can't be repaired nothing is known.
func (r *references) sets(sps, pps []byte) {
	x, err := h264.NewSlices(sps, pps)
	if err != nil || x.Gaps() {
		x = nil
	}
	*r = references{slices: x}
}

// header reads the first slice of an access unit, which may have lost its end.
func (r *references) header(units func(func([]byte) bool)) (h h264.Slice, ok bool) {
	if r.slices == nil {
		return h, false
	}
	for u := range units {
		if t := h264.Type(u); t >= h264.TypeNonIDR && t <= h264.TypeIDR {
			read, err := r.slices.Read(u)
			return read, err == nil && read.First
		}
	}
	return h, false
}

// follow notes the number of a picture that is given out.
func (r *references) follow(h h264.Slice) {
	r.held.Follow(r.slices, h)
	r.mended = r.mended && !h.IDR && !h.Restarts
	switch {
	case h.IDR || h.Restarts:
		r.num, r.known = 0, true
	case h.Reference:
		r.num, r.known = h.FrameNum, true
	default:
		return
	}
	switch {
	case h.B || h.IDR:
	case h.Adaptive:
		r.choosy = min(r.choosy+1, 2*tooChoosy)
	default:
		r.choosy = max(r.choosy-1, 0)
	}
}

// missing is how many references are missing before a picture.
func (r *references) missing(h h264.Slice) int {
	if !r.known || h.IDR {
		return 0
	}
	n := r.slices.FrameNums()
	return (h.FrameNum - r.num - 1 + 2*n) % n
}

// mend puts in what is missing before the picture that a header is of. false: it could not.
func (v *video) mend(d *Demuxer, h h264.Slice, t stamps) (bool, error) {
	n := v.refs.missing(h)
	if n == 0 {
		return true, nil
	}
	if n > maxMissing || t.dts <= v.dts || v.refs.choosy >= tooChoosy { // what was lost would have chosen, too
		return false, nil
	}
	units, err := v.refs.slices.Missing(h, n)
	if err != nil {
		return false, nil //nolint:nilerr // it is no failure: there is another way
	}
	step := v.interval
	if step <= 0 || v.dts+time.Duration(n)*step >= t.dts {
		step = (t.dts - v.dts) / time.Duration(n+1)
	}
	away := -step / time.Duration(2*n)
	if h.B {
		away = -away
	}
	for i, u := range units {
		pts := max(t.pts+away*time.Duration(2*(n-i)-1), v.dts+step)
		if !h.B && t.pts == t.dts { // there are no B pictures: each is shown when it is decoded
			pts = v.dts + step
		}
		if err := v.repeat(d, u, stamps{dts: v.dts + step, pts: pts}); err != nil {
			return false, err
		}
	}
	v.refs.putIn(h, n)
	return true, nil
}

// putIn notes that n references of which nothing is known were put in before the picture that a header is of.
func (r *references) putIn(h h264.Slice, n int) {
	nums := r.slices.FrameNums()
	for ; n > 0; n-- {
		r.num, r.mended = (h.FrameNum-n+nums)%nums, true
		r.held.Follow(r.slices, h264.Slice{Reference: true, FrameNum: r.num})
	}
}

// adjust writes the slices of the access unit at hand again where they name references that are not there, as others
// were put in.
func (v *video) adjust() {
	if !v.refs.mended || v.waiting {
		return
	}
	h, ok := v.refs.header(slices.Values(v.units))
	if !ok {
		return
	}
	if h, ok = v.refs.held.Possible(v.refs.slices, h); !ok {
		return
	}
	for i, u := range v.units {
		if is, _ := v.codec.isSlice(u); !is {
			continue
		}
		if again, err := v.refs.slices.Mark(u, h); err == nil { // one that can't be read is left to decoders
			v.units[i] = again
		}
	}
}

// patch puts a picture in the place of one that lost its end. done: there is nothing more to do about it.
func (v *video) patch(d *Demuxer, b []byte, t stamps) (done bool, err error) {
	h, ok := v.refs.header(nal.AnnexB(b))
	if !ok || h.IDR || v.waiting || !v.known || t.dts <= v.dts || !v.refs.known {
		return false, nil
	}
	if done, err = v.mend(d, h, t); err != nil || !done {
		return false, err
	}
	if !h.Reference {
		v.dts = t.dts
		return true, nil
	}
	if v.refs.mended {
		h, _ = v.refs.held.Possible(v.refs.slices, h)
	}
	unit, err := v.refs.slices.Repeat(h)
	if err != nil {
		return false, nil //nolint:nilerr // it is no failure: there is another way
	}
	v.refs.follow(h)
	return true, v.repeat(d, unit, t)
}

// repeat gives out a picture of one slice.
func (v *video) repeat(d *Demuxer, unit []byte, t stamps) error {
	v.dts = t.dts
	d.stats.Repeated++
	au := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(unit)), uint32(len(unit)))
	return v.give(d, frame.Frame{
		Kind:     frame.Video,
		DTS:      t.dts,
		PTS:      t.pts,
		Data:     append(au, unit...),
		Received: d.when,
	})
}
