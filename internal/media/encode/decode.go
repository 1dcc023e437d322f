package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // its header is read
	_ "image/png"  // its header is read
	"io"
	"strconv"

	"millrace/internal/fault"
)

// PNG and JPEG are the formats of single images that are decoded.
const (
	PNG  Format = "png_pipe"
	JPEG Format = "jpeg_pipe"
)

// maxImagePixels bounds an image that is decoded: 64 MiB of RGBA.
const maxImagePixels = 4096 * 4096

// DecodeArgs returns the arguments that turn one image, as it lies in its file, into raw RGBA. What is damaged gives
// nothing.
func DecodeArgs(format Format) []string {
	return append(common(),
		"-probesize", "32", "-analyzeduration", "0", "-threads", "1", "-max_pixels", strconv.Itoa(maxImagePixels),
		"-err_detect", "crccheck+bitstream+buffer+explode", "-noautorotate",
		"-protocol_whitelist", "pipe", "-format_whitelist", string(format), "-f", string(format), "-i", "pipe:0",
		"-map", "0:v:0", "-frames:v", "1", "-vf", "scale=flags=accurate_rnd+full_chroma_int,format=rgba", "-c:v",
		"rawvideo", "-f", "rawvideo", "pipe:1")
}

// Image decodes a PNG or a JPEG. fault.Invalid: it is none, is damaged, or takes too much of the processor.
func (e *Engine) Image(ctx context.Context, data []byte) (*image.NRGBA, error) {
	head, format, err := image.DecodeConfig(bytes.NewReader(data))
	demuxer, ok := map[string]Format{"png": PNG, "jpeg": JPEG}[format]
	if err != nil || !ok || head.Width < 1 || head.Height < 1 || head.Width > maxImagePixels/head.Height {
		return nil, fault.Wrap(fault.Invalid, err, "the image is neither PNG nor JPEG, or too large")
	}
	release, err := e.opts.Budget.Acquire(ctx, OnDemand, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	img := image.NewNRGBA(image.Rect(0, 0, head.Width, head.Height))
	err = NewProcess(ProcessOptions{
		Program: e.opts.FFmpeg, Args: DecodeArgs(demuxer), Priority: OnDemand,
		Limits: e.opts.Bounds.Image.limits(e.opts.Limits.AddressSpace),
		Input: func(_ context.Context, w io.Writer) error {
			_, werr := w.Write(data)
			return werr
		},
		Output: func(_ context.Context, r io.Reader) error {
			if _, rerr := io.ReadFull(r, img.Pix); rerr != nil {
				return fault.Wrap(fault.Invalid, fmt.Errorf("read image: %w", rerr), "the image is damaged")
			}
			return nil
		},
	}).RunAs(ctx, "decode")
	if exit, ok := errors.AsType[*ExitError](err); ok && exit.CPU == 0 {
		return nil, blame(err, "the image is damaged")
	}
	if err != nil {
		return nil, blame(err, "the image can't be decoded")
	}
	return img, nil
}
