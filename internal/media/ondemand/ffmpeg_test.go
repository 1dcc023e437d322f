package ondemand_test

import (
	"context"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"millrace/internal/media/codec/aac"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/container/mp4"
	"millrace/internal/media/frame"
	"millrace/internal/media/ondemand"
	"millrace/internal/media/timeline"
	"millrace/internal/programtest"
)

// ffmpeg makes a file of this name and returns its path.
func ffmpeg(t testing.TB, name string, args ...string) string {
	t.Helper()
	return programtest.Media(t, name, append([]string{"-threads", "1"}, args...)...)
}

func args(parts ...[]string) []string { return slices.Concat(parts...) }

func picture(seconds, rate string) []string {
	return []string{"-f", "lavfi", "-i", "testsrc2=size=160x90:duration=" + seconds + ":rate=" + rate}
}

func sound(seconds string) []string {
	return []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=" + seconds}
}

func h264(gop string, more ...string) []string {
	return append([]string{
		"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", gop, "-bf", "2", "-threads", "1",
		"-c:a", "aac",
	}, more...)
}

var openGOP = []string{
	"-c:v", "libx264", "-preset", "fast", "-pix_fmt", "yuv420p", "-threads", "1", "-x264-params",
	"open-gop=1:bframes=3:b-pyramid=normal:keyint=30:scenecut=0", "-c:a", "aac",
}

type files struct{ dir string }

// Open opens a file by name, as a store would.
func (f files) Open(_ context.Context, key string) (ondemand.ReaderAtCloser, int64, error) {
	file, err := os.Open(filepath.Join(f.dir, key))
	if err != nil {
		return nil, 0, err
	}
	st, err := file.Stat()
	return file, st.Size(), err
}

// media is a planned file.
type media struct {
	dir, name    string
	video, audio *mp4.Track
	idrs         []int
	timeline     *timeline.Timeline
	library      *ondemand.Library
}

