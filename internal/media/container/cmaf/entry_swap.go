package cmaf

import (
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/vp9"
	"millrace/internal/media/container/bmff"
)

// toEntries is where an init segment's sample entries are.
var toEntries = []string{"moov", "trak", "mdia", "minf", "stbl", "stsd"} //nolint:gochecknoglobals // a path

// EntryOf is the first sample entry of an init segment's first track; nil when there is none.
func EntryOf(init []byte) []byte {
	stsd := bmff.Find(init, toEntries...)
	if len(stsd) < 8 {
		return nil
	}
	box, _, err := bmff.Next(stsd[8:])
	if err != nil {
		return nil
	}
	return box.Raw
}

// WithEntry is an init segment whose first track has this sample entry in place of its own: all else it says stays as
// it is.
func WithEntry(init, entry []byte) ([]byte, error) {
	return swap(init, toEntries, bmff.Full("stsd", 0, 0, bmff.U32(1), entry))
}

// WithAVCC is an H.264 sample entry with another decoder configuration record.
func WithAVCC(entry, avcC []byte) ([]byte, error) {
	if len(entry) < visualEntry {
		return nil, bmff.Malformed("sample entry of %d bytes", len(entry))
	}
	children, err := swap(entry[visualEntry:], []string{"avcC"}, bmff.Make("avcC", avcC))
	if err != nil {
		return nil, err
	}
	return bmff.Make(string(entry[4:8]), entry[8:visualEntry], children), nil
}

// visualEntry is how long a VisualSampleEntry is in front of its boxes, with its header.
const visualEntry = 8 + 78

// swap writes b again with another box at a path.
func swap(b []byte, path []string, with []byte) ([]byte, error) {
	var out []byte
	found := false
	err := bmff.Walk(b, func(box bmff.Box) error {
		switch {
		case found || !box.Type.Is(path[0]):
			out = append(out, box.Raw...)
			return nil
		case len(path) == 1:
			out = append(out, with...)
		default:
			body, err := swap(box.Body, path[1:], with)
			if err != nil {
				return err
			}
			out = append(out, bmff.Make(path[0], body)...)
		}
		found = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, bmff.Malformed("it has no %s box", path[0])
	}
	return out, nil
}

// CodecName is the RFC 6381 name of a sample entry of HEVC, AV1 or VP9, or of H.264; "" when it can't be read.
func CodecName(entry []byte) string {
	if len(entry) < visualEntry {
		return ""
	}
	child := func(typ string) []byte { return bmff.Find(entry[visualEntry:], typ) }
	switch string(entry[4:8]) {
	case "avc1", "avc3":
		if sps, _, _, err := h264.ParseAVCC(child("avcC")); err == nil && len(sps) > 0 {
			return h264.CodecString(sps[0])
		}
	case "hvc1", "hev1":
		if _, sps, _, _, err := hevc.ParseHVCC(child("hvcC")); err == nil && len(sps) > 0 {
			return hevc.CodecString(sps[0])
		}
	case "av01":
		if header, err := av1.ParseConfig(child("av1C")); err == nil && header != nil {
			return av1.CodecString(header)
		}
	case "vp09":
		return vp9.CodecString(child("vpcC"))
	}
	return ""
}

// WithHeaders is an init segment whose moov box ends with other boxes too.
func WithHeaders(init []byte, boxes ...[]byte) ([]byte, error) {
	moov := bmff.Find(init, "moov")
	if moov == nil {
		return nil, bmff.Malformed("it has no moov box")
	}
	return swap(init, []string{"moov"}, bmff.Make("moov", append([][]byte{moov}, boxes...)...))
}
