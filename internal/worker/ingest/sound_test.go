package ingest_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/playbackid"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// listen writes the sound that is stored of an asset into a file and gives its path, and when it begins, in seconds of
// the asset.
func (w *world) listen(a asset.Asset) (path string, begins float64) {
	w.T.Helper()
	line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	l := line.Rendition(timeline.MainAudio)
	if l == nil || l.Source != nil {
		w.T.Fatal("the sound was not encoded again")
	}
	data := w.ReadObject(l.Inits[0].Object)
	for _, c := range l.Chunks {
		if !c.Gap {
			data = append(data, w.ReadObject(c.Object)...)
		}
	}
	path = filepath.Join(w.T.TempDir(), "a.mp4")
	w.Must(os.WriteFile(path, data, 0o600))
	return path, float64(l.Chunks[0].Time)/float64(l.Timescale) - timeline.Origin
}

// loudness measures a file, in LUFS.
func loudness(t *testing.T, path string) float64 {
	t.Helper()
	said := programtest.Run(t, "sh", "-c",
		`exec ffmpeg -nostdin -nostats -hide_banner -i "$0" -af ebur128=framelog=verbose -f null - 2>&1`, path)
	all := regexp.MustCompile(`I: +(-?[0-9.]+) LUFS`).FindAllSubmatch(said, -1)
	if all == nil {
		t.Fatalf("no loudness: %s", said)
	}
	v, err := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// beeps has pictures, and a short loud tone each second over one that is hardly heard.
func beeps(more ...string) []string {
	graph := `aevalsrc=0.01*sin(2000*t)+0.5*lt(mod(t\,1)\,0.02)*sin(6000*mod(t\,1)):s=48000:d=6`
	return filmtest.Args([]string{
		"-f", "lavfi", "-i", "color=gray:size=160x90:rate=10:duration=6", "-f", "lavfi", "-i", graph,
	}, filmtest.H264, more)
}

// TestIngestNormalizes makes sounds as loud as they are to be, whatever they come in: nothing of them is moved against
// the picture. What is no louder and no quieter stays as it is.
func TestIngestNormalizes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes ten files several times")
	}
	for name, tt := range map[string]struct {
		file  string
		args  []string
		sound bool // alone
	}{
		"AAC in MP4, whose picture stays": {"a.mp4", beeps(), false},
		"AAC in MPEG-TS":                  {"a.ts", beeps(), false},
		"Opus in Matroska":                {"a.mkv", beeps("-c:a", "libopus"), false},
		"surround in AAC": {
			"a.mp4", beeps("-af", "pan=5.1|FL=c0|FR=c0|FC=c0|BL=c0|BR=c0", "-b:a", "512k"), false,
		},
		"surround in AC-3, in high volume": {
			"a.mkv", beeps("-af", "volume=12dB,pan=5.1(side)|FL=c0|FR=c0|FC=c0", "-c:a", "ac3", "-b:a", "640k"), false,
		},
		"MP3":       {"a.mp3", beeps("-vn", "-c:a", "libmp3lame"), true},
		"AAC alone": {"a.aac", beeps("-vn"), true},
		"M4A":       {"a.m4a", beeps("-vn"), true},
		"PCM":       {"a.wav", beeps("-vn", "-c:a", "pcm_s24le"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, workertest.Options{})
			path := filmtest.File(t, tt.file, tt.args...)
			a := w.normalized(path)
			out, begins := w.listen(a)
			if got := loudness(t, out); math.Abs(got-asset.Loudness) > 0.5 {
				t.Errorf("%.1f LUFS, want %d", got, asset.Loudness)
			}
			if a.Facts.HasVideo == tt.sound || a.Facts.Channels > 2 {
				t.Errorf("%+v", a.Facts)
			}
			raw := programtest.Run(t, "ffmpeg", "-nostdin", "-v", "error", "-i", out, "-ac", "1", "-f", "f32le", "-")
			if long := float64(len(raw))/4/48000 + begins; math.Abs(long-6) > 0.1 {
				t.Errorf("the sound ends at %.3f s", long)
			}
			clock := "-copyts"
			if tt.sound {
				clock = "-nostdin" // as it is heard: an encoder's delay is left out
			}
			source := programtest.Run(t, "ffmpeg", "-nostdin", "-v", "error", clock, "-i", path, "-map", "0:a", "-af",
				"aresample=async=1:first_pts=0", "-ac", "1", "-f", "f32le", "-")
			was, is := 0.0, begins // when the first picture is shown, on the clocks of both
			if !tt.sound {
				was, is = firstPicture(t, path), begins-w.firstPicture(a)
			}
			for second := 1; second < 6; second++ {
				before := onset(source[4*int((float64(second)+was-0.1)*48000):]) - 0.1
				at := onset(raw[4*int((float64(second)-is-0.1)*48000):]) - 0.1
				if math.Abs(at-before) > 0.0015 {
					t.Errorf("the tone of second %d comes at %.4f s, in the source at %.4f s", second, at, before)
				}
			}
			w.NothingLeft()
		})
	}
	t.Run("as it is", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, workertest.Options{})
		path := filmtest.File(t, "a.mp4",
			filmtest.Args([]string{
				"-f", "lavfi", "-i", "color=gray:size=160x90:rate=10:duration=5", "-f", "lavfi", "-i",
				"anullsrc=duration=5",
			}, filmtest.H264, []string{"-shortest"})...)
		a := w.normalized(path)
		if out, _ := w.listen(a); loudness(t, out) != -70 {
			t.Error("silence has become something else")
		}
	})
}

