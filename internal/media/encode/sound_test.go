package encode

import (
	"bytes"
	"encoding/binary"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// heard measures a file as EBU R 128 has it.
func heard(t *testing.T, path string) loudness {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-nostats", "-hide_banner", "-i", path, "-af",
		"ebur128=peak=true:framelog=verbose", "-f", "null", "-")
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	l, err := parseLoudness(string(said))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// samples decodes a file: one slice for each channel.
func samples(t *testing.T, path string) [][]float64 {
	t.Helper()
	raw, err := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f", "f32le",
		"-").Output()
	if err != nil {
		t.Fatal(err)
	}
	channels, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-show_entries", "stream=channels",
		"-of", "csv=p=0", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float64, int(bytes.TrimSpace(channels)[0]-'0'))
	for i := 0; i+4 <= len(raw); i += 4 {
		c := i / 4 % len(out)
		out[c] = append(out[c], float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[i:]))))
	}
	return out
}

func loudest(s []float64) (at int, peak float64) {
	for i, v := range s {
		if v = math.Abs(v); v > peak {
			at, peak = i, v
		}
	}
	return at, peak
}

// lasting makes a sound's file from a filter graph.
func lasting(t *testing.T, name, graph string, more ...string) string {
	t.Helper()
	return makeFile(t, name, append([]string{"-f", "lavfi", "-i", graph}, more...)...)
}

// TestLevel brings sounds to a loudness: by a gain where that is enough, with a limiter where peaks are in the way, and
// not at all where nothing is to be done. Nothing of it moves the sound, or makes it longer or shorter.
func TestLevel(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes ten files several times")
	}
	e := newEngine(t)
	const target = -24
	noise := "anoisesrc=color=pink:seed=7:sample_rate=48000:duration=6:amplitude="
	for name, tt := range map[string]struct {
		graph    string
		more     []string
		sound    Sound
		limit    bool
		as       bool    // it stays as it is
		loudness float64 // of the outcome; 0: the target
	}{
		"quiet": {graph: noise + "0.01", sound: Sound{SampleRate: 48000, Channels: 1}},
		"loud": {
			graph: noise + "1,aformat=channel_layouts=stereo", sound: Sound{SampleRate: 48000, Channels: 2},
		},
		"peaky": {
			graph: "aevalsrc=0.004*sin(3000*t)+0.6*exp(-mod(t\\,2)*900)*sin(5000*t):s=48000:d=8",
			sound: Sound{SampleRate: 48000, Channels: 1}, limit: true,
		},
		"at 44.1 kHz": {
			graph: noise + "0.02,aresample=44100,aformat=channel_layouts=stereo",
			sound: Sound{SampleRate: 44100, Channels: 2},
		},
		"at 96 kHz": {graph: noise + "0.02,aresample=96000", sound: Sound{SampleRate: 96000, Channels: 1}},
		"surround": {
			graph: noise + "0.05,aformat=channel_layouts=mono,pan=5.1|FL=c0|FR=c0|FC=c0|LFE=c0|BL=c0|BR=c0",
			sound: Sound{SampleRate: 48000, Channels: 6},
		},
		"silent": {
			graph: "anullsrc=d=5", sound: Sound{SampleRate: 44100, Channels: 2}, as: true, loudness: silent,
		},
		"too short": {
			graph: "sine=d=0.2", sound: Sound{SampleRate: 44100, Channels: 1}, as: true, loudness: silent,
		},
		"as it should be": {
			graph: "sine=frequency=997:sample_rate=48000:duration=6", sound: Sound{SampleRate: 48000, Channels: 1},
			as: true,
		},
		"hardly a whisper": {
			graph: noise + "0.002", more: []string{"-c:a", "pcm_s24le"}, sound: Sound{SampleRate: 48000, Channels: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := lasting(t, "in.wav", tt.graph, tt.more...)
			if name == "as it should be" {
				in = makeFile(t, "at.wav", "-i", in, "-af",
					strings.TrimPrefix(Sound{Channels: 1, Gain: target - heard(t, in).integrated}.filters(),
						steady+","))
			}
			s, err := e.Level(t.Context(), LoudnessArgs{Input: in, Format: WAV, Sound: tt.sound}, target)
			if err != nil {
				t.Fatal(err)
			}
			if s.Limit != tt.limit || (s == tt.sound) != tt.as {
				t.Errorf("made %+v", s)
			}
			made := map[bool]string{}
			for _, level := range []bool{false, true} {
				made[level] = filepath.Join(t.TempDir(), "out.m4a")
				as := s
				if !level {
					as.Gain, as.Limit = 0, false
				}
				if err := e.EncodeAudio(t.Context(), Ingest, AudioArgs{
					Input: in, Format: WAV, Output: made[level], Sound: as,
				}, nil); err != nil {
					t.Fatal(err)
				}
			}
			got, want := heard(t, made[true]), tt.loudness
			if want == 0 {
				want = target
			}
			if math.Abs(got.integrated-want) > 0.5 || got.peak > -0.5 {
				t.Errorf("%.1f LUFS with peaks of %.1f dBTP, from %+v by %+v", got.integrated, got.peak, heard(t, in),
					s)
			}
			before, after := samples(t, made[false]), samples(t, made[true])
			if len(before[0]) != len(after[0]) {
				t.Errorf("%d samples have become %d", len(before[0]), len(after[0]))
			}
			if name == "peaky" { // its loudest moments are where they were
				for from := 0; from+138000 < len(before[0]); from += 96000 {
					a, _ := loudest(before[0][from+48000:][:90000])
					b, _ := loudest(after[0][from+48000:][:90000])
					if a-b > 24 || b-a > 24 { // half a millisecond: the limiter flattens them
						t.Errorf("what was at %d is at %d", a, b)
					}
				}
			}
		})
	}
}

