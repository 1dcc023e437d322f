package mp4_test

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/programtest"
)

func open(t testing.TB, path string) (*os.File, *mp4.File) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	x, err := mp4.Index(f, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	return f, x
}

// fixtures are files as ffmpeg writes them, by what is special about them.
var fixtures = map[string]struct {
	name string
	args []string
}{
	"B-frames":      {"a.mp4", args(picture("30"), sound(), x264)},
	"29.97":         {"a.mp4", args(picture("30000/1001"), sound(), x264)},
	"MOV":           {"a.mov", args(picture("24"), sound(), x264)},
	"moov in front": {"a.mp4", args(picture("25"), sound(), x264, []string{"-movflags", "+faststart"})},
	"delayed video": {"a.mp4", args([]string{"-itsoffset", "0.7"}, picture("30"), sound(), x264)},
	"delayed audio": {"a.mp4", args(picture("30"), []string{"-itsoffset", "0.5"}, sound(), x264)},
	"variable rate": {
		"a.mp4",
		args(picture("30"), sound(), x264, []string{"-vf", "select='not(mod(n,3))+not(mod(n,7))'", "-fps_mode", "vfr"}),
	},
	"audio only":    {"a.m4a", args(sound(), []string{"-c:a", "aac"})},
	"video only":    {"a.mp4", args(picture("50"), x264)},
	"mono":          {"a.mp4", args(picture("30"), sound(), x264, []string{"-ac", "1"})},
	"no B-frames":   {"a.mp4", args(picture("30"), sound(), x264, []string{"-bf", "0"})},
	"negative ctts": {"a.mp4", args(picture("30"), sound(), x264, []string{"-movflags", "+negative_cts_offsets"})},
	"fragmented": {
		"a.mp4",
		args(picture("30"), sound(), x264, []string{"-movflags", "+frag_keyframe+empty_moov+default_base_moof"}),
	},
	"by frame": {
		"a.mp4", args(picture("30"), sound(), x264, []string{"-movflags", "+frag_every_frame+empty_moov"}),
	},
	"hybrid": {"a.mp4", args(picture("30"), sound(), x264, []string{"-movflags", "+frag_keyframe"})},
	"cmaf": {
		"a.mp4", args(picture("30"), sound(), x264, []string{"-movflags", "+cmaf+frag_keyframe+delay_moov"}),
	},
	"small fragments": {
		"a.mp4",
		args(picture("30"), sound(), x264, []string{"-movflags", "+empty_moov+delay_moov", "-frag_duration", "100000"}),
	},
	"two of audio": {
		"a.mp4",
		args(picture("30"), sound(), sound(), x264, []string{
			"-map", "0:v", "-map", "1:a", "-map", "2:a", "-metadata:s:a:0", "language=deu", "-metadata:s:a:1",
			"language=eng", "-metadata:s:a:1", "title=Commentary",
		}),
	},
}

func TestIndexAgreesWithFFprobe(t *testing.T) {
	t.Parallel()
	for name, fx := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, fx.name, fx.args...)
			f, file := open(t, path)
			raw := packets(t, path, false)
			if len(file.Tracks) != len(raw) {
				t.Fatalf("%d tracks, ffprobe has %d", len(file.Tracks), len(raw))
			}
			for i, tr := range file.Tracks {
				compareRaw(t, tr, raw[i], name == "cmaf")
			}
			if file.Fragmented != strings.Contains(strings.Join(fx.args, " "), "frag_") {
				t.Errorf("fragmented: %v", file.Fragmented)
			}
			for i, tr := range file.Tracks {
				passThrough(t, f, tr, i, name == "by frame")
			}
			if name == "cmaf" {
				return // ffmpeg 5.1 moves the times of negative offsets in fragments
			}
			edited := packets(t, path, true)
			for i, tr := range file.Tracks {
				compareEdited(t, tr, edited[i])
			}
		})
	}
}

