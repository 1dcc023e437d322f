package justintime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/delivered"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/turns"
)

// pendingInit is an init segment that is being made.
type pendingInit struct {
	done chan struct{}
	err  error
}

// Init makes the init segment unless it is stored. A single picture says all that is in it: the parameter sets follow
// from the settings.
func (m *Maker) Init(ctx context.Context, w *Work) error {
	stored, err := m.opt.Store.Has(ctx, w.InitKey())
	if stored || err != nil {
		return err
	}
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		return stopping()
	}
	x := m.inits[w.Prefix]
	if x == nil {
		x = &pendingInit{done: make(chan struct{})}
		m.inits[w.Prefix] = x
		work, viewer := *w, turns.Viewer(ctx)
		m.all.Go(func() {
			x.err = fault.Guard(func() error { return m.makeInit(m.base, &work, viewer) })
			m.mu.Lock()
			delete(m.inits, work.Prefix)
			m.mu.Unlock()
			close(x.done)
		})
	}
	m.mu.Unlock()
	select {
	case <-x.done:
		return x.err
	case <-ctx.Done():
		return fmt.Errorf("wait for init segment: %w", context.Cause(ctx))
	}
}

func (m *Maker) makeInit(ctx context.Context, w *Work, viewer string) error {
	if w.Parameters != nil {
		if c, ok := w.Parameters(ctx); ok {
			return m.keepInit(ctx, w, c)
		}
	}
	head, msn, err := w.beginning(ctx)
	if err != nil {
		return err
	}
	key, certain := w.parametersKey(head, msn)
	m.mu.Lock()
	c, ok := m.given.tracks[key]
	m.mu.Unlock()
	if certain && ok {
		return m.keepInit(ctx, w, c)
	}
	c, err = m.trackOf(ctx, w, head, msn, viewer)
	if err != nil {
		return err
	}
	if certain {
		m.mu.Lock()
		m.given.add(key, c)
		m.mu.Unlock()
	}
	return m.keepInit(ctx, w, c)
}

// trackOf is what the encoder says in front of its pictures, of the first one of a segment.
func (m *Maker) trackOf(ctx context.Context, w *Work, head []byte, msn int64, viewer string) (frame.Config, error) {
	leave, err := m.turn(ctx, encode.FirstPlay, viewer)
	if err != nil {
		return frame.Config{}, err
	}
	defer leave()
	var one []byte
	var made frame.Config
	err = m.opt.Encoder.Rung(ctx, encode.FirstPlay, encode.RungJob{
		Threads: 1,
		Prepare: func(ctx context.Context, _ int) ([]encode.RungArgs, error) {
			var failed error
			one, failed = w.onePicture(ctx, msn)
			return []encode.RungArgs{w.args(msn)}, failed
		},
		Input: func(_ context.Context, _ int, out io.Writer) error {
			_, failed := io.Copy(out, io.MultiReader(bytes.NewReader(head), bytes.NewReader(one)))
			return failed // the engine says what was written
		},
		Output: func(_ context.Context, _ int, in io.Reader) error {
			tracks, failed := cmaf.NewReader(in, cmaf.ReaderOptions{MaxFragment: maxPicture}).Tracks()
			if failed != nil {
				return failed
			}
			if len(tracks) != 1 || tracks[0].FourCC != "avc1" {
				return errors.New("the encoder gave no H.264")
			}
			made = tracks[0].Config
			return nil
		},
	})
	if err == nil && made.Codec == "" {
		err = fault.New(fault.Internal, "the encoder gave no init segment")
	}
	return made, err
}

// keepInit stores the init segment of a track. It follows from the parameter sets alone: all nodes make the same one.
func (m *Maker) keepInit(ctx context.Context, w *Work, c frame.Config) error {
	entry, err := cmaf.SampleEntry(c)
	if err != nil {
		return fmt.Errorf("make init segment: %w", err)
	}
	_, err = m.Keep(ctx, w.InitKey(), cmaf.InitFromEntry(cmaf.InitOptions{
		Kind: frame.Video, SampleEntry: entry, Timescale: w.Video.Timescale, Width: uint32(w.Rung.Width) << 16,
		Height: uint32(w.Rung.Height) << 16,
	}))
	return err
}

// beginning is the source's first init segment, and the first segment behind it that can be decoded by itself.
func (w *Work) beginning(ctx context.Context) (head []byte, msn int64, err error) {
	for msn = w.Timeline.First; msn < w.Timeline.Next(); msn++ {
		c := w.chunk(msn)
		if c == nil || !c.Independent {
			continue
		}
		if head, err = w.Source.Init(ctx, c.Init); err != nil {
			return nil, 0, fmt.Errorf("read init segment: %w", err)
		}
		return head, msn, nil
	}
	return nil, 0, fault.New(fault.NotReady, "there is no picture yet")
}

// onePicture is the first one of a segment.
func (w *Work) onePicture(ctx context.Context, msn int64) ([]byte, error) {
	data, err := delivered.Bytes(w.Source.Segment(ctx, msn))
	if err != nil {
		return nil, fmt.Errorf("read segment %d: %w", msn, err)
	}
	fragments, err := cmaf.ParseFragments(data)
	if err != nil || len(fragments) == 0 || len(fragments[0].Samples) == 0 {
		return nil, fault.Wrap(fault.Internal, err, "segment %d of the source can't be read", msn)
	}
	f := fragments[0]
	return cmaf.AppendFragment(nil, 1, cmaf.TrackID, f.BaseMediaDecodeTime, f.Samples[:1]), nil
}
