package encode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/sniff"
	"millrace/internal/programtest"
)

// makeFile makes a file with ffmpeg in a directory of its own and returns its path.
func makeFile(t *testing.T, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, append([]string{"-threads", "1"}, args...)...)
}

func newEngine(t *testing.T) *Engine {
	t.Helper()
	ffmpeg := programtest.Path(t, "ffmpeg")
	ffprobe, err := Find("ffprobe", "")
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEngine(Options{FFmpeg: ffmpeg, FFprobe: ffprobe, Budget: NewBudget(BudgetOptions{Cores: 2})})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// packet has times in seconds.
type packet struct{ pts, dts float64 }

func packets(t *testing.T, path, stream string) []packet {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-select_streams", stream, "-show_entries",
		"packet=pts_time,dts_time", "-of", "json", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	var output struct {
		Packets []struct {
			PTS string `json:"pts_time"`
			DTS string `json:"dts_time"`
		} `json:"packets"`
	}
	if err := json.Unmarshal(out, &output); err != nil {
		t.Fatal(err)
	}
	var got []packet
	for _, p := range output.Packets {
		pts, _ := strconv.ParseFloat(p.PTS, 64)
		dts, _ := strconv.ParseFloat(p.DTS, 64)
		got = append(got, packet{pts, dts})
	}
	return got
}

const (
	pictures = "testsrc2=s=160x90:r=30"
	sound    = "sine=440:sample_rate=48000"
)

// Every packet comes out with its time plus one constant for all streams, whatever the source is like.
func TestRewriteKeepsEveryFrameAndItsTime(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes files of several kinds")
	}
	e := newEngine(t)
	cfr := makeFile(t, "cfr.mp4", "-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound, "-t", "5",
		"-c:v", "libx264", "-preset", "ultrafast", "-bf", "3", "-x264-params", "b-pyramid=normal:keyint=60:ref=3",
		"-c:a", "aac")
	vfr := makeFile(t, "vfr.mp4", "-f", "lavfi", "-i", "testsrc2=s=160x90:r=60", "-f", "lavfi", "-i", "sine=440", "-t",
		"5",
		"-vf", "select='not(mod(n*n,7))+not(mod(n,5))'", "-fps_mode", "vfr", "-c:v", "libx264", "-preset", "fast",
		"-bf", "3", "-c:a", "aac")
	open := makeFile(t, "open.mp4", "-f", "lavfi", "-i", "testsrc2=s=160x90:r=30000/1001", "-f", "lavfi", "-i", sound,
		"-t", "5",
		"-c:v", "libx264", "-preset", "fast", "-x264-params", "open-gop=1:bframes=4:b-pyramid=normal:keyint=30", "-c:a",
		"aac")
	type source struct {
		from  string
		extra []string
	}
	sources := map[string]source{
		"cfr": {cfr, nil}, "vfr": {vfr, nil}, "open gop": {open, nil},
		"audio late":   {cfr, []string{"-itsoffset", "0.7", "-i", cfr, "-map", "0:v", "-map", "1:a"}},
		"video late":   {cfr, []string{"-itsoffset", "0.7", "-i", cfr, "-map", "1:v", "-map", "0:a"}},
		"an hour late": {cfr, []string{"-output_ts_offset", "3600"}},
		"video only":   {cfr, []string{"-an"}},
		"audio only":   {cfr, []string{"-vn"}},
	}
	for name, src := range sources {
		for format, ext := range map[Format]string{Matroska: ".mkv", MPEGTS: ".ts"} {
			t.Run(name+ext, func(t *testing.T) {
				t.Parallel()
				in := makeFile(t, "in"+ext, append(append([]string{"-i", src.from}, src.extra...), "-c", "copy")...)
				out := rewrite(t, e, in, format)
				shift := math.NaN()
				for _, stream := range []string{"v", "a"} {
					shift = compareTimes(t, stream, packets(t, in, stream), packets(t, out, stream), shift)
				}
			})
		}
	}
}

