package encode

import (
	"fmt"
	"image"
	"os"

	"golang.org/x/sys/unix"
)

// Overlay is an image that is laid over every picture: drawn for its size already, so that ffmpeg has nothing to read, place or scale.
type Overlay struct {
	Image *image.NRGBA // its upper left corner is at 0,0
	X, Y  int          // where that goes; even, as are the image's sides
	HD    bool         // the picture's colours are those of BT.709, else BT.601
}

// over has the pictures of an input go through filters, and the overlay laid over what comes out, and the
// last filters behind that; without one there are only the filters.
func (o *Overlay) over(input, filters, last string) []string {
	if o == nil {
		return []string{"-map", input, "-vf", filters + last}
	}
	matrix := "bt601"
	if o.HD {
		matrix = "bt709"
	}
	return []string{
		"-protocol_whitelist", "file", "-format_whitelist", "rawvideo", "-f", "rawvideo", "-pixel_format", "rgba",
		"-video_size", fmt.Sprintf("%dx%d", o.Image.Rect.Dx(), o.Image.Rect.Dy()), "-i", "file:/dev/fd/3",
		"-filter_complex", fmt.Sprintf("[1:v]scale=out_color_matrix=%s:out_range=tv,format=yuva420p[sheet];[%s]%s[picture];"+
			"[picture][sheet]overlay=%d:%d:format=yuv420%s[out]", matrix, input, filters, o.X, o.Y, last),
		"-map", "[out]",
	}
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
