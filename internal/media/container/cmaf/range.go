package cmaf

import (
	"bytes"

	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/container/bmff"
	"millrace/internal/media/frame"
)

// VideoRange is how the light of a video track's picture is coded, as its sample entry says: by the nclx colour
// information of ISO 14496-12 section 12.1.5, or by the record of VP9. SDR when it says nothing.
func (t *Track) VideoRange() frame.VideoRange {
	if t.Kind != frame.Video || len(t.SampleEntry) < visualEntry {
		return frame.SDR
	}
	children := t.SampleEntry[visualEntry:]
	if c := bmff.Find(children, "colr"); len(c) >= 10 && bytes.HasPrefix(c, []byte("nclx")) {
		return frame.RangeOf(c[7]) // the low byte of what is at 6
	}
	return frame.RangeOf(vp9.Transfer(bmff.Find(children, "vpcC")))
}
