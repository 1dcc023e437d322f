package mpegts_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
)

// TestLossIsConcealed loses a packet of a picture of each sort, and has ffmpeg decode what is left: every other picture
// is decoded and shown at its time, and where a key frame was lost none is missing at all, nor where it was a reference
// of H.264. Where HEVC's B-frames are references, those up to the next key frame go with a reference.
func TestLossIsConcealed(t *testing.T) {
	t.Parallel()
	more := func(params string) []string {
		return append(slices.Clone(x265[:len(x265)-1]), x265[len(x265)-1]+params)
	}
	for name, tt := range map[string]struct {
		encoder []string
		pyramid bool
	}{
		"H.264":               {append(slices.Clone(x264), "-bf", "0"), false},
		"H.264 with B-frames": {append(slices.Clone(x264), "-x264-params", "b-pyramid=none"), false},
		"H.264 with pyramid":  {append(slices.Clone(x264), "-x264-params", "b-pyramid=normal:b-adapt=0"), false},
		"HEVC with B-frames":  {more(":b-pyramid=0"), false},
		"HEVC with pyramid":   {more(":b-adapt=0:bframes=3:open-gop=0"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ts, err := os.ReadFile(ffmpeg(t, "x.ts", slices.Concat(picture("640x360"), tt.encoder)...))
			if err != nil {
				t.Fatal(err)
			}
			sent, _ := demux(t, ts)
			pictures, starts := sent.frames[frame.Video], find(ts, videoPID, true)
			config := sent.configs[frame.Video][0]
			for _, lost := range []int{30, 33, 34, 35, 60, 88} {
				if starts[lost+1]-starts[lost] < 2 && !pictures[lost].Key {
					continue // its second packet is another's
				}
				r, d := demux(t, drop(ts, starts[lost]+1))
				got := r.frames[frame.Video]
				want := slices.Clone(pictures)
				if until := lost + 1; config.Codec == frame.H264 && !pictures[lost].Key &&
					reference(pictures[lost].Data, config.Codec) {
					if d.Stats().Repeated != 1 {
						t.Errorf("picture %d: %+v", lost, d.Stats())
					}
				} else if !pictures[lost].Key {
					for tt.pyramid && reference(pictures[lost].Data, config.Codec) && until < len(want) &&
						!want[until].Key {
						until++
					}
					want = slices.Delete(want, lost, until)
				} else if d.Stats().Replaced != 1 {
					t.Errorf("picture %d: %+v", lost, d.Stats())
				}
				if !slices.Equal(times(got), times(want)) {
					t.Errorf("picture %d: given out at %v", lost, times(got))
				}
				shown := decoded(t, config, got)
				if wanted := presented(want); !slices.Equal(shown, wanted) {
					t.Errorf("picture %d, key %t: shown at %v, want %v", lost, pictures[lost].Key, shown, wanted)
				}
			}
		})
	}
}

// reference reports whether others may refer to an access unit.
func reference(au []byte, codec frame.Codec) bool {
	for unit := range nal.Units(au, 4) {
		switch t := unit[0] & 31; {
		case codec == frame.H264 && (t == 1 || t == 5):
			return unit[0]&0x60 != 0
		case codec == frame.HEVC && unit[0]>>1 < 32:
			return unit[0]>>1&1 == 1 || unit[0]>>1 > 14
		}
	}
	return false
}

// presented lists the times of presentation in order, in milliseconds from the first one.
func presented(frames []frame.Frame) []int64 {
	var out []int64
	for _, f := range frames {
		out = append(out, f.PTS.Round(time.Millisecond).Milliseconds())
	}
	slices.Sort(out)
	first := out[0]
	for i := range out {
		out[i] -= first
	}
	return out
}

// decoded has ffmpeg decode frames and lists when they are shown, as presented does.
func decoded(t *testing.T, c frame.Config, frames []frame.Frame) []int64 {
	t.Helper()
	shown, _ := probed(t, c, frames)
	return shown
}

// probed is as decoded, with what ffmpeg says of it.
func probed(t *testing.T, c frame.Config, frames []frame.Frame, options ...string) (shown []int64, said string) {
	t.Helper()
	head, err := cmaf.Init(c, 90000)
	if err != nil {
		t.Fatal(err)
	}
	var samples []cmaf.Sample
	tick := func(d time.Duration) int64 { return int64((d*9 + 50000) / 100000) }
	for i, f := range frames {
		end := f.DTS + time.Second/30
		if i+1 < len(frames) {
			end = frames[i+1].DTS
		}
		samples = append(samples, cmaf.Sample{
			Duration: uint32(tick(end) - tick(f.DTS)), CompositionOffset: int32(tick(f.PTS) - tick(f.DTS)), Sync: f.Key,
			Data: f.Data,
		})
	}
	path := filepath.Join(t.TempDir(), "x.mp4")
	if err = os.WriteFile(path, cmaf.AppendFragment(head, 1, cmaf.TrackID, uint64(tick(frames[0].DTS)), samples),
		0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	args := append(options, "-v", "warning", "-threads", "1", "-select_streams", "v", "-show_entries", "frame=pts_time",
		"-of", "json", path)
	cmd := exec.CommandContext(t.Context(), "ffprobe", args...)
	cmd.Stderr = &log
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("ffprobe: %v: %s", err, log.Bytes())
	}
	var pictures struct {
		Frames []struct {
			PTS string `json:"pts_time"`
		} `json:"frames"`
	}
	if err = json.Unmarshal(list, &pictures); err != nil {
		t.Fatal(err)
	}
	var out []int64
	for _, f := range pictures.Frames {
		d, err := time.ParseDuration(cmp.Or(strings.TrimSpace(f.PTS), "?") + "s")
		if err != nil {
			t.Fatal(fmt.Errorf("time of a picture: %w", err))
		}
		out = append(out, d.Round(time.Millisecond).Milliseconds())
	}
	if len(out) > 0 {
		first := out[0]
		for i := range out {
			out[i] -= first
		}
	}
	return out, log.String()
}