// TestRewriteWaitsForSound: sound that is encoded may begin minutes behind the pictures, or have a hole of a minute.
func TestRewriteWaitsForSound(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	moment := makeFile(t, "moment.mp4", "-f", "lavfi", "-i", "color=gray:s=160x90:r=30:d=2,noise=alls=100:allf=t",
		"-c:v", "libx264", "-preset", "ultrafast", "-qp", "16", "-g", "60")
	film := []string{"-stream_loop", "74", "-i", moment} // two and a half minutes, of more packets than are held back
	tone := func(from string) []string {
		return []string{"-itsoffset", from, "-f", "lavfi", "-i", "sine=440:sample_rate=48000:duration=2"}
	}
	copied := []string{"-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "libopus"}
	for name, args := range map[string][]string{
		"late": slices.Concat(film, tone("146"), copied),
		"with a hole": slices.Concat(film, []string{
			"-f", "lavfi", "-i", "sine=440:sample_rate=48000:duration=62,aselect='lt(t,1)+gt(t,61)'",
		}, copied),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, "in.mkv", args...)
			out := rewriteAs(t, e, RewriteArgs{
				Input: in, Format: Matroska, Sound: &Sound{SampleRate: 48000, Channels: 1},
			})
			if pictures := packets(t, out, "v"); len(pictures) != 75*60 {
				t.Errorf("%d pictures", len(pictures))
			}
			want, got := packets(t, in, "a"), packets(t, out, "a")
			if len(got) < len(want) { // where there is none it is silence
				t.Fatalf("%d packets of sound became %d", len(want), len(got))
			}
			if end := want[len(want)-1].pts; math.Abs(end-got[len(got)-1].pts) > 0.1 {
				t.Errorf("the sound ends at %.3f s, want %.3f", got[len(got)-1].pts, end)
			}
		})
	}
}

// TestRewriteLeavesOutPriming: what an edit list leaves out of the sound does not come in front of the picture.
func TestRewriteLeavesOutPriming(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	in := makeFile(t, "in.mp4", "-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound, "-t", "2", "-c:v", "libx264",
		"-preset", "ultrafast", "-bf", "2", "-c:a", "aac")
	out := rewrite(t, e, in, MOV)
	video, audio := packets(t, out, "v"), packets(t, out, "a")
	if before := len(packets(t, in, "a")); len(video) != 60 || len(audio) != before-1 ||
		math.Abs(audio[0].pts-video[0].pts) > 0.0001 {
		t.Errorf("%d pictures from %.4f, %d packets of sound of %d from %.4f", len(video), video[0].pts, len(audio),
			before, audio[0].pts)
	}
}

// TestConvertKeepsUnevenTimes: pictures that are encoded again, with and without an overlay, keep times that are on no
// grid.
func TestConvertKeepsUnevenTimes(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	in := makeFile(t, "in.mp4", "-f", "lavfi", "-i", pictures, "-t", "2", "-vf",
		"settb=1/90000,setpts='PTS+450*sin(N*7)+if(gte(N,20),1000,0)'",
		"-fps_mode", "passthrough", "-enc_time_base", "1:90000", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0",
		"-video_track_timescale", "90000")
	before := packets(t, in, "v")
	for name, over := range map[string]*Overlay{
		"no overlay": nil, "overlay": {Image: image.NewNRGBA(image.Rect(0, 0, 60, 20)), X: 10, Y: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job := RewriteArgs{
				Input: in, Format: MOV,
				Picture: &Picture{
					Width: 160, Height: 90, Preset: "ultrafast", CRF: 30, Bitrate: 400_000, Level: 21, Overlay: over,
				},
			}
			compareTimes(t, "v", before, packets(t, rewriteAs(t, e, job), "v"), math.NaN())
		})
	}
}

func rewrite(t *testing.T, e *Engine, in string, format Format) string {
	t.Helper()
	return rewriteAs(t, e, RewriteArgs{Input: in, Format: format})
}

func rewriteAs(t *testing.T, e *Engine, job RewriteArgs) string {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "out.mp4"))
	if err != nil {
		t.Fatal(err)
	}
	err = e.Rewrite(t.Context(), job, func(_ context.Context, r io.Reader) error {
		_, copyErr := io.Copy(out, r)
		return copyErr
	})
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Name()
}

func compareTimes(t *testing.T, stream string, before, after []packet, shift float64) float64 {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%s: %d packets became %d", stream, len(before), len(after))
	}
	byTime := func(p []packet) []packet {
		p = slices.Clone(p)
		slices.SortFunc(p, func(a, b packet) int { return int(math.Copysign(1, a.pts-b.pts)) })
		return p
	}
	sorted := byTime(after)
	for i, b := range byTime(before) {
		d := sorted[i].pts - b.pts
		if math.IsNaN(shift) {
			shift = d
		}
		if math.Abs(d-shift) > 0.0011 { // Matroska counts in milliseconds
			t.Errorf("%s: packet %d is shifted by %.6f s, others by %.6f s", stream, i, d, shift)
			break
		}
	}
	for i, p := range after {
		if p.dts < 0 || p.pts < p.dts || i > 0 && p.dts <= after[i-1].dts {
			t.Errorf("%s: packet %d has dts %.6f, pts %.6f", stream, i, p.dts, p.pts)
			break
		}
	}
	return shift
}

