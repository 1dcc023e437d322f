package mpegts

import (
	"bytes"
	"slices"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// What to do about pictures that were lost. One whose own bytes have a hole is dropped, and those behind it are given
// out: a picture that nothing refers to is not missed, and for a reference another picture is put in (repair.go) or
// decoders conceal that it is missing, so that motion goes on. There are two exceptions.
//
// Where B-frames are references too, pictures name their references one by one, and decoders may end the playback at
// one that they have not: where nothing can be put in, pictures are dropped up to one that needs no other.
//
// A key frame: H.264's and HEVC's IDR sets the count of pictures and their order back, and decoders that have not seen
// it put those behind it in the wrong place or drop them; nor can a segment begin there. So the last key frame, which
// has the same parameter sets, is given out again in its place and time: every reference is there, and what follows is
// drawn on an older picture. Where that can't be, pictures are dropped here too; nor is it done more than once before
// half of a key frame's size has come again, so that a few packets don't become a flood.

// loss is what is known about pictures that are missing.
type loss struct {
	holed bool // something is missing, perhaps whole pictures

	refs    references
	pyramid bool          // B-frames are references
	latest  time.Duration // PTS of the references since the last key frame

	key   *frame.Frame  // the last one, with the present parameter sets
	every time.Duration // between the last two
	even  bool          // it was the same before
	stood bool          // key stood in for another one already
	stand int           // the packet at which it did, of Stats.Packets

	waiting bool          // for a picture that refers to no other
	since   time.Duration // DTS of the first one dropped
	counted bool          // since is known
	skip    bool          // HEVC: leading pictures of the CRA that ended the wait refer to what is missing
}

// maxWait is how long pictures are dropped after a key frame was lost for which nothing stands in, when none comes that
// needs no other: an encoder that refreshes by and by never sends one, and its picture heals by itself.
const maxWait = 5 * time.Second

// remember keeps a key frame, which may have to stand in for the next one.
func (v *video) remember(f frame.Frame) {
	if v.key != nil {
		every := f.DTS - v.key.DTS
		v.even = near(every, v.every)
		v.every = every
	}
	v.key, v.stood = &f, false
}

// near reports whether two times are of the same picture.
func near(a, b time.Duration) bool {
	const rounding = 5 * time.Millisecond
	return a-b < rounding && b-a < rounding
}

// damaged takes note of a picture of which b came, with a hole behind it: that tells whether it was a key frame.
func (v *video) damaged(d *Demuxer, b []byte, t stamps) error {
	reset, same := v.resets(b)
	if reset && same && v.key != nil && v.codec.isIDR(v.key.Data) && (!v.known || t.dts > v.dts) && v.affordable(d) {
		return v.standIn(d, t.dts)
	}
	if done, err := v.patch(d, b, t); done || err != nil {
		return err
	}
	if reset || v.pyramid && v.codec.beginsReference(b) {
		v.wait()
	}
	if v.known && t.dts > v.dts { // it is the one that is missing
		v.dts = t.dts
	}
	return nil
}

// order takes note of a picture's place: a reference that is presented before another one that was decoded before it is
// a B-frame.
func (v *video) order(pts time.Duration, key bool) {
	for _, u := range v.units {
		if is, _ := v.codec.isSlice(u); is {
			if !v.codec.isReference(u) {
				return
			}
			break
		}
	}
	if key {
		v.latest = pts
		return
	}
	v.pyramid = v.pyramid || pts < v.latest
	v.latest = max(v.latest, pts)
}

// resets reports whether the access unit that begins so resets the order of pictures, and whether it has the parameter
// sets that are known, as far as it has any. Its last unit is cut off.
func (v *video) resets(b []byte) (reset, same bool) {
	same = true
	set, slice := false, false
	known := func(unit, have []byte) {
		set, same = true, same && bytes.HasPrefix(have, unit)
	}
	for unit := range nal.AnnexB(b) {
		switch v.codec.unitKind(unit) {
		case setVPS:
			known(unit, v.vps)
		case setSPS:
			known(unit, v.sps)
		case setPPS:
			known(unit, v.pps)
		case other:
			is, idr := v.codec.isSlice(unit)
			slice, reset = slice || is, reset || idr
		case delimiter, filler:
		}
	}
	return reset || set && !slice, same // sets come with key frames
}

// affordable reports whether enough has come since the last key frame stood in for another one.
func (v *video) affordable(d *Demuxer) bool {
	return !v.stood || (d.stats.Packets-v.stand)*PacketSize >= len(v.key.Data)/2
}

// standIn gives the last key frame out again, in the place of one that was to be decoded at dts.
func (v *video) standIn(d *Demuxer, dts time.Duration) error {
	f := *v.key
	f.PTS += dts - f.DTS
	f.DTS, f.Received = dts, d.when
	v.every, v.key = dts-v.key.DTS, &f
	v.dts, v.known, v.waiting = dts, true, false
	v.refs.follow(h264.Slice{IDR: true})
	v.stood, v.stand = true, d.stats.Packets
	d.stats.Replaced++
	return v.give(d, f)
}

// stepIn looks, before the picture to be decoded at dts, for a key frame that is missing without a trace: one that was
// due, as regularly as they came, where something was lost. Then for references.
func (v *video) stepIn(d *Demuxer, t stamps, key bool) error {
	if !v.holed {
		return nil
	}
	v.holed = false
	if key {
		return nil
	}
	whole := v.interval <= 0 || t.dts-v.dts >= 3*v.interval/2 // pictures are missing
	stood := false
	if whole && v.key != nil && v.even && v.codec.isIDR(v.key.Data) {
		if due := v.key.DTS + v.every; !near(due, v.dts) && !near(due, t.dts) && due > v.dts && due < t.dts {
			if !v.affordable(d) {
				v.wait()
				return nil
			}
			if err := v.standIn(d, due); err != nil {
				return err
			}
			stood = true
		}
	}
	if h, ok := v.refs.header(slices.Values(v.units)); ok && !v.waiting {
		if mended, err := v.mend(d, h, t); mended || err != nil {
			return err
		}
	}
	if whole && !stood && v.pyramid {
		v.wait()
	}
	return nil
}

// wait has pictures dropped up to one that refers to no other.
func (l *loss) wait() {
	if !l.waiting {
		l.waiting, l.counted = true, false
	}
}

// undecodable reports whether a picture must be dropped because a key frame is missing, and ends the wait at one that
// needs none.
func (v *video) undecodable(dts time.Duration, key bool) bool {
	if !v.waiting {
		if v.skip && v.codec == codecHEVC {
			if t := sliceType(v.units); t == typeRASLN || t == typeRASLR {
				return true
			} else if t > typeRASLR || t < typeRADLN { // leading pictures come before all others
				v.skip = false
			}
		}
		return false
	}
	if !v.counted {
		v.since, v.counted = dts, true
	}
	if !key && !v.codec.hasRecoveryPoint(v.units) && dts-v.since < maxWait && dts >= v.since {
		return true
	}
	v.waiting, v.skip = false, key
	return false
}
