package ingest_test

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// flat is an image of one colour.
func flat(w, h int, c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	return img
}

func pngOf(t testing.TB, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return filmtest.Text(t, "a.png", b.String())
}

func jpegOf(t testing.TB, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, &jpeg.Options{Quality: 95}); err != nil {
		t.Fatal(err)
	}
	return filmtest.Text(t, "a.jpg", b.String())
}

// contents of a file.
func contents(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// frame decodes the first picture of a segment of what is stored.
func (w *world) frame(a asset.Asset, segment int) *image.NRGBA {
	w.T.Helper()
	line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	v := line.Rendition(timeline.MainVideo)
	if v == nil || v.Source != nil {
		w.T.Fatal("the picture was not encoded again")
	}
	in := v.Inits[0]
	path := filepath.Join(w.T.TempDir(), "v.mp4")
	w.Must(os.WriteFile(path, append(w.ReadObject(in.Object), w.ReadObject(v.Chunks[segment].Object)...), 0o600))
	matrix := "bt601" // as players take a picture that does not say it
	if in.Height >= 720 {
		matrix = "bt709"
	}
	pixels := programtest.Run(w.T, "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-frames:v", "1", "-vf",
		"scale=in_color_matrix="+matrix, "-f", "rawvideo", "-pix_fmt", "rgba", "pipe:1")
	if len(pixels) != 4*in.Width*in.Height {
		w.T.Fatalf("%d bytes of a picture of %d x %d", len(pixels), in.Width, in.Height)
	}
	return &image.NRGBA{Pix: pixels, Stride: 4 * in.Width, Rect: image.Rect(0, 0, in.Width, in.Height)}
}

// shows wants a colour at a place of a picture, as nearly as a lossy codec keeps it.
func shows(t testing.TB, img *image.NRGBA, x, y int, want color.NRGBA) {
	t.Helper()
	got := img.NRGBAAt(x, y)
	for _, d := range [3]int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
		if d < -14 || d > 14 {
			t.Errorf("%d,%d is %v, want %v", x, y, got, want)
			return
		}
	}
}

func grey(size, seconds string) []string {
	return filmtest.Args([]string{
		"-f", "lavfi", "-i", "color=gray:rate=10:size=" + size + ":duration=" + seconds,
	}, filmtest.Sound(seconds), filmtest.H264)
}

// TestIngestOverlays lays images over files and looks where their pixels are.
func TestIngestOverlays(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes files of several kinds and sizes")
	}
	red, green, ground := color.NRGBA{R: 0xff, A: 0xff}, color.NRGBA{G: 0xff, A: 0xff},
		color.NRGBA{0x80, 0x80, 0x80, 0xff}
	half := color.NRGBA{0xc0, 0x40, 0x40, 0xff}
	type spot struct {
		x, y int
		want color.NRGBA
	}
	for name, tt := range map[string]struct {
		file     string
		args     []string
		overlays []assetopt.Overlay // red, then green
		spots    []spot
	}{
		"pixels": {
			"a.mp4", grey("640x360", "5"), // a third of what pixels are relative to
			[]assetopt.Overlay{
				{
					HorizontalAlign: "right", HorizontalMargin: "60px", VerticalMargin: "30px", Width: "300px",
					Height: "150px",
				},
			},
			[]spot{
				{523, 13, red},
				{617, 13, red},
				{523, 57, red},
				{617, 57, red},
				{516, 30, ground},
				{624, 30, ground},
				{570, 6, ground},
				{570, 64, ground},
			},
		},
		"percent, of a file that has to be encoded anyway": {
			"a.mkv", filmtest.Args(grey("640x360", "5"), []string{"-c:v", "libx265", "-x265-params", "log-level=none"}),
			[]assetopt.Overlay{
				{HorizontalMargin: "25%", VerticalAlign: "bottom", VerticalMargin: "10%", Width: "50%", Height: "25%"},
			},
			[]spot{
				{163, 237, red},
				{477, 321, red},
				{156, 280, ground},
				{484, 280, ground},
				{300, 228, ground},
				{300, 328, ground},
			},
		},
		"upright, opacity and two of them": {
			"a.mp4", grey("360x640", "5"),
			[]assetopt.Overlay{
				{HorizontalAlign: "center", VerticalAlign: "middle", Width: "50%", Opacity: "50%"},
				{VerticalAlign: "bottom", HorizontalAlign: "right", Height: "30px", Width: "30px"},
			},
			[]spot{
				{94, 279, half},
				{266, 361, half},
				{180, 320, half},
				{84, 320, ground},
				{276, 320, ground},
				{180, 269, ground},
				{355, 635, green},
				{346, 635, ground},
			},
		},
		"in high definition, made smaller": {
			"a.mp4", filmtest.Args(grey("2560x1440", "1")),
			[]assetopt.Overlay{{HorizontalMargin: "100px", VerticalMargin: "100px", Width: "200px", Height: "200px"}},
			[]spot{{104, 104, red}, {296, 296, red}, {96, 200, ground}, {304, 200, ground}},
		},
		"half outside": {
			"a.ts", grey("640x360", "5"),
			[]assetopt.Overlay{{HorizontalMargin: "-10%", Width: "20%", Height: "100%"}},
			[]spot{{2, 2, red}, {60, 357, red}, {70, 180, ground}, {630, 180, ground}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			images := []string{pngOf(t, flat(60, 30, red)), jpegOf(t, flat(500, 500, green))}
			var inputs []assetopt.Input
			for i, o := range tt.overlays {
				inputs = append(inputs, assetopt.Input{URL: w.Site.Offer(images[i]), Overlay: &o})
			}
			a := w.ReadyAsset(filmtest.File(t, tt.file, tt.args...), inputs...)
			last := len(w.timeline(a).Rendition(timeline.MainVideo).Chunks) - 1
			for _, segment := range []int{0, last} {
				img := w.frame(a, segment)
				for _, s := range tt.spots {
					shows(t, img, s.x, s.y, s.want)
				}
			}
			w.NothingLeft()
		})
	}
}

