package encode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"

	"millrace/internal/fault"
)

// DecodesArgs returns the arguments that decode a file's nth stream of a kind, from 0, up to its first frame, and list
// what came out. quick: the decoder is opened by what the container says and is given key frames only. Otherwise ffmpeg
// decodes some of each stream to look at it, and then what a reordering decoder wants before it gives the first frame,
// which costs several times as much as that frame.
func DecodesArgs(path string, format Format, kind Kind, n int, quick bool) []string {
	stream := "0:a:"
	if kind == Video {
		stream = "0:V:"
	}
	args := append(common(), "-threads", "1", "-max_pixels", strconv.Itoa(maxPixels))
	if quick {
		args = append(args, "-nofind_stream_info", "-discard", "nokey")
	}
	args = append(args, input(format, path)...)
	return append(args, "-map", stream+strconv.Itoa(n), "-frames", "1", "-f", "framecrc", "pipe:1")
}

// Decodes reports whether anything of a file's nth video or audio, from 0, can be decoded. fault.Invalid: that takes
// too much of the processor to be found out.
func (e *Engine) Decodes(ctx context.Context, path string, format Format, kind Kind, n int) (bool, error) {
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, 1)
	if err != nil {
		return false, err
	}
	defer release()
	if format == MOV { // whose sample entries say what decoders need, nearly always
		ok, err := e.decodes(ctx, path, DecodesArgs(path, format, kind, n, true))
		if ok || err != nil && !fault.Is(err, fault.Invalid) {
			return ok, err
		}
	}
	return e.decodes(ctx, path, DecodesArgs(path, format, kind, n, false))
}

func (e *Engine) decodes(ctx context.Context, path string, args []string) (bool, error) {
	var listed bytes.Buffer
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: args, Priority: OnDemand,
		Limits: e.opts.Bounds.Decodes.limits(e.opts.Limits.AddressSpace),
		Output: func(_ context.Context, r io.Reader) error {
			_, rerr := io.Copy(&listed, io.LimitReader(r, 1<<16))
			return rerr // Run says what was read
		},
	}).RunAs(ctx, "decodes")
	for line := range bytes.Lines(listed.Bytes()) {
		if len(line) > 1 && line[0] != '#' {
			return true, nil
		}
	}
	err = blameFile(err, path, "the file can't be decoded")
	if fault.Is(err, fault.Invalid) && gaveUp(err) {
		err = nil // there is nothing
	}
	return false, err
}

// gaveUp reports whether a child ended by itself, and not as it had taken too much of the processor.
func gaveUp(err error) bool {
	exit, ok := errors.AsType[*ExitError](err)
	return ok && exit.CPU == 0
}
