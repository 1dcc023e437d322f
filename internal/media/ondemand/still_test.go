package ondemand_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// freeze has ffmpeg make frozen pictures as the service does.
func freeze(t *testing.T) ondemand.Freeze {
	t.Helper()
	ffmpeg := programtest.Path(t, "ffmpeg")
	return func(pictures []byte, at time.Duration) ([]byte, error) {
		args, err := encode.LastArgs{Codec: frame.H264, At: at}.Build()
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(t.Context(), ffmpeg, args...)
		cmd.Stdin = bytes.NewReader(pictures)
		return cmd.Output()
	}
}

// Where there is no picture for longer than a segment, the last one is held in segments of the usual length.
func TestPictureIsHeld(t *testing.T) {
	t.Parallel()
	short := args(picture("2", "30"), sound("11"), h264("60", "-bf", "3", "-b_strategy", "0"))
	paused := args(picture("13", "30"), sound("13"),
		h264("60", "-bf", "3", "-b_strategy", "0", "-vf", "select='not(between(t,3.01,10))'",
			"-fps_mode", "vfr", "-force_key_frames", "expr:gte(t,n_forced*2)"))
	for name, tt := range map[string]struct {
		args   []string
		ext    string
		keys   int
		last   string // the picture that is held is the one at this second
		holds  int    // segments
		all    int
		target int
	}{
		"MP4":            {short, ".mp4", 0, "1.96", 4, 5, 3},
		"Matroska":       {short, ".mkv", 0, "1.96", 5, 6, 2},
		"encoded, pause": {paused, ".mkv", 2, "2.99", 4, 8, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, "a"+tt.ext, tt.args...)
			line, object := held(t, path, tt.keys)
			if line.Target != tt.target || len(line.Marks) != tt.all {
				t.Errorf("%d segments, target duration %d; want %d, %d", len(line.Marks), line.Target, tt.all,
					tt.target)
			}
			l := line.Rendition(timeline.MainVideo)
			next, holds := int64(-1), 0
			for i, c := range l.Chunks {
				if c.Gap || next >= 0 && c.Time != next || l.Seconds(i) > float64(line.Target)+0.5 {
					t.Errorf("segment %d of %.3f s: %+v, the one before ended at %d", i, l.Seconds(i), c, next)
				}
				next = c.Time + c.Duration
				if line.Marks[i].Discontinuity {
					t.Errorf("segment %d: a discontinuity, though times go on", i)
				}
				if !l.Inits[c.Init].Still {
					continue
				}
				holds++
				data, err := ondemand.Still(object(c.Object), int64(i), c)
				if err != nil {
					t.Fatal(err)
				}
				f, err := cmaf.ParseFragments(data)
				if err != nil || len(f) != 1 || int64(f[0].BaseMediaDecodeTime) != c.Time ||
					int64(f[0].Duration) != c.Duration {
					t.Fatalf("segment %d: %v", i, err)
				}
				alike(t, path, tt.last, append(slices.Clone(object(l.Inits[c.Init].Object)), data...))
			}
			if holds != tt.holds {
				t.Errorf("held in %d segments, want %d", holds, tt.holds)
			}
		})
	}
}

// held cuts a file, with what holds its picture.
func held(t *testing.T, path string, keys int) (*timeline.Timeline, func(string) []byte) {
	t.Helper()
	if filepath.Ext(path) != ".mp4" {
		in := encode.RewriteArgs{Input: path, Format: encode.Matroska}
		s := streamWith(t, programtest.Run(t, "ffmpeg", in.Build()...), ondemand.StreamOptions{
			Prefix: "x/", KeyInterval: keys, Freeze: freeze(t),
		})
		return s.timeline, func(key string) []byte { return s.objects[key] }
	}
	m := plan(t, path)
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	made, err := ondemand.FreezeLast(m.timeline, f, m.video, "x/", freeze(t))
	if err != nil {
		t.Fatal(err)
	}
	return m.timeline, func(key string) []byte {
		return made[slices.IndexFunc(made, func(o ondemand.Object) bool { return o.Key == key })].Data
	}
}

// alike wants the one picture of an MP4 to look like that of a file at a second.
func alike(t *testing.T, path, second string, one []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "one.mp4")
	if err := os.WriteFile(file, one, 0o600); err != nil {
		t.Fatal(err)
	}
	gray := []string{"-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "gray", "-"}
	a := programtest.Run(t, "ffmpeg",
		args([]string{"-nostdin", "-loglevel", "error", "-i", path, "-vf", "select=gte(t\\," + second + ")"}, gray)...)
	b := programtest.Run(t, "ffmpeg", args([]string{"-nostdin", "-loglevel", "error", "-i", file}, gray)...)
	off := 0
	for i := range min(len(a), len(b)) {
		off += max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
	}
	if len(a) != len(b) || len(a) == 0 || off > 4*len(a) {
		t.Errorf("the held picture differs from that at %s by %s of %d", second, strconv.Itoa(off), len(a))
	}
}
