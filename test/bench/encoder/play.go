package encoder

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Play sends the clip at its own speed, again and again, until ctx ends; then it returns nil. stamps, when not nil,
// marks each frame of video and remembers when its last byte left.
func (p *Publisher) Play(ctx context.Context, c *Clip, stamps *Stamps) error {
	for _, s := range c.Setup {
		if err := p.send(s.Kind, 0, s.Body); err != nil {
			return p.ended(ctx, err)
		}
	}
	start := time.Now()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for at := time.Duration(0); ; at += c.Length {
		for _, m := range c.Media {
			timer.Reset(time.Until(start.Add(at + m.At)))
			select {
			case <-ctx.Done():
				return nil
			case <-timer.C:
			}
			body := m.Body
			if stamps != nil && m.Video() {
				body = stamps.mark(body)
			}
			if err := p.send(m.Kind, at+m.At, body); err != nil {
				return p.ended(ctx, err)
			}
		}
	}
}

func (p *Publisher) ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		err = fmt.Errorf("send media: %w", err)
	} else {
		err = nil // it was told to end
	}
	return err
}

// Stamps numbers frames of video by an SEI message of their own, ISO 14496-10 annex D.1.7, that a packager hands on
// untouched.
type Stamps struct {
	mu   sync.Mutex
	sent []time.Time
}

// mark identifies the message; none of its bytes is 0, so that it needs no emulation prevention.
const mark = "\x9bmillrace-bench!"

// mark gives the frame's body with a number in it. The time is taken before the write: the socket's own work counts as
// latency.
func (s *Stamps) mark(body []byte) []byte {
	const head = 5 // FLV's video tag header
	n := make([]byte, 4)
	s.mu.Lock()
	binary.BigEndian.PutUint32(n, uint32(len(s.sent)))
	s.sent = append(s.sent, time.Now())
	s.mu.Unlock()
	sei := append([]byte{6, 5, 16 + 8}, mark...)
	sei = append(hex.AppendEncode(sei, n), 0x80)
	out := make([]byte, 0, len(body)+4+len(sei))
	out = append(out, body[:head]...)
	out = append(binary.BigEndian.AppendUint32(out, uint32(len(sei))), sei...)
	return append(out, body[head:]...)
}

// Found are the numbers of the frames in packaged media.
func (s *Stamps) Found(media []byte) (numbers []int) {
	for {
		i := bytes.Index(media, []byte(mark))
		if i < 0 || len(media) < i+16+8 {
			return numbers
		}
		if n, err := hex.DecodeString(string(media[i+16 : i+16+8])); err == nil {
			numbers = append(numbers, int(binary.BigEndian.Uint32(n)))
		}
		media = media[i+16:]
	}
}

// Sent says when each frame was, by its number.
func (s *Stamps) Sent() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent)
}

// Last finds the newest frame in packaged media and says when it was sent.
func (s *Stamps) Last(media []byte) (time.Time, bool) {
	i := bytes.LastIndex(media, []byte(mark))
	if i < 0 || len(media) < i+16+8 {
		return time.Time{}, false
	}
	n, err := hex.DecodeString(string(media[i+16 : i+16+8]))
	if err != nil {
		return time.Time{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := int(binary.BigEndian.Uint32(n)); k < len(s.sent) {
		return s.sent[k], true
	}
	return time.Time{}, false
}
