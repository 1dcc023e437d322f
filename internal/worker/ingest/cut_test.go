package ingest_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// numbered is a video of which every picture says its number, in ten stripes of black and white, and whose sound never
// is the same twice.
func numbered(t testing.TB, seconds int) []string {
	t.Helper()
	const w, h, rate = 320, 180, 30
	raw := make([]byte, 0, seconds*rate*w*h)
	for n := range seconds * rate {
		row := make([]byte, w)
		for x := range row {
			row[x] = byte(30 + 190*(n>>(x*10/w)&1))
		}
		raw = append(raw, bytes.Repeat(row, h)...)
	}
	path := filepath.Join(t.TempDir(), "film.raw")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{
		"-f", "rawvideo", "-pix_fmt", "gray", "-video_size", "320x180", "-framerate", "30", "-i", path,
		"-f", "lavfi", "-i",
		fmt.Sprintf("aevalsrc='0.4*sin(2*PI*(200*t+40*t*t))|0.4*sin(2*PI*(1500*t-30*t*t))':s=48000:duration=%d",
			seconds),
	}
}

// shown is what a player shows: the number of each picture with its time, in seconds.
type shown struct {
	number int
	at     float64
}

// pictures decodes a file or a playlist.
func pictures(t *testing.T, url string) []shown {
	t.Helper()
	const w, h = 320, 180
	raw := programtest.Run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-copyts", "-i", url, "-map", "0:v:0",
		"-fps_mode", "passthrough", "-vf", "scale=320:180,format=gray", "-f", "rawvideo", "-")
	var probed struct {
		Frames []struct {
			At string `json:"pts_time"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
		"frame=pts_time", "-of", "json", url), &probed); err != nil {
		t.Fatal(err)
	}
	if len(raw) != len(probed.Frames)*w*h {
		t.Fatalf("%d bytes of %d pictures", len(raw), len(probed.Frames))
	}
	var out []shown
	for i, f := range probed.Frames {
		at, _ := strconv.ParseFloat(f.At, 64)
		out = append(out, shown{numberOf(raw[i*w*h:(i+1)*w*h], w, h), at})
	}
	return out
}

func numberOf(gray []byte, w, h int) int {
	n := 0
	for bit := range 10 {
		if gray[h/2*w+bit*w/10+w/20] > 125 {
			n |= 1 << bit
		}
	}
	return n
}

// heard decodes sound, left channel, with the time of its first sample.
func heard(t *testing.T, url string) (pcm []float64, at float64) {
	t.Helper()
	raw := programtest.Run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-i", url, "-map", "0:a:0", "-af",
		"pan=mono|c0=c0", "-f", "s16le", "-")
	for i := 0; i+1 < len(raw); i += 2 {
		pcm = append(pcm, float64(int16(binary.LittleEndian.Uint16(raw[i:])))/32768)
	}
	var probed struct {
		Frames []struct {
			At string `json:"pts_time"`
		} `json:"frames"`
	}
	if err := json.Unmarshal(programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", "a:0", "-read_intervals",
		"%+#1", "-show_entries", "frame=pts_time", "-of", "json", url), &probed); err != nil ||
		len(probed.Frames) == 0 {
		t.Fatal(err)
	}
	at, _ = strconv.ParseFloat(probed.Frames[0].At, 64)
	return pcm, at
}

// original is what a player gets of a whole source.
type original struct {
	film []shown
	pcm  []float64
	at   float64 // of the sound, in seconds
}

func watched(t *testing.T, url string) *original {
	t.Helper()
	o := &original{film: pictures(t, url)}
	o.pcm, o.at = heard(t, url)
	return o
}

// noise is how loud what differs between two sounds is against the first one, in dB.
func noise(want, got []float64) float64 {
	var signal, off float64
	for i := range want {
		signal += want[i] * want[i]
		off += (want[i] - got[i]) * (want[i] - got[i])
	}
	return 10 * math.Log10(off/signal)
}

// wantCut wants a clip to show exactly the pictures [first, last] of what its source shows, without a gap, and to be
// heard from the same instant up to the same, to the sample.
func wantCut(t *testing.T, source *original, clip string, first, last int) {
	t.Helper()
	got := pictures(t, clip)
	if len(got) != last-first+1 {
		t.Errorf("%d pictures from %d to %d, want %d to %d", len(got), got[0].number, got[len(got)-1].number, first,
			last)
		return
	}
	for i, s := range got {
		if s.number != (first+i)%1024 || math.Abs(s.at-got[0].at-float64(i)/30) > 0.0005 {
			t.Fatalf("picture %d is number %d at %.4f, want %d at %.4f", i, s.number, s.at, first+i,
				got[0].at+float64(i)/30)
		}
	}
	if source.pcm == nil {
		return
	}
	whole := source.pcm
	part, partAt := heard(t, clip)
	begin := int(math.Round((source.film[first].at - source.at) * 48000)) // in the whole
	lead := int(math.Round((got[0].at - partAt) * 48000))                 // in the clip
	long := (last - first + 1) * 1600
	if lead < 0 || len(part) < lead+long {
		t.Fatalf("sound begins %d samples in front of the picture and has %d, want %d", lead, len(part), lead+long)
	}
	loudest := 0.0
	for _, v := range part[:max(lead-8, 0)] {
		loudest = max(loudest, math.Abs(v))
	}
	for _, v := range part[min(lead+long+8, len(part)):] {
		loudest = max(loudest, math.Abs(v))
	}
	if loudest > 0.1 {
		t.Errorf("%.3f is heard outside of the clip", loudest)
	}
	end := min(begin+long, len(whole))
	if d := noise(whole[begin:end], part[lead:lead+end-begin]); d > -18 {
		t.Errorf("the sound differs by %.1f dB", d)
	}
	for _, at := range []int{0, long - 4800} { // the ends alone, a tenth of a second each
		if d := noise(whole[begin+at:begin+at+4800], part[lead+at:lead+at+4800]); d > -12 {
			t.Errorf("the sound differs by %.1f dB from sample %d on", d, at)
		}
	}
}

// TestCutToThePicture cuts clips anywhere: what is shown and heard is exactly what was asked for, and all that lies
// inside is the source's.
func TestCutToThePicture(t *testing.T) {
	if testing.Short() {
		t.Skip("it decodes for long")
	}
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	source := w.ReadyAsset(filmtest.File(t, "a.mp4", filmtest.Args(numbered(t, 10), filmtest.H264)...))
	server := w.watch()
	whole := watched(t, url(server, source))
	for name, tt := range map[string]struct { //nolint:paralleltest // one job after the other
		from, to    float64
		first, last int
		made        int // segments of video that are the clip's own
	}{
		"milliseconds":  {3.033, 8.567, 91, 256, 2},
		"one segment":   {4.5, 5.9, 135, 176, 1},
		"at a segment":  {3.9999, 8.0001, 120, 239, 0},
		"half a second": {7.8, 8.3, 234, 248, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := w.clipped(source, tt.from, tt.to)
			wantCut(t, whole, url(server, a), tt.first, tt.last)
			line := w.timeline(a)
			if made := madeOf(line.Rendition("v")); made != tt.made {
				t.Errorf("%d segments of video were made, want %d", made, tt.made)
			}
			if n := len(line.Rendition("v").Inits); n != 1 {
				t.Errorf("%d init segments", n)
			}
			if d := a.Facts.Duration; math.Abs(d-float64(tt.last-tt.first+1)/30) > 0.001 {
				t.Errorf("it lasts %.4f s", d)
			}
			if tt.made == 2 {
				w.conforms(url(server, a), "language")
			}
		})
	}
}

// madeOf counts a rendition's own segments.
func madeOf(l *timeline.Rendition) int {
	n := 0
	for _, c := range l.Chunks {
		if c.Object != "" && (l.Source != nil || filepath.Base(filepath.Dir(c.Object)) == l.ID) {
			n++
		}
	}
	return n
}

// TestClipOfEverything cuts what is not a plain upload: a file that was converted, a clip, and an asset with a second
// language; all tracks come along, and deleting the source or its track takes nothing away.
func TestClipOfEverything(t *testing.T) {
	if testing.Short() {
		t.Skip("it decodes for long")
	}
	t.Parallel()
	w := newWorld(t, workertest.Options{})
	german := filmtest.File(t, "de.m4a", "-f", "lavfi", "-i", "sine=frequency=880:sample_rate=44100:duration=14",
		"-c:a", "aac")
	// its times are in thousandths
	source := w.ReadyAsset(filmtest.File(t, "a.mkv", filmtest.Args(numbered(t, 14), filmtest.H264)...),
		assetopt.Input{URL: w.Site.Offer(german), Type: "audio", LanguageCode: "de", Name: "German"},
		assetopt.Input{
			URL: w.Site.Offer(filmtest.Text(t, "x.vtt", subtitles)), Type: "text", TextType: "subtitles",
			LanguageCode: "en", Name: "Words",
		})
	server := w.watch()
	a := w.clipped(source, 2.4, 12.2)
	b := w.clipped(a, 1.1, 9)
	for _, tt := range []struct {
		clip        asset.Asset
		first, last int
		words       []said
	}{
		{a, 72, 365, []said{{1.1, 2.6, "over the start"}, {6.6, 7.6, "inside"}}},
		{b, 105, 341, []said{{0, 1.5, "over the start"}, {5.5, 6.5, "inside"}}},
	} {
		got := pictures(t, url(server, tt.clip))
		// sound comes first in this file, and second 0 is where that begins
		if d := got[0].number - tt.first; d < -1 || d > 0 {
			t.Errorf("it begins with number %d, want %d", got[0].number, tt.first)
		}
		if d := got[len(got)-1].number - tt.last; d < -1 || d > 0 {
			t.Errorf("it ends with number %d, want %d", got[len(got)-1].number, tt.last)
		}
		for i := range got {
			if got[i].number != got[0].number+i {
				t.Fatalf("picture %d is number %d, the first is %d", i, got[i].number, got[0].number)
			}
		}
		w.wantText(tt.clip, tt.words...)
		w.conforms(url(server, tt.clip), "language")
		i := slices.IndexFunc(tt.clip.Tracks, func(x asset.Track) bool {
			return x.Type == asset.AudioTrack && !x.Primary
		})
		if i < 0 || tt.clip.Tracks[i].LanguageCode != "de" || tt.clip.Tracks[i].Name != "German" {
			t.Fatalf("tracks %+v", tt.clip.Tracks)
		}
		line := w.timeline(tt.clip)
		german := line.Rendition(tt.clip.Tracks[i].Rendition)
		first, last := german.Chunks[0], german.Chunks[len(german.Chunks)-1]
		begin, end := float64(first.Time)/44100-line.ZeroTime(), float64(last.Time+last.Duration)/44100-line.ZeroTime()
		if begin > 0 || begin < -0.05 || math.Abs(end-line.Duration().Seconds()) > 0.03 {
			t.Errorf("the second language goes from %.3f to %.3f", begin, end)
		}
	}
	had := w.Samples(b)
	for _, tr := range source.Tracks {
		if tr.Type != asset.VideoTrack && !tr.Primary {
			w.Must(w.DeleteTrack(w.Ctx(), workertest.Env, source.ID, tr.ID, w.Now()))
		}
	}
	w.Must(w.DoAll())
	if !maps.Equal(w.Samples(b), had) {
		t.Error("deleting the source's tracks took something away")
	}
	w.Must(w.Delete(w.Ctx(), workertest.Env, source.ID, w.Now()))
	w.Must(w.Delete(w.Ctx(), workertest.Env, a.ID, w.Now()))
	w.Must(w.DoAll())
	if !maps.Equal(w.Samples(b), had) {
		t.Error("deleting the source took something away")
	}
	w.conforms(url(server, b), "language")
}
