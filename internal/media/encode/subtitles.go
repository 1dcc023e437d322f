package encode

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strconv"

	"millrace/internal/fault"
)

// Readable reports whether subtitles of a codec, as ffprobe calls it, are text. The others are pictures.
func Readable(codec string) bool {
	return slices.Contains([]string{"mov_text", "subrip", "srt", "webvtt", "text", "ass", "ssa", "ttml"}, codec)
}

// SubtitlesArgs returns the arguments that write one of a file's streams of subtitles, from 0, as WebVTT to standard
// output.
func SubtitlesArgs(path string, format Format, n int) []string {
	return append(append(common(), input(format, path)...), "-map", "0:s:"+strconv.Itoa(n), "-f", "webvtt", "pipe:1")
}

// Subtitles are one of a file's streams of subtitles as WebVTT, at most so many bytes. fault.Invalid: they can't be
// read, or there are more.
func (e *Engine) Subtitles(ctx context.Context, path string, format Format, n int, most int64) ([]byte, error) {
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	var text bytes.Buffer
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: SubtitlesArgs(path, format, n), Priority: OnDemand,
		Limits: e.opts.Bounds.Subtitles.limits(e.opts.Limits.AddressSpace),
		Output: func(_ context.Context, r io.Reader) error {
			size, rerr := io.Copy(&text, io.LimitReader(r, most+1))
			if rerr == nil && size > most {
				return fault.New(fault.Invalid, "the file has more subtitles than can be read")
			}
			return rerr // Run says what was read
		},
	}).RunAs(ctx, "subtitles")
	if err != nil {
		return nil, blame(err, "the subtitles can't be read")
	}
	return text.Bytes(), nil
}