// TestDownmix listens to each channel of surround by itself, and to all of them at their loudest.
func TestDownmix(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes fourteen files")
	}
	e := newEngine(t)
	const side, both = 1 / (1 + 2*0.7071), 0.7071 / (1 + 2*0.7071) // 5.1: L + C + Ls
	const wide, narrow = 1 / (1 + 3*0.7071), 0.7071 / (1 + 3*0.7071)
	for name, tt := range map[string]struct {
		layout, channels    string
		file                string
		codec               []string
		format              Format
		count               int
		left, right, within float64
	}{
		"left":               {"5.1", "FL=c0", "a.wav", nil, WAV, 6, side, 0, 0.02},
		"right":              {"5.1", "FR=c0", "a.wav", nil, WAV, 6, 0, side, 0.02},
		"centre":             {"5.1", "FC=c0", "a.wav", nil, WAV, 6, both, both, 0.02},
		"LFE":                {"5.1", "LFE=c0", "a.wav", nil, WAV, 6, 0, 0, 0.02},
		"surround left":      {"5.1", "BL=c0", "a.wav", nil, WAV, 6, both, 0, 0.02},
		"all":                {"5.1", "FL=c0|FR=c0|FC=c0|LFE=c0|BL=c0|BR=c0", "a.wav", nil, WAV, 6, 1, 1, 0.03},
		"7.1: left":          {"7.1", "FL=c0", "a.wav", nil, WAV, 8, wide, 0, 0.02},
		"7.1: back and side": {"7.1", "BR=c0|SR=c0", "a.wav", nil, WAV, 8, 0, 2 * narrow, 0.02},
		"7.1: all": {
			"7.1", "FL=c0|FR=c0|FC=c0|LFE=c0|BL=c0|BR=c0|SL=c0|SR=c0", "a.wav", nil, WAV, 8, 1, 1, 0.03,
		},
		"AAC: centre": {
			"5.1", "FC=c0", "a.m4a", []string{"-c:a", "aac", "-b:a", "512k"}, MOV, 6, both, both, 0.05,
		},
		"AC-3: surround right": {
			"5.1(side)", "SR=c0", "a.mp4", []string{"-c:a", "ac3", "-b:a", "640k"}, MOV, 6, 0, both, 0.05,
		},
		"E-AC-3: all": {
			"5.1(side)", "FL=c0|FR=c0|FC=c0|SL=c0|SR=c0", "a.mkv",
			[]string{"-c:a", "eac3", "-b:a", "640k"},
			Matroska,
			6, 1, 1, 0.1,
		},
		"Opus: centre": {
			"5.1", "FC=c0", "a.mkv",
			[]string{"-c:a", "libopus", "-mapping_family", "1", "-b:a", "320k"},
			Matroska, 6,
			both, both, 0.05,
		},
		"FLAC: left": {"7.1", "FL=c0", "a.flac", []string{"-c:a", "flac"}, FLAC, 8, wide, 0, 0.02},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// at its loudest
			graph := "sine=frequency=997:sample_rate=48000:duration=2,volume=18.06dB,pan=" + tt.layout + "|" +
				tt.channels
			in, out := lasting(t, tt.file, graph, tt.codec...), filepath.Join(t.TempDir(), "out.m4a")
			if err := e.EncodeAudio(t.Context(), Ingest, AudioArgs{
				Input: in, Format: tt.format, Output: out, Sound: Sound{SampleRate: 48000, Channels: tt.count},
			}, nil); err != nil {
				t.Fatal(err)
			}
			got := samples(t, out)
			if len(got) != 2 {
				t.Fatalf("%d channels", len(got))
			}
			for i, want := range []float64{tt.left, tt.right} {
				if _, peak := loudest(got[i][24000:72000]); math.Abs(peak-want) > tt.within {
					t.Errorf("channel %d has %.3f, want %.3f", i, peak, want)
				}
			}
		})
	}
}

func FuzzParseLoudness(f *testing.F) {
	f.Add("[Parsed_ebur128_0 @ 0x1] Summary:\n\n  Integrated loudness:\n    I:         -21.8 LUFS\n    Threshold: " +
		"-31.9 LUFS\n\n  True peak:\n    Peak:       -inf dBFS\n")
	f.Add("Summary:\n I: nan LUFS\n Peak: 1e999 dBFS\n")
	f.Fuzz(func(t *testing.T, said string) {
		l, err := parseLoudness(said)
		if err == nil &&
			(math.IsNaN(l.integrated+l.peak) || math.IsInf(l.integrated+l.peak, 0) || l.integrated < silent) {
			t.Errorf("%+v of %q", l, said)
		}
	})
}
