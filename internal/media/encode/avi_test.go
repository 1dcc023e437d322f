package encode

import (
	"os/exec"
	"testing"
)

// AVI has no times of presentation: what is encoded from it comes in the order of its pictures, and all of it.
func TestRewriteKeepsTheOrderOfAVI(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	brighter := []string{
		"-f", "lavfi", "-i", "color=black:size=64x64:rate=25:duration=3.6,geq=lum='16+2*N':cb=128:cr=128",
	}
	for name, tt := range map[string]struct {
		codec    []string
		pictures int
	}{
		"H.264":  {[]string{"-c:v", "libx264", "-bf", "3", "-b_strategy", "0", "-g", "50"}, 90},
		"MPEG-4": {[]string{"-c:v", "mpeg4", "-bf", "2", "-g", "50", "-q:v", "2"}, 90},
		// ffmpeg's encoder drops one in the beginning
		"packed, Xvid":  {[]string{"-c:v", "libxvid", "-bf", "2", "-g", "50", "-q:v", "2"}, 89},
		"without order": {[]string{"-c:v", "mpeg4", "-q:v", "2"}, 90},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, "a.avi", append(append(brighter, "-pix_fmt", "yuv420p"), tt.codec...)...)
			out := rewriteAs(t, e, RewriteArgs{
				Input: in, Format: AVI,
				Picture: &Picture{Width: 64, Height: 64, Preset: "ultrafast", CRF: 10, Bitrate: 2_000_000, Level: 30},
			})
			pictures, err := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-v", "error", "-i", out,
				"-fps_mode", "passthrough",
				"-vf", "scale=1:1", "-f", "rawvideo", "-pix_fmt", "gray", "-").Output()
			if err != nil {
				t.Fatal(err)
			}
			if len(pictures) != tt.pictures {
				t.Errorf("%d pictures, want %d", len(pictures), tt.pictures)
			}
			for i := 1; i < len(pictures); i++ {
				if pictures[i] < pictures[i-1] {
					t.Errorf("picture %d is darker than the one before: %d, %d", i, pictures[i], pictures[i-1])
				}
			}
		})
	}
}
