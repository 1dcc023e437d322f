package presentation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// Real High profile SPS of x264, of 320x180 and of 1280x720, with their PPS, and AAC-LC 48 kHz stereo.
var (
	sps = []byte{
		0x67, 0x64, 0x00, 0x0d, 0xac, 0xd9, 0x41, 0x41, 0x9f, 0x9e, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00, 0x00,
		0x03, 0x03, 0xc0, 0xf1, 0x42, 0x99, 0x60,
	}
	hd = []byte{
		0x67, 0x64, 0x00, 0x1f, 0xac, 0xd9, 0x40, 0x50, 0x05, 0xbb, 0x01, 0x10, 0x00, 0x00, 0x03, 0x00, 0x10, 0x00,
		0x00, 0x03, 0x03, 0xc0, 0xf1, 0x83, 0x19, 0x60,
	}
	pps = []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}
	asc = []byte{0x11, 0x90}

	slice = []byte{0x65, 0x88, 0x84, 0x00, 0x4f, 0x5d, 0xe7, 1} // the beginning of one
)

const fps, rate = 10, 48000

// encoder sends ten pictures a second with a key frame each second, and sound beside them, in time.
type encoder struct {
	t       *testing.T
	ctx     context.Context // ends when the connection is to be closed
	sink    ingest.Sink
	noVideo bool
	hd      bool // 1280x720
	picture int  // frames sent
	sound   int
	tuned   bool
	close   sync.Once
}

func (e *encoder) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Error(err)
	}
}

func (e *encoder) configure() {
	if !e.noVideo {
		c := frame.Config{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: pps, Width: 320, Height: 180}
		if e.hd {
			c.SPS, c.Width, c.Height = hd, 1280, 720
		}
		e.must(e.sink.Configure(c))
	}
	e.must(e.sink.Configure(frame.Config{
		Kind: frame.Audio, Codec: frame.AAC, ASC: asc, SampleRate: rate, Channels: 2,
	}))
}

// next is the next frame, and what counts it once it is sent.
func (e *encoder) next() (frame.Frame, *int) {
	picture, sound := time.Duration(e.picture)*time.Second/fps, time.Duration(e.sound)*1024*time.Second/rate
	if e.noVideo || sound < picture {
		return frame.Frame{Kind: frame.Audio, DTS: sound, PTS: sound, Key: true, Data: make([]byte, 20)}, &e.sound
	}
	return frame.Frame{
		Kind: frame.Video, DTS: picture, PTS: picture, Key: e.picture%fps == 0, Data: nal.Append(nil, slice),
	}, &e.picture
}

// send streams for so long, or until the connection is to be closed, which it then does.
func (e *encoder) send(long time.Duration) *encoder {
	e.t.Helper()
	if !e.tuned {
		e.tuned = true
		e.configure()
	}
	now := time.Now()
	began := now.Add(-max(time.Duration(e.picture)*time.Second/fps, time.Duration(e.sound)*1024*time.Second/rate))
	end := now.Add(long)
	for {
		f, sent := e.next()
		due := began.Add(f.DTS)
		if due.After(end) {
			due = end
		}
		select {
		case <-e.ctx.Done():
			e.leave(context.Cause(e.ctx))
			return e
		case <-time.After(time.Until(due)):
		}
		if due.Equal(end) {
			return e
		}
		f.Received = time.Now()
		e.must(e.sink.Write(f))
		*sent++
	}
}

// leave is the end of the connection.
func (e *encoder) leave(cause error) { e.close.Do(func() { e.sink.Close(cause) }) }

// stop is an encoder that says goodbye.
func (e *encoder) stop() { e.leave(ingest.ErrEncoderEnded) }
