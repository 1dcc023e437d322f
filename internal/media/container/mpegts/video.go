package mpegts

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
)

// video makes access units of H.264 and HEVC.
type video struct {
	codec codec

	vps, sps, pps []byte
	configured    bool

	dts, interval time.Duration // of the last access unit, and before it
	known         bool
	stamped       time.Duration // DTS of the last access unit that had one of its own
	unstamped     int           // access units since then

	dating dating
	loss

	units [][]byte // of the access unit at hand
}

// addPacket takes the payload of a PES packet: one access unit or, where delimiters say so, several.
func (v *video) addPacket(d *Demuxer, b []byte, t stamps) error {
	v.units = v.units[:0]
	for unit := range nal.AnnexB(b) {
		switch v.codec.unitKind(unit) {
		case delimiter:
			if len(v.units) > 0 {
				if err := v.picture(d, t); err != nil {
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
	return v.picture(d, t)
}

// picture gives out the access unit in v.units and forgets it.
func (v *video) picture(d *Demuxer, t stamps) error {
	defer func() { v.units = v.units[:0] }()
	if !t.known { // section 2.7.5 allows to leave it out
		if !v.known {
			d.stats.Malformed++
			return nil
		}
		t.dts = v.dts + v.interval
		t.pts = t.dts
		v.unstamped++
	} else {
		t = v.date(t)
	}
	key, holed := v.codec.isKey(v.units), v.holed
	if err := v.stepIn(d, t, key); err != nil {
		return err
	}
	if t.known {
		v.measure(t.dts, holed)
	}
	v.dts, v.known = t.dts, true
	v.adjust()
	size := 0
	for _, u := range v.units {
		size += 4 + len(u)
	}
	au := make([]byte, 0, size)
	for _, u := range v.units {
		au = binary.BigEndian.AppendUint32(au, uint32(len(u)))
		au = append(au, u...)
	}
	if err := v.configure(d, key); err != nil {
		return err
	}
	if !v.configured {
		return nil // nobody could decode it
	}
	if v.undecodable(t.dts, key) {
		d.stats.Waiting++
		return nil
	}
	v.order(t.pts, key)
	if h, ok := v.refs.header(slices.Values(v.units)); ok {
		v.refs.follow(h)
	}
	d.stats.Video++
	f := frame.Frame{Kind: frame.Video, DTS: t.dts, PTS: t.pts, Key: key, Data: au, Received: d.when}
	if key {
		v.remember(f)
	}
	return v.give(d, f)
}

// measure takes the interval of access units from their timestamps: those without one lie evenly between. holed: some
// of them may be missing.
func (v *video) measure(dts time.Duration, holed bool) {
	before, n := v.dts, 1
	if v.unstamped > 0 {
		before, n = v.stamped, v.unstamped+1
	}
	step := (dts - before) / time.Duration(n)
	if v.known && step > 0 && step < time.Second && (n == 1 || !holed) {
		v.interval = step
	}
	v.stamped, v.unstamped = dts, 0
}

// configure takes the parameter sets of the access unit. Of several of a kind the first counts, and one that comes
// without the set above it counts before a key frame only: the others are further sets, which decoders find in the
// stream.
func (v *video) configure(d *Demuxer, key bool) error {
	vps, sps, pps := v.vps, v.sps, v.pps
	var seen [setPPS + 1]bool
	for _, u := range v.units {
		k := v.codec.unitKind(u)
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
	if sps == nil || pps == nil || v.codec == codecHEVC && vps == nil || !seen[setSPS] && v.configured && !key {
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
	if v.codec == codecH264 {
		c, err = h264.TrackConfig(sps, pps)
	} else {
		c, err = hevc.TrackConfig(vps, sps, pps)
	}
	if err != nil {
		d.stats.Malformed++
		return nil //nolint:nilerr // counted
	}
	v.vps, v.sps, v.pps, v.configured = vps, sps, pps, true
	v.key, v.pyramid = nil, false
	if v.interval == 0 && c.FrameRate > 0 {
		v.interval = time.Duration(float64(time.Second) / c.FrameRate)
	}
	if v.codec == codecH264 {
		v.refs.sets(sps, pps)
	}
	if err := v.resolveDates(d); err != nil {
		return err
	}
	v.dating.declared = v.codec.reorders(sps)
	return d.configure(c)
}

// keep returns what is kept of a set: a copy, unless it is the one that is kept already.
func keep(old, set []byte) []byte {
	if bytes.Equal(old, set) {
		return old
	}
	return bytes.Clone(set)
}
