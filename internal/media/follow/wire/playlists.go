package wire

import (
	"slices"
	"strings"

	"millrace/internal/media/hls"
)

const (
	maxVariants = 64 // of a multivariant playlist, and renditions of each kind
	maxValue    = 4 << 10
)

// ReadMultivariant reads a multivariant playlist, and refuses what would be more than one line or attribute of it.
func ReadMultivariant(data []byte) (*hls.Multivariant, error) {
	m, err := Decode[hls.Multivariant](data)
	if err != nil {
		return nil, err
	}
	if m.Tiles != nil || len(m.SessionKeys) > 0 || m.TilesURI != "" || m.ChaptersURI != "" ||
		max(len(m.Renditions), len(m.Variants), len(m.Spare)) > maxVariants {
		return nil, garbled(nil)
	}
	for i := range m.Renditions {
		r := &m.Renditions[i]
		if !isName(r.URI) || !plain(r.Type, r.GroupID, r.Name, r.Language, r.Characteristics) || r.Channels < 0 {
			return nil, garbled(nil)
		}
	}
	for _, v := range slices.Concat(m.Variants, m.Spare) {
		if !isName(v.URI) || !plain(v.Range, v.Audio, v.Subtitles) || !plain(v.Codecs...) ||
			min(v.Bandwidth, v.AverageBandwidth) < 0 || min(v.Width, v.Height) < 0 || !(v.FrameRate >= 0) {
			return nil, garbled(nil)
		}
	}
	return &m, nil
}

// ReadPictures reads pictures.
func ReadPictures(data []byte) ([]hls.Picture, error) {
	all, err := Decode[[]hls.Picture](data)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		if len(all) > 3*maxVariants || p.Short < 0 || !isName(hls.PlaylistURI(p.Rendition)) || !plain(p.Codecs...) {
			return nil, garbled(nil)
		}
	}
	return all, nil
}

// isName reports whether a URI is the name of a media playlist, and nothing that leads elsewhere.
func isName(uri string) bool {
	name, ok := strings.CutSuffix(uri, ".m3u8")
	return ok && name != "" && len(name) <= 255 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' && c != '_'
	})
}

// plain reports whether values have no line breaks in them and are of a bearable length.
func plain(values ...string) bool {
	return len(values) <= maxVariants && !slices.ContainsFunc(values, func(v string) bool {
		return len(v) > maxValue || strings.ContainsAny(v, "\n\r\x00")
	})
}
