// Package flv reads and writes FLV: Adobe Flash Video File Format Specification 10.1, annex E, and Enhanced RTMP
// version 2 (veovera.org). The body of an FLV tag is also the body of RTMP's audio and video messages. Of complete FLV
// streams it reads H.264 only, as ffmpeg writes it to a pipe. Bytes ↔ values: it must never know sockets, files,
// processes or time of day, and it starts no goroutines.
package flv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/media/frame"
)

// Tag is one access unit, or the decoder configuration of those that follow.
type Tag struct {
	DTS time.Duration // whole milliseconds
	PTS time.Duration
	Key bool
	// Config says that Data is an AVCDecoderConfigurationRecord; else it is NAL units with lengths of 4 bytes.
	Config bool
	Data   []byte // the caller's to keep
}

// Reader reads tags.
type Reader struct {
	in      *bufio.Reader
	largest int
	begun   bool
}

// NewReader returns a Reader that refuses tags of more than largest bytes.
func NewReader(in io.Reader, largest int) *Reader {
	return &Reader{in: bufio.NewReaderSize(in, 64<<10), largest: largest}
}

const (
	headerSize, tagSize = 9, 11
	tagVideo            = 9
	frameKey            = 1
)

// Next returns the next H.264 tag; what is no video is passed over. io.EOF ends the stream between two tags.
func (r *Reader) Next() (Tag, error) {
	if !r.begun {
		if err := r.header(); err != nil {
			return Tag{}, err
		}
		r.begun = true
	}
	for {
		var h [4 + tagSize]byte // the size of the tag before, and the next tag's header
		if _, err := io.ReadFull(r.in, h[:4]); err != nil {
			return Tag{}, ended(err)
		}
		if _, err := io.ReadFull(r.in, h[4:5]); err != nil {
			if errors.Is(err, io.EOF) {
				return Tag{}, io.EOF
			}
			return Tag{}, fmt.Errorf("read FLV tag: %w", err)
		}
		if _, err := io.ReadFull(r.in, h[5:]); err != nil {
			return Tag{}, fmt.Errorf("read FLV tag: %w", err)
		}
		size := int(h[5])<<16 | int(h[6])<<8 | int(h[7])
		if size > r.largest {
			return Tag{}, fmt.Errorf("%w: tag of %d bytes, at most %d are taken", ErrMalformed, size, r.largest)
		}
		ms := uint32(h[11])<<24 | uint32(h[8])<<16 | uint32(h[9])<<8 | uint32(h[10])
		body := make([]byte, size)
		if _, err := io.ReadFull(r.in, body); err != nil {
			return Tag{}, fmt.Errorf("read FLV tag: %w", err)
		}
		if h[4]&31 != tagVideo {
			continue
		}
		tag, ok, err := video(body, time.Duration(ms)*time.Millisecond)
		if err != nil || ok {
			return tag, err
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return err
	}
	return fmt.Errorf("read FLV: %w", err)
}

func (r *Reader) header() error {
	var h [headerSize]byte
	if _, err := io.ReadFull(r.in, h[:]); err != nil {
		return ended(err)
	}
	if string(h[:3]) != "FLV" || binary.BigEndian.Uint32(h[5:]) != headerSize {
		return fmt.Errorf("%w: begins with %x", ErrMalformed, h)
	}
	return nil
}

// video reads a tag's body; ok is false for one that carries no media.
func video(b []byte, dts time.Duration) (tag Tag, ok bool, err error) {
	t, err := ParseVideo(b, AnyTrack)
	if err != nil || len(b) == 0 || t.Content != Nothing && t.Codec != frame.H264 {
		return Tag{}, false, fmt.Errorf("%w: video tag that is not H.264", ErrMalformed)
	}
	tag = Tag{DTS: dts, PTS: dts + t.Offset, Key: b[0]>>4 == frameKey, Config: t.Content == Configuration, Data: t.Data}
	return tag, t.Content != Nothing, nil
}
