package transform

import (
	"bytes"
	"context"
	"errors"
	"image"
	"log/slog"
	"slices"
	"sync"
	"time"

	"millrace/internal/media/codec/h264"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/overlay"
)

// worker puts what the encoder gives and what goes past it back together. Its methods but encoded are Run's own.
type worker struct {
	t   *Transform
	log *slog.Logger

	source   frame.Config // of the picture, as it comes
	layers   []overlay.Layer
	asked    bool            // for the layers
	drawn    *encode.Overlay // the layers, drawn
	drawnFor image.Point     // for pictures of this size
	fps      float64
	failures int
	failedAt time.Time // received time of the picture that found the last encoder gone

	mu      sync.Mutex // guards what follows, and the output
	out     Output
	held    []frame.Frame // sound that waits for pictures
	run     *run
	avcC    []byte        // as told to the output
	end     time.Duration // where the picture that was written last ends
	trouble error         // of the output, met by the encoder's goroutine
}

func (w *worker) handle(ctx context.Context, c call) error {
	w.mu.Lock()
	err := w.trouble
	w.mu.Unlock()
	if c.do != nil && (err == nil || c.last) {
		return c.do(w)
	}
	switch {
	case err != nil:
		return err
	case c.f.Kind != frame.Video:
		return w.sound(c.f)
	}
	return w.picture(ctx, c.f)
}

// pass calls the output.
func (w *worker) pass(do func() error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return do()
}

func (w *worker) configure(c frame.Config) error {
	if c.Kind != frame.Video {
		if err := w.flush(); err != nil { // what is held is of the parameters before
			return err
		}
		return w.pass(func() error { return w.out.Configure(c) })
	}
	w.endRun()
	w.source = c
	return nil
}

func (w *worker) discontinuity(reason string) error {
	w.endRun()
	if err := w.flush(); err != nil {
		return err
	}
	return w.pass(func() error { return w.out.Discontinuity(reason) })
}

func (w *worker) close(cause error) error {
	w.endRun()
	return errors.Join(w.flush(), w.pass(func() error { return w.out.Close(cause) }))
}

// sound goes past the encoder, but not far ahead of the pictures in it: behind much sound they would come too late for
// their segment.
func (w *worker) sound(f frame.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, f)
	return w.release()
}

// release writes the sound that needs to wait no longer. Called with the lock.
func (w *worker) release() error {
	n := 0
	defer func() { w.held = slices.Delete(w.held, 0, n) }()
	for ; n < len(w.held) && !w.awaited(&w.held[n]); n++ {
		if err := w.out.Write(w.held[n]); err != nil {
			return err
		}
	}
	return nil
}

// awaited reports whether a picture is about to come that has to be written before f, which is held. Called with the
// lock.
func (w *worker) awaited(f *frame.Frame) bool {
	switch {
	case w.run == nil: // announced, but not begun
		return w.source.Codec != "" && w.avcC == nil && w.held[len(w.held)-1].PTS-w.held[0].PTS < patience
	case !w.run.begun: // its first picture says how the picture is configured
		return true
	case w.run.over() || len(w.run.sent) == 0:
		return false
	}
	behind := f.PTS - w.run.sent[0].pts
	return behind > soundAhead && w.held[len(w.held)-1].PTS-w.run.sent[0].pts < soundPatience
}

// flush writes all sound that is held.
func (w *worker) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.held {
		if err := w.out.Write(f); err != nil {
			return err
		}
	}
	clear(w.held)
	w.held = w.held[:0]
	return nil
}

// picture gives a picture to the encoder, which is started with a key frame.
func (w *worker) picture(ctx context.Context, f frame.Frame) error {
	if w.run != nil && w.run.over() {
		if err := w.broke(f.Received); err != nil {
			return err
		}
	}
	if w.run == nil {
		if !f.Key {
			return nil
		}
		r, err := w.begin(ctx, &f)
		if err != nil {
			return err
		}
		w.mu.Lock()
		w.run = r
		w.mu.Unlock()
	}
	w.mu.Lock()
	stuck := w.run.expect(&f)
	w.mu.Unlock()
	if stuck {
		w.run.cancel(errStuck)
	}
	if !w.run.feed(&f) {
		return nil // over: the next picture says so
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.release()
}

var errStuck = errors.New("the encoder keeps pictures to itself")

// broke deals with an encoder that ended by itself: another one takes over at the next key frame, unless that happens
// again and again.
func (w *worker) broke(at time.Time) error {
	err := w.run.wait()
	if !w.failedAt.IsZero() && at.Sub(w.failedAt) > calm {
		w.failures = 0
	}
	w.failures, w.failedAt = w.failures+1, at
	w.log.Warn("encoder ended, the next key frame starts another", "error", err, "failures", w.failures)
	w.mu.Lock()
	w.run = nil
	w.mu.Unlock()
	if w.failures >= maxFailures {
		return errors.Join(ErrPicture, err)
	}
	return nil
}

// endRun waits for the last pictures.
func (w *worker) endRun() {
	if w.run == nil {
		return
	}
	if err := w.run.drain(); err != nil {
		w.log.Warn("encoder did not end well", "error", err)
	}
	w.mu.Lock()
	w.run = nil
	w.mu.Unlock()
}

// abort ends the encoder at once. It may be called from any goroutine.
func (w *worker) abort(cause error) {
	w.mu.Lock()
	r := w.run
	w.mu.Unlock()
	if r != nil {
		r.cancel(cause)
		_ = r.wait()
	}
}

// encoded takes what comes out of the encoder, on its goroutine.
func (w *worker) encoded(r *run, tag flv.Tag) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble != nil {
		return w.trouble
	}
	if tag.Config {
		w.trouble = w.configured(tag.Data)
		return w.trouble
	}
	src, ok := r.match(tag)
	if !ok {
		return nil // of no picture that went in
	}
	f := frame.Frame{
		Kind:     frame.Video,
		DTS:      max(src.pts, w.end),
		Duration: src.duration,
		Key:      tag.Key,
		Data:     tag.Data,
		Received: src.received,
	}
	f.PTS = f.DTS
	if !r.begun && !f.Key {
		return nil
	}
	r.begun = true
	w.end = f.DTS + f.Duration
	if w.trouble = w.out.Write(f); w.trouble == nil {
		w.trouble = w.release()
	}
	return w.trouble
}

// configured tells the output the parameters of the pictures that follow, unless they are the last ones.
func (w *worker) configured(avcC []byte) error {
	if bytes.Equal(avcC, w.avcC) {
		return nil
	}
	sps, pps, _, err := h264.ParseAVCC(avcC)
	if err != nil {
		return err
	}
	if len(sps) == 0 || len(pps) == 0 {
		return errors.New("the encoder gave no parameter sets")
	}
	c, err := h264.TrackConfig(sps[0], pps[0])
	if err != nil {
		return err
	}
	if w.fps > 0 {
		c.FrameRate = w.fps
	}
	w.avcC = avcC
	return w.out.Configure(c)
}
