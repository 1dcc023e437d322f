package rtmp

import (
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/rtmpwire"
)

const (
	maxMetadata  = 16  // data messages looked at; a stream has one or two
	maxMalformed = 100 // frames of a kind that may be unreadable before the first one that is not
	// frames of a kind that may come before its sequence header: a relay may begin in the midst of a GOP, of up to 20 s
	// at 60 a second.
	maxHeaderless = 1200
)

// media turns messages into frames for a sink.
type media struct {
	sink       ingest.Sink
	clock      clock
	picture    videoState
	sound      audioState
	videoTrack int // of multitrack messages: the first of each kind that was configured, flv.AnyTrack before
	audioTrack int
	metadata   int
	fps        float64 // as onMetaData says
	encoder    string
	named      func(encoder string) // is told what the encoder calls itself; may be nil
	counts     counts
	useless    [2]useless // by kind
	captions   captions   // that come beside the picture
}

func newMedia(sink ingest.Sink) media {
	return media{sink: sink, videoTrack: flv.AnyTrack, audioTrack: flv.AnyTrack}
}

// counts is what a publication leaves in the log.
type counts struct{ video, audio, malformed int }

// useless counts frames of a kind that no decoder could use.
type useless struct{ malformed, headerless int }

// handle serves one media or data message that was complete at received.
func (m *media) handle(p rtmpwire.Packet, received time.Time) error {
	var err error
	switch p.Kind {
	case rtmpwire.TypeVideo:
		err = m.video(p, received)
	case rtmpwire.TypeAudio:
		err = m.audio(p, received)
	case rtmpwire.TypeAggregate:
		err = flv.EachTag(p.Body, func(kind uint8, after uint32, body []byte) error {
			if kind == rtmpwire.TypeAggregate {
				return nil
			}
			return m.handle(rtmpwire.Packet{Kind: kind, Timestamp: p.Timestamp + after, Body: body}, received)
		})
	case rtmpwire.TypeDataAMF0, rtmpwire.TypeDataAMF3:
		m.data(p)
	}
	if u, ok := errors.AsType[flv.UnsupportedError](err); ok {
		return ingest.Unsupported(u)
	}
	return m.bear(p.Kind, err)
}

// bear passes over a frame that can't be used. Where a kind had none that could, it is not borne for long: an encoder
// that is not told would go on to send a picture or sound that is not recorded.
func (m *media) bear(kind uint8, err error) error {
	malformed := errors.Is(err, flv.ErrMalformed)
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
	t, err := flv.ParseVideo(p.Body, m.videoTrack)
	if err != nil || t.Content == flv.Nothing {
		return err
	}
	at += t.Fine
	var c *frame.Config
	if t.Content == flv.Configuration {
		if c, err = m.picture.configure(t.Codec, t.Data); err != nil {
			return err
		}
		m.videoTrack = int(t.Track)
		return m.configure(c)
	}
	if len(t.Data) == 0 {
		return nil
	}
	if t.Codec != m.picture.codec {
		return errNoSequenceHeader // no decoder could use it
	}
	sample, key, c, err := m.picture.read(t.Data)
	if err != nil || sample == nil {
		return err
	}
	if err := m.configure(c); err != nil {
		return err
	}
	m.counts.video++
	sample = m.captions.put(m.picture.codec, sample, at+t.Offset, key)
	return m.sink.Write(frame.Frame{
		Kind:     frame.Video,
		DTS:      at,
		PTS:      at + t.Offset,
		Key:      key,
		Data:     sample,
		Received: received,
	})
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
	t, err := flv.ParseAudio(p.Body, m.audioTrack)
	if err != nil || t.Content == flv.Nothing {
		return err
	}
	at += t.Fine
	if t.Content == flv.Configuration {
		c, err := m.sound.configure(t.Codec, t.Data)
		if err != nil {
			return err
		}
		m.audioTrack = int(t.Track)
		return m.configure(c)
	}
	for rest := t.Data; len(rest) > 0; {
		sample, after, length, c, err := m.sound.next(t.Codec, rest)
		if err != nil {
			return err
		}
		if c != nil {
			m.audioTrack = int(t.Track)
		}
		if err := m.configure(c); err != nil {
			return err
		}
		m.counts.audio++
		if err := m.sink.Write(frame.Frame{
			Kind:     frame.Audio,
			DTS:      at,
			PTS:      at,
			Key:      true,
			Data:     sample,
			Received: received,
		}); err != nil {
			return err
		}
		at, rest = at+length, after
	}
	return nil
}

// data reads the encoder's name and the frame rate out of onMetaData, and captions.
func (m *media) data(p rtmpwire.Packet) {
	if m.captions.handle(p) {
		return
	}
	if m.metadata++; m.metadata > maxMetadata {
		return
	}
	for _, v := range p.Values() {
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
