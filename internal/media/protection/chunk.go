package protection

import (
	"context"
	"errors"
	"fmt"

	"millrace/internal/fault"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/playback"
)

// errClear says that a rendition is not encrypted.
var errClear = errors.New("the rendition is not encrypted")

// Chunk implements playback.Renditions.
func (v View) Chunk(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	if v.state().isClear(rendition) {
		return v.Presentation.Chunk(ctx, rendition, r)
	}
	b, err := v.Store.get(ctx, chunkKey{v.Content.Name, v.Media(), rendition, r}, func() (playback.Body, error) {
		if r.Init >= 0 {
			return v.init(ctx, rendition, r)
		}
		return v.encrypted(ctx, rendition, r)
	})
	if errors.Is(err, errClear) {
		v.state().setClear(rendition)
		return v.Presentation.Chunk(ctx, rendition, r)
	}
	return b, err
}

// init is an init segment. Where keys change, it has the one with which the broadcast began, whenever it is asked for;
// segments say which is theirs.
func (v View) init(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	in := delivered.Init{Number: r.Init, Generation: r.Generation}
	t, err := v.track(ctx, trackKey{rendition, in, v.Content.period(v.Began())})
	if err != nil {
		return playback.Body{}, err
	}
	if t.cipher == nil {
		return playback.Body{}, errClear
	}
	data, err := t.cipher.Init(v.headers(t.key)...)
	return playback.Body{Data: data}, err
}

// encrypted is a segment or a part.
func (v View) encrypted(ctx context.Context, rendition string, r hls.Resource) (playback.Body, error) {
	b, err := v.Presentation.Chunk(ctx, rendition, r)
	if err != nil {
		return b, err
	}
	if b.Text { // by its rendition's kind, whatever its name is
		if b.Reader != nil {
			_ = b.Reader.Close() // it was only read
		}
		return playback.Body{}, errClear
	}
	data := b.Data
	if b.Reader != nil {
		buf := v.Store.buffer()
		defer v.Store.buffers.Put(buf)
		if *buf, err = b.Read(*buf); err != nil {
			return playback.Body{}, err
		}
		data = *buf
	}
	t, err := v.track(ctx, trackKey{rendition, b.Init, v.Content.period(b.Start)})
	switch {
	case err != nil:
		return playback.Body{}, err
	case t.cipher == nil:
		return playback.Body{}, errClear
	}
	out, err := t.cipher.Encrypt(data)
	if err != nil {
		return playback.Body{}, fmt.Errorf("encrypt %s of %s: %w", rendition, v.Media(), err)
	}
	return playback.Body{Data: out, Watched: b.Watched}, nil
}

func (s *state) isClear(rendition string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clear[rendition]
}

func (s *state) setClear(rendition string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear[rendition] = true
}

// File implements playback.Presentation: files to download are not encrypted.
func (v View) File(context.Context, string) (playback.File, error) {
	return playback.File{}, fault.New(fault.Denied,
		"a playback ID with the policy drm leads to no files to download: add one with the policy signed or public")
}

// Earlier implements playback.Presentation.
func (v View) Earlier(ctx context.Context, media string) (playback.Presentation, error) {
	had, err := v.Presentation.Earlier(ctx, media)
	if err != nil {
		return nil, err
	}
	return View{had, v.Content, v.Store}, nil
}
