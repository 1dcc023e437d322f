package ondemand_test

import (
	"fmt"
	"math"
	"testing"

	"millrace/internal/media/encode"
	"millrace/internal/media/ondemand"
	"millrace/internal/programtest"
)

// A file whose clock jumps by an hour is no longer for that; a pause of the picture alone is one.
func TestClockJumpIsClosed(t *testing.T) {
	t.Parallel()
	later := func(seconds int) string { // of what comes at 4 s; Matroska counts milliseconds
		by := fmt.Sprintf("+gte(PTS\\,3990)*%d", seconds*1000)
		return "setts=pts=PTS" + by + ":dts=DTS" + by
	}
	whole := ffmpeg(t, "whole.mp4", args(picture("8", "30"), sound("8"), h264("60"))...)
	for name, tt := range map[string]struct {
		jump    []string
		seconds float64
	}{
		"sound and picture": {[]string{"-bsf:v", later(3600), "-bsf:a", later(3600)}, 8},
		"picture alone":     {[]string{"-bsf:v", later(3600), "-an"}, 8},
		"a pause":           {[]string{"-bsf:v", later(60), "-an"}, 68},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, "a.mkv", args([]string{"-i", whole, "-c", "copy"}, tt.jump)...)
			got := stream(t,
				programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: path, Format: encode.Matroska}.Build()...))
			if d := got.timeline.Duration().Seconds(); math.Abs(d-tt.seconds) > 0.2 {
				t.Errorf("lasts %.3f s, want %.0f", d, tt.seconds)
			}
			if tt.seconds < 60 && got.timeline.Target > 3 {
				t.Errorf("target duration %d", got.timeline.Target)
			}
		})
	}
}

// The target duration is what segments last, where that can be known.
func TestStreamTargetIsTheSegments(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		seconds, gop string
		keys, target int
	}{
		"short":            {"9", "50", 0, 2},
		"short, one GOP":   {"9", "250", 0, 9},
		"regular":          {"45", "20", 0, 2},
		"long GOP":         {"45", "250", 0, 12},
		"encoded":          {"5", "20", 2, 2},
		"encoded, regular": {"45", "20", 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rate := "10"
			if tt.seconds == "9" {
				rate = "25"
			}
			path := ffmpeg(t, "a.mkv", args(picture(tt.seconds, rate), h264(tt.gop, "-sc_threshold", "0"))...)
			mp4 := programtest.Run(t, "ffmpeg", encode.RewriteArgs{Input: path, Format: encode.Matroska}.Build()...)
			got := streamWith(t, mp4, ondemand.StreamOptions{Prefix: "x/", KeyInterval: tt.keys})
			if got.timeline.Target != tt.target {
				t.Errorf("target duration %d, want %d", got.timeline.Target, tt.target)
			}
		})
	}
}
