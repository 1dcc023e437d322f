// Package captionstest has pictures with captions, and the world of tests that read them.
package captionstest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/programtest"
	"millrace/internal/worker/captions"
	"millrace/internal/worker/static/statictest"
)

// Reader is a shop that makes text tracks of captions.
func Reader(t *testing.T) *statictest.Shop {
	t.Helper()
	s := statictest.NewShop(t, time.Minute)
	reader := &captions.Worker{Assets: s.Work, Store: s.Store, Footage: s.Footage, Now: s.Now}
	s.Handlers[asset.JobCaptions] = reader.Handler()
	return s
}

// Of what Captioned makes.
const (
	Rate   = 30 // pictures per second
	Length = 12 // seconds
)

// Captioned is a raw stream of H.264 or HEVC without B-frames whose pictures carry a caption each two seconds on CC1,
// and one on CC3.
func Captioned(t *testing.T, encoder string) string {
	t.Helper()
	one := map[string][]string{
		"libx264": {"-x264-params", "slices=1:threads=1"},
		"libx265": {"-x265-params", "slices=1:bframes=0:info=0:log-level=error"},
	}
	args := append([]string{
		"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-t", fmt.Sprint(Length), "-c:v", encoder, "-preset",
		"ultrafast",
		"-bf", "0", "-g", "60", "-pix_fmt", "yuv420p",
	}, one[encoder]...)
	format := map[string]string{"libx264": "h264", "libx265": "hevc"}[encoder]
	stream, err := os.ReadFile(programtest.SharedMedia(t, "uncaptioned."+format, append(args, "-f", format)...))
	if err != nil {
		t.Fatal(err)
	}
	e := &cea608test.Encoder{}
	for at := 1.0; at < Length-2; at += 2 {
		e.PopOn(1, at-1, at, at+1.5, 14, fmt.Sprintf("Caption of second %.0f", at))
	}
	e.PopOn(3, 2, 4, 6, 14, "Trois")
	path := filepath.Join(t.TempDir(), "captioned."+format)
	err = os.WriteFile(path, e.Into(stream, format == "hevc", Rate), 0o600) //nolint:gosec // in a folder of the test
	if err != nil {
		t.Fatal(err)
	}
	return path
}