func TestRewriteClosesJumps(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	one := makeFile(t, "one.ts", "-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound, "-t", "3", "-c:v",
		"libx264", "-preset", "ultrafast", "-c:a", "aac")
	two := makeFile(t, "two.ts", "-i", one, "-c", "copy", "-output_ts_offset", "5000")
	joined := filepath.Join(t.TempDir(), "joined.ts")
	var all []byte
	for _, f := range []string{one, two} {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if err := os.WriteFile(joined, all, 0o600); err != nil {
		t.Fatal(err)
	}
	got := packets(t, rewrite(t, e, joined, MPEGTS), "v")
	if len(got) != 180 || got[179].pts > 6.5 {
		t.Errorf("got %d packets up to %.3f s", len(got), got[len(got)-1].pts)
	}
}

// The first fragment is readable long before the end: the output is a stream.
func TestRewriteStreams(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	in := makeFile(t, "in.mkv", "-f", "lavfi", "-i", pictures, "-f", "lavfi", "-i", sound, "-t", "60", "-c:v",
		"libx264", "-preset", "ultrafast", "-g", "900", "-b:v", "2M", "-c:a", "aac")
	boxes := map[string]int{}
	err := e.Rewrite(t.Context(), RewriteArgs{Input: in, Format: Matroska}, func(_ context.Context, r io.Reader) error {
		for {
			var head [8]byte
			if _, err := io.ReadFull(r, head[:]); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			size := int64(head[0])<<24 | int64(head[1])<<16 | int64(head[2])<<8 | int64(head[3])
			if size < 8 || size > 9<<20 {
				return fmt.Errorf("box of %d bytes", size)
			}
			if _, err := io.CopyN(io.Discard, r, size-8); err != nil {
				return err
			}
			boxes[string(head[4:])]++
		}
	})
	if err != nil || boxes["moov"] != 1 || boxes["moof"] < 55 {
		t.Errorf("got %v, %v", boxes, err)
	}
}

func TestRewriteStopsWhenItsReaderDoes(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	in := makeFile(t, "in.mkv", "-f", "lavfi", "-i", pictures, "-t", "20", "-c:v", "libx264", "-preset", "ultrafast")
	err := e.Rewrite(t.Context(), RewriteArgs{Input: in, Format: Matroska}, func(context.Context, io.Reader) error {
		return errEnough
	})
	if !errors.Is(err, errEnough) || fault.Permanent(err) {
		t.Errorf("got %v", err)
	}
}

func TestEncodeAudio(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes eleven files")
	}
	e := newEngine(t)
	stereo := []string{"-f", "lavfi", "-i", "sine=440:sample_rate=44100", "-ac", "2", "-t", "3"}
	for _, tt := range []struct {
		name     string
		args     []string
		format   Format
		copy     bool
		rate, ch int
	}{
		{"a.mp3", stereo, MP3, false, 44100, 2},
		{"a.wav", append(slices.Clone(stereo), "-ar", "96000", "-c:a", "pcm_s24le"), WAV, false, 48000, 2},
		{"mono.wav", append(slices.Clone(stereo), "-ac", "1"), WAV, false, 44100, 1},
		{"six.wav", append(slices.Clone(stereo), "-ac", "6", "-ar", "48000"), WAV, false, 48000, 2},
		{"a.flac", stereo, FLAC, false, 44100, 2},
		{"a.opus", append(slices.Clone(stereo), "-c:a", "libopus"), Ogg, false, 48000, 2},
		{"a.webm", append(slices.Clone(stereo), "-c:a", "libopus"), Matroska, false, 48000, 2},
		{"a.aac", append(slices.Clone(stereo), "-ar", "22050", "-c:a", "aac"), ADTS, false, 48000, 2},
		{"copy.aac", append(slices.Clone(stereo), "-c:a", "aac"), ADTS, true, 44100, 2},
		{"copy.m4a", append(slices.Clone(stereo), "-c:a", "aac"), MOV, true, 44100, 2},
		{"copy.ts", append(slices.Clone(stereo), "-c:a", "aac"), MPEGTS, true, 44100, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := makeFile(t, tt.name, tt.args...)
			head, err := os.ReadFile(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := Format(sniff.Kind(head).Demuxer()); got != tt.format {
				t.Fatalf("sniffed %q", got)
			}
			info, err := e.Probe(t.Context(), in, tt.format)
			if err != nil || len(info.Tracks) != 1 || info.Tracks[0].Kind != Audio {
				t.Fatalf("got %+v, %v", info, err)
			}
			out := filepath.Join(t.TempDir(), "out.m4a")
			var last time.Duration
			src := info.Tracks[0]
			err = e.EncodeAudio(t.Context(), Ingest,
				AudioArgs{
					Input: in, Format: tt.format, Output: out, Copy: tt.copy,
					Sound: Sound{SampleRate: src.SampleRate, Channels: src.Channels},
				},
				func(at time.Duration) { last = at })
			if err != nil {
				t.Fatal(err)
			}
			got, err := e.Probe(t.Context(), out, MOV)
			if err != nil || len(got.Tracks) != 1 {
				t.Fatalf("got %+v, %v", got, err)
			}
			track := got.Tracks[0]
			if track.Codec != "aac" || track.Profile != "LC" || track.SampleRate != tt.rate || track.Channels != tt.ch {
				t.Errorf("made %+v", track)
			}
			if (got.Duration-3*time.Second).Abs() > 100*time.Millisecond ||
				!tt.copy && (last-3*time.Second).Abs() > 100*time.Millisecond {
				t.Errorf("made %v, progress ended at %v", got.Duration, last)
			}
		})
	}
}

