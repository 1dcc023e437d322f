package encode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"millrace/internal/media/container/mp4"
)

// TestSoundThatIsIntact: what mp4.IntactSound takes, the decoder takes, whatever is hit of it; and it takes all sound
// that is whole.
func TestSoundThatIsIntact(t *testing.T) {
	t.Parallel()
	const noisy = "aevalsrc=0.4*sin(880*PI*t)*sin(3*t)+0.3*(random(0)-0.5)+" +
		"0.5*lt(mod(t\\,0.37)\\,0.004)*(random(1)-0.5)|" +
		"0.3*sin(300*PI*t*(1+0.2*t))+0.02*(random(2)-0.5):s=%d:d=4"
	for name, tt := range map[string]struct {
		rate, channels int
		bitrate        string
	}{
		"stereo 48": {48000, 2, "192k"}, "stereo 44.1, few bits": {44100, 2, "48k"}, "mono 32": {32000, 1, "64k"},
		"stereo 24": {24000, 2, "96k"}, "5.1": {48000, 6, "320k"}, "stereo 96": {96000, 2, "256k"},
		"mono 64": {64000, 1, "96k"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t)
			whole, err := os.ReadFile(makeFile(t, "a.mp4", "-f", "lavfi", "-i", fmt.Sprintf(noisy, tt.rate),
				"-ac", strconv.Itoa(tt.channels), "-c:a", "aac", "-b:a", tt.bitrate))
			if err != nil {
				t.Fatal(err)
			}
			if !intact(t, whole) {
				t.Fatal("whole sound is not intact")
			}
			random, found := rand.New(rand.NewPCG(1, uint64(tt.rate*tt.channels))), 0
			const tries = 12
			for i := range tries {
				data := bytes.Clone(whole)
				hit := soundSample(t, data, 2+random.IntN(80))
				for range 1 + i%3 {
					hit[random.IntN(len(hit))] ^= byte(1 + random.IntN(255))
				}
				if !intact(t, data) {
					found++
					continue
				}
				path := filepath.Join(t.TempDir(), "a.mp4")
				if err := os.WriteFile(path, data, 0o600); err != nil {
					t.Fatal(err)
				}
				refused, err := e.Refuses(t.Context(), path, MOV, Audio, 0, time.Minute)
				if err != nil || refused {
					t.Errorf("damage %d is not seen, and decoders refuse it (%v)", i, err)
				}
			}
			if found == 0 {
				t.Errorf("none of %d damages is seen", tries)
			}
		})
	}
}

func soundTrack(t *testing.T, data []byte) *mp4.Track {
	t.Helper()
	f, err := mp4.Index(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	return f.Tracks[0]
}

func intact(t *testing.T, data []byte) bool {
	t.Helper()
	ok, err := mp4.IntactSound(bytes.NewReader(data), soundTrack(t, data), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// soundSample is sample i of an MP4's sound.
func soundSample(t *testing.T, data []byte, i int) []byte {
	t.Helper()
	_, at, err := mp4.Layout(soundTrack(t, data), i, i+1)
	if err != nil {
		t.Fatal(err)
	}
	return data[at[0].Offset:][:at[0].Length]
}
