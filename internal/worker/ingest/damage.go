package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/worker/attempt"
)

// decodes refuses a file that is to be played as it is, and of whose nth video, or audio where that is all, nothing can
// be decoded.
func (i *inspector) decodes(ctx context.Context, path string, format encode.Format, kind encode.Kind, n int) error {
	ok, err := i.engine.Decodes(ctx, path, format, kind, n)
	if err == nil && !ok {
		err = undecodable(kind)
	}
	return err
}

func undecodable(kind encode.Kind) error {
	return fault.New(fault.Invalid, "nothing of the file's %s can be decoded: it is damaged", kind)
}

// unsupported is of a track for whose codec there is no decoder.
func unsupported(t *encode.Track) error {
	usual := "H.264, HEVC, AV1 or VP9"
	if t.Kind == encode.Audio {
		usual = "AAC, MP3, Opus or FLAC"
	}
	return fault.New(fault.Invalid, "the file's %s is %s, which is not supported: convert it to %s",
		t.Kind, titleOf(t), usual)
}

// Something that lasts less than its file says by this much, of it and in seconds, is cut off.
const shorter, shorterBy = 0.05, 2

// says is how long the file says that what is taken of it lasts, in seconds; 0: it does not.
func (c *conform) says(info encode.Info) float64 {
	long := time.Duration(0)
	for _, t := range []*encode.Track{c.video, c.audio} {
		if t != nil {
			long = max(long, t.Duration)
		}
	}
	if long == 0 {
		long = info.Duration
	}
	if c.args.Length > 0 {
		long = min(long, c.args.Length)
	}
	return long.Seconds()
}

// lacks is how many bytes a RIFF or IFF file says that it has beyond its end: WAV, AVI, AIFF. A recorder that could not
// go back to its header has left a size that means nothing.
func lacks(path string) (int64, error) {
	f, long, err := attempt.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	var head [8]byte
	if _, err = f.ReadAt(head[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, fmt.Errorf("read download: %w", err)
	}
	size := uint32(0)
	switch string(head[:4]) {
	case "RIFF":
		size = binary.LittleEndian.Uint32(head[4:])
	case "FORM":
		size = binary.BigEndian.Uint32(head[4:])
	}
	const unwritten = 1<<32 - 1<<16
	if size >= unwritten {
		return 0, nil
	}
	return max(int64(size)+int64(len(head))-long-1, 0), nil // a byte of padding may be left out
}
