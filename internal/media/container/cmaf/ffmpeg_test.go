package cmaf_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// ffmpeg runs it with these arguments and input and returns its output; anything on its error log at level error fails
// the test.
func ffmpeg(t testing.TB, input []byte, args ...string) []byte {
	t.Helper()
	return command(t, input, "ffmpeg", append([]string{"-nostdin", "-hide_banner", "-loglevel", "error"}, args...)...)
}

func command(t testing.TB, input []byte, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, name), args...)
	cmd.Stdin = bytes.NewReader(input)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil || log.Len() > 0 {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, log.String())
	}
	return out
}

// frames decodes a file or stream and returns a line per frame of this stream: pts, duration, size and checksum.
func frames(t testing.TB, data []byte, stream string) []string {
	t.Helper()
	p := filepath.Join(t.TempDir(), "in.mp4")
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var out []string
	for l := range strings.Lines(string(ffmpeg(t, nil, "-copyts", "-i", p, "-map", stream, "-fps_mode", "passthrough",
		"-f", "framemd5", "-"))) {
		if !strings.HasPrefix(l, "#") {
			out = append(out, strings.TrimSpace(l))
		}
	}
	return out
}

var source = []string{
	"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30000/1001:duration=3",
	"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100:duration=3",
	"-map", "0:v", "-map", "1:a",
	"-c:v", "libx264", "-preset", "ultrafast", "-bf", "2", "-g", "30", "-pix_fmt", "yuv420p", "-c:a", "aac", "-ac", "2",
}

func fragmented(t testing.TB, flags string, more ...string) []byte {
	t.Helper()
	args := append(append([]string{}, source...), more...)
	return ffmpeg(t, nil, append(args, "-f", "mp4", "-movflags", flags, "-")...)
}
