package playback

import (
	"context"
	"math"
	"slices"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
)

// Smallest is the shorter side, in pixels, of the smallest picture that playlists may list; 0: there is none.
// max_resolution leaves that one where every picture is larger.
func Smallest(pictures []hls.Picture) int {
	shorts := offered(pictures)
	if len(shorts) == 0 {
		return 0
	}
	return slices.Min(shorts)
}

// offered are the sizes of pictures that playlists may list.
func offered(pictures []hls.Picture) (shorts []int) {
	for _, p := range pictures {
		if p.Offered {
			shorts = append(shorts, p.Short)
		}
	}
	return shorts
}

// bounded reports whether max_resolution or min_resolution was given.
func (m modifiers) bounded() bool { return m.most > 0 || m.least > 0 }

// within are the least and the most pixels of a picture's shorter side that max_resolution and min_resolution leave of
// what is offered. Where nothing is between the two, the nearest size below remains; where nothing is below, the
// smallest.
func (m modifiers) within(shorts []int) (least, most int) {
	if most = math.MaxInt; m.most > 0 {
		most = m.most
		if len(shorts) > 0 {
			most = max(most, slices.Min(shorts))
		}
	}
	for _, s := range shorts {
		if s <= most {
			least = max(least, s)
		}
	}
	return min(least, m.least), most
}

// bound leaves the variants that are within the bounds: those that are worth listing, else what else can be played.
func (m modifiers) bound(p *hls.Multivariant, pictures []hls.Picture) {
	short := func(v hls.Variant) int { // a variant of what is live says how large it is now
		for _, picture := range pictures {
			if picture.Rendition == hls.RenditionOf(v.URI) {
				return picture.Short
			}
		}
		return v.Short()
	}
	var shorts []int
	for _, v := range slices.Concat(p.Variants, p.Spare) {
		shorts = append(shorts, short(v))
	}
	least, most := m.within(shorts)
	beyond := func(v hls.Variant) bool { return short(v) < least || short(v) > most }
	if p.Variants = slices.DeleteFunc(p.Variants, beyond); len(p.Variants) == 0 {
		p.Variants = slices.DeleteFunc(slices.Clone(p.Spare), beyond)
	}
}

// allows refuses renditions that a token's max_resolution and min_resolution leave out, by what they show, whether
// playlists list them or not.
func (vw viewing) allows(ctx context.Context, rendition string) error {
	if !vw.permit.Signed || !strings.Contains(vw.permit.Query, "_resolution=") {
		return nil
	}
	m, err := modifiersOf(vw.permit.Query)
	if err != nil {
		return err
	}
	pictures, err := vw.Pictures(ctx)
	if err != nil {
		return err
	}
	least, most := m.within(offered(pictures))
	for _, picture := range pictures {
		if picture.Rendition == rendition && (picture.Short < least || picture.Short > most) {
			return fault.New(fault.Denied, "the token does not allow this rendition")
		}
	}
	return nil
}

// allowsFile refuses files whose picture is larger than the max_resolution of a token.
func (vw viewing) allowsFile(f File) error {
	if !vw.permit.Signed || !strings.Contains(vw.permit.Query, "_resolution=") {
		return nil
	}
	m, err := modifiersOf(vw.permit.Query)
	if err == nil && m.most > 0 && f.Short > m.most {
		err = fault.New(fault.Denied, "the token does not allow a file of this size")
	}
	return err
}
