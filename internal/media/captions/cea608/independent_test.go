package cea608_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608"
)

// shown is a caption as another decoder shows it.
type shown struct {
	Start float64  `json:"start"`
	End   float64  `json:"end"`
	Row   int      `json:"row"` // of its first line, from 1; 0: not known
	Lines []string `json:"lines"`
}

// TestIndependent decodes what another encoder has made (go608-inject of go-608 v0.6.0, of an SRT file) and compares it
// with what another decoder makes of it (mux.js 7.1.0).
func TestIndependent(t *testing.T) {
	t.Parallel()
	var want []shown
	readJSON(t, "testdata/independent.json", &want)
	compare(t, "CC1", decodeSCC(t, "testdata/independent.scc")[cea608.CC1], want)
}

// TestIndependentModes is the same for all modes, on all channels at once. testdata/modes has the programs that made
// the files.
func TestIndependentModes(t *testing.T) {
	t.Parallel()
	var want map[string][]shown
	readJSON(t, "testdata/modes/modes.json", &want)
	got := decodeSCC(t, "testdata/modes/modes.field1.scc", "testdata/modes/modes.field2.scc")
	for c := cea608.CC1; c <= cea608.CC4; c++ {
		name := "CC" + strconv.Itoa(int(c))
		if c == cea608.CC2 || c == cea608.CC4 { // mux.js does not know the row codes of a field's second channel
			for i := range want[name] {
				want[name][i].Row = 0
			}
		}
		compare(t, name, got[c], want[name])
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// compare allows the 0.15 s that may pass between the codes in front of a line and its first letter: mux.js counts from
// the former.
func compare(t *testing.T, channel string, got []captions.Cue, want []shown) {
	t.Helper()
	if len(got) != len(want) || len(want) == 0 {
		t.Fatalf("%s: %d cues, want %d: %+v", channel, len(got), len(want), got)
	}
	unescape := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")
	for i, c := range got {
		w, lines := want[i], strings.Split(unescape.Replace(c.Text), "\n")
		line := "line:" + strconv.FormatFloat(10+80*float64(w.Row-1)/15, 'f', 2, 64) + "% "
		if !slices.Equal(lines, w.Lines) || math.Abs(c.Start.Seconds()-w.Start) > 0.15 ||
			math.Abs(c.End.Seconds()-w.End) > 0.05 ||
			w.Row > 0 && !strings.HasPrefix(c.Settings, line) {
			t.Errorf("%s, cue %d: %v to %v, %q, %s; want %+v", channel, i, c.Start, c.End, lines, c.Settings, w)
		}
	}
}

type timedPair struct {
	frame, field int
	first, last  byte
}

// decodeSCC gives the cues of each channel. Each file is a field.
func decodeSCC(t *testing.T, files ...string) (out [5][]captions.Cue) {
	t.Helper()
	var pairs []timedPair
	for i, file := range files {
		pairs = append(pairs, readSCC(t, file, i+1)...)
	}
	slices.SortStableFunc(pairs, func(a, b timedPair) int { return cmp.Compare(a.frame, b.frame) })
	d := cea608.New(func(c cea608.Channel, cue captions.Cue) { out[c] = append(out[c], cue) })
	at := func(frame int) time.Duration { return time.Duration(frame) * 1001 * time.Second / 30000 }
	for _, p := range pairs {
		d.Pair(at(p.frame), p.field, p.first, p.last)
	}
	d.Reset(at(pairs[len(pairs)-1].frame + 1))
	return out
}

// readSCC reads a file of Scenarist's format: the frame of the first of several pairs, in hexadecimal digits.
func readSCC(t *testing.T, file string, field int) (out []timedPair) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.Contains(fields[0], ":") {
			continue
		}
		frame := 0
		for i, digits := range strings.Split(fields[0], ":") {
			n, err := strconv.Atoi(digits)
			if err != nil {
				t.Fatal(err)
			}
			frame = frame*[]int{1, 60, 60, 30}[i] + n
		}
		for i, pair := range fields[1:] {
			v, err := strconv.ParseUint(pair, 16, 16)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, timedPair{frame + i, field, byte(v >> 8), byte(v)})
		}
	}
	return out
}
