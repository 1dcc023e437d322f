package images

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// keys finds out what decoding can begin with. Of H.264 only an IDR is as good as its file says: at other pictures that
// are listed as key frames a decoder may have to recover first. A file that lists all pictures may just lack the list.
// Of HEVC, pictures that are shown before a CRA may refer to what is in front of it.
func (v *Video) keys(ctx context.Context, i int, all []sample) error {
	head, err := v.Source.Init(ctx, v.video().Chunks[i].Init)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	units, idrs := unitsOf(head), false
	for k := range all {
		s := &all[k]
		switch s.idr = s.Sync; {
		case units.codec == frame.H264 && s.Sync:
			s.idr, s.recovery = h264.Entry(s.Data, units.size)
		case units.codec == frame.HEVC && s.Sync:
			s.idr = units.size == 4 && !hevc.IsCRA(s.Data)
		}
		idrs = idrs || s.idr
	}
	if units.codec == frame.H264 && idrs && len(all) > 1 &&
		!slices.ContainsFunc(all, func(s sample) bool { return !s.Sync }) {
		for k := range all {
			all[k].Sync = all[k].idr
		}
	}
	return nil
}

// units say how coded pictures are made of NAL units.
type units struct {
	codec frame.Codec // "": they are not, or it is not known how
	size  int         // bytes of the length in front of each
}

func unitsOf(head []byte) units {
	tracks, err := cmaf.NewReader(bytes.NewReader(head), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 {
		return units{}
	}
	switch t := &tracks[0]; t.FourCC {
	case "avc1", "avc3":
		if t.LengthSize > 0 {
			return units{frame.H264, t.LengthSize}
		}
	case "hvc1", "hev1":
		if len(t.SampleEntry) < bmff.VisualHeader {
			break
		}
		if _, _, _, size, err := hevc.ParseHVCC(bmff.Find(t.SampleEntry[bmff.VisualHeader:], "hvcC")); err == nil {
			return units{frame.HEVC, size}
		}
	}
	return units{}
}

// needs leaves out the pictures that the last one is not decoded from, as far as they say so themselves: those that no
// other refers to.
func (u units) needs(pictures []sample) []sample {
	disposable := func(int) bool { return false }
	switch u.codec { //nolint:exhaustive // others do not say it
	case frame.H264:
		disposable = func(i int) bool { return h264.Disposable(pictures[i].Data, u.size) }
	case frame.HEVC: // what no picture of its sub-layer refers to, those of a higher one may
		top, layers := 0, make([]int, len(pictures))
		for i := range pictures {
			layer, unreferred := hevc.Sublayer(pictures[i].Data, u.size)
			if layer < 0 {
				return pictures
			}
			top = max(top, layer)
			if layers[i] = -1; unreferred {
				layers[i] = layer
			}
		}
		disposable = func(i int) bool { return layers[i] == top }
	}
	out := make([]sample, 0, len(pictures))
	for i := range pictures {
		if i == len(pictures)-1 || !disposable(i) {
			out = append(out, pictures[i])
		}
	}
	return out
}
