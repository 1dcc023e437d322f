package images_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// A file whose table of key frames is missing says that every picture is one; the right one is given nevertheless.
func TestEveryPictureIsSaidToBeAKeyFrame(t *testing.T) {
	t.Parallel()
	s, f := newStudio(t), sixSeconds(t)
	path := f.Source.(*source).rendition.Source.Object
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(path, bytes.Replace(data, []byte("stss"), []byte("free"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 7, 20, 33, 59} {
		if got := frameOf(s.picture(f, "thumbnail.png", fmt.Sprintf("time=%.2f", float64(n)/10+0.05))); got != n {
			t.Errorf("frame %d, want %d", got, n)
		}
	}
	if got := frameOf(s.picture(f, "thumbnail.png", "")); got != 20 {
		t.Errorf("the key frame in the middle is %d", got)
	}
}
