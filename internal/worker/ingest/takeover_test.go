package ingest

import (
	"os"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/media/container/mp4"
	"millrace/internal/programtest"
)

// TestUnfit: what of an MP4 can't stay as it is, and why.
func TestUnfit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want unfit
	}{
		"H.264 and AAC": {
			[]string{"-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"}, unfit{},
		},
		"4:2:2": {
			[]string{"-c:v", "libx264", "-pix_fmt", "yuv422p", "-c:a", "aac"},
			unfit{rewrite: true, picture: true, reasons: asset.NonStandard{PixelFormat: "yuv422p"}},
		},
		"key frames far apart": {
			[]string{"-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "1000", "-c:a", "aac", "-t", "25"},
			unfit{rewrite: true, picture: true, reasons: asset.NonStandard{GOP: high}},
		},
		"MPEG-4": {[]string{"-c:v", "mpeg4", "-c:a", "aac"}, unfit{rewrite: true}},
		"MP3":    {[]string{"-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "libmp3lame"}, unfit{rewrite: true}},
		"wide, which stays": {
			[]string{"-c:v", "libx264", "-vf", "scale=2050:64,setsar=1,format=yuv420p", "-an"},
			unfit{reasons: asset.NonStandard{Resolution: "2050x64"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{
				"-f", "lavfi", "-i", "testsrc2=size=64x64:rate=10", "-f", "lavfi", "-i", "sine=sample_rate=48000", "-t",
				"2", "-preset", "ultrafast",
			}, tt.args...)
			f, err := os.Open(programtest.SharedMedia(t, "unfit.mp4", args...))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			st, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			index, err := mp4.Index(f, st.Size())
			if err != nil {
				t.Fatal(err)
			}
			video, audio, got, err := choose(index)
			if err == nil && !got.rewrite {
				_, got, err = planTracks(f, video, audio, "key", boundsOf(1080))
			}
			if err != nil || got != tt.want {
				t.Errorf("%+v, %v, want %+v", got, err, tt.want)
			}
		})
	}
}
