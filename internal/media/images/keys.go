package images

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/cmaf"
)

// keys corrects which samples of a segment are key frames where all are said to be: that is also what a file says whose table of them is
// missing. Then only an IDR is taken for one, if there is any.
func (f *Film) keys(ctx context.Context, i int, all []sample) error {
	if len(all) < 2 || slices.ContainsFunc(all, func(s sample) bool { return !s.Sync }) {
		return nil
	}
	head, err := f.Source.Init(ctx, f.lane().Chunks[i].Init)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	size := lengthSize(head)
	if size == 0 {
		return nil
	}
	idrs := make([]bool, len(all))
	for k, s := range all {
		idr, known, _ := h264.IsIDRPrefix(s.Data, size)
		idrs[k] = idr && known
	}
	if !slices.Contains(idrs, true) {
		return nil
	}
	for k := range all {
		all[k].Sync = idrs[k]
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
