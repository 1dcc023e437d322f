package iframe

import "testing"

// TestCode checks that no address and no title leaves its attribute.
func TestCode(t *testing.T) {
	t.Parallel()
	got := Code("https://a.example/embed/x?token=a&drm-token=b", `"><script>'&`, Size{640, 360})
	want := `<iframe src="https://a.example/embed/x?token=a&amp;drm-token=b" width="640" height="360" ` +
		`title="&#34;&gt;&lt;script&gt;&#39;&amp;" style="border: 0" ` +
		`allow="autoplay; encrypted-media; fullscreen; picture-in-picture" allowfullscreen></iframe>`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestFilling(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ shape, box, want Size }{
		"as the box":  {Size{1920, 1080}, Usual, Size{640, 360}},
		"upright":     {Size{1080, 1920}, Usual, Size{203, 360}},
		"wide":        {Size{1920, 800}, Usual, Size{640, 267}},
		"small":       {Size{320, 180}, Usual, Size{640, 360}},
		"not known":   {Size{}, Usual, Size{640, 360}},
		"a long line": {Size{100000, 1}, Usual, Size{640, 1}},
	} {
		if got := tt.shape.Filling(tt.box); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
