package rtmp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"testing"
	"time"

	"github.com/bluenviron/gortmplib"
	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/codecs"
	"github.com/bluenviron/gortmplib/pkg/message"
	"github.com/bluenviron/mediacommon/v2/pkg/codecs/mpeg4audio"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

func TestGortmplibClientPublishes(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	u, err := url.Parse("rtmp://" + s.addr + "/live#" + key)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), ingesttest.Patience)
	defer cancel()
	c := &gortmplib.Client{URL: u, Publish: true}
	if err := c.Initialize(ctx); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	video := &gortmplib.Track{Codec: &codecs.H264{SPS: testSPS, PPS: testPPS}}
	audio := &gortmplib.Track{
		Codec: &codecs.MPEG4Audio{
			Config: &mpeg4audio.AudioSpecificConfig{Type: 2, SampleRate: 48000, ChannelConfig: 2},
		},
	}
	w := &gortmplib.Writer{Conn: c, Tracks: []*gortmplib.Track{video, audio}}
	if err := w.Initialize(); err != nil {
		t.Fatal(err)
	}
	const start = (1<<32 - 100) * time.Millisecond // wraps while it is sent, with extended timestamps
	for i := range 10 {
		at := start + time.Duration(i)*40*time.Millisecond
		err := errors.Join(
			w.WriteH264(video, at+80*time.Millisecond, at, [][]byte{append(testIDR[4:5:5], make([]byte, 70000)...)}),
			w.WriteMPEG4Audio(audio, at, []byte{1, 2, 3}),
		)
		if err != nil {
			t.Fatal(err)
		}
	}
	bye := &message.CommandAMF0{ChunkStreamID: 3, Name: "deleteStream", Arguments: amf0.Data{nil, 1.0}}
	if err := c.Write(bye); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
		t.Errorf("cause %v\n%s", cause, s.log)
	}
	s.stop()
	s.log.CheckLabels(t)
	for _, k := range []frame.Kind{frame.Video, frame.Audio} {
		frames := sink.Of(k)
		if len(frames) != 10 {
			t.Fatalf("%d %v frames", len(frames), k)
		}
		for i, f := range frames {
			if d := f.DTS - frames[0].DTS; d != time.Duration(i)*40*time.Millisecond {
				t.Errorf("%v frame %d comes %v after the first", k, i, d)
			}
		}
	}
}

func TestPingsAndAcknowledgements(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	window := []byte{2, 0, 0, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 1, 0, 0}
	ping := []byte{2, 0, 0, 0, 0, 0, 6, 4, 0, 0, 0, 0, 0, 6, 1, 2, 3, 4}
	big := chunk(rtmpwire.TypeVideo, 0, append([]byte{0x17, 1, 0, 0, 0}, make([]byte, 1<<17)...)...)
	said := send(t, s.addr, cat(opened(), window, videoConfig(testAvcC), big, ping))
	if cause := sink.Cause(t); !errors.Is(cause, io.EOF) {
		t.Logf("cause %v", cause)
	}
	if !bytes.Contains(said, []byte{0, 7, 1, 2, 3, 4}) {
		t.Error("no ping response")
	}
	if !bytes.Contains(said, []byte{0, 0, 4, byte(message.TypeAcknowledge)}) {
		t.Error("no acknowledgement")
	}
}
