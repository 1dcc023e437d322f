package ingest_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// The sound of an MPEG-TS that goes on at another sample rate, or with another number of channels, has its pitch from
// the first second to the last.
func TestSoundChangesMidway(t *testing.T) {
	t.Parallel()
	for name, second := range map[string][]string{
		"sample rate": {"-ar", "32000", "-ac", "1"},
		"channels":    {"-ar", "48000", "-ac", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var whole []byte
			for i, sound := range [][]string{{"-ar", "48000", "-ac", "1"}, second} {
				part := filmtest.File(t, "a.ts",
					filmtest.Args(filmtest.Picture("4"), []string{"-f", "lavfi", "-i", "sine=440:duration=4"},
						filmtest.H264, sound,
						[]string{"-output_ts_offset", []string{"0", "4"}[i]})...)
				data, err := os.ReadFile(part)
				if err != nil {
					t.Fatal(err)
				}
				whole = append(whole, data...)
			}
			path := filepath.Join(t.TempDir(), "both.ts")
			if err := os.WriteFile(path, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, workertest.Options{})
			a := w.ReadyAsset(path)
			if math.Abs(a.Facts.Duration-8) > 0.2 {
				t.Errorf("lasts %.3f s, want 8", a.Facts.Duration)
			}
			heard, _ := w.listen(a)
			for _, from := range []string{"1", "5"} {
				if hz := pitch(t, heard, from); math.Abs(hz-440) > 5 {
					t.Errorf("%.0f Hz at %s s, want 440", hz, from)
				}
			}
		})
	}
}

// pitch is how many times a tone swings in a second that begins at a second of a file.
func pitch(t *testing.T, path, from string) float64 {
	t.Helper()
	pcm := programtest.Run(t, "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-af",
		"atrim=start="+from+",atrim=duration=2", "-ar", "48000", "-ac", "1", "-f", "s16le", "-")
	crossings, last := 0, int16(0)
	for i := 0; i+1 < len(pcm); i += 2 {
		v := int16(binary.LittleEndian.Uint16(pcm[i:]))
		if v >= 0 && last < 0 {
			crossings++
		}
		last = v
	}
	return float64(crossings) / (float64(len(pcm)) / 2 / 48000)
}
