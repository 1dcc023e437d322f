package playback

import (
	"context"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
)

// clip is the stretch of the presentation that a token allows; the zero Clip is all of it.
func (vw viewing) clip() (Clip, error) {
	if !vw.permit.Signed || !strings.Contains(vw.permit.Query, "_time=") {
		return Clip{}, nil
	}
	m, err := modifiersOf(vw.permit.Query)
	return m.clip, err
}

// chunk is Chunk within the clip of the token: what its playlists do not list is not to be had by its number.
func (vw viewing) chunk(ctx context.Context, rendition string, r hls.Resource) (Body, error) {
	c, err := vw.clip()
	if err != nil {
		return Body{}, err
	}
	if c == (Clip{}) {
		return vw.Chunk(ctx, rendition, r)
	}
	if err = vw.covered(ctx, rendition, r, c); err != nil {
		return Body{}, err
	}
	b, err := vw.Chunk(ctx, rendition, r)
	if err != nil {
		return b, err
	}
	if err = vw.covered(ctx, rendition, r, c); err != nil { // it was waited for, and its time was not known before
		if b.Reader != nil {
			_ = b.Reader.Close() // nothing was read
		}
		return Body{}, err
	}
	return b, nil
}

// covered refuses what is not in a clip.
func (vw viewing) covered(ctx context.Context, rendition string, r hls.Resource, c Clip) error {
	covers, err := vw.Covers(ctx, rendition, r, c)
	if err == nil && !covers {
		err = outside()
	}
	return err
}

func outside() error {
	return fault.New(fault.Denied, "the token is for a clip that this segment is not in")
}

// unclipped refuses what can only be sent whole, where the token is for a clip.
func (vw viewing) unclipped() error {
	c, err := vw.clip()
	if err == nil && c != (Clip{}) {
		err = fault.New(fault.Denied,
			"the token is for a clip, and this address is that of the whole asset; use the addresses in the clip's "+
				"playlist")
	}
	return err
}
