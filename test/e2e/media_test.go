package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// packets is what ffprobe reads of one stream, from the first packet to the last.
type packets struct {
	count       int
	first, last float64 // seconds; last is the end of the last packet
	gap         float64 // longest hole between the end of a packet and the begin of the next, in order of presentation
}

// read has ffprobe read a presentation end to end. Of one whose parameters change on the way it complains without need:
// it does not read the second init segment.
func read(t *testing.T, url string, changes bool) map[string]packets {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	probe := filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe")
	level := "error"
	if changes {
		level = "fatal"
	}
	cmd := exec.CommandContext(ctx, probe, "-v", level, "-show_entries",
		"packet=codec_type,stream_index,pts_time,duration_time", "-of", "json", url)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Errorf("ffprobe %s: %v: %s", url, err, complaints.String())
	}
	var list struct {
		Packets []struct {
			Type     string `json:"codec_type"`
			Stream   int    `json:"stream_index"`
			PTS      string `json:"pts_time"`
			Duration string `json:"duration_time"`
		} `json:"packets"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("ffprobe %s: %v", url, err)
	}
	times := map[string][][2]float64{}
	first := map[string]int{} // stream of its kind: the others are rungs of the same
	for _, p := range list.Packets {
		if n, known := first[p.Type]; known && n < p.Stream {
			continue
		} else if !known || n > p.Stream {
			first[p.Type], times[p.Type] = p.Stream, nil
		}
		at, _ := strconv.ParseFloat(p.PTS, 64)
		d, _ := strconv.ParseFloat(p.Duration, 64)
		times[p.Type] = append(times[p.Type], [2]float64{at, at + d})
	}
	sums := map[string]packets{}
	for kind, l := range times {
		slices.SortFunc(l, func(a, b [2]float64) int {
			if a[0] < b[0] {
				return -1
			}
			return 1
		})
		p := packets{count: len(l), first: l[0][0], last: l[len(l)-1][1]}
		for i := 1; i < len(l); i++ {
			p.gap = max(p.gap, l[i][0]-l[i-1][1])
		}
		sums[kind] = p
	}
	return sums
}

// flashes decodes a presentation made of clips with Flash, and gives the times at which the picture turns white and at
// which the beep begins, in seconds of the presentation.
func flashes(t *testing.T, url string) (white, beep []float64) {
	t.Helper()
	return flashesOf(t, stretches(t, url))
}

func flashesOf(t *testing.T, all []stretch) (white, beep []float64) {
	t.Helper()
	for _, f := range all {
		out := filepath.Join(t.TempDir(), "values")
		filter := "signalstats,metadata=mode=print:key=lavfi.signalstats.YAVG:file=" + out
		if f.audio {
			filter = "asetnsamples=n=128:p=0,astats=metadata=1:reset=1:measure_overall=RMS_level:measure_perchannel=none," +
				"ametadata=mode=print:key=lavfi.astats.Overall.RMS_level:file=" + out
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		said, err := exec.CommandContext(ctx, rig.FFmpeg(t), "-nostdin", "-v", "error", "-copyts", "-i", f.path,
			map[bool]string{true: "-af", false: "-vf"}[f.audio], filter, "-f", "null", "-").CombinedOutput()
		// what is thrown away after decoding is nobody's
		if text := string(said); err != nil || text != "" && !strings.Contains(text, "muxer") {
			t.Errorf("decode %s: %v: %s", f.path, err, text)
		}
		if f.audio {
			beep = append(beep, rises(t, out, -15)...)
		} else {
			white = append(white, rises(t, out, 215)...)
		}
	}
	return white, beep
}

// stretch is what lies between two discontinuities of a rendition, as one file: ffmpeg's own HLS reader keeps the
// decoder's parameters of the first init segment.
type stretch struct {
	path  string
	audio bool
}

// stretches fetches each rendition of a finished presentation.
func stretches(t *testing.T, s string) []stretch {
	t.Helper()
	var list []stretch
	for _, m := range mediaPlaylists(t, s) {
		var file *os.File
		for _, e := range m.entries {
			if e.init {
				f, err := os.Create(filepath.Join(t.TempDir(), "stretch.mp4"))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = f.Close() }()
				file = f
				list = append(list, stretch{path: f.Name(), audio: m.audio})
			}
			if _, err := file.Write(get(t, e.url)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return list
}

// rises reads what ffmpeg's metadata filter printed and gives the times at which the value rises above the threshold.
func rises(t *testing.T, file string, threshold float64) []float64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var out []float64
	at, above := math.NaN(), false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if _, text, ok := strings.Cut(lines.Text(), "pts_time:"); ok {
			at, _ = strconv.ParseFloat(strings.TrimSpace(text), 64)
			continue
		}
		_, text, ok := strings.Cut(lines.Text(), "=")
		value, err := strconv.ParseFloat(text, 64)
		if !ok || err != nil {
			continue
		}
		if value > threshold && !above {
			out = append(out, at)
		}
		above = value > threshold
	}
	return out
}

// inStep fails the test when a flash has no beep within 40 ms.
func inStep(t *testing.T, url string, atLeast int) { t.Helper(); inStepAround(t, url, atLeast, false) }

// inStepAround is inStep for a presentation that may have slate in it.
func inStepAround(t *testing.T, url string, atLeast int, slate bool) {
	t.Helper()
	white, beep := flashes(t, url)
	apart(t, white, beep, atLeast, 10, slate)
}

// apart fails the test when a flash from a second on has no beep within 40 ms.
func apart(t *testing.T, white, beep []float64, atLeast int, from float64, slate bool) {
	t.Helper()
	if len(white) < atLeast || len(beep) < atLeast {
		t.Errorf("%d flashes at %.3f and %d beeps at %.3f, want %d of each", len(white), white, len(beep), beep,
			atLeast)
		return
	}
	worst := 0.0
	for _, w := range white {
		// An encoder that is stopped has sent less sound than picture; what is in front of second 10 is there to be
		// decoded only.
		if w > beep[len(beep)-1]+0.5 || w < from {
			continue
		}
		near := math.Inf(1)
		for _, b := range beep {
			if math.Abs(b-w) < math.Abs(near) {
				near = b - w
			}
		}
		if slate && math.Abs(near) > 0.4 {
			continue // the last key frame, which stands for a while before the slate, was a white one
		}
		if math.Abs(near) > math.Abs(worst) {
			worst = near
		}
	}
	t.Logf("sound is at most %.1f ms from the picture: flashes %.3f, beeps %.3f", worst*1000, white, beep)
	if math.Abs(worst) >= 0.040 {
		t.Errorf("sound is %.1f ms from the picture", worst*1000)
	}
}
