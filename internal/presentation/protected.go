package presentation

import (
	"context"
	"time"

	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/media/playback"
	"millrace/internal/media/protection"
)

// ContentKeys says how what playback IDs with the policy drm lead to is encrypted; permit.Keys fits.
type ContentKeys interface {
	Content(ctx context.Context, o playbackid.Object, now time.Time) (protection.Content, error)
}

// keptEncrypted is how many bytes of encrypted media are kept: half a minute of ten live streams.
const keptEncrypted = 256 << 20

// protect is a presentation as playback IDs with the policy drm show it: its media is encrypted.
func (src *Source) protect(
	ctx context.Context, o playbackid.Object, found playback.Presentation, now time.Time,
) (playback.Presentation, error) {
	if src.opt.Keys == nil {
		return nil, fault.New(fault.Denied, "this playback ID has the policy drm, which is not played here")
	}
	content, err := src.opt.Keys.Content(ctx, o, now)
	if err != nil {
		return nil, err
	}
	return protection.View{Presentation: found, Content: content, Store: src.encrypted}, nil
}
