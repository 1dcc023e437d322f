package e2e

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"millrace/test/rig"
)

// coloured is an image of one colour.
func coloured(t *testing.T, name string, c color.Color) string {
	t.Helper()
	img := image.NewNRGBA(image.Rect(0, 0, 90, 60))
	draw.Draw(img, img.Rect, image.NewUniform(c), image.Point{}, draw.Src)
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// seen decodes the first picture of what an address leads to.
func seen(t *testing.T, url string, w, h int) *image.NRGBA {
	t.Helper()
	pixels, err := exec.CommandContext(t.Context(), rig.FFmpeg(t), "-v", "error", "-i", url, "-frames:v", "1", "-f",
		"rawvideo", "-pix_fmt", "rgba", "pipe:1").Output()
	if err != nil || len(pixels) != 4*w*h {
		t.Fatalf("first picture of %s: %d bytes, %v", url, len(pixels), err)
	}
	return &image.NRGBA{Pix: pixels, Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}
}

// like reports whether a colour is another, as nearly as a lossy codec keeps it.
func like(c, want color.NRGBA) bool {
	for _, d := range [3]int{int(c.R) - int(want.R), int(c.G) - int(want.G), int(c.B) - int(want.B)} {
		if d < -45 || d > 45 {
			return false
		}
	}
	return true
}

// covers wants a colour in r and at its edges, but not two pixels beside them.
func covers(t *testing.T, what string, img *image.NRGBA, r image.Rectangle, want color.NRGBA) {
	t.Helper()
	is := func(p image.Point) bool { return like(img.NRGBAAt(p.X, p.Y), want) }
	inner, outer, middle := r.Inset(3), r.Inset(-4), r.Min.Add(r.Size().Div(2))
	for _, p := range []image.Point{
		inner.Min, inner.Max.Sub(image.Pt(1, 1)),
		{inner.Min.X, inner.Max.Y - 1},
		{inner.Max.X - 1, inner.Min.Y},
		middle,
	} {
		if !is(p) {
			t.Errorf("%s: %v at %v, want %v", what, img.NRGBAAt(p.X, p.Y), p, want)
		}
	}
	for _, p := range []image.Point{
		{outer.Min.X, middle.Y}, {outer.Max.X, middle.Y}, {middle.X, outer.Min.Y}, {middle.X, outer.Max.Y},
	} {
		if p.In(img.Rect) && is(p) {
			t.Errorf("%s: %v also at %v", what, want, p)
		}
	}
}

var pureRed, pureGreen = color.NRGBA{R: 0xff, A: 0xff}, color.NRGBA{G: 0xff, A: 0xff}

// TestOverlaysLive lays two images over a stream: they are in what is live and in what is recorded.
func TestOverlaysLive(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	site := rig.Files(t, map[string]string{
		"red.png": coloured(t, "red.png", pureRed), "green.png": coloured(t, "green.png", pureGreen),
	})
	l := s.CreateLive(t, "low", rig.Object{
		"new_asset_settings": rig.Object{"playback_policies": []string{"public"}, "inputs": []rig.Object{
			{},
			{
				"url": site + "/red.png",
				"overlay_settings": rig.Object{
					"width": "240px", "height": "120px", "horizontal_margin": "60px", "vertical_margin": "60px",
				},
			},
			{
				"url": site + "/green.png",
				"overlay_settings": rig.Object{
					"width": "25%", "height": "25%", "horizontal_align": "right", "vertical_align": "bottom",
					"horizontal_margin": "5%",
				},
			},
		}},
	})
	e := s.Publish(t, l.Text("stream_key"), small())
	a := playing(t, s, l)
	checkOverlay := func(what, url string) {
		img := seen(t, url, 320, 180)
		covers(t, what, img, image.Rect(10, 10, 50, 30), pureRed)
		covers(t, what, img, image.Rect(224, 135, 304, 180), pureGreen)
	}
	checkOverlay("live", s.PlayURL(l.Text("playback_ids.0.id")))
	if now := s.Live(t, l.Text("id")); away(now) {
		t.Errorf("the encoder was disconnected: %v", now)
	}
	e.Stop() // not before it was looked at, however long that took
	s.AwaitLive(t, l.Text("id"), "without encoder", patience, away)
	s.Complete(t, l.Text("id"))
	a = s.AwaitAsset(t, a.Text("id"), "finished", patience, rig.Finished)
	checkOverlay("recorded", s.PlayURL(a.Text("playback_ids.0.id")))
}

// TestOverlays lays images over an upright file: they are in what it is played in, in every size, and in its images.
func TestOverlays(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		file := rig.File(t, "a.mp4", rig.Clip{Size: "360x640", Kbit: 600, GOP: 2, Seconds: 5})
		site := rig.Files(t, map[string]string{
			"a.mp4": file, "red.png": coloured(t, "red.png", pureRed), "green.png": coloured(t, "green.png", pureGreen),
		})
		code, made := s.Do(t, "POST", "/video/v1/assets", rig.Object{
			"playback_policies": []string{"public"}, "inputs": []rig.Object{
				{"url": site + "/a.mp4"},
				{
					"url": site + "/green.png",
					"overlay_settings": rig.Object{
						"height": "15%", "width": "80%", "horizontal_align": "center", "vertical_align": "bottom",
						"vertical_margin": "10%",
					},
				},
				{
					"url": site + "/red.png",
					"overlay_settings": rig.Object{
						"width": "300px", "height": "150px", "horizontal_align": "right", "horizontal_margin": "90px",
						"vertical_margin": "90px",
					},
				},
				{
					"url": site + "/red.png",
					"overlay_settings": rig.Object{
						"height": "9%", "width": "40%", "horizontal_align": "center", "vertical_align": "bottom",
						"vertical_margin": "13%", "opacity": "50%",
					},
				},
			},
		})
		if code != http.StatusCreated {
			t.Fatalf("create asset: %d, %v", code, made)
		}
		a := s.AwaitAsset(t, made.Text("data.id"), "ready", patience, rig.Ready)
		url := s.PlayURL(a.Text("playback_ids.0.id"))
		half := color.NRGBA{R: 0x80, G: 0x80, A: 0xff} // red of half opacity over green
		checkOverlay := func(what string, img *image.NRGBA, scale float64) {
			at := func(x0, y0, x1, y1 float64) image.Rectangle {
				return image.Rect(int(x0*scale), int(y0*scale), int(x1*scale), int(y1*scale))
			}
			covers(t, what, img, at(230, 30, 330, 80), pureRed)
			covers(t, what, img, at(108, 499, 252, 557), half)
			for x, want := range map[float64]bool{28: false, 44: true, 100: true, 260: true, 316: true, 332: false} {
				if c := img.NRGBAAt(int(x*scale), int(528*scale)); like(c, pureGreen) != want {
					t.Errorf("%s: %v at %.0f", what, c, x)
				}
			}
		}
		videos := map[bool]string{}
		for _, m := range mediaPlaylists(t, url) {
			if !m.audio {
				videos[len(videos) == 0] = m.url
			}
		}
		if len(videos) != 2 {
			t.Fatalf("%d renditions", len(videos))
		}
		checkOverlay("top", seen(t, videos[true], 360, 640), 1)
		checkOverlay("rung", seen(t, videos[false], 270, 480), 0.75)
		checkOverlay("thumbnail", seen(t, s.HTTP+"/"+a.Text("playback_ids.0.id")+"/thumbnail.png?time=0", 360, 640), 1)
	})
}
