package slate_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/media/slate"
)

func encoded(t testing.TB, w, h int, as string) []byte {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	var b bytes.Buffer
	var err error
	if as == "png" {
		err = png.Encode(&b, img)
	} else {
		err = jpeg.Encode(&b, img, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bomb is a PNG of a few bytes that says it has w x h pixels.
func bomb(w, h uint32) []byte {
	head := binary.BigEndian.AppendUint32([]byte("IHDR"), w)
	head = append(binary.BigEndian.AppendUint32(head, h), 8, 2, 0, 0, 0)
	b := append([]byte("\x89PNG\r\n\x1a\n"), 0, 0, 0, 13)
	return binary.BigEndian.AppendUint32(append(b, head...), crc32.ChecksumIEEE(head))
}

func TestCheck(t *testing.T) {
	t.Parallel()
	whole := encoded(t, 64, 48, "png")
	for name, tt := range map[string]struct {
		data []byte
		ok   bool
	}{
		"PNG":  {whole, true},
		"JPEG": {encoded(t, 64, 48, "jpeg"), true},
		"scans of nothing": {
			append(encoded(t, 64, 48, "jpeg"),
				bytes.Repeat([]byte("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x00"), 64)...), false,
		},
		"nothing":                 {nil, false},
		"a page":                  {[]byte("<html>not found</html>"), false},
		"a GIF":                   {[]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"), false},
		"too many bytes":          {append(bytes.Clone(whole), make([]byte, slate.MaxBytes)...), false},
		"a bomb":                  {bomb(60000, 60000), false},
		"a narrow bomb":           {bomb(1<<31-1, 1), false},
		"one pixel row too large": {bomb(4097, 2304), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := slate.Check(tt.data); (err == nil) != tt.ok || !tt.ok && !errors.Is(err, slate.ErrImage) {
				t.Errorf("checked: %v", err)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(encoded(f, 5, 3, "png"))
	f.Add(encoded(f, 5, 3, "jpeg"))
	f.Add(bomb(60000, 60000))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := slate.Check(data); err != nil && !errors.Is(err, slate.ErrImage) {
			t.Error(err)
		}
	})
}

// TestFit letterboxes whatever does not have the stream's shape.
func TestFit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		from, to    image.Point
		white, dark image.Point // of the result
	}{
		"the same shape":       {image.Pt(640, 360), image.Pt(320, 180), image.Pt(0, 0), image.Pt(-1, -1)},
		"taller":               {image.Pt(100, 100), image.Pt(320, 180), image.Pt(160, 1), image.Pt(60, 90)},
		"wider":                {image.Pt(640, 360), image.Pt(180, 320), image.Pt(1, 160), image.Pt(90, 60)},
		"one pixel":            {image.Pt(1, 1), image.Pt(320, 180), image.Pt(160, 90), image.Pt(0, 0)},
		"a line":               {image.Pt(1000, 1), image.Pt(320, 180), image.Pt(160, 89), image.Pt(160, 80)},
		"into next to nothing": {image.Pt(640, 360), image.Pt(2, 2), image.Pt(0, 0), image.Pt(-1, -1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			img := image.NewUniform(color.White)
			out := slate.Fit(bounded{img, image.Rectangle{Max: tt.from}}, tt.to.X, tt.to.Y)
			if out.Bounds().Size() != tt.to {
				t.Fatalf("the result has %v", out.Bounds())
			}
			if c := out.RGBAAt(tt.white.X, tt.white.Y); c.R < 0x80 {
				t.Errorf("at %v it is %v", tt.white, c)
			}
			if c := out.RGBAAt(tt.dark.X, tt.dark.Y); tt.dark.X >= 0 && (c.R > 0x40 || c.A != 0xff) {
				t.Errorf("at %v it is %v", tt.dark, c)
			}
		})
	}
}

type bounded struct {
	image.Image
	rect image.Rectangle
}

func (b bounded) Bounds() image.Rectangle { return b.rect }

// TestDefault draws words that stay inside the picture, at any shape.
func TestDefault(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{
		{1920, 1080}, {1280, 720}, {1080, 1920}, {640, 480}, {720, 720}, {320, 180}, {2, 2}, {2000, 200}, {200, 2000},
	} {
		t.Run(fmt.Sprintf("%dx%d", size.X, size.Y), func(t *testing.T) {
			t.Parallel()
			img, err := slate.Default(size.X, size.Y)
			if err != nil || img.Bounds().Size() != size {
				t.Fatalf("%v: %v", img.Bounds(), err)
			}
			bright := 0
			for y := range size.Y {
				for x := range size.X {
					if img.RGBAAt(x, y).R > 0x90 {
						bright++
						if x == 0 || y == 0 || x == size.X-1 || y == size.Y-1 {
							t.Fatalf("the words touch the border at %d, %d", x, y)
						}
					}
				}
			}
			if share := float64(bright) / float64(size.X*size.Y); size.X > 100 && (share < 0.0005 || share > 0.1) {
				t.Errorf("%.4f of the picture is bright", share)
			}
			if dir := os.Getenv("MILLRACE_TEST_PICTURES"); dir != "" {
				f, err := os.Create(filepath.Join(dir, fmt.Sprintf("slate-%dx%d.png", size.X, size.Y)))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				if err := png.Encode(f, img); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
