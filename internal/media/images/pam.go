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

// readPAM reads a picture with four channels of 8 bits, as Netpbm's pam(5) says.
func readPAM(in io.Reader) (*image.RGBA, error) {
	r := bufio.NewReaderSize(in, 64<<10)
	got := map[string]int{}
	for lines := 0; ; lines++ {
		line, err := r.ReadSlice('\n')
		if err != nil {
			if lines == 0 && len(line) == 0 {
				return nil, fault.Wrap(fault.Invalid, err, "there is no picture")
			}
			return nil, fmt.Errorf("read picture: %w", err)
		}
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		if name == "ENDHDR" {
			break
		}
		if n, err := strconv.Atoi(value); err == nil {
			got[name] = n
		}
		if lines > 8 {
			return nil, fmt.Errorf("read picture: %d lines of header", lines)
		}
	}
	w, h := got["WIDTH"], got["HEIGHT"]
	if w < 1 || h < 1 || w > encode.MaxSide || h > encode.MaxSide || got["DEPTH"] != 4 || got["MAXVAL"] != 255 {
		return nil, fmt.Errorf("read picture: %d by %d of depth %d", w, h, got["DEPTH"])
	}
	p := image.NewRGBA(image.Rect(0, 0, w, h))
	if _, err := io.ReadFull(r, p.Pix); err != nil {
		return nil, fmt.Errorf("read picture: %w", err)
	}
	return p, nil
}

// writePAM is readPAM's other way.
func writePAM(w io.Writer, p *image.RGBA) error {
	_, err := fmt.Fprintf(w, "P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", p.Rect.Dx(),
		p.Rect.Dy())
	if err == nil {
		_, err = w.Write(p.Pix)
	}
	return err
}
