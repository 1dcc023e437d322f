package cenc

import (
	"encoding/binary"

	"millrace/internal/media/container/bmff"
)

// maxSubsamples is how many a sample may have under a scheme: the size of what is said of it must fit one byte in saiz
// (ISO/IEC 14496-12 section 8.7.8), and under cbcs the IV is not said of samples.
func maxSubsamples(s Scheme) int {
	if s == CTR {
		return (255 - ivSize - 2) / 6
	}
	return (255 - 2) / 6
}

// sampleInfo is what decrypters are told of the samples of a fragment, sections 7.1 and 7.2: boxes for the end of a
// traf box.
type sampleInfo struct {
	sizes  []byte // for saiz, one for each sample
	data   []byte // senc, without the box
	flags  uint32
	groups []byte // sgpd and sbgp, where the key is not that of the init segment
}

// info describes the samples of a fragment.
func (t *Track) info(f *fragment) sampleInfo {
	counts, subs := f.counts, f.subs
	x := sampleInfo{sizes: make([]byte, 0, len(counts)), data: make([]byte, 0, len(counts)*(ivSize+2)+6*len(subs))}
	be := binary.BigEndian
	if t.grouped {
		x.groups = t.groups(len(counts))
	}
	if t.units != nil {
		x.flags = 2 // UseSubSampleEncryption
	}
	for i, n := range counts {
		had := len(x.data)
		if t.scheme == CTR {
			x.data = append(x.data, f.ivs[i][:]...)
		}
		if t.units != nil {
			x.data = be.AppendUint16(x.data, uint16(n))
			for _, s := range subs[:n] {
				x.data = be.AppendUint32(be.AppendUint16(x.data, uint16(s.clear)), uint32(s.protected))
			}
			subs = subs[n:]
		}
		x.sizes = append(x.sizes, byte(len(x.data)-had))
	}
	return x
}

// Sizes of the boxes in front of what they hold.
const fullBox, saizHead, saioBox, sencHead = 12, fullBox + 5, fullBox + 8, fullBox + 4

// growth is how many bytes a fragment grows by.
func (s *sampleInfo) growth() int {
	return len(s.groups) + saizHead + len(s.sizes) + saioBox + sencHead + len(s.data)
}

// append appends the boxes; base is how far b is from the beginning of the moof box.
func (s *sampleInfo) append(b []byte, base int) []byte {
	be := binary.BigEndian
	head := func(size int, typ string, flags uint32) {
		b = append(be.AppendUint32(b, uint32(size)), typ...)
		b = be.AppendUint32(b, flags)
	}
	b = append(b, s.groups...)
	head(saizHead+len(s.sizes), "saiz", 0)
	b = be.AppendUint32(append(b, 0), uint32(len(s.sizes)))
	b = append(b, s.sizes...)
	head(saioBox, "saio", 0)
	b = be.AppendUint32(b, 1)
	b = be.AppendUint32(b, uint32(base+len(s.groups)+saizHead+len(s.sizes)+saioBox+sencHead))
	head(sencHead+len(s.data), "senc", s.flags)
	b = be.AppendUint32(b, uint32(len(s.sizes)))
	return append(b, s.data...)
}

// withInfo appends a moof box whose traf box ends with what decrypters are told.
func withInfo(out, moof []byte, info sampleInfo) ([]byte, error) {
	grown, start := info.growth(), len(out)
	be := binary.BigEndian
	out = append(be.AppendUint32(out, uint32(len(moof)+grown)), "moof"...)
	err := bmff.Walk(moof[8:], func(b bmff.Box) error {
		if !b.Type.Is("traf") {
			out = append(out, b.Raw...)
			return nil
		}
		if len(b.Raw)-len(b.Body) != 8 {
			return bmff.Malformed("a traf box with a long header")
		}
		out = append(be.AppendUint32(out, uint32(len(b.Raw)+grown)), "traf"...)
		err := bmff.Walk(b.Body, func(c bmff.Box) error {
			out = append(out, c.Raw...)
			if c.Type.Is("trun") {
				return move(out[len(out)-len(c.Body):], grown)
			}
			return nil
		})
		out = info.append(out, len(out)-start)
		return err
	})
	if err == nil && len(out)-start != len(moof)+grown {
		err = bmff.Malformed("a movie fragment with bytes that are no box")
	}
	return out, err
}

// move has the data of a run begin so many bytes later.
func move(trun []byte, by int) error {
	const dataOffset, at = 1, 8
	if len(trun) < at+4 || trun[3]&dataOffset == 0 {
		return bmff.Malformed("a run without a data offset")
	}
	v := int64(int32(binary.BigEndian.Uint32(trun[at:]))) + int64(by)
	binary.BigEndian.PutUint32(trun[at:], uint32(v))
	return nil
}
