package presentation

import (
	"context"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
)

// ContentKeys says how what playback IDs with the policy drm lead to is encrypted; contentkey.Keys fits.
type ContentKeys interface {
	Content(ctx context.Context, o playbackid.Object, now time.Time) (protection.Content, error)
}

// keptEncrypted is how many bytes of encrypted media are kept: half a minute of ten live streams.
const keptEncrypted = 256 << 20

// protect is a presentation as playback IDs with the policy drm show it: its media is encrypted.
func (p *Source) protect(
	ctx context.Context, o playbackid.Object, found playback.Presentation, now time.Time,
) (playback.Presentation, error) {
	if p.opt.Keys == nil {
		return nil, fault.New(fault.Denied, "this playback ID has the policy drm, which is not played here")
	}
	content, err := p.opt.Keys.Content(ctx, o, now)
	if err != nil {
		return nil, err
	}
	return p.encrypt(content, found), nil
}

func (p *Source) encrypt(content protection.Content, found playback.Presentation) playback.Presentation {
	return protected{found, p, protection.View{
		Clear: found, Content: content, Store: p.encrypted, Media: found.Media(), Began: found.Began(),
	}}
}

// errNoFiles refuses files to download: they are not encrypted.
func errNoFiles() error {
	return fault.New(fault.Denied,
		"a playback ID with the policy drm leads to no files to download: add one with the policy signed or public")
}

// protected is a presentation, encrypted.
type protected struct {
	playback.Presentation // in clear

	p    *Source
	view protection.View
}

// Multivariant implements playback.Renditions.
func (v protected) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	return v.view.Multivariant(ctx, c)
}

// Pictures implements playback.Renditions.
func (v protected) Pictures(ctx context.Context) ([]hls.Picture, error) {
	return v.view.Pictures(ctx)
}

// Playlist implements playback.Renditions.
func (v protected) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	return v.view.Playlist(ctx, rendition, r, compressed)
}

// Chunk implements playback.Renditions.
func (v protected) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	return v.view.Chunk(ctx, rendition, r)
}

// File implements playback.Presentation.
func (v protected) File(context.Context, string) (playback.File, error) {
	return playback.File{}, errNoFiles()
}

// Earlier implements playback.Presentation.
func (v protected) Earlier(ctx context.Context, media string) (playback.Presentation, error) {
	had, err := v.Presentation.Earlier(ctx, media)
	if err != nil {
		return nil, err
	}
	return v.p.encrypt(v.view.Content, had), nil
}
