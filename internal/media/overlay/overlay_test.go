package overlay

import (
	"fmt"
	"image"
	"math"
	"math/rand"
	"testing"
	"testing/quick"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	wide, tall, small := image.Pt(1920, 1080), image.Pt(1080, 1920), image.Pt(640, 360)
	logo := image.Pt(300, 100)
	for _, tt := range []struct {
		name     string
		settings Settings
		picture  image.Point
		want     image.Rectangle
	}{
		{"as it is", Settings{}, wide, image.Rect(0, 0, 300, 100)},
		{"as it is, in a third of the size", Settings{}, small, image.Rect(0, 0, 100, 33)},
		{"as it is, upright", Settings{}, tall, image.Rect(0, 0, 300, 100)},
		{"as it is, in twice the size", Settings{}, image.Pt(3840, 2160), image.Rect(0, 0, 600, 200)},
		{"width in pixels gives the height", Settings{Width: "150px"}, wide, image.Rect(0, 0, 150, 50)},
		{"height in percent gives the width", Settings{Height: "10%"}, wide, image.Rect(0, 0, 324, 108)},
		{"both are as they are said", Settings{Width: "10%", Height: "10%"}, wide, image.Rect(0, 0, 192, 108)},
		{"margins", Settings{HorizontalMargin: "10%", VerticalMargin: "10%"}, wide, image.Rect(192, 108, 492, 208)},
		{
			"lower right corner",
			Settings{
				HorizontalAlign: "right", HorizontalMargin: "20px", VerticalAlign: "bottom", VerticalMargin: "10px",
			},
			wide, image.Rect(1600, 970, 1900, 1070),
		},
		{
			"lower left, upright, percent",
			Settings{VerticalAlign: "bottom", VerticalMargin: "25%", Width: "50%"},
			tall, image.Rect(0, 1260, 540, 1440),
		},
		{
			"the middle",
			Settings{HorizontalAlign: "center", VerticalAlign: "middle"},
			wide,
			image.Rect(810, 490, 1110, 590),
		},
		{
			"from the middle down and to the right",
			Settings{
				HorizontalAlign: "center", HorizontalMargin: "10px", VerticalAlign: "middle", VerticalMargin: "20px",
			},
			wide, image.Rect(820, 510, 1120, 610),
		},
		{
			"from the middle up and to the left",
			Settings{
				HorizontalAlign: "center", HorizontalMargin: "-10px", VerticalAlign: "middle", VerticalMargin: "-20px",
			},
			wide, image.Rect(800, 470, 1100, 570),
		},
		{
			"off the right edge",
			Settings{HorizontalAlign: "right", HorizontalMargin: "-100px"},
			wide,
			image.Rect(1720, 0, 2020, 100),
		},
		{"off the upper edge", Settings{VerticalMargin: "-100px"}, wide, image.Rect(0, -100, 300, 0)},
		{"4:3 fits by its height", Settings{Width: "100px"}, image.Pt(720, 540), image.Rect(0, 0, 50, 17)},
		{"wider than 16:9 fits by its width", Settings{Width: "100px"}, image.Pt(960, 400), image.Rect(0, 0, 50, 17)},
		{"square", Settings{Width: "100px"}, image.Pt(540, 540), image.Rect(0, 0, 50, 17)},
		{"hardly to be seen", Settings{Width: "0.01px"}, small, image.Rect(0, 0, 1, 1)},
		{"of no size", Settings{Width: "0px"}, small, image.Rect(0, 0, 0, 0)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := tt.settings.Place(logo, tt.picture)
			if err != nil || got != tt.want {
				t.Errorf("%v, %v, want %v", got, err, tt.want)
			}
		})
	}
	for _, bad := range []Settings{
		{Width: "10"},
		{Height: "x%"},
		{VerticalMargin: "1e9px"},
		{HorizontalMargin: "NaN%"},
		{VerticalAlign: "left"},
		{HorizontalAlign: "middle"},
	} {
		if r, err := bad.Place(logo, wide); err == nil {
			t.Errorf("%+v lies at %v", bad, r)
		}
	}
}

// Whatever is asked for: the other side gives the mirror image, percent and pixels of the same length the same place, a
// picture of twice the size twice of everything, and one size keeps the shape. All but for rounding.
func TestPlaceHolds(t *testing.T) {
	t.Parallel()
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1.001 }
	holds := func(w, h, iw, ih uint16, margin int16, width uint16) bool {
		picture := image.Pt(int(w%1900)+64, int(h%1900)+64)
		img := image.Pt(int(iw%MaxSide)+1, int(ih%MaxSide)+1)
		px := fmt.Sprintf("%d.5px", margin%2000)
		of := func(s Settings, picture image.Point) image.Rectangle {
			r, err := s.Place(img, picture)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		size := Settings{Width: fmt.Sprintf("%dpx", width%4000+1), HorizontalMargin: px}
		left, right := of(size, picture), Settings{Width: size.Width, HorizontalMargin: px, HorizontalAlign: "right"}
		mirror := of(right, picture)
		double := of(size, picture.Mul(2))
		share := Settings{
			Width: size.Width, HorizontalMargin: fmt.Sprintf("%.6f%%", 100*float64(left.Min.X)/float64(picture.X)),
		}
		percent := of(share, picture)
		return near(float64(left.Min.X), float64(picture.X-mirror.Max.X)) &&
			near(float64(left.Dx()), float64(mirror.Dx())) &&
			near(float64(percent.Min.X), float64(left.Min.X)) &&
			math.Abs(float64(double.Min.X)-2*float64(left.Min.X)) <= 2 &&
			math.Abs(float64(double.Dx())-2*float64(left.Dx())) <= 3 &&
			math.Abs(float64(left.Dy())-float64(left.Dx())*float64(img.Y)/float64(img.X)) <= 1.5+
				float64(img.Y)/float64(img.X)
	}
	if err := quick.Check(holds, &quick.Config{MaxCount: 20000, Rand: rand.New(rand.NewSource(1))}); err != nil {
		t.Error(err)
	}
}
