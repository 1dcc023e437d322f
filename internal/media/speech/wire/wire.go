// Package wire is the protocol between the service and the speech recognition process: requests in frames on its
// standard input, JSON lines on its standard output.
//
// A frame is one byte for its kind, the length of its body in 4 bytes, big endian, and the body.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The kinds of frames.
const (
	KindStart = 'S' // Start as JSON; the first frame
	// 8 bytes with the number of the first sample, big endian, and samples of 2 bytes, least significant first.
	KindSound = 'A'
	KindEnd   = 'E' // no body: what was said ends here
)

// MaxBody of a frame, in bytes: a thousand phrases, or some seconds of sound.
const MaxBody = 1 << 20

// Start says how to recognise.
type Start struct {
	Model      string   `json:"model"` // folder
	Phrases    []string `json:"phrases,omitempty"`
	MaxSamples int      `json:"max_samples"` // of speech without a pause; 0: any
	Effort     int      `json:"effort"`
	// the sound has ended: nobody waits for words, and pieces of it are looked at as a whole
	Whole bool `json:"whole,omitempty"`
}

// Word has its times in samples.
type Word struct {
	Text       string  `json:"w"`
	Start      int64   `json:"s"`
	End        int64   `json:"e"`
	Confidence float32 `json:"c"`
}

// Result is one line of the response. The first one says only that the process is ready.
type Result struct {
	Words []Word `json:"words,omitempty"`
	Until int64  `json:"until"`           // sample
	Error string `json:"error,omitempty"` // why the process ends
}

// ErrTooLong says that a frame is longer than any may be.
var ErrTooLong = errors.New("frame is too long")

// AppendHeader appends the header of a frame.
func AppendHeader(b []byte, kind byte, length int) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), uint32(length))
}

// AppendSound appends a frame of sound.
func AppendSound(b []byte, first int64, samples []int16) []byte {
	b = AppendHeader(b, KindSound, 8+2*len(samples))
	b = binary.BigEndian.AppendUint64(b, uint64(first))
	for _, s := range samples {
		b = binary.LittleEndian.AppendUint16(b, uint16(s))
	}
	return b
}

// Read reads a frame; its body is overwritten by the next one. io.EOF: there is none.
func Read(r io.Reader, buf []byte) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err = io.ReadFull(r, head[:]); err != nil {
		return 0, buf, err // io.EOF has to stay as it is
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > MaxBody {
		return 0, buf, fmt.Errorf("%w: %d bytes", ErrTooLong, n)
	}
	if uint32(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err = io.ReadFull(r, buf); err != nil {
		return 0, buf, fmt.Errorf("read frame: %w", err)
	}
	return head[0], buf, nil
}

// Sound reads the body of a frame of sound into samples.
func Sound(body []byte, samples []int16) (first int64, out []int16, err error) {
	if len(body) < 8 || len(body)%2 != 0 {
		return 0, nil, errors.New("frame of sound is cut off")
	}
	first = int64(binary.BigEndian.Uint64(body))
	samples = samples[:0]
	for b := body[8:]; len(b) > 0; b = b[2:] {
		samples = append(samples, int16(binary.LittleEndian.Uint16(b)))
	}
	return first, samples, nil
}
