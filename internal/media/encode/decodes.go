package encode

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"time"
)

// DecodesArgs returns the arguments that decode a file's first stream of a kind up to its first frame, and list what came out. quick:
// the decoder is opened by what the container says and is given key frames only. Otherwise ffmpeg decodes some of each stream to look at it, and
// then what a reordering decoder wants before it gives the first frame, which costs several times as much as that frame.
func DecodesArgs(path string, format Format, kind Kind, quick bool) []string {
	stream := "0:a:0"
	if kind == Video {
		stream = "0:V:0"
	}
	args := append(common(), "-threads", "1", "-max_pixels", strconv.Itoa(maxPixels))
	if quick {
		args = append(args, "-nofind_stream_info", "-discard", "nokey")
	}
	return append(append(args, input(format, path)...), "-map", stream, "-frames", "1", "-f", "framecrc", "pipe:1")
}

// decodesTime bounds the search for something that can be decoded: it is found at once where there is anything.
const decodesTime = 30 * time.Second

var errDecodesTime = errors.New("nothing was decoded in time")

// Decodes reports whether anything of a file's first video or audio can be decoded.
func (e *Engine) Decodes(ctx context.Context, path string, format Format, kind Kind) (bool, error) {
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, 1)
	if err != nil {
		return false, err
	}
	defer release()
	if format == MOV { // whose sample entries say what decoders need, nearly always
		if ok, err := e.decodes(ctx, DecodesArgs(path, format, kind, true)); ok || ctx.Err() != nil {
			return ok, err
		}
	}
	return e.decodes(ctx, DecodesArgs(path, format, kind, false))
}

func (e *Engine) decodes(ctx context.Context, args []string) (bool, error) {
	bounded, cancel := context.WithTimeoutCause(ctx, 4*decodesTime, errDecodesTime)
	defer cancel()
	var listed bytes.Buffer
	err := NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: args, Priority: OnDemand,
		Limits: Limits{AddressSpace: e.opts.Limits.AddressSpace, CPU: decodesTime, FileSize: 1 << 20},
		Output: func(_ context.Context, r io.Reader) error {
			_, rerr := io.Copy(&listed, io.LimitReader(r, 1<<16))
			return rerr // Run says what was read
		},
	}).Run(bounded)
	for line := range bytes.Lines(listed.Bytes()) {
		if len(line) > 1 && line[0] != '#' {
			return true, nil
		}
	}
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.Signal != "killed" || errors.Is(err, errDecodesTime) {
		err = nil
	}
	return false, err
}