func plan(t testing.TB, path string) media {
	t.Helper()
	m := media{dir: filepath.Dir(path), name: filepath.Base(path)}
	m.library = ondemand.NewLibrary(files{m.dir}, 1<<20)
	x, err := m.library.File(t.Context(), m.name)
	if err != nil {
		t.Fatal(err)
	}
	for _, tr := range x.Tracks {
		if tr.Kind == frame.Video && m.video == nil {
			m.video = tr
		}
		if tr.Kind == frame.Audio && m.audio == nil {
			m.audio = tr
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if m.video != nil {
		if m.idrs, err = mp4.IDRs(f, m.video); err != nil {
			t.Fatal(err)
		}
	}
	if m.timeline, err = ondemand.Plan(m.video, m.audio, m.idrs, m.name); err != nil {
		t.Fatal(err)
	}
	return m
}

// join writes the init segment and all segments of a rendition one after the other, and checks each by itself and
// against the one before.
func (m media) join(t *testing.T, id string) string {
	t.Helper()
	l := m.timeline.Rendition(id)
	all, err := m.library.Init(t.Context(), *l.Source)
	if err != nil {
		t.Fatal(err)
	}
	next, frames := int64(-1), 0
	for i, c := range l.Chunks {
		if s := math.Round(l.Seconds(i)); s > float64(m.timeline.Target) {
			t.Errorf("%s %d lasts %.3f s, the target duration is %d", id, i, l.Seconds(i), m.timeline.Target)
		}
		if c.Gap {
			continue
		}
		b, err := m.library.Chunk(t.Context(), *l.Source, int64(i), c)
		if err != nil {
			t.Fatal(err)
		}
		m.checkCopy(t, *l.Source, int64(i), c, b)
		fragments, err := cmaf.ParseFragments(b)
		if err != nil || len(fragments) != 1 || cmaf.Whole(fragments) != len(b) {
			t.Fatalf("%s %d: %d fragments, %v", id, i, len(fragments), err)
		}
		f := fragments[0]
		if int64(f.BaseMediaDecodeTime) != c.Time || int64(f.Duration) != c.Duration {
			t.Errorf("%s %d: decode time %d and duration %d, planned %d and %d", id, i, f.BaseMediaDecodeTime,
				f.Duration, c.Time, c.Duration)
		}
		if next >= 0 && c.Time != next {
			t.Errorf("%s %d begins at %d, the one before ended at %d", id, i, c.Time, next)
		}
		if c.Independent && !f.Samples[0].Sync {
			t.Errorf("%s %d does not begin with a sync sample", id, i)
		}
		if d := int64(len(b)) - c.Size; d > 256 || d < -int64(20*len(f.Samples)) {
			t.Errorf("%s %d has %d bytes, planned %d", id, i, len(b), c.Size)
		}
		at := c.Time
		for k, s := range f.Samples {
			if s.CompositionOffset < 0 {
				t.Errorf("%s %d: sample %d has composition offset %d", id, i, k, s.CompositionOffset)
			}
			at += int64(s.Duration)
			if over := at + int64(s.CompositionOffset) - c.Time - c.Duration; c.Independent &&
				float64(over) > 1.6*float64(l.Timescale) {
				t.Errorf("%s %d: sample %d seems to be shown until %.3f s behind the segment's end", id, i, k,
					float64(over)/float64(l.Timescale))
			}
		}
		next = c.Time + c.Duration
		frames += len(f.Samples)
		all = append(all, b...)
	}
	path := filepath.Join(t.TempDir(), id+".mp4")
	if err := os.WriteFile(path, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// shown is one frame as a decoder gives it; at in seconds.
type shown struct {
	at   float64
	hash string
}

// decode gives what ffmpeg shows or plays of a file.
func decode(t *testing.T, path, stream string) []shown {
	t.Helper()
	out := programtest.Run(t, "ffmpeg", "-nostdin", "-loglevel", "error", "-threads", "1", "-copyts", "-i", path,
		"-map", "0:"+stream+":0", "-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "framemd5", "-")
	var frames []shown
	num, den := 0.0, 1.0
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if tb, ok := strings.CutPrefix(line, "#tb 0: "); ok {
			n, d, _ := strings.Cut(tb, "/")
			num, _ = strconv.ParseFloat(n, 64)
			den, _ = strconv.ParseFloat(d, 64)
		}
		fields := strings.Split(line, ",")
		if strings.HasPrefix(line, "#") || len(fields) < 6 {
			continue
		}
		pts, err := strconv.ParseFloat(strings.TrimSpace(fields[2]), 64)
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, shown{pts * num / den, strings.TrimSpace(fields[5])})
	}
	slices.SortStableFunc(frames, func(a, b shown) int { return int(math.Copysign(1, a.at-b.at)) })
	return frames
}

// packet is one packet as ffprobe has it.
type packet struct {
	PTS      string `json:"pts_time"`
	DTS      string `json:"dts_time"`
	Duration string `json:"duration_time"`
	Flags    string `json:"flags"`
	Hash     string `json:"data_hash"`
}

func (p packet) at() float64 {
	v, _ := strconv.ParseFloat(p.PTS, 64)
	return v
}

func packets(t testing.TB, path, stream string) []packet {
	t.Helper()
	var all struct {
		Packets []packet `json:"packets"`
	}
	out := programtest.Run(t, "ffprobe", "-v", "error", "-select_streams", stream+":0", "-show_packets",
		"-show_data_hash", "md5", "-of", "json", path)
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all.Packets
}

const tick = 0.0005

func compareFrames(t *testing.T, want, got []shown, hidden int) {
	t.Helper()
	if len(got) != len(want)+hidden {
		t.Fatalf("%d frames, the source shows %d and hides %d", len(got), len(want), hidden)
	}
	for _, f := range got[:hidden] { // squeezed in front of the first one that is shown
		if d := got[hidden].at - f.at; d < 0 || d > 0.02 {
			t.Errorf("a hidden frame stands %.4f s before the first", d)
		}
	}
	for i, f := range got[hidden:] {
		at := want[i].at
		if i == 0 && at > 0.1 { // what comes late is shown from the beginning on
			at = 0
		}
		if f.hash != want[i].hash || math.Abs(f.at-at-timeline.Origin) > tick {
			t.Fatalf("frame %d at %.4f is %s, in the source it is at %.4f and %s", i, f.at, f.hash, at, want[i].hash)
		}
	}
}

// withoutSilence leaves out what fills the holes of a track of AAC, which is to be there wherever a packet would be
// missing.
func withoutSilence(t *testing.T, asc []byte, got []packet) []packet {
	t.Helper()
	silence := fmt.Sprintf("MD5:%x", md5.Sum(aac.Silence(asc)))
	for i := 1; i < len(got); i++ {
		if d := got[i].at() - got[i-1].at(); d > 2*1024.0/44100 {
			t.Errorf("a hole of %.3f s in front of the packet at %.3f", d, got[i].at())
		}
	}
	return slices.DeleteFunc(got, func(p packet) bool { return strings.EqualFold(p.Hash, silence) })
}

// comparePackets wants every packet of sound that is heard, in its time.
func comparePackets(t *testing.T, want, got []packet) {
	t.Helper()
	want = slices.DeleteFunc(slices.Clone(want), func(p packet) bool { return strings.Contains(p.Flags, "D") })
	if len(got) != len(want) {
		t.Fatalf("%d packets, the source has %d", len(got), len(want))
	}
	for i, p := range got {
		if p.Hash != want[i].Hash || math.Abs(p.at()-want[i].at()-timeline.Origin) > tick {
			t.Fatalf("packet %d at %.4f is %s, in the source it is at %.4f and %s", i, p.at(), p.Hash, want[i].at(),
				want[i].Hash)
		}
	}
}

// pauses leaves out the pictures of three seconds and of two, as where a screen is still.
const pauses = "select='not(between(t,1.9,4.9)+between(t,6.8,8.8))'"

// fixtures are files as they come, by what is special about them. Where ffmpeg itself cuts off what is in front of an
// edit, hidden says how many frames that are.
var fixtures = map[string]struct {
	name     string
	args     func(t *testing.T) []string
	segments int
	hidden   int
	depends  bool // some segments can't begin with an IDR
	gaps     string
}{
	"B-frames": {name: "a.mp4", args: made(picture("13", "30"), sound("13"), h264("60")), segments: 7},
	"29.97":    {name: "a.mp4", args: made(picture("13", "30000/1001"), sound("13"), h264("60")), segments: 7},
	"no B-frames": {
		name: "a.mp4", args: made(picture("13", "25"), sound("13"), h264("50", "-bf", "0")), segments: 7,
	},
	"moov in front": {
		name: "a.mp4", args: made(picture("9", "25"), sound("9"), h264("50", "-movflags", "+faststart")), segments: 5,
	},
	"MOV": {name: "a.mov", args: made(picture("9", "24"), sound("9"), h264("48")), segments: 5},
	"variable rate": {
		name: "a.mp4",
		args: made(picture("13", "60"), sound("13"),
			h264("30", "-vf", "select='not(mod(n*n,7))+not(mod(n,5))'", "-fps_mode", "vfr")), segments: 9,
	},
	"open GOP": {
		name: "a.mp4", args: made(picture("26", "30"), sound("26"), openGOP), segments: 14, depends: true,
	},
	"delayed video": {
		name: "a.mp4", args: made([]string{"-itsoffset", "0.7"}, picture("9", "30"), sound("9"), h264("60")),
		segments: 5,
	},
	"very late video": {
		name: "a.mp4", args: made([]string{"-itsoffset", "3"}, picture("6", "30"), sound("9"), h264("60")), segments: 5,
	},
	"pauses": {
		name: "a.mp4",
		args: made(picture("13", "30"), sound("13"),
			h264("60", "-bf", "3", "-b_strategy", "0", "-vf", pauses, "-fps_mode", "vfr")), segments: 4,
	},
	"delayed audio": {
		name: "a.mp4", args: made(picture("9", "30"), []string{"-itsoffset", "0.7"}, sound("9"), h264("60")),
		segments: 5,
	},
	"very late audio": {
		name: "a.mp4", args: made(picture("13", "30"), []string{"-itsoffset", "6"}, sound("6"), h264("60")),
		segments: 7,
	},
	"sound goes on": {
		name: "a.mp4", args: made(picture("9", "30"), sound("12"), h264("60")), segments: 6, gaps: "v5",
	},
	"sound a bit more": {name: "a.mp4", args: made(picture("9", "30"), sound("9.6"), h264("60")), segments: 5},
	"long sound": {
		name: "a.mp4", args: made(picture("9", "30"), sound("45"), h264("60")), segments: 23,
		gaps: "v5 v6 v7 v8 v9 v10 v11 v12 v13 v14 v15 v16 v17 v18 v19 v20 v21 v22",
	},
	"a hole in sound": {
		name: "a.mp4",
		args: made(picture("13", "30"), sound("13"),
			h264("60", "-bsf:a", "noise=drop=between(pts/48000\\,2.5\\,7.2)")),
		segments: 7,
	},
	"short sound": {name: "a.mp4", args: made(picture("13", "30"), sound("3"), h264("60")), segments: 7},
	"fragmented": {
		name: "a.mp4",
		args: made(picture("9", "30"), sound("9"),
			h264("60", "-movflags", "+frag_keyframe+empty_moov+default_base_moof")), segments: 5,
	},
	"by frame": {
		name: "a.mp4", args: made(picture("9", "30"), h264("60", "-movflags", "+frag_every_frame+empty_moov")),
		segments: 5,
	},
	"hybrid": {
		name: "a.mp4", args: made(picture("9", "30"), sound("9"), h264("60", "-movflags", "+frag_keyframe")),
		segments: 5,
	},
	"negative offsets": {
		name: "a.mp4", args: made(picture("9", "30"), sound("9"), h264("60", "-movflags", "+negative_cts_offsets")),
		segments: 5,
	},
	"one GOP": {
		name:     "a.mp4",
		args:     made(picture("33", "10"), sound("33"), h264("9999", "-keyint_min", "9999", "-sc_threshold", "0")),
		segments: 17, depends: true,
	},
	"GOP of 18 s": {
		name:     "a.mp4",
		args:     made(picture("40", "10"), sound("40"), h264("180", "-keyint_min", "180", "-sc_threshold", "0")),
		segments: 3,
	},
	"video only": {name: "a.mp4", args: made(picture("9", "50"), h264("100")), segments: 5},
	"audio only": {name: "a.m4a", args: made(sound("13"), []string{"-c:a", "aac"}), segments: 6},
	"one picture": {
		name: "a.mp4", args: made(picture("0.04", "25"), sound("9"), h264("25")), segments: 5, gaps: "v1 v2 v3 v4",
	},
	"slide show": {
		name: "a.mp4",
		args: made([]string{
			"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=1:duration=8", "-vf", "setpts=N*4/TB", "-fps_mode",
			"passthrough", "-c:v", "libx264", "-bf", "3", "-b_strategy", "0", "-g", "4", "-pix_fmt", "yuv420p",
			"-threads", "1",
		}), segments: 2,
	},
	"slow slide show": {
		name: "a.mp4",
		args: made([]string{
			"-f", "lavfi", "-i", "testsrc2=size=160x90:rate=1:duration=8", "-vf", "setpts=N*7/TB", "-fps_mode",
			"passthrough", "-c:v", "libx264", "-bf", "3", "-b_strategy", "0", "-g", "4", "-pix_fmt", "yuv420p",
			"-threads", "1",
		}), segments: 8, depends: true,
	},
	"in front of edit": {name: "a.mp4", args: cut("1.5", "40"), segments: 6, hidden: 45},
	"both ends of it":  {name: "a.mp4", args: cut("1.5", "7.3"), segments: 4, hidden: 45},
}

func made(parts ...[]string) func(*testing.T) []string {
	return func(*testing.T) []string { return args(parts...) }
}

// cut copies from an inner place on: the pictures between the key frame and the place are in front of the edit.
func cut(from, long string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		whole := ffmpeg(t, "whole.mp4", args(picture("13", "30"), sound("13"), h264("60"))...)
		return []string{"-ss", from, "-i", whole, "-t", long, "-c", "copy"}
	}
}

// What is joined of the segments is the source: every frame with its time, ten seconds later.
func TestSegmentsAreTheSource(t *testing.T) {
	t.Parallel()
	for name, fx := range fixtures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := ffmpeg(t, fx.name, fx.args(t)...)
			m := plan(t, path)
			if n := len(m.timeline.Marks); n != fx.segments {
				t.Errorf("%d segments, want %d", n, fx.segments)
			}
			if got := m.gaps(); got != fx.gaps {
				t.Errorf("gaps are %q, want %q", got, fx.gaps)
			}
			if m.timeline.Independent() == fx.depends {
				t.Errorf("every segment begins with an IDR: %t", m.timeline.Independent())
			}
			if m.video != nil {
				joined := m.join(t, timeline.MainVideo)
				compareFrames(t, decode(t, path, "v"), decode(t, joined, "v"), fx.hidden)
			}
			if m.audio != nil {
				joined := m.join(t, timeline.MainAudio)
				comparePackets(t, packets(t, path, "a"), withoutSilence(t, m.audio.Config.ASC, packets(t, joined, "a")))
			}
			m.checkBorders(t)
			m.checkDates(t)
		})
	}
}

