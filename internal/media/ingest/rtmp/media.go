package rtmp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/rtmpwire"
)

const (
	maxMetadata  = 16  // data messages looked at; a stream has one or two
	maxMalformed = 100 // frames that may be unreadable before the first one that is not
)

// media turns messages into frames for a sink.
type media struct {
	sink       ingest.Sink
	clock      clock
	avcC, asc  []byte // as last configured
	lengthSize int    // bytes of the NAL unit lengths
	metadata   int
	fps        float64 // as onMetaData says
	encoder    string
	counts     counts
}

// counts is what a publication leaves in the log.
type counts struct{ video, audio, malformed int }

// take serves one media or data message that was complete at received.
func (m *media) take(p rtmpwire.Packet, received time.Time) error {
	var err error
	switch p.Kind {
	case rtmpwire.TypeVideo:
		err = m.video(p, received)
	case rtmpwire.TypeAudio:
		err = m.audio(p, received)
	case rtmpwire.TypeAggregate:
		err = eachTag(p, func(p rtmpwire.Packet) error {
			if p.Kind == rtmpwire.TypeAggregate {
				return nil
			}
			return m.take(p, received)
		})
	case rtmpwire.TypeDataAMF0:
		m.data(p.Body)
	case rtmpwire.TypeDataAMF3:
		m.data(amf3Body(p.Body))
	}
	if !errors.Is(err, errTag) {
		return err
	}
	if m.counts.malformed++; m.counts.malformed >= maxMalformed && m.counts.video+m.counts.audio == 0 {
		return unsupportedError("none of the frames can be read")
	}
	return nil
}

func (m *media) video(p rtmpwire.Packet, received time.Time) error {
	at := m.clock.unwrap(p.Timestamp)
	t, err := parseVideo(p.Body)
	switch {
	case err != nil || t.content == nothing:
		return err
	case t.content == configuration:
		return m.configureVideo(t.data)
	case m.avcC == nil || len(t.data) == 0:
		return nil // no decoder could use it
	}
	au := t.data
	if m.lengthSize != 4 {
		au = widen(au, m.lengthSize)
	}
	if err := h264.Check(au); err != nil {
		return fmt.Errorf("%w: %w", errTag, err)
	}
	m.counts.video++
	return m.sink.Write(frame.Frame{Kind: frame.Video, DTS: at, PTS: at + t.offset, Key: h264.HasIDR(au), Data: au, Received: received})
}

func (m *media) configureVideo(avcC []byte) error {
	if len(avcC) == 0 || m.avcC != nil && bytes.Equal(avcC, m.avcC) {
		return nil
	}
	sps, pps, lengthSize, err := h264.ParseAVCC(avcC)
	if err != nil {
		return unsupportedError("video configuration can not be read: " + err.Error())
	}
	if len(sps) == 0 || len(pps) == 0 {
		return unsupportedError("video configuration has no parameter sets, send them in the sequence header")
	}
	c, err := h264.TrackConfig(sps[0], pps[0])
	if err != nil {
		return unsupportedError("video configuration can not be read: " + err.Error())
	}
	if c.FrameRate == 0 {
		c.FrameRate = m.fps
	}
	m.avcC, m.lengthSize = avcC, lengthSize
	return m.sink.Configure(c)
}

// widen rewrites an access unit with 1 or 2 byte lengths to one with 4.
func widen(au []byte, lengthSize int) []byte {
	out := make([]byte, 0, len(au)+64)
	for nal := range h264.NALs(au, lengthSize) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(nal)))
		out = append(out, nal...)
	}
	return out
}

func (m *media) audio(p rtmpwire.Packet, received time.Time) error {
	at := m.clock.unwrap(p.Timestamp)
	t, err := parseAudio(p.Body)
	switch {
	case err != nil || t.content == nothing:
		return err
	case t.content == configuration:
		return m.configureAudio(t.data)
	case m.asc == nil || len(t.data) == 0:
		return nil
	}
	m.counts.audio++
	return m.sink.Write(frame.Frame{Kind: frame.Audio, DTS: at, PTS: at, Key: true, Data: t.data, Received: received})
}

func (m *media) configureAudio(asc []byte) error {
	if len(asc) == 0 || m.asc != nil && bytes.Equal(asc, m.asc) {
		return nil
	}
	c, err := aac.TrackConfig(asc)
	if err != nil {
		return unsupportedError("audio configuration can not be used: " + err.Error())
	}
	m.asc = asc
	return m.sink.Configure(c)
}

// data reads the encoder's name and the frame rate out of onMetaData.
func (m *media) data(b []byte) {
	if m.metadata++; m.metadata > maxMetadata {
		return
	}
	for _, v := range rtmpwire.DecodeAMF0(b) {
		if o, ok := v.(rtmpwire.Object); ok {
			if name := encoderName(o.Text("encoder")); name != "" {
				m.encoder = name
			}
			if fps := o.Number("framerate"); fps > 0 && fps <= 1000 {
				m.fps = fps
			}
		}
	}
}

// amf3Body takes the leading byte off an AMF3 message; what follows is AMF0 in every encoder that sends these.
func amf3Body(b []byte) []byte {
	if len(b) > 0 && b[0] == 0 {
		return b[1:]
	}
	return b
}