// compareRaw wants every sample where, when and as large as ffprobe has it, before edits. ffprobe moves all DTS of a
// track with negative offsets, and in a fragmented file, moved, its PTS instead.
func compareRaw(t *testing.T, tr *mp4.Track, want []packet, moved bool) {
	t.Helper()
	if tr.Len() != len(want) || len(want) == 0 {
		t.Fatalf("track %d: %d samples, ffprobe has %d", tr.ID, tr.Len(), len(want))
	}
	first := tr.Sample(0)
	shift, shiftPTS := first.DTS-*want[0].DTS, first.DTS+int64(first.CTS)-*want[0].PTS
	for i, w := range want {
		s := tr.Sample(i)
		if s.DTS-shift != *w.DTS || s.DTS+int64(s.CTS)-shiftPTS != *w.PTS || strconv.Itoa(int(s.Size)) != w.Size ||
			s.Offset != w.pos(t) || s.Sync != (w.Flags[0] == 'K') {
			t.Fatalf("track %d: sample %d is %+v (shift %d), ffprobe has %+v pts %d dts %d", tr.ID, i, s, shift, w,
				*w.PTS, *w.DTS)
		}
		if i < len(want)-1 && s.DTS+int64(s.Duration) != tr.Sample(i+1).DTS {
			t.Fatalf("track %d: sample %d ends at %d, the next one begins at %d", tr.ID, i, s.DTS+int64(s.Duration),
				tr.Sample(i+1).DTS)
		}
	}
	if shift < 0 || shiftPTS != 0 && !moved {
		t.Errorf("track %d: times differ from ffprobe's by %d (DTS) and %d (PTS)", tr.ID, shift, shiftPTS)
	}
}

// compareEdited wants the PTS after edits and the samples outside of them as ffprobe has them.
func compareEdited(t *testing.T, tr *mp4.Track, want []packet) {
	t.Helper()
	byPos := map[int64]packet{}
	for _, w := range want {
		byPos[w.pos(t)] = w
	}
	for i := range tr.Len() {
		s := tr.Sample(i)
		w, ok := byPos[s.Offset]
		shown := tr.PTS(i) >= tr.EditStart() && tr.PTS(i) < tr.EditEnd()
		if ok && *w.PTS != tr.PTS(i) {
			t.Fatalf("track %d: sample %d is shown at %d, ffprobe has %d", tr.ID, i, tr.PTS(i), *w.PTS)
		}
		if dropped := !ok || w.Flags[1] == 'D'; dropped == shown && tr.Kind == frame.Video {
			t.Fatalf("track %d: sample %d at %d (edit %d to %d): shown %v, ffprobe has %+v", tr.ID, i, tr.PTS(i),
				tr.EditStart(), tr.EditEnd(), shown, w)
		}
	}
}

