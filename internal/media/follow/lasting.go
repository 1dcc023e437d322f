package follow

import (
	"context"
	"errors"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// Lasting is a broadcast, of this node or of another one, that may change nodes under its viewers: who waits for
// something of it is given that by the node that has it then.
type Lasting struct {
	playback.Broadcast

	// Moved reports whether an error says that the broadcast goes to another node than this one.
	Moved func(err error) bool
	// Next finds it again.
	Next func(ctx context.Context) (playback.Broadcast, error)
}

// View implements playback.Broadcast.
func (l Lasting) View(w playback.Watch) playback.Live { return lasting{l.Broadcast.View(w), l, w} }

// lasting is a Lasting as it is watched.
type lasting struct {
	playback.Live

	of    Lasting
	watch playback.Watch
}

// again asks, and where the broadcast has changed nodes asks the one that has it then, once.
func again[T any](ctx context.Context, l lasting, ask func(playback.Live) (T, error)) (T, error) {
	out, err := ask(l.Live)
	if err == nil || !l.of.Moved(err) && !errors.Is(err, ErrHere) || ctx.Err() != nil {
		return out, err
	}
	b, failed := l.of.Next(ctx)
	if failed != nil {
		return out, err
	}
	if next, ok := b.(Lasting); ok {
		b = next.Broadcast
	}
	return ask(b.View(l.watch))
}

// Multivariant implements playback.Renditions.
func (l lasting) Multivariant(ctx context.Context, c playback.Clip) (*hls.Multivariant, error) {
	return again(ctx, l, func(v playback.Live) (*hls.Multivariant, error) { return v.Multivariant(ctx, c) })
}

// Pictures implements playback.Renditions.
func (l lasting) Pictures(ctx context.Context) ([]hls.Picture, error) {
	return again(ctx, l, func(v playback.Live) ([]hls.Picture, error) { return v.Pictures(ctx) })
}

// Playlist implements playback.Renditions.
func (l lasting) Playlist(
	ctx context.Context, rendition string, r playback.Reload, compressed bool,
) (playback.Text, error) {
	return again(ctx, l, func(v playback.Live) (playback.Text, error) {
		return v.Playlist(ctx, rendition, r, compressed)
	})
}

// Chunk implements playback.Renditions.
func (l lasting) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	return again(ctx, l, func(v playback.Live) (playback.Body, error) { return v.Chunk(ctx, rendition, r) })
}

// Covers implements playback.Renditions.
func (l lasting) Covers(ctx context.Context, rendition string, r hls.Resource, c playback.Clip) (bool, error) {
	return again(ctx, l, func(v playback.Live) (bool, error) { return v.Covers(ctx, rendition, r, c) })
}

// Text implements playback.Live.
func (l lasting) Text(ctx context.Context, rendition string) (captions.Document, error) {
	return again(ctx, l, func(v playback.Live) (captions.Document, error) { return v.Text(ctx, rendition) })
}

// TextSpan implements playback.Live.
func (l lasting) TextSpan(
	ctx context.Context, rendition string, r hls.Resource,
) (from, to time.Duration, err error) {
	type span struct{ from, to time.Duration }
	s, err := again(ctx, l, func(v playback.Live) (s span, err error) {
		s.from, s.to, err = v.TextSpan(ctx, rendition, r)
		return s, err
	})
	return s.from, s.to, err
}

// Footage implements playback.Live.
func (l lasting) Footage(ctx context.Context) (playback.Footage, error) {
	return again(ctx, l, func(v playback.Live) (playback.Footage, error) { return v.Footage(ctx) })
}
