package encode

import (
	"context"
	"io"
	"strconv"
	"time"

	"millrace/internal/fault"
)

// RefusesArgs return the arguments that decode a file's first picture stream, or one of its sounds counted from 0, and
// end with an error at the first packet that players' decoders refuse. length is how much of it; 0: all. Chromium
// refuses pictures in which anything is wrong, which ffmpeg by itself would show with a fault in them.
func RefusesArgs(path string, format Format, kind Kind, audio int, length time.Duration) []string {
	args := append(common(), "-xerror", "-threads", "1", "-max_pixels", strconv.Itoa(maxPixels))
	stream := "0:a:" + strconv.Itoa(audio)
	if kind == Video {
		args = append(args, "-err_detect", "explode")
		stream = "0:V:0"
	}
	if reading := (RewriteArgs{Format: format, Picture: &Picture{}}).reading(); reading != "" {
		args = append(args, "-fflags", reading)
	}
	args = append(append(args, input(format, path)...), "-map", stream)
	if length > 0 {
		args = append(args, "-t", seconds(length))
	}
	return append(args, "-f", "null", "pipe:1")
}

// Refuses reports whether players' decoders refuse anything of a file's picture, or of one of its sounds counted from
// 0, in so much of it from its beginning; 0: all. Of a sound it takes about a thousandth of the time that it lasts, of
// a picture a tenth and more. fault.Invalid: it takes too much of the processor.
func (e *Engine) Refuses(
	ctx context.Context, path string, format Format, kind Kind, audio int, length time.Duration,
) (bool, error) {
	priority, limits := OnDemand, e.opts.Bounds.Decodes.limits(e.opts.Limits.AddressSpace)
	if length == 0 {
		priority, limits = Ingest, e.opts.Limits
		limits.CPU = convertTime
	}
	release, err := e.opts.Budget.Acquire(ctx, priority, 1)
	if err != nil {
		return false, err
	}
	defer release()
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: RefusesArgs(path, format, kind, audio, length),
		Priority: priority, Limits: limits,
		Output: func(_ context.Context, r io.Reader) error {
			_, rerr := io.Copy(io.Discard, r) // there is none
			return rerr                       // Run says what was read
		},
	}).RunAs(ctx, "check")
	if err == nil {
		return false, nil
	}
	if err = blameFile(err, path, "the file can't be decoded"); fault.Is(err, fault.Invalid) && gaveUp(err) {
		return true, nil
	}
	return false, err
}
