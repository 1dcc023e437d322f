// Package vp8 reads what the rest of the media plane needs to know about a VP8 stream, RFC 6386. CMAF has no place for
// VP8, so it always has to be re-encoded. Bytes in, values out: it must never know files, sockets, time of day or a
// logger, and it starts no goroutines.
package vp8

import (
	"errors"
	"fmt"

	"millrace/internal/media/frame"
)

// ErrMalformed is wrapped by every error of this package: the bytes are not VP8 as the standard has it.
var ErrMalformed = errors.New("malformed VP8")

// IsKey reports whether a frame is a key frame, section 9.1.
func IsKey(data []byte) bool { return len(data) > 0 && data[0]&1 == 0 }

// TrackConfig makes the track configuration of a stream from a key frame, which alone says its size.
func TrackConfig(key []byte) (frame.Config, error) {
	if len(key) < 10 || !IsKey(key) || key[3] != 0x9d || key[4] != 0x01 || key[5] != 0x2a {
		return frame.Config{}, fmt.Errorf("%w: no key frame in %d bytes", ErrMalformed, len(key))
	}
	w, h := int(key[6])|int(key[7]&0x3f)<<8, int(key[8])|int(key[9]&0x3f)<<8
	if w == 0 || h == 0 {
		return frame.Config{}, fmt.Errorf("%w: picture of %d by %d pixels", ErrMalformed, w, h)
	}
	return frame.Config{Kind: frame.Video, Codec: frame.VP8, Width: w, Height: h}, nil
}

// CodecString returns the name that WebM uses.
func CodecString() string { return "vp8" }
