package iframe

import "math"

// Size is that of a picture or a player, in pixels; zero: not known.
type Size struct{ Width, Height int }

// Usual is the box for players where nobody asks for another one.
var Usual = Size{640, 360} //nolint:gochecknoglobals // a constant

// usualShape is that of a player whose picture is not known.
var usualShape = Size{16, 9} //nolint:gochecknoglobals // a constant

// Filling gives what of a shape is as large as fits into a box. A shape that is not known is 16:9.
func (s Size) Filling(box Size) Size {
	if s.Width <= 0 || s.Height <= 0 {
		s = usualShape
	}
	return s.scaled(min(float64(box.Width)/float64(s.Width), float64(box.Height)/float64(s.Height)))
}

// Within gives what is left of a picture that is made smaller, if need be, to fit into a box.
func (s Size) Within(box Size) Size {
	if s.Width <= 0 || s.Height <= 0 {
		return Size{}
	}
	return s.scaled(min(1, float64(box.Width)/float64(s.Width), float64(box.Height)/float64(s.Height)))
}

func (s Size) scaled(by float64) Size {
	side := func(v int) int { return max(1, int(math.Round(float64(v)*by))) }
	return Size{side(s.Width), side(s.Height)}
}