// A delay in an edit list of an MP4 is part of the presentation; it becomes silence, or stays a delay when packets are
// copied.
func TestEncodeAudioKeepsDelay(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	early := makeFile(t, "early.m4a", "-f", "lavfi", "-i", sound, "-t", "2", "-c:a", "aac")
	in := makeFile(t, "in.m4a", "-itsoffset", "0.5", "-i", early, "-c", "copy")
	for _, copied := range []bool{false, true} {
		out := filepath.Join(t.TempDir(), "out.m4a")
		if err := e.EncodeAudio(t.Context(), Ingest, AudioArgs{
			Input: in, Format: MOV, Output: out, Copy: copied, Sound: Sound{SampleRate: 48000, Channels: 1},
		}, nil); err != nil {
			t.Fatal(err)
		}
		info, err := e.Probe(t.Context(), out, MOV)
		if err != nil ||
			(info.Start+info.Duration-2500*time.Millisecond).Abs() > 60*time.Millisecond &&
				(info.Duration-2500*time.Millisecond).Abs() > 60*time.Millisecond {
			t.Errorf("copied %v: got %+v, %v", copied, info, err)
		}
	}
}

// TestProbeBreaksOff has ffprobe say "Input/output error" of files that are cut off: they are at fault, and not the
// disk.
func TestProbeBreaksOff(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	for _, tt := range []struct {
		name   string
		format Format
		keep   int
	}{{"cut.mkv", Matroska, 60}, {"cut.flac", FLAC, 20}} {
		whole := makeFile(t, tt.name, "-f", "lavfi", "-i", sound, "-t", "1")
		data, err := os.ReadFile(whole)
		if err != nil {
			t.Fatal(err)
		}
		if err = os.WriteFile(whole, data[:tt.keep], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = e.Probe(t.Context(), whole, tt.format)
		if exit, ok := errors.AsType[*ExitError](err); !ok || !strings.Contains(exit.Stderr, inputOutput) ||
			fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if readable(t.TempDir()) {
		t.Error("a file that can't be read is called readable")
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	plain := makeFile(t, "plain.mp4", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=30000/1001", "-f", "lavfi", "-i",
		sound, "-t", "2", "-ac", "2",
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-metadata:s:a:0",
		"language=fra")
	turned := makeFile(t, "turned.mp4", "-i", plain, "-c", "copy", "-metadata:s:v:0", "rotate=90")
	mkv := makeFile(t, "plain.mkv", "-i", plain, "-c", "copy")
	cover := makeFile(t, "cover.jpg", "-f", "lavfi", "-i", "color=s=64x64", "-frames:v", "1")
	covered := makeFile(t, "covered.m4a", "-i", plain, "-i", cover, "-map", "0:a", "-map", "1:v", "-c", "copy",
		"-disposition:v:0", "attached_pic")

	video := Track{
		Kind: Video, Codec: "h264", Profile: "Constrained Baseline", Duration: 2002 * time.Millisecond, Language: "und",
		Width: 320, Height: 180,
		PixelAspect: "1:1", FrameRate: 30000.0 / 1001, PixelFormat: "yuv420p", BitSize: 8, Tag: "avc1", Decoder: true,
	}
	audio := Track{
		Kind: Audio, Codec: "aac", Profile: "LC", Duration: 2 * time.Second, Language: "fra", SampleRate: 48000,
		Channels: 2,
		Tag:      "mp4a", Decoder: true,
	}
	rotated := video
	rotated.Rotation = 270 // ffmpeg 5 writes a rotate tag against the clock
	mkvVideo, mkvAudio := video, audio
	mkvVideo.Language = ""
	mkvVideo.Tag, mkvAudio.Tag = "", "" // it has names of its own
	for _, tt := range []struct {
		path   string
		format Format
		want   []Track
	}{
		{plain, MOV, []Track{video, audio}},
		{turned, MOV, []Track{rotated, audio}},
		{mkv, Matroska, []Track{mkvVideo, mkvAudio}},
		{covered, MOV, []Track{audio}},
	} {
		info, err := e.Probe(t.Context(), tt.path, tt.format)
		if err != nil || len(info.Tracks) != len(tt.want) {
			t.Fatalf("%s: got %+v, %v", tt.path, info, err)
		}
		for i, got := range info.Tracks {
			want := tt.want[i]
			if (got.Duration - want.Duration).Abs() < 30*time.Millisecond {
				got.Duration = want.Duration
			}
			if math.Abs(got.FrameRate-want.FrameRate) < 0.01 {
				got.FrameRate = want.FrameRate
			}
			got.Start = 0
			if got != want {
				t.Errorf("%s: got\n%+v, want\n%+v", filepath.Base(tt.path), got, want)
			}
		}
	}
}

// Nothing that a hostile file says makes ffmpeg open another file or the network, whatever format it is taken for.
func TestPlaylistsInDisguiseAreRefused(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := listener.Accept(); err == nil {
			close(reached)
			_ = c.Close()
		}
	}()
	secret := makeFile(t, "secret.ts", "-f", "lavfi", "-i", sound, "-t", "1", "-c:a", "mp2")
	dir := filepath.Dir(secret)
	for name, text := range map[string]string{
		"m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:1,\nsecret.ts\n#EXT-X-ENDLIST\n",
		"m3u8url": "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:1,\nhttp://" + listener.Addr().String() +
			"/x.ts\n#EXT-X-ENDLIST\n",
		"concat": "ffconcat version 1.0\nfile secret.ts\n",
		"sdp":    "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=audio 5004 RTP/AVP 0\n",
		"dash": `<?xml version="1.0"?><MPD><Period><AdaptationSet><Representation><BaseURL>http://` +
			listener.Addr().String() + `/</BaseURL></Representation></AdaptationSet></Period></MPD>`,
	} {
		path := filepath.Join(dir, name+".mp3")
		if err := os.WriteFile(path, []byte(text+strings.Repeat("\n", 4096)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := sniff.Kind([]byte(text)); got.Demuxer() != "" {
			t.Errorf("%s sniffed as %s", name, got)
		}
		if name == "m3u8" || name == "concat" { // the disguise is good: left to itself, ffmpeg falls for it
			out, err := exec.CommandContext(t.Context(), "ffprobe", "-v", "error", "-show_entries", "stream=codec_name",
				"-of", "csv", path).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "mp2") {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
		formats := Formats()
		if name != "m3u8" { // what shuts the others out is the same in every format's arguments
			formats = []Format{MP3, MPEGTS}
		}
		for _, format := range formats {
			if info, err := e.Probe(t.Context(), path, format); err == nil &&
				slices.ContainsFunc(info.Tracks, func(t Track) bool { return t.SampleRate > 0 }) {
				t.Errorf("%s as %s: something was read: %+v", name, format, info)
			}
			if format != MP3 && format != MPEGTS { // the arguments that shut everything else out are those of the probe
				continue
			}
			out := filepath.Join(dir, "out.m4a")
			if err := e.EncodeAudio(t.Context(), Ingest, AudioArgs{
				Input: path, Format: format, Output: out,
			}, nil); !fault.Permanent(err) || fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s as %s: encoded with %v", name, format, err)
			}
		}
		err := e.Rewrite(t.Context(), RewriteArgs{
			Input: path, Format: Matroska,
		}, func(_ context.Context, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		})
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: rewritten with %v", name, err)
		}
	}
	_ = listener.Close()
	<-done
	select {
	case <-reached:
		t.Error("the network was reached")
	default:
	}
}

func TestBrokenFilesAreBlamed(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	dir := t.TempDir()
	whole := makeFile(t, "whole.mp4", "-f", "lavfi", "-i", sound, "-t", "2", "-c:a", "aac")
	data, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"empty": nil, "cut": data[:len(data)/2], "zeros": make([]byte, 10_000), "html": []byte("<html>no</html>"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := e.Probe(t.Context(), path, MOV)
		if fault.KindOf(err) != fault.Invalid || len(fault.Messages(err)) == 0 ||
			strings.Contains(fault.Messages(err)[0], dir) {
			t.Errorf("%s: got %v, messages %q", name, err, fault.Messages(err))
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	if _, err := e.Probe(ctx, whole, MOV); !errors.Is(err, errEnough) || fault.Permanent(err) {
		t.Errorf("got %v", err)
	}
	if err := e.EncodeAudio(ctx, Ingest, AudioArgs{
		Input: whole, Format: MOV, Output: filepath.Join(dir, "o"),
	}, nil); !errors.Is(err, errEnough) || fault.Permanent(err) {
		t.Errorf("got %v", err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	newEngine(t)
	if r := Check(t.Context(), "", ""); r.Version == "" || len(r.Problems)+len(r.Limits) > 0 || r.FFmpeg == "" ||
		r.FFprobe == "" {
		t.Errorf("got %+v", r)
	}
	r := Check(t.Context(), "/nonexistent/ffmpeg", "/nonexistent/ffprobe")
	if len(r.Problems) != 2 ||
		r.Problems[0] != "ffmpeg is not found at /nonexistent/ffmpeg. Install it with: apt-get install -y ffmpeg" {
		t.Errorf("got %q", r.Problems)
	}
	r = Check(t.Context(), "/bin/false", "/bin/true")
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "/bin/false does not run") {
		t.Errorf("got %q", r.Problems)
	}
	over, cancel := context.WithDeadline(t.Context(), time.Now()) // as on a machine that is busy for that long
	defer cancel()
	r = Check(over, "/bin/true", "/bin/true")
	if len(r.Problems) > 0 || !slices.Equal(r.Late, []string{"/bin/true"}) {
		t.Errorf("got %q, late %q", r.Problems, r.Late)
	}
	r = Check(t.Context(), "/bin/true", "/bin/true") // runs and knows nothing
	if len(r.Problems) != 9+len(Formats()) || len(r.Limits) != 3 ||
		!strings.Contains(r.Limits[0], "libx265, so clips of HEVC assets") {
		t.Errorf("got %q, %q", r.Problems, r.Limits)
	}
}

// TestDecodesQuickly: of what is usual in MP4 the first frame is decoded without looking at the streams before, and of
// noise none is.
func TestDecodesQuickly(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	lavfi := []string{"-f", "lavfi", "-i", "testsrc2=s=160x90:r=25", "-f", "lavfi", "-i", sound, "-t", "1"}
	for name, tt := range map[string]struct {
		args []string
		want bool
	}{
		"H.264 with B-frames, AAC": {
			[]string{"-c:v", "libx264", "-bf", "3", "-pix_fmt", "yuv420p", "-c:a", "aac"}, true,
		},
		"HEVC, AC-3": {
			[]string{"-c:v", "libx265", "-x265-params", "log-level=error", "-pix_fmt", "yuv420p", "-c:a", "ac3"}, true,
		},
		"VP9, Opus": {
			[]string{"-c:v", "libvpx-vp9", "-deadline", "realtime", "-pix_fmt", "yuv420p", "-c:a", "libopus"}, true,
		},
		"MPEG-4, MP3": {[]string{"-c:v", "mpeg4", "-c:a", "libmp3lame"}, true},
		"noise": {
			[]string{
				"-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac", "-bsf:v", "noise=amount=1", "-bsf:a",
				"noise=amount=1",
			}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := makeFile(t, "a.mp4", append(slices.Clone(lavfi), tt.args...)...)
			for _, kind := range []Kind{Video, Audio} {
				quick := DecodesArgs(path, MOV, kind, 0, true)
				if got, err := e.decodes(t.Context(), path, quick); got != tt.want || err != nil {
					t.Errorf("%s: %t, %v", kind, got, err)
				}
				if got, err := e.Decodes(t.Context(), path, MOV, kind, 0); got != tt.want || err != nil {
					t.Errorf("%s, in any way: %t, %v", kind, got, err)
				}
			}
		})
	}
}
