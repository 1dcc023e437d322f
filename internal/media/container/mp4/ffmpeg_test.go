package mp4_test

import (
	"encoding/json"
	"strconv"
	"testing"

	"millrace/internal/programtest"
)

// ffmpeg makes a file of this name from these arguments and returns its path.
func ffmpeg(t testing.TB, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, args...)
}

// picture and sound are inputs of three seconds.
func picture(rate string) []string {
	return []string{"-f", "lavfi", "-i", "testsrc2=size=320x180:duration=3:rate=" + rate}
}

func sound() []string {
	return []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=3"}
}

func args(parts ...[]string) []string {
	var out []string
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

var x264 = []string{
	"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30", "-bf", "2", "-c:a", "aac",
}

// packet is what ffprobe says about one; numbers it does not know are nil.
type packet struct {
	Stream   int    `json:"stream_index"`
	PTS      *int64 `json:"pts"`
	DTS      *int64 `json:"dts"`
	Duration *int64 `json:"duration"`
	Size     string `json:"size"`
	Pos      string `json:"pos"`
	Flags    string `json:"flags"`
}

func (p packet) pos(t testing.TB) int64 {
	t.Helper()
	n, err := strconv.ParseInt(p.Pos, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// packets asks ffprobe for every packet by stream. With edits ffmpeg's own reading of the edit list is in their times.
func packets(t testing.TB, path string, edits bool) map[int][]packet {
	t.Helper()
	ignore := "1"
	if edits {
		ignore = "0"
	}
	var all struct {
		Packets []packet `json:"packets"`
	}
	if err := json.Unmarshal(programtest.Run(t, "ffprobe", "-v", "error", "-ignore_editlist", ignore, "-show_packets",
		"-of", "json", path), &all); err != nil {
		t.Fatal(err)
	}
	out := map[int][]packet{}
	for _, p := range all.Packets {
		out[p.Stream] = append(out[p.Stream], p)
	}
	return out
}
