package overlay

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"millrace/internal/fault"
	jpegscan "millrace/internal/media/codec/jpeg"
)

func filled(w, h int, c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return img
}

func layer(img image.Image, s Settings) Layer {
	return Layer{Settings: s, Load: func(context.Context) (image.Image, error) { return img, nil }}
}

var (
	red   = color.NRGBA{R: 0xff, A: 0xff}
	green = color.NRGBA{G: 0xff, A: 0xff}
)

// at is what a sheet has at a place of the picture.
func at(s *Sheet, x, y int) color.NRGBA { return s.Image.NRGBAAt(x-s.At.X, y-s.At.Y) }

func TestDraw(t *testing.T) {
	t.Parallel()
	half := Settings{
		Width: "100px", Height: "100px", HorizontalMargin: "301px", VerticalMargin: "201px", Opacity: "50%",
	}
	s, err := Draw(t.Context(), []Layer{layer(filled(7, 3, red), half)}, 1920, 1080)
	if err != nil {
		t.Fatal(err)
	}
	if s.At != image.Pt(300, 200) || s.Image.Rect.Max != image.Pt(102, 102) {
		t.Errorf("drawn at %v, %v", s.At, s.Image.Rect)
	}
	for _, tt := range []struct {
		x, y  int
		alpha uint8
	}{{301, 201, 128}, {400, 300, 128}, {350, 250, 128}, {300, 200, 0}, {401, 250, 0}, {350, 301, 0}} {
		if c := at(s, tt.x, tt.y); c.A != tt.alpha || c.R != 0xff || c.G != 0 {
			t.Errorf("%d,%d is %v", tt.x, tt.y, c)
		}
	}
}

