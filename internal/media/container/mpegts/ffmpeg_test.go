package mpegts_test

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/codec/nal"
	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/frame"
	"millrace/internal/programtest"
)

// ffmpeg makes a file of this name and returns its path.
func ffmpeg(t testing.TB, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, append([]string{"-threads", "1"}, args...)...)
}

func picture(size string) []string {
	return []string{"-f", "lavfi", "-i", "testsrc2=duration=3:rate=30:size=" + size}
}

var (
	tone = []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=3"}
	x264 = []string{
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30", "-bf", "2", "-threads", "1",
	}
	x265 = []string{
		"-c:v", "libx265", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30", "-x265-params",
		"log-level=error:bframes=2:keyint=30:pools=1:frame-threads=1",
	}
)

// packet is one of ffprobe's.
type packet struct {
	PTS   int64  `json:"pts"`
	DTS   int64  `json:"dts"`
	Flags string `json:"flags"`
	Hash  string `json:"data_hash"`
}

func packets(t testing.TB, path, stream string) []packet {
	t.Helper()
	var out struct {
		Packets []packet `json:"packets"`
	}
	b := programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", stream, "-show_packets", "-show_data_hash",
		"md5", "-of", "json", path)
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out.Packets
}

// recorder keeps what comes.
type recorder struct {
	configs map[frame.Kind][]frame.Config
	frames  map[frame.Kind][]frame.Frame
}

func newRecorder() *recorder {
	return &recorder{map[frame.Kind][]frame.Config{}, map[frame.Kind][]frame.Frame{}}
}

func (r *recorder) Configure(c frame.Config) error {
	r.configs[c.Kind] = append(r.configs[c.Kind], c)
	return nil
}

func (r *recorder) Write(f frame.Frame) error {
	r.frames[f.Kind] = append(r.frames[f.Kind], f)
	return nil
}

