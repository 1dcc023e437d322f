// Package encoder publishes a prepared clip over RTMP again and again, as many times at once as is asked for and at
// hardly any cost: every message is made once and written with one system call, at its time. Goroutines: one per
// Publisher, which reads what the server says.
package encoder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// Message types, RTMP 1.0 section 7.1.
const (
	typeAudio = 8
	typeVideo = 9
	typeData  = 18
)

// Clip is a piece of media that can be repeated without a seam.
type Clip struct {
	Setup  []Packet // metadata and codec configurations
	Media  []Packet // in order of time
	Length time.Duration
	Frames int // video frames in Media
}

// Packet is one FLV tag.
type Packet struct {
	Kind byte
	At   time.Duration
	Body []byte // shared, never changed
}

// Video reports whether the packet is a frame of video.
func (p Packet) Video() bool { return p.Kind == typeVideo }

var errFLV = errors.New("not the FLV file that was expected")

// ReadClip takes the first `frames` frames of video and `samples` frames of sound out of an FLV file with H.264 and
// AAC; they last for length.
func ReadClip(path string, frames, samples int, length time.Duration) (*Clip, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read clip: %w", err)
	}
	if len(b) < 13 || string(b[:3]) != "FLV" {
		return nil, fmt.Errorf("%w: no FLV header", errFLV)
	}
	c := &Clip{Length: length}
	first := time.Duration(-1)
	for b = b[13:]; len(b) >= 11; {
		size := int(b[1])<<16 | int(b[2])<<8 | int(b[3])
		if len(b) < 11+size+4 {
			break
		}
		at := time.Duration(binary.BigEndian.Uint32([]byte{b[7], b[4], b[5], b[6]})) * time.Millisecond
		p := Packet{Kind: b[0], At: at, Body: b[11 : 11+size : 11+size]}
		b = b[11+size+4:]
		if c.setup(p) {
			continue
		}
		if first < 0 {
			first = p.At
		}
		p.At -= first
		switch {
		case p.Kind == typeVideo && frames > 0:
			frames--
			c.Frames++
			c.Media = append(c.Media, p)
		case p.Kind == typeAudio && samples > 0:
			samples--
			c.Media = append(c.Media, p)
		}
	}
	if frames > 0 || samples > 0 || len(c.Setup) < 2 {
		return nil, fmt.Errorf("%w: too short", errFLV)
	}
	return c, nil
}

// setup takes what is not a frame.
func (c *Clip) setup(p Packet) bool {
	switch {
	case p.Kind == typeData:
		p.Body = append(appendString(nil, "@setDataFrame"), p.Body...)
		c.Setup = append(c.Setup, p)
		return true
	case len(p.Body) > 1 && p.Body[1] == 0: // AVCDecoderConfigurationRecord or AudioSpecificConfig
		p.At = 0
		c.Setup = append(c.Setup, p)
		return true
	}
	return len(p.Body) < 2 || p.Kind == typeVideo && p.Body[1] != 1
}

// Uneven is the clip at a variable frame rate: each frame of video at a time of its own.
func (c *Clip) Uneven() *Clip {
	out := *c
	out.Media = append([]Packet(nil), c.Media...)
	shift := [...]int{0, 6, -5, 7, 2, -6, 3, -3, 7, -5} // milliseconds
	n := 0
	for i := range out.Media {
		if p := &out.Media[i]; p.Video() {
			if n > 0 {
				p.At += time.Duration(shift[n%len(shift)]) * time.Millisecond
			}
			n++
		}
	}
	return &out
}