func TestDrawSeveral(t *testing.T) {
	t.Parallel()
	s, err := Draw(t.Context(), []Layer{
		layer(filled(10, 10, red), Settings{Width: "200px"}),
		layer(filled(10, 10, green), Settings{Width: "200px", HorizontalMargin: "100px", Opacity: "50%"}),
		layer(filled(10, 10, red), Settings{Width: "100px", HorizontalAlign: "right", VerticalAlign: "bottom"}),
		layer(filled(10, 10, green), Settings{HorizontalMargin: "100%"}),
		layer(filled(10, 10, green), Settings{Opacity: "0%"}),
	}, 1920, 1080)
	if err != nil {
		t.Fatal(err)
	}
	if s.At != (image.Point{}) || s.Image.Rect.Max != image.Pt(1920, 1080) {
		t.Errorf("drawn at %v, %v", s.At, s.Image.Rect)
	}
	for p, want := range map[image.Point]color.NRGBA{
		{50, 50}: red, {150, 50}: {127, 127, 0, 255}, {250, 50}: {0, 255, 0, 128}, {1900, 1060}: red, {1000, 500}: {},
		{350, 50}: {},
	} {
		c := at(s, p.X, p.Y)
		for i, d := range [4]int{
			int(c.R) - int(want.R), int(c.G) - int(want.G), int(c.B) - int(want.B), int(c.A) - int(want.A),
		} {
			if d < -1 || d > 1 {
				t.Errorf("%v is %v, want %v (%d)", p, c, want, i)
			}
		}
	}
	for name, layers := range map[string][]Layer{
		"nothing":     nil,
		"outside":     {layer(filled(10, 10, red), Settings{VerticalMargin: "-10%"})},
		"transparent": {layer(filled(10, 10, red), Settings{Opacity: "0.0%"})},
	} {
		if s, err := Draw(t.Context(), layers, 640, 360); s != nil || err != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

// A scaled image has the mean of what it covers, its edges where they were, and nothing of what is transparent.
func TestDrawScaled(t *testing.T) {
	t.Parallel()
	img := image.NewNRGBA(image.Rect(5, 5, 105, 105)) // left half red, right half green and transparent
	for y := 5; y < 105; y++ {
		for x := 5; x < 105; x++ {
			c := red
			if x >= 55 {
				c = color.NRGBA{G: 0xff}
			}
			img.SetNRGBA(x, y, c)
		}
	}
	for _, width := range []string{"10px", "100px", "1000px"} {
		s, err := Draw(t.Context(), []Layer{layer(img, Settings{Width: width})}, 1920, 1080)
		if err != nil {
			t.Fatal(err)
		}
		n := s.Image.Rect.Dx()
		if c := at(s, n/4, n/4); c != red {
			t.Errorf("%s: %v on the left", width, c)
		}
		if c := at(s, n*3/4, n/2); c.A != 0 {
			t.Errorf("%s: %v on the right", width, c)
		}
		if c := at(s, n/2, n/2); c.G > 1 {
			t.Errorf("%s: what is transparent shows: %v", width, c)
		}
	}
	// A chess board becomes grey, not one of its colours.
	board := image.NewGray(image.Rect(0, 0, 512, 512))
	for i := range board.Pix {
		if (i+i/512)%2 == 0 {
			board.Pix[i] = 0xff
		}
	}
	s, err := Draw(t.Context(), []Layer{layer(board, Settings{Width: "50px"})}, 1920, 1080)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []image.Point{{10, 10}, {25, 30}, {49, 49}} {
		if c := at(s, p.X, p.Y); c.R < 110 || c.R > 145 {
			t.Errorf("%v is %v", p, c)
		}
	}
}

// The largest that can be asked for costs no more than the picture.
func TestDrawHuge(t *testing.T) {
	t.Parallel()
	s, err := Draw(t.Context(), []Layer{
		layer(filled(64, 64, red), Settings{Width: "99999%", Height: "99999%", HorizontalMargin: "-50000%"}),
	}, 640, 360)
	if err != nil || s.Image.Rect.Max != image.Pt(640, 360) || at(s, 639, 359) != red {
		t.Errorf("%v, %v", s, err)
	}
}

func encoded(t testing.TB, img image.Image, as func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := as(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(b *bytes.Buffer, img image.Image) error  { return png.Encode(b, img) }
func asJPEG(b *bytes.Buffer, img image.Image) error { return jpeg.Encode(b, img, nil) }

// lying is a PNG that says to be of this size.
func lying(t testing.TB, w, h uint32) []byte {
	t.Helper()
	b := encoded(t, filled(8, 8, red), asPNG)
	binary.BigEndian.PutUint32(b[16:], w)
	binary.BigEndian.PutUint32(b[20:], h)
	binary.BigEndian.PutUint32(b[29:], crc32.ChecksumIEEE(b[12:29]))
	return b
}

func TestCheck(t *testing.T) {
	t.Parallel()
	good := encoded(t, filled(8, 8, red), asPNG)
	for name, tt := range map[string]struct {
		data []byte
		want string // of the error; empty: none
	}{
		"PNG":         {good, ""},
		"JPEG":        {encoded(t, filled(8, 8, red), asJPEG), ""},
		"the largest": {encoded(t, image.NewGray(image.Rect(0, 0, MaxSide, MaxSide)), asPNG), ""},
		"too wide": {
			encoded(t, image.NewGray(image.Rect(0, 0, MaxSide+1, 1)), asPNG),
			"4097 x 1 pixels, and 4096 x 4096 are the most",
		},
		"a bomb": {lying(t, 60000, 60000), "60000 x 60000 pixels"},
		"scans of nothing": {
			scans(encoded(t, filled(8, 8, red), asJPEG), jpegscan.MaxScans), "it has 65 scans, and 64 are the most",
		},
		"many scans": {scans(encoded(t, filled(8, 8, red), asJPEG), jpegscan.MaxScans-1), ""},
		"GIF":        {[]byte("GIF89a\x01\x00\x01\x00\x80\x00\x00"), "neither PNG nor JPEG"},
		"SVG":        {[]byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "neither PNG nor JPEG"},
		"nothing":    {nil, "neither PNG nor JPEG"},
		"too large":  {make([]byte, MaxBytes+1), "larger than 16 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Check(tt.data)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrImage) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// scans adds n scans of nothing to a JPEG.
func scans(data []byte, n int) []byte {
	return append(bytes.Clone(data), bytes.Repeat([]byte("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x00"), n)...)
}

// TestDecoderGivesUp: one image that takes for ever keeps nobody waiting for ever, and what can't be decoded is the
// owner's fault.
func TestDecoderGivesUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	good := encoded(t, filled(8, 8, red), asPNG)
	begun := make(chan struct{})
	slow := Decoder(func(ctx context.Context, _ []byte) (image.Image, error) {
		close(begun)
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	first := make(chan error)
	go func() { first <- slow.Try(ctx, good) }()
	<-begun
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := slow.Try(gone, good); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more is told %v", err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("what is not wanted any more ends with %v", err)
	}
	damaged := Decoder(func(context.Context, []byte) (image.Image, error) {
		return nil, fault.New(fault.Invalid, "the image is damaged")
	})
	err := damaged.Try(t.Context(), good)
	if !errors.Is(err, ErrImage) || !strings.HasSuffix(err.Error(), ": the image is damaged") {
		t.Errorf("of a damaged image it is said %v", err)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(encoded(f, filled(8, 8, red), asPNG))
	f.Add(encoded(f, filled(16, 8, red), asJPEG))
	f.Add(encoded(f, image.NewPaletted(image.Rect(0, 0, 9, 3), color.Palette{red, green, color.Transparent}), asPNG))
	f.Add([]byte("\x89PNG\r\n\x1a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := Check(data); err != nil && !errors.Is(err, ErrImage) {
			t.Fatal(err)
		}
	})
}

// heavy is an image that is in memory until its last pixel is read.
type large struct {
	*image.NRGBA
	held *atomic.Int32
}

func (l large) RGBA64At(x, y int) color.RGBA64 {
	runtime.Gosched()
	if x == l.Rect.Max.X-1 && y == l.Rect.Max.Y-1 {
		l.held.Add(-1)
	}
	return l.NRGBA.RGBA64At(x, y)
}

// TestOneImageAtATime is in memory, however many are drawn: many streams may begin at once.
func TestOneImageAtATime(t *testing.T) {
	t.Parallel()
	var held atomic.Int32
	l := Layer{Load: func(context.Context) (image.Image, error) {
		if n := held.Add(1); n > 1 {
			t.Errorf("%d images are in memory", n)
		}
		return large{image.NewNRGBA(image.Rect(0, 0, 16, 16)), &held}, nil
	}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if _, err := Draw(t.Context(), []Layer{l, l, l}, 16, 16); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