func TestTrackDetails(t *testing.T) {
	t.Parallel()
	fx := fixtures["two of audio"]
	_, file := open(t, ffmpeg(t, fx.name, fx.args...))
	v, a, b := file.Tracks[0], file.Tracks[1], file.Tracks[2]
	if v.Kind != frame.Video || v.FourCC != "avc1" || v.Config.Codec != frame.H264 || v.Width != 320 ||
		v.Height != 180 || v.PARWidth != 1 || v.PARHeight != 1 ||
		v.Rotation != 0 || v.LengthSize != 4 || v.NonStandardEdit || v.Config.FrameRate != 30 || !v.Enabled {
		t.Errorf("video %+v", v)
	}
	if a.Kind != frame.Audio || a.FourCC != "mp4a" || a.Config.Codec != frame.AAC || a.Config.SampleRate != 48000 ||
		a.Language != "deu" || a.Name != "" || a.MediaTime != 1024 || a.EditDuration == 0 {
		t.Errorf("audio %+v", a)
	}
	if b.Language != "eng" || b.Name != "Commentary" {
		t.Errorf("second audio: language %q, name %q", b.Language, b.Name)
	}
	if a.PTS(0) != -1024 || a.EditStart() != 0 || a.PTS(a.Len()-1) >= a.EditEnd()+1024 {
		t.Errorf("priming at %d, last at %d of %d", a.PTS(0), a.PTS(a.Len()-1), a.EditEnd())
	}
	if !slices.Contains(file.Brands, "isom") || file.MovieTimescale != 1000 || file.Bytes() < 1000 ||
		file.Bytes() > 40000 {
		t.Errorf("brands %q, timescale %d, %d bytes", file.Brands, file.MovieTimescale, file.Bytes())
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	for _, deg := range []int{0, 90, 180, 270} {
		t.Run(strconv.Itoa(deg), func(t *testing.T) {
			t.Parallel()
			plain := ffmpeg(t, "plain.mp4", args(picture("30"), x264)...)
			turned := ffmpeg(t, "turned.mp4", "-i", plain, "-c", "copy", "-metadata:s:v:0", "rotate="+strconv.Itoa(deg))
			f, file := open(t, turned)
			tr := file.Tracks[0]
			// ffprobe counts against the clock; which way the rotate tag turns differs between versions of ffmpeg.
			said := strings.TrimSpace(string(programtest.Run(t, "ffprobe", "-v", "error", "-show_entries",
				"stream_side_data=rotation", "-of", "csv=p=0", turned)))
			against, _ := strconv.Atoi(strings.Trim(said, ","))
			if tr.Rotation != (720-against)%360 || tr.Mirrored || deg%180 != tr.Rotation%180 {
				t.Errorf("rotation %d, mirrored %v, ffprobe has %q", tr.Rotation, tr.Mirrored, said)
			}
			// The init segment says the same to ffmpeg: it turns the picture of both alike.
			ss, err := mp4.ReadSamples(f, tr, 0, tr.Len())
			if err != nil {
				t.Fatal(err)
			}
			out := t.TempDir() + "/cmaf.mp4"
			if err := os.WriteFile(out, cmaf.AppendFragment(mp4.InitSegment(tr), 1, 1, 0, ss), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, want := sums(t, out, "0:v"), sums(t, turned, "0:v"); !slices.Equal(got, want) || len(got) != 90 {
				t.Errorf("%d pictures, want %d alike", len(got), len(want))
			}
		})
	}
}

// sums decodes a stream and returns size and checksum of every frame.
func sums(t testing.TB, path, stream string, more ...string) []string {
	t.Helper()
	var out []string
	for l := range strings.Lines(string(programtest.Run(t, "ffmpeg",
		args([]string{
			"-nostdin", "-loglevel", "error", "-ignore_editlist", "1", "-i", path, "-map", stream, "-fps_mode",
			"passthrough",
		}, more, []string{"-f", "framemd5", "-"})...))) {
		if f := strings.Split(strings.TrimSpace(l), ","); len(f) == 6 && l[0] != '#' {
			out = append(out, f[4]+f[5])
		}
	}
	return out
}

// passThrough cuts a track into CMAF segments and has ffmpeg decode both: the same frames in the same order.
func passThrough(t *testing.T, f *os.File, tr *mp4.Track, stream int, loses bool) {
	t.Helper()
	b := mp4.InitSegment(tr)
	for from := 0; from < tr.Len(); from += 40 {
		ss, err := mp4.ReadSamples(f, tr, from, min(from+40, tr.Len()))
		if err != nil {
			t.Fatal(err)
		}
		b = cmaf.AppendFragment(b, uint32(from/40+1), cmaf.TrackID, uint64(tr.Sample(from).DTS), ss)
	}
	r := cmaf.NewReader(bytes.NewReader(b), cmaf.ReaderOptions{})
	got, err := r.Tracks()
	if err != nil || got[0].Timescale != tr.Timescale || got[0].Config.Codec != tr.Config.Codec ||
		got[0].Language != tr.Language {
		t.Fatalf("init segment reads back as %+v, %v", got, err)
	}
	out := t.TempDir() + "/out.mp4"
	if err := os.WriteFile(out, b, 0o600); err != nil {
		t.Fatal(err)
	}
	frames, want := sums(t, out, "0:0"), sums(t, f.Name(), "0:"+strconv.Itoa(stream))
	if loses && tr.Kind == frame.Audio && len(want) < tr.Len() {
		want = frames[:min(tr.Len(), len(frames))] // ffmpeg 5.1 loses some frames of its own file
	}
	if !slices.Equal(frames, want) || len(want) == 0 {
		t.Errorf("track %d: %d frames, want %d alike", tr.ID, len(frames), len(want))
	}
}

func TestIDRs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		params     string
		idrs, sync int
	}{
		"closed": {"keyint=30:min-keyint=30:scenecut=0", 3, 3},
		"open":   {"keyint=30:min-keyint=30:scenecut=0:open-gop=1:bframes=2", 1, 3},
		"SEI":    {"keyint=30:min-keyint=30:scenecut=0:aud=1:nal-hrd=cbr:vbv-maxrate=300:vbv-bufsize=300", 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, file := open(t,
				ffmpeg(t, "a.mp4",
					args(picture("30"), sound(), []string{
						"-c:v", "libx264", "-pix_fmt", "yuv420p", "-b:v", "300k", "-x264-params", tt.params, "-c:a",
						"aac",
					})...))
			got, err := mp4.IDRs(f, file.Tracks[0])
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for i := range file.Tracks[0].Len() {
				if file.Tracks[0].Sync(i) {
					n++
				}
			}
			if len(got) != tt.idrs || n != tt.sync || got[0] != 0 {
				t.Errorf("IDRs %v of %d sync samples", got, n)
			}
			if _, err := mp4.IDRs(f, file.Tracks[1]); err == nil {
				t.Error("IDRs of audio")
			}
		})
	}
}

