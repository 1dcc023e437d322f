package watch

import "math"

// size is that of a picture or a player, in pixels; zero: not known.
type size struct{ Width, Height int }

// usual is the shape of a player whose picture is not known.
var usual = size{16, 9} //nolint:gochecknoglobals // a constant

// filling gives what of a shape is as large as fits into a box.
func (s size) filling(box size) size {
	if s.Width <= 0 || s.Height <= 0 {
		s = usual
	}
	return s.scaled(min(float64(box.Width)/float64(s.Width), float64(box.Height)/float64(s.Height)))
}

// within gives what is left of a picture that is made smaller, if need be, to fit into a box.
func (s size) within(box size) size {
	if s.Width <= 0 || s.Height <= 0 {
		return size{}
	}
	return s.scaled(min(1, float64(box.Width)/float64(s.Width), float64(box.Height)/float64(s.Height)))
}

func (s size) scaled(by float64) size {
	side := func(v int) int { return max(1, int(math.Round(float64(v)*by))) }
	return size{side(s.Width), side(s.Height)}
}