func (m media) gaps() string {
	var out []string
	for _, l := range m.timeline.Renditions {
		for i, c := range l.Chunks {
			if c.Gap {
				out = append(out, l.ID+strconv.Itoa(i))
			}
		}
	}
	return strings.Join(out, " ")
}

// checkBorders wants a segment of sound to begin within one of its frames of the pictures, and playlists that last as
// long as the media.
func (m media) checkBorders(t *testing.T) {
	t.Helper()
	if m.video == nil {
		return
	}
	v := m.timeline.Rendition(timeline.MainVideo)
	total := 0.0
	for i, c := range v.Chunks {
		total += v.Seconds(i)
		if c.Gap || m.audio == nil || i == 0 {
			continue
		}
		a := m.timeline.Rendition(timeline.MainAudio)
		if a.Chunks[i].Gap || a.Chunks[i-1].Gap {
			continue
		}
		first := math.MaxFloat64
		for k := c.From; k < min(c.To, c.From+20); k++ {
			first = min(first, float64(m.video.PTS(k))/float64(v.Timescale))
		}
		heard := float64(a.Chunks[i].Time)/float64(a.Timescale) - timeline.Origin
		slack := 0.0
		if !c.Independent { // where pictures of the segment before are shown behind its first
			slack = 0.15
		}
		if d := heard - first; d < -slack-1e-6 || d > slack+1024.0/float64(a.Timescale) {
			t.Errorf("segment %d: the sound begins %.4f s after the picture", i, d)
		}
	}
	if total < m.end()-0.15 || total > m.end()+0.15 {
		t.Errorf("the segments last %.3f s, the media %.3f s", total, m.end())
	}
}