// TestIngestOverlaysRefused ends assets whose image can't be used, with a sentence that says which and why.
func TestIngestOverlaysRefused(t *testing.T) {
	t.Parallel()
	film := filmtest.File(t, "a.mp4", grey("160x90", "1")...)
	for name, tt := range map[string]struct {
		image func(w *world) string // URL
		want  string
	}{
		"not there": {
			func(w *world) string { return w.Site.URL + "/none.png" }, "the overlay image can't be fetched: ",
		},
		"no image": {func(w *world) string { return w.Site.Offer(film) }, "it is neither PNG nor JPEG"},
		"a large side": {
			func(w *world) string { return w.Site.Offer(pngOf(w.T, image.NewGray(image.Rect(0, 0, 4097, 2)))) },
			"it has 4097 x 2 pixels, and 4096 x 4096 are the most",
		},
		"too many bytes": {func(w *world) string {
			return w.Site.Handle(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "100000000")
			})
		}, "the overlay image can't be fetched: "},
		"scans of nothing": {func(w *world) string { // 31 s of a processor, before they were counted
			empty := strings.Repeat("\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00\x00", 9000)
			return w.Site.Offer(filmtest.Text(w.T, "x.jpg",
				contents(w.T, jpegOf(w.T, flat(400, 400, color.White)))+empty))
		}, "it has 9001 scans, and 64 are the most"},
		"cut off": {func(w *world) string {
			whole := contents(w.T, pngOf(w.T, flat(400, 400, color.White)))
			return w.Site.Offer(filmtest.Text(w.T, "x.png", whole[:len(whole)/2]))
		}, "the image is damaged"},
		"a private address": {
			func(*world) string { return "http://10.0.0.1/logo.png" }, "the overlay image can't be fetched: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(film)}, assetopt.Input{
				URL: tt.image(w), Overlay: &assetopt.Overlay{},
			})
			if err := w.DoAll(); err == nil {
				t.Error("the job did not fail")
			}
			a = w.Asset(a.ID)
			if a.Status != asset.Errored || a.Errors == nil || len(a.Errors.Messages) != 1 {
				t.Fatalf("asset is %s: %+v", a.Status, a.Errors)
			}
			if said := a.Errors.Messages[0]; !strings.HasPrefix(said, "inputs[1]: ") ||
				!strings.Contains(said, tt.want) {
				t.Errorf("said %q", said)
			}
			w.NothingLeft()
		})
	}
}

// TestIngestOverlayOverSound: an image has nothing to lie over, whatever the sound is in.
func TestIngestOverlayOverSound(t *testing.T) {
	t.Parallel()
	for file, codec := range map[string]string{"a.m4a": "aac", "a.flac": "flac", "a.aac": "aac"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			film := filmtest.File(t, file, filmtest.Args(filmtest.Sound("1"), []string{"-c:a", codec})...)
			img := w.Site.Offer(pngOf(t, flat(4, 4, color.White)))
			a := w.NewAsset(assetopt.Input{URL: w.Site.Offer(film)}, assetopt.Input{
				URL: img, Overlay: &assetopt.Overlay{Width: "10%"},
			})
			if err := w.DoAll(); err == nil {
				t.Error("the job did not fail")
			}
			a = w.Asset(a.ID)
			if a.Status != asset.Errored || a.Errors == nil || len(a.Errors.Messages) != 1 ||
				!strings.HasPrefix(a.Errors.Messages[0], "inputs[1].overlay_settings: the file has no picture") {
				t.Errorf("asset is %s: %+v", a.Status, a.Errors)
			}
			w.NothingLeft()
		})
	}
}
