package mpegts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
)

// TestReferencesAreReplaced loses one picture of each group, in each group the next one, once its end and once all of
// it, in every kind of H.264 that a picture can be put in for. A decoder that forgives nothing finds nothing to
// complain of where the lost ones left their headers, nothing but what they would have said of other references where
// nothing is left; and every other picture is shown at its time. One that left its header is shown as well, if others
// refer to it.
func TestReferencesAreReplaced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		format, params string
		chosen         bool // pictures say which references remain
	}{
		"pyramid":           {"yuv420p", "b-pyramid=normal:b-adapt=0:bframes=3:ref=3", false},
		"pyramid, adaptive": {"yuv420p", "b-pyramid=normal:b-adapt=2:bframes=5:ref=4:weightp=2:rc-lookahead=10", true},
		"strict pyramid":    {"yuv420p", "b-pyramid=strict:b-adapt=0:bframes=3:ref=2", true},
		"CAVLC":             {"yuv420p", "b-pyramid=normal:b-adapt=0:bframes=3:ref=3:cabac=0", false},
		"no pyramid":        {"yuv420p", "b-pyramid=none:b-adapt=0:bframes=2:ref=4", false},
		"no B-frames":       {"yuv420p", "bframes=0:ref=3:weightp=1", false},
		"one reference":     {"yuv420p", "bframes=0:ref=1:cabac=0", false},
		"no deblocking":     {"yuv420p", "b-pyramid=normal:b-adapt=0:bframes=3:ref=3:no-deblock=1:no-weightb=1", false},
		"slices":            {"yuv420p", "b-pyramid=normal:b-adapt=0:bframes=3:ref=3:slices=4", false},
		"temporal":          {"yuv420p", "b-pyramid=normal:b-adapt=0:bframes=4:ref=3:direct=temporal", false},
		"4:2:2 of 10 bits":  {"yuv422p10le", "b-pyramid=normal:b-adapt=0:bframes=3", false},
		"grey":              {"gray", "b-pyramid=normal:b-adapt=0:bframes=3:weightp=2", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const group = 16
			ts, err := os.ReadFile(ffmpeg(t, "x.ts", "-f", "lavfi", "-i",
				fmt.Sprintf("testsrc2=rate=30:size=158x92,trim=end_frame=%d", group*group), "-c:v", "libx264",
				"-preset", "veryfast", "-pix_fmt", tt.format, "-g", fmt.Sprint(group), "-threads", "1", "-b:v", "600k",
				"-x264-params", tt.params+":scenecut=0"))
			if err != nil {
				t.Fatal(err)
			}
			sent, _ := demux(t, ts)
			pictures, config := sent.frames[frame.Video], sent.configs[frame.Video][0]
			starts, all := find(ts, videoPID, true), find(ts, videoPID, false)
			var ends, wholes []int // packets
			var endless, lost []frame.Frame
			for i := 1; i < group-1; i++ {
				n := i*group + i
				packets := all[slices.Index(all, starts[n]):slices.Index(all, starts[n+1])]
				if len(packets)%16 != 0 { // else the counters do not show it
					wholes, lost = append(wholes, packets...), append(lost, pictures[n])
				}
				if len(packets) > 1 {
					ends, endless = append(ends, packets[1]), append(endless, pictures[n])
				}
			}
			r, d := demux(t, drop(ts, ends...))
			refers := func(f frame.Frame) bool { return reference(f.Data, config.Codec) }
			want := slices.DeleteFunc(slices.Clone(endless), func(f frame.Frame) bool { return !refers(f) })
			if s := d.Stats(); s.Repeated != len(want) || s.Waiting > 0 {
				t.Errorf("ends: %+v, want %d repeated", s, len(want))
			}
			shown, said := probed(t, config, r.frames[frame.Video], "-err_detect", "explode")
			isShown(t, "ends", shown, pictures, slices.DeleteFunc(endless, refers))
			if said != "" {
				t.Errorf("ends: %s", said)
			}
			r, d = demux(t, drop(ts, wholes...))
			shown, said = probed(t, config, r.frames[frame.Video], "-err_detect", "explode")
			if !tt.chosen {
				want = slices.DeleteFunc(slices.Clone(lost), func(f frame.Frame) bool { return !refers(f) })
				// of a PES packet whose end is not seen the picture before counts as lost, too
				if s := d.Stats(); s.Repeated < len(want) || s.Waiting > 0 {
					t.Errorf("wholes: %+v, want %d repeated", s, len(want))
				}
				isShown(t, "wholes", shown, pictures, lost)
			}
			for line := range strings.Lines(said) {
				if !strings.Contains(line, "co located POCs unavailable") &&
					!strings.Contains(line, "Last message repeated") {
					t.Errorf("wholes: %s", line)
				}
			}
		})
	}
}

// isShown looks for all pictures but some in what is shown.
func isShown(t *testing.T, what string, shown []int64, pictures, but []frame.Frame) {
	t.Helper()
	first := pictures[0].PTS.Round(time.Millisecond)
	for i, at := range presented(pictures) {
		gone := slices.ContainsFunc(but, func(f frame.Frame) bool {
			return (f.PTS.Round(time.Millisecond) - first).Milliseconds() == at
		})
		if _, there := slices.BinarySearch(shown, at); !there && !gone {
			t.Errorf("%s: picture %d, of %d ms, is not shown", what, i, at)
		}
	}
}