// checkDates wants a segment of sound, cut where a timeline's segments are, to be dated where the one before ends.
func (m media) checkDates(t *testing.T) {
	t.Helper()
	if m.audio == nil {
		return
	}
	spans := m.timeline.Spans()
	l := ondemand.Follow(m.audio, "sound.m4a", "german", spans, m.timeline.ZeroTime())
	date := func(i int) float64 { return spans[i] + float64(l.Chunks[i].Apart)/1000 }
	for i := 1; i < len(l.Chunks); i++ {
		if l.Chunks[i-1].Gap || l.Chunks[i].Gap {
			continue
		}
		if off := date(i) - date(i-1) - l.Seconds(i-1); math.Abs(off) > 0.0011 { // two are rounded to milliseconds
			t.Errorf("segment %d: the sound is dated %.4f s off the end of the one before", i, off)
		}
	}
}

// end is when the last of the media ends, in seconds.
func (m media) end() float64 {
	v := m.video
	last := int64(0)
	for i := range v.Len() {
		if pts := v.PTS(i); pts < v.EditEnd() {
			last = max(last, pts+int64(v.Sample(i).Duration))
		}
	}
	end := float64(last) / float64(v.Timescale)
	if a := m.audio; a != nil {
		n := a.Len() - 1
		if sound := float64(a.PTS(n)+int64(a.Sample(n).Duration)) / float64(a.Timescale); sound > end+1 {
			end = sound
		}
	}
	return end
}

// Playlists say the size of the picture as it is shown, and how many there are in a second.
func TestPictureIsDescribed(t *testing.T) {
	t.Parallel()
	plain := args(picture("2", "30000/1001"), h264("30"))
	whole := ffmpeg(t, "whole.mp4", plain...)
	for name, tt := range map[string]struct {
		args          []string
		width, height int
		rate          float64
	}{
		"plain":      {plain, 160, 90, 29.97},
		"wide":       {args(plain, []string{"-vf", "setsar=4/3"}), 213, 90, 29.97},
		"upright":    {[]string{"-i", whole, "-c", "copy", "-metadata:s:v:0", "rotate=90"}, 90, 160, 29.97},
		"the middle": {[]string{"-ss", "0.5", "-i", whole, "-c", "copy"}, 160, 90, 29.97},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := plan(t, ffmpeg(t, "a.mp4", tt.args...))
			in := m.timeline.Rendition(timeline.MainVideo).Inits[0]
			if in.Width != tt.width || in.Height != tt.height || math.Abs(in.FrameRate-tt.rate) > 0.01 ||
				!strings.HasPrefix(in.Codec, "avc1.") {
				t.Errorf("got %+v", in)
			}
		})
	}
}
