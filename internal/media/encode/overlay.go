package encode

import (
	"fmt"
	"image"
	"os"

	"golang.org/x/sys/unix"
)

// Overlay is an image that is laid over every picture: drawn for its size already, so that ffmpeg has nothing to read,
// place or scale.
type Overlay struct {
	Image *image.NRGBA // its upper left corner is at 0,0
	X, Y  int          // where that goes; even, as are the image's sides
	HD    bool         // the picture's colours are those of BT.709, else BT.601
}

// over returns the arguments that have the pictures of an input go through filters, lay the overlay over what comes
// out, and apply the last filters behind that; without an overlay there are only the filters. The graph has one input
// and one output: of any other, ffmpeg does not know from which stream -enc_time_base has to take the time base, and
// rounds times to a frame rate.
func (o *Overlay) over(input, filters, last string) []string {
	if o == nil {
		return []string{"-map", input, "-vf", filters + last}
	}
	matrix := "bt601"
	if o.HD {
		matrix = "bt709"
	}
	return []string{"-map", input, "-vf", fmt.Sprintf(
		`movie=/dev/fd/3:f=rawvideo:format_opts=pixel_format=rgba\\\:video_size=%dx%d,scale=out_color_matrix=%s:out_range=tv,format=yuva420p[sheet];`+
			"[in]%s[picture];[picture][sheet]overlay=%d:%d:format=yuv420%s[out]",
		o.Image.Rect.Dx(), o.Image.Rect.Dy(), matrix, filters, o.X, o.Y, last)}
}

// file holds the overlay's pixels for a child. It is memory: nothing of it is left behind, whatever ends first.
func (o *Overlay) file() (*os.File, error) {
	fd, err := unix.MemfdCreate("overlay", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory for overlay: %w", err)
	}
	f := os.NewFile(uintptr(fd), "overlay")
	if _, err := f.Write(o.Image.Pix); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("write overlay: %w", err)
	}
	return f, nil
}
