package mpegts_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
	"millrace/internal/programtest"
)

// undated takes the decoding times out of the PES headers of a transport stream.
func undated(t *testing.T, b []byte) []byte {
	t.Helper()
	b = slices.Clone(b)
	n := 0
	for p := range slices.Chunk(b, mpegts.PacketSize) {
		pes := p[4:]
		if p[3]&0x20 != 0 {
			pes = pes[1+int(pes[0]):]
		}
		if p[1]&0x40 == 0 || len(pes) < 19 || string(pes[:3]) != "\x00\x00\x01" || pes[3]&0xf0 != 0xe0 ||
			pes[7]>>6 != 3 {
			continue
		}
		pes[7] &^= 0x40
		pes[9] = pes[9]&0x0f | 0x20
		copy(pes[14:19], "\xff\xff\xff\xff\xff") // stuffing
		n++
	}
	if n == 0 {
		t.Fatal("there is no decoding time to take out")
	}
	return b
}

// growing checks what players and everything behind the demuxer count on: pictures are decoded in growing time, and
// before they are shown.
func growing(t *testing.T, frames []frame.Frame) {
	t.Helper()
	for i, f := range frames {
		if f.PTS < f.DTS || i > 0 && f.DTS <= frames[i-1].DTS {
			t.Errorf("picture %d is decoded at %v and shown at %v", i, f.DTS, f.PTS)
		}
	}
	if span := frames[len(frames)-1].DTS - frames[0].DTS; span > 3100*time.Millisecond {
		t.Errorf("three seconds last %v", span)
	}
}

// TestNoDecodingTimes takes away the decoding times of streams with B-frames: those that are made are the encoder's.
func TestNoDecodingTimes(t *testing.T) {
	t.Parallel()
	for name, encoder := range map[string][]string{
		"H.264": x264,
		"a pyramid": {
			"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30", "-threads", "1",
			"-x264-params", "bframes=4:b-adapt=0:b-pyramid=normal",
		},
		"HEVC":              x265,
		"adaptive B-frames": {"-c:v", "libx264", "-preset", "fast", "-pix_fmt", "yuv420p", "-threads", "1", "-bf", "5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := read(t, ffmpeg(t, "x.ts", slices.Concat(picture("320x180"), encoder)...))
			with, _ := demux(t, b)
			without, _ := demux(t, undated(t, b))
			want, got := with.frames[frame.Video], without.frames[frame.Video]
			if len(got) != len(want) {
				t.Fatalf("%d pictures, want %d", len(got), len(want))
			}
			growing(t, got)
			for i, f := range got {
				if off := f.DTS - want[i].DTS; f.PTS != want[i].PTS || off.Abs() > time.Millisecond {
					t.Errorf("picture %d: %v, %v, want %v, %v", i, f.DTS, f.PTS, want[i].DTS, want[i].PTS)
				}
			}
		})
	}
}

// TestGStreamerWithoutDecodingTimes has GStreamer write a transport stream of a file that has none.
func TestGStreamerWithoutDecodingTimes(t *testing.T) {
	t.Parallel()
	mkv := ffmpeg(t, "x.mkv",
		slices.Concat(picture("320x180"), []string{
			"-c:v", "libx264", "-preset", "fast", "-bf", "3", "-pix_fmt", "yuv420p", "-g", "30",
		})...)
	ts := filepath.Join(t.TempDir(), "x.ts")
	programtest.Run(t, "gst-launch-1.0", "-q", "filesrc", "location="+mkv, "!", "matroskademux", "!", "h264parse", "!",
		"mpegtsmux", "!", "filesink", "location="+ts)
	got, _ := demux(t, read(t, ts))
	if n := len(got.frames[frame.Video]); n != 90 {
		t.Fatalf("%d pictures of 90", n)
	}
	growing(t, got.frames[frame.Video])
}

// plainSPS is of 320x240 in Main profile and says nothing about how many pictures are reordered.
var plainSPS = []byte("\x67\x4d\x00\x1e\xf4\x0a\x0f\xc8")

// TestReorderingThatIsNotTold: the first pictures show how many are reordered, and later ones that it is more.
func TestUndeclaredReordering(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ groups [][]int64 }{ // by presentation, in decoding order
		"none": {
			[][]int64{
				{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7},
			},
		},
		"one": {
			[][]int64{
				{0, 3, 1, 2, 6, 4, 5, 7}, {0, 3, 1, 2, 6, 4, 5, 7}, {0, 3, 1, 2, 6, 4, 5, 7}, {0, 3, 1, 2, 6, 4, 5, 7},
			},
		},
		"two": {
			[][]int64{
				{0, 4, 2, 1, 3, 5, 7, 6}, {0, 4, 2, 1, 3, 5, 7, 6}, {0, 4, 2, 1, 3, 5, 7, 6}, {0, 4, 2, 1, 3, 5, 7, 6},
			},
		},
		"a jump of an hour": {
			[][]int64{
				{0, 3, 1, 2, 6, 4, 5, 7},
				{0, 3, 1, 2, 6, 4, 5, 7},
				{108000, 108003, 108001, 108002, 108006, 108004, 108005, 108007},
			},
		},
		"an hour backwards": {
			[][]int64{
				{108000, 108003, 108001, 108002, 108006, 108004, 108005, 108007},
				{108000, 108003, 108001, 108002},
				{0, 3, 1, 2, 6, 4, 5, 7},
			},
		},
		"some, after a time": {
			[][]int64{
				{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}, {0, 3, 1, 2, 6, 4, 5, 7}, {0, 3, 1, 2, 6, 4, 5, 7},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMux()
			m.pat(0, 1, mapPID)
			m.pmt(mapPID, 1, 0, es{0x1b, videoPID, ""})
			var want []int64
			for g, group := range tt.groups {
				for i, place := range group {
					au := h264Unit(i == 0, 500)
					if i == 0 {
						au = append([]byte{0, 0, 0, 1, 9, 0xf0, 0, 0, 0, 1}, plainSPS...)
						au = append(append(au, 0, 0, 0, 1), testPPS...)
						au = append(au, h264Unit(false, 500)[6:]...)
						au[len(au)-501] = 0x65
					}
					pts := 900000 + 3000*(int64(8*g)+place)
					want = append(want, pts)
					m.pes(videoPID, 0xe0, pts, pts, au)
				}
			}
			r, _ := demux(t, m.b)
			got := r.frames[frame.Video]
			if len(got) != len(want) {
				t.Fatalf("%d pictures of %d", len(got), len(want))
			}
			back := 0
			for i, f := range got {
				if !sameTime(f.PTS, want[i]) || f.DTS > f.PTS {
					t.Errorf("picture %d is decoded at %v and shown at %v, want %v", i, f.DTS, f.PTS, ticks(want[i]))
				}
				if i > 0 && f.DTS <= got[i-1].DTS {
					back++
				}
			}
			if most := map[string]int{"an hour backwards": 1, "some, after a time": 1}[name]; back > most {
				t.Errorf("decoding goes back %d times", back)
			}
		})
	}
}