// firstPicture is when a file shows its first picture, in seconds.
func firstPicture(t *testing.T, path string) float64 {
	t.Helper()
	out := programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "V:0", "-read_intervals", "%+1",
		"-show_entries", "frame=pts_time", "-of", "csv=p=0", path)
	first, _, _ := bytes.Cut(bytes.TrimSpace(out), []byte("\n"))
	v, err := strconv.ParseFloat(string(bytes.Trim(first, ",\r")), 64)
	if err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	return v
}

// firstPicture is when an asset shows its first picture, in seconds of its time.
func (w *world) firstPicture(a asset.Asset) float64 {
	w.T.Helper()
	l := w.timeline(a).Rendition(timeline.MainVideo)
	path := filepath.Join(w.T.TempDir(), "v.mp4")
	w.Must(os.WriteFile(path, append(w.ReadObject(l.Inits[0].Object), w.ReadObject(l.Chunks[0].Object)...), 0o600))
	return firstPicture(w.T.(*testing.T), path) - timeline.Origin //nolint:forcetypeassert // it is one
}

func (w *world) normalized(path string) asset.Asset {
	w.T.Helper()
	o := assetopt.Options{
		PlaybackPolicies: []playbackid.Policy{playbackid.Public}, Inputs: []assetopt.Input{{URL: w.Site.Offer(path)}},
		NormalizeAudio: true,
	}
	a, err := w.Create(w.Ctx(), workertest.Env, asset.CreateInput{Options: o}, w.Now())
	w.Must(err)
	w.Must(w.DoAll())
	if a = w.Asset(a.ID); a.Status != asset.Ready {
		w.T.Fatalf("asset is %s: %+v", a.Status, a.Errors)
	}
	if a.NonStandard != nil && a.NonStandard.VideoCodec+a.NonStandard.FileParameters != "" {
		w.T.Errorf("unusual: %+v", a.NonStandard)
	}
	return a
}

// onset is when the first loud sample comes, in seconds.
func onset(raw []byte) float64 {
	top := 0.0
	value := func(i int) float64 {
		return math.Abs(float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))))
	}
	n := min(len(raw)/4, 48000/2)
	for i := range n {
		top = max(top, value(i))
	}
	for i := range n {
		if value(i) > top/2 {
			return float64(i) / 48000
		}
	}
	return math.Inf(1)
}