// TestOtherTracks indexes what can't be packaged without refusing the file: the codec's name is what the caller tells
// the uploader.
func TestOtherTracks(t *testing.T) {
	t.Parallel()
	srt := t.TempDir() + "/a.srt"
	if err := os.WriteFile(srt, []byte("1\n00:00:00,500 --> 00:00:02,000\nHello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		name string
		args []string
		want string
	}{
		"PCM": {
			"a.mov", args(picture("30"), sound(), []string{"-c:v", "mjpeg", "-c:a", "pcm_s16le"}),
			"video jpeg , audio sowt ",
		},
		"MP3":       {"a.mp4", args(sound(), []string{"-c:a", "libmp3lame"}), "audio mp4a "},
		"Opus":      {"a.mp4", args(sound(), []string{"-c:a", "libopus"}), "audio Opus "},
		"MPEG-4":    {"a.mp4", args(picture("25"), []string{"-c:v", "mpeg4"}), "video mp4v "},
		"time code": {"a.mov", args(picture("25"), x264, []string{"-timecode", "01:00:00:00"}), "video avc1 h264"},
		"subtitles": {
			"a.mp4", args(picture("25"), []string{"-i", srt}, x264, []string{"-c:s", "mov_text"}),
			"video avc1 h264, text tx3g ",
		},
		"MOV audio": {"a.mov", args(sound(), []string{"-c:a", "aac", "-ar", "44100"}), "audio mp4a aac"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, tt.name, tt.args...)
			_, file := open(t, path)
			var got []string
			for _, tr := range file.Tracks {
				got = append(got, tr.Kind.String()+" "+tr.FourCC+" "+string(tr.Config.Codec))
				if tr.Len() == 0 {
					t.Errorf("%s has no samples", tr.FourCC)
				}
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("got %q, want %q", s, tt.want)
			}
		})
	}
}
