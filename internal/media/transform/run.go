package transform

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/codec"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/flv"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
)

// run is one encoder, from a key frame to the end of a stretch.
type run struct {
	cancel context.CancelCauseFunc
	in     chan frame.Frame
	ended  chan struct{}
	err    error // once ended

	// Guarded by the worker.
	base  time.Duration // media time that is begin on the encoder's clock
	begun bool          // its first picture is written
	sent  []sent
}

// sent is a picture that the encoder has, by its presentation.
type sent struct {
	pts, duration time.Duration
	received      time.Time
}

const (
	timescale = 90000
	begin     = time.Second      // on the encoder's clock, so that nothing there is negative
	rounding  = time.Millisecond // of times in FLV
	maxTag    = 32 << 20
	ahead     = 8 // pictures between the queue and the pipe
)

// begin starts an encoder for the pictures from f on.
func (w *worker) begin(ctx context.Context, f *frame.Frame) (*run, error) {
	job := encode.LiveArgs{
		Format:    encode.MOV,
		Width:     w.source.Width,
		Height:    w.source.Height,
		Range:     codec.Range(w.source),
		FrameRate: w.fps,
		Overlay:   w.overlay(ctx),
	}
	head, write := []byte(nil), appendFragment
	if w.source.Codec == frame.VP8 {
		job.Format, head, write = encode.IVF, ivfHeader(w.source), appendIVF
	} else {
		init, err := cmaf.Init(w.source, timescale)
		if err != nil {
			return nil, err
		}
		head = init
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &run{cancel: cancel, in: make(chan frame.Frame, ahead), ended: make(chan struct{}), base: f.DTS}
	base := r.base
	go func() {
		defer close(r.ended)
		defer cancel(nil)
		r.err = fault.Guard(func() error {
			return w.t.opt.Encoder.Live(ctx, job, func(ctx context.Context, out io.Writer) error {
				return r.write(ctx, out, head, func(b []byte, n uint32, f *frame.Frame) []byte {
					return write(b, n, base, f)
				})
			}, func(_ context.Context, in io.Reader) error { return r.read(w, in) })
		})
	}()
	return r, nil
}

func (r *run) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func (r *run) wait() error {
	<-r.ended
	return r.err
}

// drain ends the input and waits: what is in the encoder comes out, then it ends.
func (r *run) drain() error {
	close(r.in)
	late := time.AfterFunc(patience, func() { r.cancel(errStuck) })
	defer late.Stop()
	return r.wait()
}

// feed gives a picture in; false when the encoder has ended, or has to because it takes nothing.
func (r *run) feed(f *frame.Frame) bool {
	select {
	case r.in <- *f:
		return true
	default:
	}
	late := time.AfterFunc(patience, func() { r.cancel(errStuck) })
	defer late.Stop()
	select {
	case r.in <- *f:
		return true
	case <-r.ended:
		return false
	}
}

// expect notes a picture that goes in; stuck says that one that went in long before has not come out.
func (r *run) expect(f *frame.Frame) (stuck bool) {
	at, _ := slices.BinarySearchFunc(r.sent, f.PTS, func(s sent, pts time.Duration) int { return int(s.pts - pts) })
	r.sent = slices.Insert(r.sent, at, sent{f.PTS, f.Duration, f.Received})
	return f.Received.Sub(r.sent[0].received) > patience
}

// match finds the picture that went in for one that came out: the one nearest in time. Pictures come out in order, so
// those before it are lost. It returns false when every picture that went in has come out already.
func (r *run) match(tag flv.Tag) (sent, bool) {
	if len(r.sent) == 0 {
		return sent{}, false
	}
	at := tag.PTS - begin + r.base
	found := 0
	for i := range r.sent {
		if off := (r.sent[found].pts - at).Abs(); off <= rounding || (r.sent[i].pts-at).Abs() > off {
			break // times only grow from here on
		}
		found = i
	}
	s := r.sent[found]
	r.sent = slices.Delete(r.sent, 0, found+1)
	return s, true
}

// write is the encoder's input.
func (r *run) write(
	ctx context.Context, out io.Writer, head []byte, encode func([]byte, uint32, *frame.Frame) []byte,
) error {
	if _, err := out.Write(head); err != nil {
		return err // Run says what was written
	}
	var buf []byte
	for n := uint32(1); ; n++ {
		select {
		case f, ok := <-r.in:
			if !ok {
				return nil
			}
			buf = encode(buf[:0], n, &f)
			if _, err := out.Write(buf); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read is the encoder's output.
func (r *run) read(w *worker, in io.Reader) error {
	for tags := flv.NewReader(in, maxTag); ; {
		tag, err := tags.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read picture: %w", err)
		}
		if err := w.encoded(r, tag); err != nil {
			return err
		}
	}
}

// appendFragment makes a movie fragment of a picture.
func appendFragment(b []byte, n uint32, base time.Duration, f *frame.Frame) []byte {
	dts, pts := ticks(f.DTS-base+begin), ticks(f.PTS-base+begin)
	long := max(ticks(f.DTS+f.Duration-base+begin)-dts, 1)
	return cmaf.AppendFragment(b, n, cmaf.TrackID, uint64(dts), []cmaf.Sample{{
		Duration: uint32(long), CompositionOffset: int32(pts - dts), Sync: f.Key, Data: f.Data,
	}})
}

// ivfHeader begins an IVF stream of VP8: 32 bytes, time base of 1/timescale seconds.
func ivfHeader(c frame.Config) []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), "DKIF\x00\x00\x20\x00VP80"...)
	b = le.AppendUint16(b, uint16(c.Width))
	b = le.AppendUint16(b, uint16(c.Height))
	b = le.AppendUint32(b, timescale)
	b = le.AppendUint32(b, 1)
	return append(b, make([]byte, 8)...)
}

// appendIVF makes a frame of IVF: size, presentation time, data.
func appendIVF(b []byte, _ uint32, base time.Duration, f *frame.Frame) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Data)))
	b = binary.LittleEndian.AppendUint64(b, uint64(ticks(f.PTS-base+begin)))
	return append(b, f.Data...)
}

// ticks rounds to the time scale.
func ticks(d time.Duration) int64 {
	sec, rest := int64(d/time.Second), int64(d%time.Second)
	return sec*timescale + (rest*timescale+int64(time.Second)/2)/int64(time.Second)
}
