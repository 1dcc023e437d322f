package rtmp

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/rtmpwire"
)

const (
	maxMetadata   = 16   // data messages looked at; a stream has one or two
	maxMalformed  = 100  // frames of a kind that may be unreadable before the first one that is not
	maxHeaderless = 1200 // frames of a kind that may come before its sequence header: a relay may begin in the midst of a GOP, of up to 20 s at 60 a second
)

// media turns messages into frames for a sink.
type media struct {
	sink       ingest.Sink
	clock      clock
	picture    videoState
	sound      audioState
	videoTrack int // of multitrack messages: the first of each kind that was configured, anyTrack before
	audioTrack int
	metadata   int
	fps        float64 // as onMetaData says
	encoder    string
	named      func(encoder string) // is told what the encoder calls itself; may be nil
	counts     counts
	useless    [2]useless // by kind
}

func newMedia(sink ingest.Sink) media {
	return media{sink: sink, videoTrack: anyTrack, audioTrack: anyTrack}
}

// counts is what a publication leaves in the log.
type counts struct{ video, audio, malformed int }

// useless counts frames of a kind that no decoder could use.
type useless struct{ malformed, headerless int }

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
	return m.bear(p.Kind, err)
}

// bear passes over a frame that can't be used. Where a kind had none that could, it is not borne for long: an encoder that is not told would
// go on to send a picture that nobody sees, or sound that nobody hears.
func (m *media) bear(kind uint8, err error) error {
	malformed := errors.Is(err, errTag)
	if !malformed && !errors.Is(err, errNoSequenceHeader) {
		return err
	}
	if malformed {
		m.counts.malformed++
	}
	k, name, taken := frame.Video, "video", m.counts.video
	switch kind {
	case rtmpwire.TypeVideo:
	case rtmpwire.TypeAudio:
		k, name, taken = frame.Audio, "audio", m.counts.audio
	default: // an aggregate that is none
		if m.counts.malformed >= maxMalformed && m.counts.video+m.counts.audio == 0 {
			return ingest.Unsupported("none of the frames can be read")
		}
		return nil
	}
	u := &m.useless[k]
	if malformed {
		u.malformed++
	} else {
		u.headerless++
	}
	switch {
	case taken > 0:
	case u.malformed >= maxMalformed:
		return ingest.Unsupported(fmt.Sprintf("none of the %s frames can be read: %v", name, err))
	case u.headerless >= maxHeaderless:
		return ingest.Unsupported("no sequence header with the " + name + ", which can't be decoded without")
	}
	return nil
}

func (m *media) video(p rtmpwire.Packet, received time.Time) error {
	at := m.clock.unwrap(p.Timestamp)
	t, err := parseVideo(p.Body, m.videoTrack)
	if err != nil || t.content == nothing {
		return err
	}
	at += t.fine
	var c *frame.Config
	if t.content == configuration {
		if c, err = m.picture.configure(t.codec, t.data); err != nil {
			return err
		}
		m.videoTrack = int(t.track)
		return m.configure(c)
	}
	if len(t.data) == 0 {
		return nil
	}
	if t.codec != m.picture.codec {
		return errNoSequenceHeader // no decoder could use it
	}
	sample, key, c, err := m.picture.read(t.data)
	if err != nil || sample == nil {
		return err
	}
	if err := m.configure(c); err != nil {
		return err
	}
	m.counts.video++
	return m.sink.Write(frame.Frame{Kind: frame.Video, DTS: at, PTS: at + t.offset, Key: key, Data: sample, Received: received})
}

func (m *media) configure(c *frame.Config) error {
	if c == nil {
		return nil
	}
	if c.Kind == frame.Video && c.FrameRate == 0 {
		c.FrameRate = m.fps
	}
	return m.sink.Configure(*c)
}

func (m *media) audio(p rtmpwire.Packet, received time.Time) error {
	at := m.clock.unwrap(p.Timestamp)
	t, err := parseAudio(p.Body, m.audioTrack)
	if err != nil || t.content == nothing {
		return err
	}
	at += t.fine
	if t.content == configuration {
		c, err := m.sound.configure(t.codec, t.data)
		if err != nil {
			return err
		}
		m.audioTrack = int(t.track)
		return m.configure(c)
	}
	for rest := t.data; len(rest) > 0; {
		sample, after, length, c, err := m.sound.next(t.codec, rest)
		if err != nil {
			return err
		}
		if c != nil {
			m.audioTrack = int(t.track)
		}
		if err := m.configure(c); err != nil {
			return err
		}
		m.counts.audio++
		if err := m.sink.Write(frame.Frame{Kind: frame.Audio, DTS: at, PTS: at, Key: true, Data: sample, Received: received}); err != nil {
			return err
		}
		at, rest = at+length, after
	}
	return nil
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
				if m.named != nil {
					m.named(name)
				}
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
