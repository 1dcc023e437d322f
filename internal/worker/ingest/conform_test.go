package ingest_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"millrace/internal/control/asset"
	"millrace/internal/media/timeline"
	"millrace/internal/mediastore"
	"millrace/internal/programtest"
	"millrace/internal/worker/workertest"
	"millrace/internal/worker/workertest/filmtest"
)

// oddity is a file that not every player plays as it is.
type oddity struct {
	file string
	args []string
	want asset.NonStandard

	width, height int     // of what it becomes; 0: 160 by 90
	frames        int     // 0: as many as the file has
	seconds       float64 // 0: 5
	upright       bool    // it is to be turned
	slow          bool    // its edit lists ask for half the speed
}

func oddities() map[string]oddity {
	both := func(more ...string) []string {
		return filmtest.Args(filmtest.Picture("5"), filmtest.Sound("5"), []string{"-threads", "1"}, more)
	}
	video := func(codec ...string) []string {
		return both(append([]string{"-pix_fmt", "yuv420p", "-c:a", "aac", "-c:v"}, codec...)...)
	}
	x264 := func(more ...string) []string {
		return video(append([]string{"libx264", "-preset", "ultrafast"}, more...)...)
	}
	x265 := func(more ...string) []string {
		return video(append([]string{"libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"}, more...)...)
	}
	audio := func(more ...string) []string { return filmtest.Args(filmtest.Sound("5"), more) }
	h264With := func(more ...string) []string {
		return both(append([]string{
			"-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-c:a",
		}, more...)...)
	}
	codec := func(name string) asset.NonStandard { return asset.NonStandard{VideoCodec: name} }
	heard := func(name string) asset.NonStandard { return asset.NonStandard{AudioCodec: name} }
	all := func(video, audio string) asset.NonStandard {
		return asset.NonStandard{VideoCodec: video, AudioCodec: audio}
	}
	return map[string]oddity{
		"HEVC in MP4": {file: "a.mp4", args: x265("-tag:v", "hvc1"), want: codec("hevc")},
		"HEVC in MOV, upright": {
			file: "a.mov", args: x265("-tag:v", "hvc1"), want: codec("hevc"), upright: true, width: 90, height: 160,
		},
		"HEVC in Matroska": {file: "a.mkv", args: x265(), want: codec("hevc")},
		"HEVC in MPEG-TS":  {file: "a.ts", args: x265(), want: codec("hevc")},
		"HEVC of ten bits": {
			file: "a.mp4", args: x265("-pix_fmt", "yuv420p10le"),
			want: asset.NonStandard{VideoCodec: "hevc", PixelFormat: "yuv420p10le"},
		},
		"HDR": {
			file: "a.mp4",
			args: x265("-pix_fmt", "yuv420p10le", "-color_trc", "smpte2084", "-color_primaries", "bt2020",
				"-colorspace", "bt2020nc"),
			want: asset.NonStandard{VideoCodec: "hevc", PixelFormat: "yuv420p10le", FileParameters: "non-standard"},
		},
		"B-frames in AVI": {
			file: "a.avi", args: h264With("libmp3lame", "-bf", "3", "-b_strategy", "0"),
			want: asset.NonStandard{AudioCodec: "mp3", FileParameters: "non-standard"},
		},
		"AV1 in MP4": {
			file: "a.mp4", args: video("libaom-av1", "-cpu-used", "8", "-usage", "realtime"), want: codec("av1"),
		},
		"AV1 and Opus in WebM": {
			file: "a.webm", args: both("-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-c:a", "libopus"),
			want: all("av1", "opus"),
		},
		"VP9 in MP4": {
			file: "a.mp4", args: video("libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8"), want: codec("vp9"),
		},
		"VP9 and Opus in WebM": {
			file: "a.webm",
			args: both("-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"),
			want: all("vp9", "opus"),
		},
		"VP8 and Vorbis": {
			file: "a.webm", args: both("-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libvorbis"),
			want: all("vp8", "vorbis"),
		},
		"MPEG-4 part 2 in MP4": {file: "a.mp4", args: video("mpeg4"), want: codec("mpeg4")},
		"MPEG-4 part 2 in AVI": {
			file: "a.avi", args: both("-c:v", "mpeg4", "-bf", "2", "-c:a", "libmp3lame"), want: all("mpeg4", "mp3"),
		},
		"Motion JPEG in AVI": {
			file: "a.avi", args: both("-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-c:a", "pcm_s16le"),
			want: all("mjpeg", "pcm_s16le"),
		},
		"H.264 in AVI": {file: "a.avi", args: h264With("libmp3lame"), want: heard("mp3")},
		"ProRes and PCM": {
			file: "a.mov", args: both("-c:v", "prores_ks", "-c:a", "pcm_s24le"),
			want: asset.NonStandard{VideoCodec: "prores", PixelFormat: "yuv422p10le", AudioCodec: "pcm_s24le"},
		},
		"MPEG-2 in MPEG-TS": {
			file: "a.ts", args: both("-c:v", "mpeg2video", "-c:a", "mp2"), want: all("mpeg2video", "mp2"),
		},
		"MPEG-2 and AC-3": {
			file: "a.mkv", args: both("-c:v", "mpeg2video", "-c:a", "ac3"), want: all("mpeg2video", "ac3"),
		},
		"Flash video": {
			file: "a.flv", args: both("-c:v", "flv1", "-ar", "44100", "-c:a", "libmp3lame"), want: all("flv1", "mp3"),
		},
		"H.264 in FLV": {file: "a.flv", args: x264()},
		"H.264 of 4:2:2": {
			file: "a.mp4", args: x264("-pix_fmt", "yuv422p"), want: asset.NonStandard{PixelFormat: "yuv422p"},
		},
		"H.264 of 4:4:4": {
			file: "a.mkv", args: x264("-pix_fmt", "yuv444p"), want: asset.NonStandard{PixelFormat: "yuv444p"},
		},
		"H.264 of ten bits": {
			file: "a.mp4", args: x264("-pix_fmt", "yuv420p10le"), want: asset.NonStandard{PixelFormat: "yuv420p10le"},
		},
		"interlaced": {
			file: "a.mp4", args: x264("-vf", "scale=160:96,setsar=1,interlace", "-flags", "+ildct+ilme"),
			want: asset.NonStandard{FileParameters: "non-standard"}, height: 96, frames: 75,
		},
		"interlaced in MPEG-TS": {
			file: "a.ts", args: x264("-vf", "scale=160:96,setsar=1,interlace", "-flags", "+ildct+ilme"),
			want: asset.NonStandard{FileParameters: "non-standard"}, height: 96, frames: 75,
		},
		"one key frame": {
			file: "a.mp4", want: asset.NonStandard{GOP: "high"}, seconds: 25,
			args: filmtest.Args([]string{
				"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=5:duration=25",
			}, filmtest.Sound("25"),
				[]string{
					"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "1000", "-sc_threshold",
					"0", "-c:a", "aac",
				}),
		},
		"two a second": {
			file: "a.mp4", args: x264("-r", "2"), want: asset.NonStandard{FrameRate: "2.000"}, frames: 180, seconds: 6,
		},
		"two hundred": {
			file: "a.mkv", args: x264("-r", "200"), want: asset.NonStandard{FrameRate: "200.000"}, frames: 149,
		},
		"wide H.264": {
			file: "a.mp4", args: x264("-vf", "setsar=4/3"), want: asset.NonStandard{PixelAspect: "4:3"}, width: 212,
		},
		"a long side": {
			file: "a.mp4", args: x264("-vf", "scale=2112:64,setsar=1"), want: asset.NonStandard{Resolution: "2112x64"},
			width: 2112, height: 64,
		},
		"many bits": {
			file: "a.mp4",
			args: x264("-b:v", "10M", "-maxrate", "10M", "-bufsize", "10M", "-x264-params", "nal-hrd=cbr"),
			want: asset.NonStandard{Bitrate: "high"},
		},
		"edited": {
			file: "a.mp4", args: x264(), slow: true,
			want: asset.NonStandard{VideoEditList: "non-standard", AudioEditList: "non-standard"},
		},
		"wide pixels": {
			file: "a.mp4", args: x265("-vf", "setsar=4/3"),
			want: asset.NonStandard{VideoCodec: "hevc", PixelAspect: "4:3"}, width: 212,
		},
		"odd size": {
			file: "a.mkv", args: both("-vf", "scale=161:91,setsar=1", "-c:v", "ffv1", "-c:a", "flac"),
			want: asset.NonStandard{VideoCodec: "ffv1", AudioCodec: "flac"}, width: 160, height: 90,
		},
		"rate varies": {
			file: "a.mkv", args: x265("-vf", "select='not(eq(mod(n,7),3))'", "-fps_mode", "vfr"), want: codec("hevc"),
		},
		"sound comes late": {
			file: "a.mkv",
			args: filmtest.Args(filmtest.Picture("5"), []string{"-itsoffset", "0.8"}, filmtest.Sound("4.2"), []string{
				"-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none", "-c:a", "libopus",
			}), want: all("hevc", "opus"),
		},
		"AC-3 in MP4":       {file: "a.mp4", args: h264With("ac3"), want: heard("ac3")},
		"E-AC-3 in MPEG-TS": {file: "a.ts", args: h264With("eac3"), want: heard("eac3")},
		"MP3 in MP4":        {file: "a.mp4", args: h264With("libmp3lame"), want: heard("mp3")},
		"Opus in MP4":       {file: "a.mp4", args: h264With("libopus"), want: heard("opus")},
		"FLAC in Matroska":  {file: "a.mkv", args: h264With("flac"), want: heard("flac")},
		"PCM in MOV":        {file: "a.mov", args: h264With("pcm_s16le"), want: heard("pcm_s16le")},
		"surround in AC-3":  {file: "a.mp4", args: h264With("ac3", "-ac", "6"), want: heard("ac3")},
		"MP3":               {file: "a.mp3", args: audio("-c:a", "libmp3lame"), want: heard("mp3")},
		"WAV":               {file: "a.wav", args: audio(), want: heard("pcm_s16le")},
		"WAV at 96 kHz": {
			file: "a.wav", args: audio("-ar", "96000", "-c:a", "pcm_s24le"), want: heard("pcm_s24le"),
		},
		"FLAC":       {file: "a.flac", args: audio(), want: heard("flac")},
		"Ogg Vorbis": {file: "a.ogg", args: audio("-c:a", "libvorbis"), want: heard("vorbis")},
		"Ogg Opus":   {file: "a.opus", args: audio("-c:a", "libopus"), want: heard("opus")},
		"ALAC":       {file: "a.m4a", args: audio("-c:a", "alac"), want: heard("alac")},
		"MPEG-PS": {
			file: "a.mpg", args: both("-f", "vob", "-r", "25", "-c:v", "mpeg2video", "-bf", "2", "-c:a", "mp2"),
			want: all("mpeg2video", "mp2"),
		},
		"MPEG-1 system": {
			file: "a.mpg", args: both("-f", "mpeg", "-r", "25", "-c:v", "mpeg1video", "-c:a", "mp2"),
			want: all("mpeg1video", "mp2"),
		},
		"H.264 in MPEG-PS": {file: "a.vob", args: h264With("mp2", "-bf", "2"), want: heard("mp2")},
		"WMV and WMA":      {file: "a.wmv", args: both("-c:v", "wmv2", "-c:a", "wmav2"), want: all("wmv2", "wmav2")},
		"H.264 in WMV":     {file: "a.wmv", args: x264("-bf", "2")},
		"WMA":              {file: "a.wma", args: audio("-c:a", "wmav2"), want: heard("wmav2")},
		"MXF": {
			file: "a.mxf",
			args: both("-r", "25", "-c:v", "mpeg2video", "-bf", "2", "-ar", "48000", "-c:a", "pcm_s16le"),
			want: all("mpeg2video", "pcm_s16le"),
		},
		"H.264 in MXF": {
			file: "a.mxf", args: h264With("pcm_s16le", "-r", "25", "-bf", "2", "-ar", "48000"),
			want: heard("pcm_s16le"),
		},
		"NUT": {
			file: "a.nut", args: both("-c:v", "mpeg4", "-bf", "2", "-c:a", "libmp3lame"), want: all("mpeg4", "mp3"),
		},
		"H.264 in NUT": {file: "a.nut", args: x264("-bf", "2")},
		"GIF": {
			file: "a.gif", args: both("-r", "10", "-an"),
			want: asset.NonStandard{VideoCodec: "gif", PixelFormat: "bgra"},
		},
		"raw H.264":          {file: "a.h264", args: x264("-an", "-bf", "2")},
		"raw HEVC":           {file: "a.hevc", args: x265("-an"), want: codec("hevc")},
		"AIFF":               {file: "a.aiff", args: audio(), want: heard("pcm_s16be")},
		"CAF":                {file: "a.caf", args: audio(), want: heard("pcm_s16be")},
		"W64":                {file: "a.w64", args: audio(), want: heard("pcm_s16le")},
		"AC-3":               {file: "a.ac3", args: audio("-c:a", "ac3"), want: heard("ac3")},
		"E-AC-3":             {file: "a.eac3", args: audio("-c:a", "eac3"), want: heard("eac3")},
		"Opus in WebM alone": {file: "a.webm", args: audio("-c:a", "libopus"), want: heard("opus")},
	}
}

