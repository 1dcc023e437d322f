package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/fault"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/encode"
	"millrace/internal/media/timeline"
	"millrace/internal/worker/attempt"
)

// decodes refuses a file that is to be played as it is, and of whose nth video, or audio where that is all, nothing can
// be decoded.
func (w *Worker) decodes(ctx context.Context, path string, format encode.Format, kind encode.Kind, n int) error {
	ok, err := w.opt.Engine.Decodes(ctx, path, format, kind, n)
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

// tellCutOff tells the owner of a file that ends before it says, in seconds of what can be read of it or in bytes.
func (w *Worker) tellCutOff(ctx context.Context, a asset.Asset, path string, says, is float64) error {
	if says-is >= max(shorterBy, shorter*says) {
		return w.warn(ctx, a, asset.InputTruncated, fmt.Sprintf("the file says that it lasts %.3f seconds, and what can be read of it ends after %.3f: "+
			"its end is missing, or it is damaged", says, is))
	}
	missing, err := lacks(path)
	if err != nil || missing == 0 {
		return err
	}
	return w.warn(ctx, a, asset.InputTruncated, fmt.Sprintf("the file says that it has %d bytes more than there are: its end is missing", missing))
}

// lacks is how many bytes a RIFF or IFF file says that it has beyond its end: WAV, AVI, AIFF. A recorder that could not go back to its header
// has left a size that means nothing.
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

// tellPiece tells the owner of an MP4 that ends inside of a fragment.
func (w *Worker) tellPiece(ctx context.Context, a asset.Asset, f *mp4.File) error {
	if !f.Truncated {
		return nil
	}
	return w.warn(ctx, a, asset.InputTruncated, "the file ends inside of a fragment, its end is missing: the asset has what is whole of it")
}

// tellMissing tells the owner of a file of which a whole track could not be decoded; where nothing could, the file is refused.
// Video without a decoder was refused before.
func (w *Worker) tellMissing(ctx context.Context, a asset.Asset, c *conform, t *timeline.Timeline) error {
	if c.unsupported != nil && len(t.Renditions) > 0 {
		return w.warn(ctx, a, asset.InputUndecodable,
			fmt.Sprintf("the file's audio is %s, which is not supported: the asset has none", titleOf(c.unsupported)))
	}
	var missing encode.Kind
	switch {
	case c.video != nil && t.Rendition(timeline.MainVideo) == nil:
		missing = encode.Video
	case c.audio != nil && t.Rendition(timeline.MainAudio) == nil:
		missing = encode.Audio
	default:
		return nil
	}
	if len(t.Renditions) == 0 {
		return undecodable(missing)
	}
	return w.warn(ctx, a, asset.InputUndecodable, fmt.Sprintf("nothing of the file's %s can be decoded: the asset has none", missing))
}

func (w *Worker) warn(ctx context.Context, a asset.Asset, kind, message string) error {
	err := w.opt.Assets.Warn(ctx, a.ID, asset.Warning{Type: kind, Message: message}, w.opt.Now())
	if fault.Is(err, fault.NotFound) {
		return errGone
	}
	return err
}
