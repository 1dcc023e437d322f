// Package cmaf writes and reads CMAF: init segments and movie fragments of one track, ISO 23000-19 on ISO 14496-12.
// Bytes in, values out, an io.Reader at most: it must never know files, sockets, time of day or a logger, and it starts
// no goroutines. The caller's goroutine does the work; values may be shared by readers once made.
package cmaf

import (
	"encoding/binary"

	"millrace/internal/media/container/bmff"
)

// Sample is one access unit in its final form: AVCC with the init segment's length size for H.264, one raw_data_block
// for AAC.
type Sample struct {
	// Duration in ticks of the track's timescale.
	Duration uint32
	// CompositionOffset is PTS-DTS in ticks.
	CompositionOffset int32
	// Sync tells that decoding can begin here: an IDR, any audio frame.
	Sync bool
	Data []byte
	// Size is how many bytes it has, where Data is not at hand.
	Size uint32
}

func (s *Sample) size() int {
	if s.Data == nil {
		return int(s.Size)
	}
	return len(s.Data)
}

// TrackID is the ID of the one track of what this package writes.
const TrackID = 1

// AppendFragment appends moof and mdat of one track to b and returns it. It allocates only to grow b, once. sequence
// counts fragments from 1, baseMediaDecodeTime is the first sample's DTS in ticks. The samples' bytes together must
// stay below 4 GiB.
func AppendFragment(b []byte, sequence, trackID uint32, baseMediaDecodeTime uint64, samples []Sample) []byte {
	l := layoutOf(samples)
	// slices.Grow would allocate twice under the race detector
	if need := len(b) + l.moof + 8 + l.payload; need > cap(b) {
		b = append(make([]byte, 0, need), b...)
	}
	b = l.appendHead(b, sequence, trackID, baseMediaDecodeTime, samples)
	for i := range samples {
		b = append(b, samples[i].Data...)
	}
	return b
}

// AppendFragmentHead appends what AppendFragment does but for the samples' bytes, which are to follow. payload is how
// many those are.
func AppendFragmentHead(
	b []byte, sequence, trackID uint32, baseMediaDecodeTime uint64, samples []Sample,
) (head []byte, payload int64) {
	l := layoutOf(samples)
	if need := len(b) + l.moof + 8; need > cap(b) {
		b = append(make([]byte, 0, need), b...)
	}
	return l.appendHead(b, sequence, trackID, baseMediaDecodeTime, samples), int64(l.payload)
}

func (l *layout) appendHead(b []byte, sequence, trackID uint32, baseMediaDecodeTime uint64, samples []Sample) []byte {
	be := binary.BigEndian
	b = be.AppendUint32(b, uint32(l.moof))
	b = append(b, "moof\x00\x00\x00\x10mfhd\x00\x00\x00\x00"...)
	b = be.AppendUint32(b, sequence)
	b = be.AppendUint32(b, uint32(l.moof-8-16))
	b = append(b, "traf"...)
	b = be.AppendUint32(b, uint32(l.tfhd))
	b = append(b, "tfhd"...)
	b = be.AppendUint32(b, l.tfhdFlags)
	b = be.AppendUint32(b, trackID)
	if l.tfhdFlags&tfhdDuration != 0 {
		b = be.AppendUint32(b, samples[0].Duration)
	}
	if l.tfhdFlags&tfhdFlags != 0 {
		b = be.AppendUint32(b, flagsOf(&samples[0]))
	}
	b = append(b, "\x00\x00\x00\x14tfdt\x01\x00\x00\x00"...)
	b = be.AppendUint64(b, baseMediaDecodeTime)
	b = be.AppendUint32(b, uint32(l.trun))
	b = append(b, "trun"...)
	b = be.AppendUint32(b, 1<<24|l.trunFlags) // version 1: signed composition offsets
	b = be.AppendUint32(b, uint32(len(samples)))
	b = be.AppendUint32(b, uint32(l.moof+8))
	for i := range samples {
		s := &samples[i]
		if l.trunFlags&trunDuration != 0 {
			b = be.AppendUint32(b, s.Duration)
		}
		b = be.AppendUint32(b, uint32(s.size()))
		if l.trunFlags&trunFlags != 0 {
			b = be.AppendUint32(b, flagsOf(s))
		}
		if l.trunFlags&trunComposition != 0 {
			b = be.AppendUint32(b, uint32(s.CompositionOffset))
		}
	}
	b = be.AppendUint32(b, uint32(l.payload+8))
	return append(b, "mdat"...)
}

// Flags of tfhd and trun, ISO 14496-12 sections 8.8.7 and 8.8.8.
const (
	tfhdDuration, tfhdFlags, tfhdBaseIsMoof                               = 0x8, 0x20, 0x20000
	trunOffset, trunDuration, trunSize, trunFlags, trunComposition uint32 = 0x1, 0x100, 0x200, 0x400, 0x800
)

// layout is what is known about a fragment before its first byte: sizes in bytes, and which fields samples share.
type layout struct {
	moof, tfhd, trun, payload int
	tfhdFlags, trunFlags      uint32
}

func layoutOf(samples []Sample) layout {
	l := layout{tfhd: 16, tfhdFlags: tfhdBaseIsMoof, trunFlags: trunOffset | trunSize}
	sameDuration, sameSync, composition := len(samples) > 0, len(samples) > 0, false
	for i := range samples {
		sameDuration = sameDuration && samples[i].Duration == samples[0].Duration
		sameSync = sameSync && samples[i].Sync == samples[0].Sync
		composition = composition || samples[i].CompositionOffset != 0
		l.payload += samples[i].size()
	}
	per := 4
	if sameDuration {
		l.tfhdFlags, l.tfhd = l.tfhdFlags|tfhdDuration, l.tfhd+4
	} else {
		l.trunFlags, per = l.trunFlags|trunDuration, per+4
	}
	if sameSync {
		l.tfhdFlags, l.tfhd = l.tfhdFlags|tfhdFlags, l.tfhd+4
	} else {
		l.trunFlags, per = l.trunFlags|trunFlags, per+4
	}
	if composition {
		l.trunFlags, per = l.trunFlags|trunComposition, per+4
	}
	l.trun = 20 + per*len(samples)
	l.moof = 8 + 16 + 8 + l.tfhd + 20 + l.trun
	return l
}

func flagsOf(s *Sample) uint32 {
	if s.Sync {
		return bmff.FlagsSync
	}
	return bmff.FlagsNonSync
}