// demux feeds a whole stream in portions of 1316 bytes, as SRT carries it.
func demux(t testing.TB, b []byte) (*recorder, *mpegts.Demuxer) {
	t.Helper()
	r := newRecorder()
	d := mpegts.NewDemuxer(r)
	for part := range slices.Chunk(b, 7*mpegts.PacketSize) {
		if err := d.Write(part, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Flush(); err != nil {
		t.Fatal(err)
	}
	return r, d
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ticks(n int64) time.Duration { return time.Duration(n) * time.Second / 90000 }

// sameTime allows for one tick, by which readers round differently.
func sameTime(got time.Duration, want int64) bool { return (got - ticks(want)).Abs() <= ticks(1)+1 }

func TestAgainstFFmpeg(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source []string // encoder arguments
		file   string   // what keeps the encoded packets as they are
		mux    []string
		video  string // raw format of the video
		audio  frame.Codec
	}{
		"H.264 and AAC": {
			slices.Concat(picture("320x180"), tone, x264, []string{"-c:a", "aac", "-ac", "2"}), "x.mp4", nil, "h264",
			frame.AAC,
		},
		"HEVC and AAC": {
			slices.Concat(picture("320x180"), tone, x265, []string{"-c:a", "aac"}), "x.mp4", nil, "hevc", frame.AAC,
		},
		"H.264 and LATM": {
			slices.Concat(picture("320x180"), tone, x264, []string{"-c:a", "aac", "-ac", "2"}), "x.mp4",
			[]string{"-mpegts_flags", "latm"},
			"h264", frame.AAC,
		},
		"H.264 and MP3": {
			slices.Concat(picture("320x180"), tone, x264, []string{"-c:a", "libmp3lame", "-b:a", "96k"}), "x.mkv", nil,
			"h264", frame.MP3,
		},
		"H.264 and AC-3": {
			slices.Concat(picture("320x180"), tone, x264, []string{"-c:a", "ac3", "-ac", "2"}), "x.mkv", nil, "h264",
			frame.AC3,
		},
		"H.264 and Opus": {
			slices.Concat(picture("320x180"), tone, x264, []string{"-c:a", "libopus", "-ac", "2"}), "x.mkv", nil,
			"h264", frame.Opus,
		},
		"small audio PES": {
			slices.Concat(tone, []string{"-c:a", "aac"}), "x.mp4", []string{"-pes_payload_size", "0"}, "", frame.AAC,
		},
		"video with lengths": {
			slices.Concat(picture("64x36"), x264), "x.mp4", []string{"-omit_video_pes_length", "0"}, "h264", "",
		},
		"constant rate": {
			slices.Concat(picture("320x180"), x264, []string{"-b:v", "500k"}), "x.mp4",
			[]string{"-muxrate", "2M"},
			"h264", "",
		},
		"large pictures": {
			slices.Concat(picture("1920x1080"), []string{"-t", "0.5"}, x264, []string{"-qp", "5"}), "x.mp4", nil,
			"h264", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := ffmpeg(t, tt.file, tt.source...)
			ts := ffmpeg(t, "x.ts", slices.Concat([]string{"-i", source, "-c", "copy"}, tt.mux)...)
			r, d := demux(t, read(t, ts))
			if s := d.Stats(); s.Lost+s.Skipped+s.Broken+s.Waiting+s.Malformed+s.Scrambled+s.Duplicates > 0 {
				t.Errorf("%+v", s)
			}
			if tt.video != "" {
				raw := ffmpeg(t, "x."+tt.video, "-i", ts, "-map", "0:v", "-c", "copy", "-f", tt.video)
				checkVideo(t, r, packets(t, ts, "v"), read(t, raw), tt.video)
			}
			if tt.audio != "" {
				checkAudio(t, r, packets(t, ts, "a"), packets(t, source, "a"), tt.audio)
			}
		})
	}
}

// checkVideo compares access units with ffprobe's times and the units of the raw stream.
func checkVideo(t *testing.T, r *recorder, want []packet, raw []byte, format string) {
	t.Helper()
	frames := r.frames[frame.Video]
	if len(frames) != len(want) || len(want) == 0 {
		t.Fatalf("%d pictures, want %d", len(frames), len(want))
	}
	var units, whole [][]byte
	for unit := range nal.AnnexB(raw) {
		if c := unit[0]; format == "h264" && c&31 != 9 && c&31 != 12 || format == "hevc" && c>>1 != 35 {
			whole = append(whole, unit)
		}
	}
	for i, f := range frames {
		if !sameTime(f.DTS, want[i].DTS) || !sameTime(f.PTS, want[i].PTS) ||
			f.Key != strings.Contains(want[i].Flags, "K") || f.Received.IsZero() {
			t.Fatalf("picture %d: %v %v %v, want %+v", i, f.DTS, f.PTS, f.Key, want[i])
		}
		if err := nal.Check(f.Data); err != nil {
			t.Fatal(err)
		}
		for unit := range nal.Units(f.Data, 4) {
			units = append(units, unit)
		}
	}
	if !slices.EqualFunc(units, whole, bytes.Equal) {
		t.Errorf("%d NAL units differ from the %d of the raw stream", len(units), len(whole))
	}
	if c := r.configs[frame.Video]; len(c) != 1 || c[0].Width == 0 || c[0].FrameRate != 30 {
		t.Errorf("configurations %+v", c)
	}
}

func checkAudio(t *testing.T, r *recorder, times, source []packet, codec frame.Codec) {
	t.Helper()
	frames := r.frames[frame.Audio]
	if len(frames) != len(times) || len(frames) != len(source) || len(frames) == 0 {
		t.Fatalf("%d frames of sound, %d in the stream, %d in its source", len(frames), len(times), len(source))
	}
	for i, f := range frames {
		if !sameTime(f.DTS, times[i].PTS) || f.PTS != f.DTS || !f.Key {
			t.Fatalf("frame %d at %v, want %v", i, f.DTS, ticks(times[i].PTS))
		}
		sum := md5.Sum(f.Data)
		if got := "MD5:" + hex.EncodeToString(sum[:]); got != source[i].Hash {
			t.Fatalf("frame %d is %s, want %s", i, got, source[i].Hash)
		}
	}
	c := r.configs[frame.Audio]
	if len(c) != 1 || c[0].Codec != codec || c[0].SampleRate != 48000 || c[0].Channels == 0 {
		t.Errorf("configurations %+v", c)
	}
}

// TestAtOnce shows that an access unit does not wait for the next one once the stream has shown how it stuffs.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	b := read(t, ffmpeg(t, "x.ts", slices.Concat(picture("320x180"), x264)...))
	r := newRecorder()
	d := mpegts.NewDemuxer(r)
	late, pictures := 0, 0
	for p := range slices.Chunk(b, mpegts.PacketSize) {
		before := len(r.frames[frame.Video])
		if err := d.Write(p, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if n := len(r.frames[frame.Video]); n > before {
			pictures++
			if p[1]&0x40 != 0 { // it came with the first packet of the next one
				late++
			}
		}
	}
	if pictures < 80 || late > 8+pictures/20 {
		t.Errorf("%d of %d pictures waited for the next one", late, pictures)
	}
}
