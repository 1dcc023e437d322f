package images

import (
	"bufio"
	"fmt"
	"image"
	"io"
	"strconv"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
)

// readAhead is how many bytes of a picture are read at once: several rows of the widest one.
const readAhead = 64 << 10

// readHead reads the head of a picture with four channels of 8 bits, as Netpbm's pam(5) says.
func readHead(r *bufio.Reader) (w, h int, err error) {
	got := map[string]int{}
	for lines := 0; ; lines++ {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if lines == 0 && len(line) == 0 {
				return 0, 0, fault.Wrap(fault.Invalid, err, "there is no picture")
			}
			return 0, 0, fmt.Errorf("read picture: %w", err)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if name == "ENDHDR" {
			break
		}
		if n, err := strconv.Atoi(value); err == nil {
			got[name] = n
		}
		if lines > 8 {
			return 0, 0, fmt.Errorf("read picture: %d lines of header", lines)
		}
	}
	w, h = got["WIDTH"], got["HEIGHT"]
	if w < 1 || h < 1 || w > encode.MaxSide || h > encode.MaxSide || got["DEPTH"] != 4 || got["MAXVAL"] != 255 {
		return 0, 0, fmt.Errorf("read picture: %d by %d of depth %d", w, h, got["DEPTH"])
	}
	return w, h, nil
}

// readShaped reads a picture into the form that is asked for. One that only gets smaller is scaled by rows, while the
// others are on their way: the whole of it is in memory at no time.
func readShaped(in io.Reader, q *Request) (*image.RGBA, error) {
	r := bufio.NewReaderSize(in, readAhead)
	w, h, err := readHead(r)
	if err != nil {
		return nil, err
	}
	if tw, th := fitted(w, h, q.Width, q.Height, q.Fit); q.onlyScales() && tw <= w && th <= h && (tw < w || th < h) {
		out, n := image.NewRGBA(image.Rect(0, 0, tw, th)), 0
		err := shrink(out, out.Rect, image.Pt(w, h), func() ([]byte, error) {
			if _, err := r.Discard(n); err != nil { // the row before
				return nil, fmt.Errorf("read picture: %w", err)
			}
			n = 4 * w
			row, err := r.Peek(n)
			if err != nil {
				return nil, fmt.Errorf("read picture: %w", err)
			}
			return row, nil
		})
		return out, err
	}
	p := image.NewRGBA(image.Rect(0, 0, w, h))
	if _, err := io.ReadFull(r, p.Pix); err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	return shape(p, q), nil
}

// writePAM writes a picture as readShaped reads it.
func writePAM(w io.Writer, p *image.RGBA) error {
	_, err := fmt.Fprintf(w, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", p.Rect.Dx(),
		p.Rect.Dy())
	if err == nil {
		_, err = w.Write(p.Pix)
	}
	return err
}