// What not every player plays is encoded again, and said to be: every picture comes out at its time, and sound and
// picture last as long as they did.
func TestIngestConforms(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("encodes fifty files")
	}
	for name, o := range oddities() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filmtest.File(t, o.file, o.args...)
			if o.upright {
				path = filmtest.File(t, o.file, "-i", path, "-metadata:s:v:0", "rotate=90", "-c", "copy")
			}
			if o.slow {
				slowed(t, path)
			}
			w := newWorld(t, workertest.Options{})
			a := w.ReadyAsset(path)
			switch {
			case a.NonStandard == nil && o.want != (asset.NonStandard{}):
				t.Errorf("nothing is said to be unusual")
			case a.NonStandard != nil && *a.NonStandard != o.want:
				t.Errorf("unusual: %+v, want %+v", *a.NonStandard, o.want)
			}
			o.holds(t, w, a, path)
			if rows, err := w.Timeline(w.Ctx(), a.ID, 0); err != nil || len(rows) != 0 {
				t.Errorf("%d rows are left, %v", len(rows), err)
			}
			w.NothingLeft()
		})
	}
}

// slowed has every edit of an MP4 ask for half the speed: media_rate, ISO 14496-12 section 8.6.6.
func slowed(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for rest := data; ; {
		_, after, found := bytes.Cut(rest, []byte("elst"))
		if !found || len(after) < 20 {
			break
		}
		binary.BigEndian.PutUint32(after[16:], 1<<15)
		rest = after[20:]
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// holds looks at what is stored.
func (o oddity) holds(t *testing.T, w *world, a asset.Asset, path string) {
	t.Helper()
	seconds := max(o.seconds, 5)
	if d := a.Facts.Duration; math.Abs(d-seconds) > 0.15 {
		t.Errorf("duration %.3f, want %.3f", d, seconds)
	}
	line, err := mediastore.Timeline(w.Ctx(), w.Store, w.Work, a)
	w.Must(err)
	count := w.Samples(a)
	if v := line.Rendition(timeline.MainVideo); v != nil {
		want := o.frames
		if want == 0 {
			want = decoded(t, path)
		}
		if count["v"] != want {
			t.Errorf("%d pictures, want %d", count["v"], want)
		}
		width, height := cmp.Or(o.width, 160), cmp.Or(o.height, 90)
		if v.Inits[0].Width != width || v.Inits[0].Height != height || !strings.HasPrefix(v.Inits[0].Codec, "avc1.") {
			t.Errorf("picture %+v, want %dx%d", v.Inits[0], width, height)
		}
		for i, c := range v.Chunks {
			if !c.Independent && !c.Gap {
				t.Errorf("segment %d can't be decoded by itself", i)
			}
		}
	}
	if s := line.Rendition(timeline.MainAudio); s != nil &&
		(s.Inits[0].Codec != "mp4a.40.2" || s.Inits[0].Channels > 2) {
		t.Errorf("sound %+v", s.Inits[0])
	}
	plays(t, w, line)
}

// decoded counts the pictures that a decoder gives.
func decoded(t *testing.T, path string) int {
	t.Helper()
	out := programtest.Run(t, "ffprobe", "-v", "error", "-count_frames", "-select_streams", "V:0", "-show_entries",
		"stream=nb_read_frames", "-of", "csv=p=0", path)
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n") // a stream of a program is named twice
	n, err := strconv.Atoi(strings.TrimRight(first, ","))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// plays has a decoder read each rendition from end to end.
func plays(t *testing.T, w *world, line *timeline.Timeline) {
	t.Helper()
	for _, l := range line.Renditions {
		if l.Source != nil {
			continue
		}
		data := w.ReadObject(l.Inits[0].Object)
		for _, c := range l.Chunks {
			if !c.Gap {
				data = append(data, w.ReadObject(c.Object)...)
			}
		}
		path := filepath.Join(t.TempDir(), l.ID+".mp4")
		w.Must(os.WriteFile(path, data, 0o600))
		if out := programtest.Run(t, "ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", path, "-f", "null",
			"-"); len(out) > 0 {
			t.Errorf("%s: %s", l.ID, out)
		}
	}
}
