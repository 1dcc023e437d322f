// Package filmtest makes the files of the tests of workers: with ffmpeg, and of text.
package filmtest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/programtest"
)

// File makes a file of this name and returns its path.
func File(t testing.TB, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, append([]string{"-threads", "1"}, args...)...)
}

// Args puts arguments of ffmpeg together.
func Args(parts ...[]string) []string { return slices.Concat(parts...) }

// Picture are a test picture.
func Picture(seconds string) []string {
	return []string{"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=30:duration=" + seconds}
}

// Sound are a tone.
func Sound(seconds string) []string {
	return []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=" + seconds}
}

// H264 has a key frame every two seconds.
var H264 = []string{ //nolint:gochecknoglobals // a constant
	"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "60", "-bf", "2", "-threads", "1", "-c:a",
	"aac",
}

// Video is what makes a usual one of 13 seconds.
func Video(more ...string) []string { return Args(Picture("13"), Sound("13"), H264, more) }

// Usual makes a file of Video.
func Usual(t testing.TB, name string) string {
	t.Helper()
	return File(t, name, Video()...)
}

// Text writes a file.
func Text(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Packets counts those of a kind of codec in a file.
func Packets(t testing.TB, path, codec string) int {
	t.Helper()
	out := programtest.Run(t, "ffprobe", "-v", "error", "-count_packets", "-show_entries",
		"stream=codec_name,nb_read_packets", "-of", "csv=p=0", path)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) < 2 || fields[0] != codec {
			continue
		}
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 0
}

// Budget is the processor, which the tests of a package share.
var Budget = encode.NewBudget(encode.BudgetOptions{Cores: runtime.NumCPU()}) //nolint:gochecknoglobals // shared

// NewEngine encodes within Budget.
func NewEngine(t testing.TB, stall time.Duration) *encode.Engine {
	t.Helper()
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: programtest.Path(t, "ffmpeg"), FFprobe: programtest.Path(t, "ffprobe"), Budget: Budget, Stall: stall,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
