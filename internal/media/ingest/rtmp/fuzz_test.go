package rtmp

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

// talk runs a connection on which a peer says b and goes.
func talk(t *testing.T, b []byte, o *Options) (*conn, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, ours) }()
	go func() {
		_, _ = ours.Write(b)
		ours.Close()
	}()
	c := newConn(theirs, netip.AddrPort{}, o)
	err := c.run(t.Context())
	theirs.Close()
	if p, ok := errors.AsType[*fault.PanicError](err); ok {
		t.Fatalf("%v\n%s", p, p.Stack)
	}
	return c, err
}

// FuzzHandshake feeds a connection with arbitrary first bytes: nothing but a whole handshake and a publish command
// leads to the gate.
func FuzzHandshake(f *testing.F) {
	f.Add(opened())
	f.Add(opened()[:1+rtmpwire.HandshakeSize])
	f.Add([]byte{6})
	f.Add([]byte{0x16, 3, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		asked := false
		o := New(Options{
			Gate: ingesttest.Gate(func(context.Context, ingest.Publication) (context.Context, ingest.Sink, error) {
				asked = true
				return nil, nil, ingest.ErrUnknownKey
			}), Logger: quiet,
		}).opts
		c, _ := talk(t, b, &o)
		if asked && (len(b) < 1+2*rtmpwire.HandshakeSize || b[0] != rtmpwire.Version) {
			t.Errorf("the gate is asked after %d bytes", len(b))
		}
		if c.published {
			t.Error("published although refused")
		}
	})
}

// FuzzConnection feeds a connection with arbitrary bytes: behind nothing, behind the handshake, and behind a publish
// command.
func FuzzConnection(f *testing.F) {
	f.Add(byte(0), opened())
	f.Add(byte(1), opened()[1+2*rtmpwire.HandshakeSize:])
	f.Add(byte(2),
		cat(videoConfig(testAvcC), audioConfig(), videoFrame(1<<31), audioFrame(7), commandBytes("deleteStream")))
	f.Add(byte(2), chunk(9, 2, cat([]byte{0x96, 0x23}, []byte("avc1"), []byte{0, 0, 0, 9}, testIDR)...))
	f.Fuzz(func(t *testing.T, depth byte, b []byte) {
		front := [][]byte{nil, opened()[:1+2*rtmpwire.HandshakeSize], opened()}[depth%3]
		sink := &discard{t: t}
		o := New(Options{
			Gate: ingesttest.Gate(func(
				ctx context.Context, _ ingest.Publication,
			) (context.Context, ingest.Sink, error) {
				return ctx, sink, nil
			}), Logger: quiet,
		}).opts
		c, _ := talk(t, cat(front, b), &o)
		if held, most := c.wire.Held(); held > most+o.MaxMessage {
			t.Errorf("%d bytes held", held)
		}
		if c.published != (sink.closed == 1) {
			t.Errorf("published %v, closed %d times", c.published, sink.closed)
		}
	})
}

// strict is a sink that holds what it gets against the contract of frames.
type strict struct {
	t       *testing.T
	configs [2]*frame.Config
	bytes   int
}

func (s *strict) Configure(c frame.Config) error {
	if c.Codec == frame.VP8 || c.Kind > frame.Audio {
		s.t.Errorf("configuration %+v", c)
	}
	if c.Kind == frame.Video && (c.Width <= 0 || c.Height <= 0) ||
		c.Kind == frame.Audio && (c.SampleRate <= 0 || c.Channels <= 0) {
		s.t.Errorf("configuration %+v", c)
	}
	s.configs[c.Kind] = &c
	return nil
}

func (s *strict) Write(f frame.Frame) error {
	c := s.configs[f.Kind]
	if c == nil || len(f.Data) == 0 || f.Kind == frame.Audio && !f.Key {
		s.t.Fatalf("frame of %d bytes, configured: %v", len(f.Data), c != nil)
	}
	s.bytes += len(f.Data)
	switch c.Codec {
	case frame.H264, frame.HEVC:
		if err := nal.Check(f.Data); err != nil {
			s.t.Error(err)
		}
	case frame.AV1:
		if again, err := av1.Sample(f.Data); err != nil || len(again) != len(f.Data) {
			s.t.Errorf("no sample: %v", err)
		}
	}
	return nil
}

func (*strict) Close(error) {}

// envelope packs messages for FuzzTags: kind, time in 4 bytes, length in 2, body.
func envelope(kind byte, at uint32, body ...byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, at)
	return append(binary.BigEndian.AppendUint16(b, uint16(len(body))), body...)
}

// FuzzTags feeds the reading of FLV tags, plain and extended, with arbitrary messages in a row.
func FuzzTags(f *testing.F) {
	video, audio, data := byte(rtmpwire.TypeVideo), byte(rtmpwire.TypeAudio), byte(rtmpwire.TypeDataAMF0)
	f.Add(cat(envelope(video, 0, cat([]byte{0x17, 0, 0, 0, 0}, testAvcC)...),
		envelope(video, 0, cat([]byte{0x17, 1, 0, 0, 0}, testIDR)...),
		envelope(audio, 0, cat([]byte{0xaf, 0}, testASC)...), envelope(audio, 9, 0xaf, 1, 2)))
	f.Add(cat(envelope(video, 0, cat([]byte{0x17, 0, 0, 0, 0}, avcC(testSPS, 2))...),
		envelope(video, 0, 0x17, 1, 0, 0, 0, 0, 5, 0x65, 1, 2, 3, 4)))
	f.Add(cat(envelope(video, 0,
		cat([]byte{0x96, 0x20}, []byte("avc1"), []byte{0, 0, 0, byte(len(testAvcC))}, testAvcC)...),
		envelope(video, 0, cat([]byte{0x97, 2, 0, 0, 1, 0x06, 0x13}, []byte("avc1"), []byte{0, 0, 0, 9}, testIDR)...)))
	f.Add(cat(envelope(audio, 0, cat([]byte{0x2f}, mp3Frame(1), mp3Frame(2))...),
		envelope(audio, 0, cat([]byte{0x95, 0x01}, []byte(".mp3"), []byte{0}, mp3Frame(1))...)))
	f.Add(cat(envelope(data, 0, 2, 0, 10, 'o', 'n', 'M', 'e', 't', 'a', 'D', 'a', 't', 'a', 8, 0, 0, 0, 0, 0, 0, 9),
		envelope(22, 0, 9, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		sink := &strict{t: t}
		m := newMedia(sink)
		total := len(b)
		for len(b) >= 7 {
			n := min(int(binary.BigEndian.Uint16(b[5:])), len(b)-7)
			err := m.handle(rtmpwire.Packet{
				Kind: b[0], Timestamp: binary.BigEndian.Uint32(b[1:]), Body: b[7 : 7+n : 7+n],
			}, time.Time{})
			if err != nil {
				if _, ok := errors.AsType[ingest.Unsupported](err); !ok {
					t.Fatalf("an error that no encoder would be shown: %v", err)
				}
				return
			}
			b = b[7+n:]
		}
		if sink.bytes > 4*total { // NAL unit lengths grow from one byte to four
			t.Errorf("%d bytes of frames out of %d", sink.bytes, total)
		}
	})
}
