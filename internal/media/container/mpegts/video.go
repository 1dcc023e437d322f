package mpegts

import (
	"bytes"
	"encoding/binary"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// maxWait is how long pictures are dropped after a loss when none comes that needs no other: an encoder that refreshes by and by never
// sends one, and its picture heals by itself.
const maxWait = 5 * time.Second

// video makes access units of H.264 and HEVC.
type video struct {
	vps, sps, pps []byte
	configured    bool

	dts, interval time.Duration // of the last access unit, and before it
	known         bool

	waiting bool          // for a picture that refers to no other
	since   time.Duration // DTS of the first one dropped
	counted bool          // since is known
	skip    bool          // HEVC: leading pictures of the CRA that ended the wait refer to what is missing

	units [][]byte // of the access unit at hand
}

// lost tells that a picture is missing: those that refer to it must not be shown.
func (v *video) lost() {
	if v.configured && !v.waiting {
		v.waiting, v.counted = true, false
	}
}

// kindOf sorts the NAL units of both codecs.
type kindOf uint8

const (
	other kindOf = iota
	delimiter
	filler
	setVPS
	setSPS
	setPPS
)

func (s *stream) kindOf(unit []byte) kindOf {
	if s.codec == codecH264 {
		switch h264.Type(unit) {
		case h264.TypeAUD:
			return delimiter
		case h264.TypeFiller:
			return filler
		case h264.TypeSPS:
			return setSPS
		case h264.TypePPS:
			return setPPS
		}
		return other
	}
	switch hevc.Type(unit) {
	case hevc.TypeAUD:
		return delimiter
	case hevc.TypeFiller, -1:
		return filler
	case hevc.TypeVPS:
		return setVPS
	case hevc.TypeSPS:
		return setSPS
	case hevc.TypePPS:
		return setPPS
	}
	return other
}

// takeVideo takes the payload of a PES packet: one access unit or, where delimiters say so, several.
func (s *stream) takeVideo(d *Demuxer, b []byte, t stamps) error {
	v := &s.video
	v.units = v.units[:0]
	for unit := range nal.AnnexB(b) {
		switch s.kindOf(unit) {
		case delimiter:
			if len(v.units) > 0 {
				if err := s.picture(d, t); err != nil {
					return err
				}
				t = stamps{}
			}
		case filler:
		case other, setVPS, setSPS, setPPS:
			v.units = append(v.units, unit)
		}
	}
	if len(v.units) == 0 {
		return nil
	}
	return s.picture(d, t)
}

// picture gives out the access unit in v.units and forgets it.
func (s *stream) picture(d *Demuxer, t stamps) error {
	v := &s.video
	defer func() { v.units = v.units[:0] }()
	if !t.known { // section 2.7.5 allows to leave it out
		if !v.known {
			d.stats.Malformed++
			return nil
		}
		t.dts = v.dts + v.interval
		t.pts = t.dts
	}
	if step := t.dts - v.dts; v.known && step > 0 && step < time.Second {
		v.interval = step
	}
	v.dts, v.known = t.dts, true
	size := 0
	for _, u := range v.units {
		size += 4 + len(u)
	}
	au := make([]byte, 0, size)
	for _, u := range v.units {
		au = binary.BigEndian.AppendUint32(au, uint32(len(u)))
		au = append(au, u...)
	}
	key := s.isKey(au)
	if err := s.configure(d, key); err != nil {
		return err
	}
	if !v.configured {
		return nil // nobody could decode it
	}
	if s.undecodable(t.dts, key) {
		d.stats.Waiting++
		return nil
	}
	d.stats.Video++
	return d.write(frame.Frame{Kind: frame.Video, DTS: t.dts, PTS: t.pts, Key: key, Data: au, Received: d.when})
}

func (s *stream) isKey(au []byte) bool {
	if s.codec == codecH264 {
		return h264.HasIDR(au)
	}
	return hevc.IsKey(au)
}

// configure takes the parameter sets of the access unit. Of several of a kind the first counts, and one that comes without the set above it counts
// before a key frame only: the others are further sets, which decoders find in the stream.
func (s *stream) configure(d *Demuxer, key bool) error {
	v := &s.video
	vps, sps, pps := v.vps, v.sps, v.pps
	var seen [setPPS + 1]bool
	for _, u := range v.units {
		k := s.kindOf(u)
		if seen[k] {
			continue
		}
		seen[k] = true
		switch k {
		case setVPS:
			vps = u
		case setSPS:
			sps = u
		case setPPS:
			pps = u
		case other, delimiter, filler:
		}
	}
	if sps == nil || pps == nil || s.codec == codecHEVC && vps == nil || !seen[setSPS] && v.configured && !key {
		if !v.configured { // they may come one by one
			v.vps, v.sps, v.pps = keep(v.vps, vps), keep(v.sps, sps), keep(v.pps, pps)
		}
		return nil
	}
	if v.configured && bytes.Equal(vps, v.vps) && bytes.Equal(sps, v.sps) && bytes.Equal(pps, v.pps) {
		return nil
	}
	vps, sps, pps = bytes.Clone(vps), bytes.Clone(sps), bytes.Clone(pps)
	var c frame.Config
	var err error
	if s.codec == codecH264 {
		c, err = h264.TrackConfig(sps, pps)
	} else {
		c, err = hevc.TrackConfig(vps, sps, pps)
	}
	if err != nil {
		d.stats.Malformed++
		return nil //nolint:nilerr // counted
	}
	v.vps, v.sps, v.pps, v.configured = vps, sps, pps, true
	return d.configure(c)
}

// keep returns what is kept of a set: a copy, unless it is the one that is kept already.
func keep(old, set []byte) []byte {
	if bytes.Equal(old, set) {
		return old
	}
	return bytes.Clone(set)
}

// undecodable tells whether a picture must be dropped because it refers to one that was lost, and ends the wait at one that does not.
func (s *stream) undecodable(dts time.Duration, key bool) bool {
	v := &s.video
	if !v.waiting {
		if v.skip && s.codec == codecHEVC {
			if t := s.slice(); t == typeRASLN || t == typeRASLR {
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
	if !key && !s.recovers() && dts-v.since < maxWait && dts >= v.since {
		return true
	}
	v.waiting, v.skip = false, key
	return false
}

// slice is the type of the first slice of the access unit at hand, HEVC.
func (s *stream) slice() int {
	for _, u := range s.video.units {
		if t := hevc.Type(u); t >= 0 && t < hevc.TypeVPS {
			return t
		}
	}
	return -1
}

// recovers tells whether the access unit at hand has a recovery point, ITU-T H.264 section D.2.8: decoders can begin there.
func (s *stream) recovers() bool {
	for _, u := range s.video.units {
		switch {
		case s.codec == codecH264 && h264.Type(u) == h264.TypeSEI && len(u) > 1 && u[1] == seiRecoveryPoint,
			s.codec == codecHEVC && hevc.Type(u) == hevc.TypeSEI && len(u) > 2 && u[2] == seiRecoveryPoint:
			return true
		}
	}
	return false
}

const seiRecoveryPoint = 6 // payload type; encoders give it a unit of its own

// Leading pictures, ITU-T H.265 table 7-1.
const (
	typeRADLN = 6
	typeRASLN = 8
	typeRASLR = 9
)
