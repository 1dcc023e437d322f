package broadcast_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// A real 320x180 High profile SPS and PPS of x264, and AAC-LC 48 kHz stereo.
var (
	sps = []byte{
		0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
		0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
	}
	// 1280x720.
	hd = []byte{
		0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40, 0x50, 0x05, 0xbb, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00,
		0x00, 0x03, 0x03, 0xc0, 0xf1, 0x83, 0x19, 0x60,
	}
	pps = []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}
	asc = []byte{0x11, 0x90}

	slice = []byte{0x65, 0x88, 0x84, 0x00, 0x4f, 0x5d, 0xe7, 1} // the beginning of one
)

const fps = 10

// numberedSize is how many bytes a numbered picture has: a NAL unit with its length in front.
const numberedSize = 16

// encoder sends ten pictures a second with a key frame each second, and sound beside them, in time.
type encoder struct {
	t       *testing.T
	ctx     context.Context // ends when the connection is to be closed
	sink    ingest.Sink
	noVideo bool
	noAudio bool
	hd      bool                // 1280x720
	says    *cea608test.Encoder // of the captions in the pictures; nil: there are none
	lag     int                 // pictures are presented so many frames after they are decoded
	numbers bool                // pictures end with their number, in 4 bytes; see numberedSize
	group   int                 // pictures from one key frame to the next; 0: fps
	since   time.Time           // when its clock began; zero: that goes on where it stood, whenever it sends
	picture int                 // frames sent
	sound   int
	tuned   bool
	close   sync.Once
	ended   chan error    // of stream
	quit    chan struct{} // of hangUp
}

func at(i int, rate float64) time.Duration {
	return time.Duration(math.Round(float64(i) * float64(time.Second) / rate))
}

// send streams for so long, or until the connection is to be closed, which it then does.
func (e *encoder) send(long time.Duration) *encoder {
	e.t.Helper()
	if !e.tuned {
		e.tuned = true
		if !e.noVideo {
			c := frame.Config{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 320, Height: 180}
			if e.hd {
				c.SPS, c.Width, c.Height = hd, 1280, 720
			}
			e.must(e.sink.Configure(c))
		}
		if !e.noAudio {
			e.must(e.sink.Configure(frame.Config{
				Kind: frame.Audio, Codec: frame.AAC, ASC: asc, SampleRate: 48000, Channels: 2,
			}))
		}
	}
	end := time.Now().Add(long)
	began := e.since
	if began.IsZero() {
		began = time.Now().Add(-max(at(e.picture, fps), at(e.sound*1024, 48000)))
	}
	for {
		f, sent := e.next()
		due := began.Add(f.DTS)
		if !due.Before(end) {
			due = end
		}
		if d := time.Until(due); d > 0 {
			select {
			case <-e.ctx.Done():
				e.leave(context.Cause(e.ctx))
				return e
			case <-e.quit:
				e.stop()
				return e
			case <-time.After(d):
			}
		}
		if due.Equal(end) {
			return e
		}
		f.Received = time.Now()
		err := e.sink.Write(f)
		if errors.Is(err, ingest.ErrShutdown) { // as a protocol does
			e.leave(err)
			return e
		}
		e.must(err)
		*sent++
	}
}

// deliver sends at once what has piled up in so long.
func (e *encoder) deliver(long time.Duration) {
	e.t.Helper()
	end := max(at(e.picture, fps), at(e.sound*1024, 48000)) + long
	if !e.since.IsZero() {
		end = time.Since(e.since)
	}
	for f, sent := e.next(); f.DTS < end; f, sent = e.next() {
		f.Received = time.Now()
		e.must(e.sink.Write(f))
		*sent++
	}
}

// next is the next frame, and what counts it once it is sent.
func (e *encoder) next() (frame.Frame, *int) {
	picture, sound := at(e.picture, fps), at(e.sound*1024, 48000)
	if e.noVideo || !e.noAudio && sound < picture {
		return frame.Frame{Kind: frame.Audio, DTS: sound, PTS: sound, Key: true, Data: make([]byte, 20)}, &e.sound
	}
	unit := slice
	if e.numbers {
		unit = binary.BigEndian.AppendUint32(slices.Clone(slice), uint32(e.picture))
	}
	data := nal.Append(nil, unit)
	if e.says != nil {
		data = append(nal.Append(nil, e.says.SEI(picture.Seconds())), data...)
	}
	key := e.picture%cmp.Or(e.group, fps) == 0
	return frame.Frame{Kind: frame.Video, DTS: picture, PTS: at(e.picture+e.lag, fps), Key: key, Data: data}, &e.picture
}

func (e *encoder) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Error(err)
	}
}

// leave is the end of the connection.
func (e *encoder) leave(cause error) { e.close.Do(func() { e.sink.Close(cause) }) }

// stop is an encoder that says goodbye.
func (e *encoder) stop() { e.leave(ingest.ErrEncoderEnded) }

// stream is send for as long as the connection lasts, in the background; the channel gives why it ended.
func (e *encoder) stream() <-chan error {
	e.ended, e.quit = make(chan error, 1), make(chan struct{})
	go func() {
		e.send(24 * time.Hour)
		e.ended <- context.Cause(e.ctx)
	}()
	return e.ended
}

// hangUp ends what stream began.
func (e *encoder) hangUp() {
	close(e.quit)
	if err := <-e.ended; err == nil {
		e.t.Error("the connection is still open")
	}
}

// dropped is why the connection was closed by the service, if it was.
func (e *encoder) dropped() error {
	if e.ctx.Err() == nil {
		return nil
	}
	return errors.Join(context.Cause(e.ctx))
}
