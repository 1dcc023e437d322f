package bridge

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/images"
	"millrace/internal/media/playback"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// image answers for a film: what is kept is read, all else is made.
func (p *Playback) image(ctx context.Context, f *images.Film, name, query, base string) (playback.Image, error) {
	if p.opt.Images == nil {
		return playback.Image{}, fault.New(fault.NotFound, "this node makes no images")
	}
	r, err := images.Parse(name, query)
	if err != nil {
		return playback.Image{}, err
	}
	plan, err := f.Plan(r)
	if err != nil {
		return playback.Image{}, err
	}
	out := playback.Image{MaxAge: plan.MaxAge}
	found := false
	if f.Prefix != "" {
		out.Body, err = p.object(ctx, f.Prefix+"/"+plan.Name, 0, -1)
		if found = err == nil; err != nil && fault.KindOf(err) != fault.NotFound {
			return playback.Image{}, err
		}
	}
	if plan.From = playback.Viewer(ctx); !found {
		if out.Data, err = p.opt.Images.Make(ctx, f, plan); err != nil {
			return playback.Image{}, err
		}
		if out.Data == nil {
			if out.Body, err = p.object(ctx, f.Prefix+"/"+plan.Name, 0, -1); err != nil {
				return playback.Image{}, err
			}
		}
	}
	if plan.Text() {
		data, err := whole(out.Body, nil)
		if err != nil {
			return playback.Image{}, err
		}
		if data, err = plan.Words(data, base); err != nil {
			return playback.Image{}, err
		}
		out.Body = playback.Body{Data: data}
	}
	out.Type = plan.Type()
	return out, nil
}

// Image implements playback.Presentation.
func (v *recorded) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	f := &images.Film{Name: v.media, Timeline: v.timeline, Source: footage{v}, Chosen: v.thumbnail}
	if v.whole {
		f.Prefix = mediaPrefix(id.Media(v.media)) + "/images"
	}
	return v.p.image(ctx, f, name, query, base)
}

// footage is a recording's video as viewers get it.
type footage struct{ v *recorded }

// Init implements images.Source.
func (s footage) Init(ctx context.Context, n int) ([]byte, error) {
	return whole(s.v.init(ctx, s.v.timeline.Lane(timeline.MainVideo), n))
}

// Segment implements images.Source.
func (s footage) Segment(ctx context.Context, msn int64) (io.ReadCloser, error) {
	return opened(s.v.segment(ctx, s.v.timeline.Lane(timeline.MainVideo), msn))
}

// opened reads a body bit by bit.
func opened(b playback.Body, err error) (io.ReadCloser, error) {
	if err != nil || b.Reader != nil {
		return b.Reader, err
	}
	return io.NopCloser(bytes.NewReader(b.Data)), nil
}

// Image implements playback.Presentation.
func (v *edgeView) Image(ctx context.Context, name, query, base string) (playback.Image, error) {
	t, err := v.edge.Video(!v.event)
	if errors.Is(err, window.ErrUnknown) {
		return playback.Image{}, fault.New(fault.NotFound, "there is no video to take a picture from")
	}
	if err != nil {
		return playback.Image{}, told(err)
	}
	f := &images.Film{Name: v.media + "/event", Timeline: t, Source: running{v}, Short: !v.event}
	if !v.event {
		f.Name = v.media + "/live"
	}
	if !v.edge.Ended() {
		f.Newest = running{v}.newest
	}
	return v.p.image(ctx, f, name, query, base)
}

// running is the video of a broadcast as viewers get it.
type running struct{ v *edgeView }

// Init implements images.Source.
func (s running) Init(ctx context.Context, n int) ([]byte, error) {
	return whole(s.v.place(ctx)(s.v.edge.ReadInit(timeline.MainVideo, n)))
}

// Segment implements images.Source.
func (s running) Segment(ctx context.Context, msn int64) (io.ReadCloser, error) {
	return opened(s.v.place(ctx)(s.v.edge.ReadSegment(ctx, timeline.MainVideo, msn)))
}

// newest is the newest segment that begins with a key frame.
func (s running) newest(ctx context.Context) (init int, segment []byte, err error) {
	at, init, err := s.v.edge.NewestKey()
	if err != nil {
		return 0, nil, told(err)
	}
	segment, err = whole(s.v.place(ctx)(at, nil))
	return init, segment, err
}

// Pictures keeps what images are made; it implements images.Store.
type Pictures struct{ Made }

// List implements images.Store.
func (s Pictures) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return s.Blob.List(ctx, prefix)
}

// Delete implements images.Store.
func (s Pictures) Delete(ctx context.Context, keys ...string) error {
	return s.Blob.Delete(ctx, keys...)
}

var _ images.Store = Pictures{Made{Assets: asset.Work(nil)}}
