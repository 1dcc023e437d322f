package images

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
)

// keys finds out what decoding can begin with. Of H.264 only an IDR is as good as its file says: at other pictures that
// are listed as key frames a decoder may have to recover first. A file that lists all pictures may just lack the list.
func (v *Video) keys(ctx context.Context, i int, all []sample) error {
	head, err := v.Source.Init(ctx, v.video().Chunks[i].Init)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	size := lengthSize(head)
	idrs := false
	for k := range all {
		s := &all[k]
		if s.idr = s.Sync; s.Sync && size > 0 {
			s.idr, s.recovery = h264.Entry(s.Data, size)
		}
		idrs = idrs || s.idr
	}
	if size > 0 && idrs && len(all) > 1 && !slices.ContainsFunc(all, func(s sample) bool { return !s.Sync }) {
		for k := range all {
			all[k].Sync = all[k].idr
		}
	}
	return nil
}

// lengthSize is how many bytes stand in front of a NAL unit; 0: it is not H.264.
func lengthSize(head []byte) int {
	tracks, err := cmaf.NewReader(bytes.NewReader(head), cmaf.ReaderOptions{}).Tracks()
	if err != nil || len(tracks) != 1 || tracks[0].FourCC != "avc1" && tracks[0].FourCC != "avc3" {
		return 0
	}
	return tracks[0].LengthSize
}
