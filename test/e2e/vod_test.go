package e2e

import (
	"context"
	"math"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// film is a file to make an asset of.
type film struct {
	name string
	clip rig.Clip
	// then are ffmpeg's options for a second pass that copies the streams; nil for none.
	then []string
	// frames is how many pictures the asset has; 0: as many as the file, -1: not counted.
	frames  int
	rotated bool
	but     []string // rules that the file itself departs from
}

const filmSeconds = 9

// films are files of every kind that plays as it is.
func films() map[string]film {
	c := rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Flash: true, Seconds: filmSeconds}
	with := func(change func(*rig.Clip)) rig.Clip {
		x := c
		change(&x)
		return x
	}
	return map[string]film{
		"MP4 moov at the end": {name: "a.mp4", clip: c},
		"MP4 moov in front": {
			name: "a.mp4", clip: with(func(c *rig.Clip) { c.More = []string{"-movflags", "+faststart"} }),
		},
		"MP4 fragmented": {
			name: "a.mp4", but: []string{"align-start"},
			clip: with(func(c *rig.Clip) {
				c.More = []string{"-movflags", "frag_keyframe+empty_moov+default_base_moof"}
			}),
		},
		"MP4 at 29.97 and 44.1 kHz": {name: "a.mp4", clip: with(func(c *rig.Clip) { c.Drop, c.Hertz = true, 44100 })},
		"MP4 no B-frames":           {name: "a.mp4", clip: with(func(c *rig.Clip) { c.NoB = true })},
		"MP4 rate varies": {name: "a.mp4", frames: -1, clip: with(func(c *rig.Clip) {
			c.Flash = false
			c.More = []string{"-vf", "select='not(eq(mod(n,7),3))*not(between(t,3,4.5))'", "-vsync", "vfr"}
		})},
		// Pictures that are decoded and not shown count for the checker, not for the viewer.
		"MP4 edit list": {
			name: "a.mp4", frames: -1, clip: c, then: []string{"-ss", "2.3"}, but: []string{"frame-rate"},
		},
		"MP4 late sound": {
			name: "a.mp4", clip: c, then: []string{"-map", "0:v", "-map", "0:a"}, but: []string{"align-start"},
		},
		"MP4 video only": {name: "a.mp4", clip: with(func(c *rig.Clip) { c.Flash, c.NoAudio = false, true })},
		"M4A":            {name: "a.m4a", clip: with(func(c *rig.Clip) { c.Flash, c.NoVideo = false, true })},
		"MOV rotated": {
			name: "a.mov", clip: c, then: []string{"-metadata:s:v:0", "rotate=90"}, rotated: true,
			but: []string{"resolution"},
		},
		"Matroska": {name: "a.mkv", clip: c},
		"MPEG-TS":  {name: "a.ts", clip: c},
		"HEVC": {
			name: "a.mp4",
			clip: with(func(c *rig.Clip) { c.Video = "libx265"; c.More = []string{"-x265-params", "log-level=none"} }),
		},
		"VP9 and Opus in WebM": {name: "a.webm", clip: with(func(c *rig.Clip) {
			c.Video, c.Audio = "libvpx-vp9", "libopus"
			c.More = []string{"-cpu-used", "8", "-deadline", "realtime"}
		})},
		"MPEG-4 part 2 in AVI": {
			name: "a.avi", clip: with(func(c *rig.Clip) { c.Video, c.Audio = "mpeg4", "libmp3lame" }),
		},
		"MP3": {
			name: "a.mp3", clip: with(func(c *rig.Clip) { c.Flash, c.NoVideo, c.Audio = false, true, "libmp3lame" }),
		},
		"bare AAC": {name: "a.aac", clip: with(func(c *rig.Clip) { c.Flash, c.NoVideo = false, true })},
	}
}

// make gives the file's path.
func (f film) make(t *testing.T) string {
	t.Helper()
	p := rig.File(t, f.name, f.clip)
	if f.then == nil {
		return p
	}
	out := filepath.Join(t.TempDir(), f.name)
	args := []string{"-nostdin", "-v", "error"}
	if f.then[0] == "-ss" {
		args, f.then = append(args, f.then[:2]...), f.then[2:]
	}
	args = append(args, "-i", p)
	if slices.Contains(f.then, "0:a") { // the sound of the same file, later
		args = append(args, "-itsoffset", "0.5", "-i", p)
		f.then = []string{"-map", "0:v", "-map", "1:a"}
	}
	args = append(append(append(args, f.then...), "-c", "copy"), out)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if said, err := exec.CommandContext(ctx, rig.FFmpeg(t), args...).CombinedOutput(); err != nil {
		t.Fatalf("ffmpeg: %v: %s", err, said)
	}
	return out
}

// TestFiles makes assets of files of every kind and plays them: each picture and its time is what the file has.
func TestFiles(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		for name, f := range films() {
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				f.run(t, s)
			})
		}
	})
}

func (f film) run(t *testing.T, s *rig.Server) {
	file := f.make(t)
	base := rig.Files(t, map[string]string{f.name: file})
	a := s.CreateAsset(t, base+"/"+f.name)
	if code, _, _ := s.Get(t, s.PlayURL(a.Text("playback_ids.0.id"))); code != http.StatusPreconditionFailed &&
		code != http.StatusOK {
		t.Errorf("playback of an asset that is being made: status %d", code)
	}
	a = s.AwaitAsset(t, a.Text("id"), "ready", patience, rig.Ready)
	url := s.PlayURL(a.Text("playback_ids.0.id"))
	r := checkBut(t, "asset", f.but, hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes",
		"segment-duration")
	for _, v := range r.Renditions {
		if !v.Ended || v.Discontinuities != 0 {
			t.Errorf("%s: ended %t, %d discontinuities", v.URL, v.Ended, v.Discontinuities)
		}
	}
	source, have := frames(t, file), frames(t, url)
	f.compare(t, "video", source["video"], have["video"])
	if longest := max(span(source["video"]), span(source["audio"])); math.Abs(a.Number("duration")-longest) > 0.15 {
		t.Errorf("duration %.3f s, the file lasts %.3f", a.Number("duration"), longest)
	}
	f.fields(t, a)
	if f.clip.Flash && !slices.Contains(f.then, "0:a") {
		inStep(t, url, 6)
	}
	if f.rotated {
		if _, _, master := s.Get(t, url); !strings.Contains(string(master), "RESOLUTION=180x320") {
			t.Errorf("the multivariant playlist of a film that is to be turned:\n%s", master)
		}
	}
}

// fields checks what the API says of the asset.
func (f film) fields(t *testing.T, a rig.Object) {
	t.Helper()
	types := map[string]bool{}
	for _, track := range a.List("tracks") {
		types[track.Text("type")] = true
		if track.Text("type") == "video" && f.rotated &&
			(track.Number("max_width") != 180 || track.Number("max_height") != 320) {
			t.Errorf("rotated video: %v", track)
		}
	}
	if types["video"] == f.clip.NoVideo || types["audio"] == f.clip.NoAudio {
		t.Errorf("tracks %v", a["tracks"])
	}
	want := map[bool]string{false: "16:9", true: "9:16"}[f.rotated]
	if f.clip.NoVideo {
		want = ""
	}
	if a.Text("aspect_ratio") != want || a.Text("progress.state") != "completed" ||
		a.Text("ingest_type") != "on_demand_url" {
		t.Errorf("asset: %v", a)
	}
}

// compare holds the pictures' times against the file's.
func (f film) compare(t *testing.T, kind string, want, have []float64) {
	t.Helper()
	if len(want) != len(have) && f.frames == 0 {
		t.Errorf("%s: %d frames, the file has %d", kind, len(have), len(want))
		return
	}
	if len(want) == 0 || len(have) < len(want) {
		if len(want) > 0 {
			t.Errorf("%s: %d frames, the file shows %d", kind, len(have), len(want))
		}
		return
	}
	have = have[len(have)-len(want):] // an edit list hides what is in front
	for i := range want {
		if apart := (have[i] - have[0]) - (want[i] - want[0]); math.Abs(apart) > 0.002 {
			t.Errorf("%s: frame %d is %.4f s after the first, in the file %.4f", kind, i, have[i]-have[0],
				want[i]-want[0])
			return
		}
	}
}

// frames decodes a file or a presentation and gives the times of what is shown and heard, in seconds.
func frames(t *testing.T, input string) map[string][]float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	probe := filepath.Join(filepath.Dir(rig.FFmpeg(t)), "ffprobe")
	out, err := exec.CommandContext(ctx, probe, "-v", "error", "-show_entries", "frame=media_type,pts_time", "-of",
		"csv=p=0", input).CombinedOutput()
	if err != nil {
		t.Fatalf("ffprobe %s: %v: %s", input, err, out)
	}
	list := map[string][]float64{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if len(fields) < 2 || fields[1] == "N/A" {
			continue
		}
		if fields[0] == "video" || fields[0] == "audio" {
			list[fields[0]] = append(list[fields[0]], number(t, fields[1]))
		}
	}
	return list
}

func span(times []float64) float64 {
	if len(times) < 2 {
		return 0
	}
	n := len(times)
	return times[n-1] - times[0] + (times[n-1]-times[0])/float64(n-1)
}

// TestRefusedFiles gives what can't be played, and wants a sentence that says so.
func TestRefusedFiles(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{})
	c := rig.Clip{Size: "320x180", Kbit: 300, Seconds: 4}
	whole := content(t, "a.mp4", rig.Clip{
		Size: "320x180", Kbit: 300, Seconds: 4, More: []string{"-movflags", "+faststart"},
	})
	last := content(t, "b.mp4", c)
	for name, tt := range map[string]struct {
		file, data string
		want       []string // in the sentence
	}{
		"web page": {
			file: "a.html", data: "<!doctype html><html><body>404</body></html>", want: []string{"web page"},
		},
		"playlist": {
			file: "a.m3u8", data: "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:4,\na.ts\n", want: []string{"playlist"},
		},
		"subtitles": {file: "a.srt", data: numbered(5), want: []string{"text"}},
		"nonsense": {
			file: "a.bin", data: strings.Repeat("\x01\x02nonsense", 1000), want: []string{"format"},
		},
		"nothing":                    {file: "a.mp4", data: "", want: []string{"empty"}},
		"cut off with moov at end":   {file: "a.mp4", data: string(last[:len(last)/2]), want: []string{"moov"}},
		"cut off with moov in front": {file: "a.mp4", data: string(whole[:len(whole)/2]), want: []string{"cut off"}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			base := rig.Files(t, map[string]string{tt.file: tt.data})
			errored(t, s, base+"/"+tt.file, tt.want...)
		})
	}
	t.Run("not there", func(t *testing.T) {
		rig.Parallel(t)
		errored(t, s, rig.Files(t, nil)+"/a.mp4", "404")
	})
}

// TestPrivateAddress asks for a file on this machine, which is refused unless it is allowed.
func TestPrivateAddress(t *testing.T) {
	rig.Parallel(t)
	s := rig.Start(t, rig.Options{Closed: true})
	base := rig.Files(t, map[string]string{"a.mp4": "x"})
	at := func(host string) string { return strings.Replace(base, "127.0.0.1", host, 1) + "/a.mp4" }
	for host, want := range map[string]string{
		"127.0.0.1": "not allowed", "[::ffff:127.0.0.1]": "not allowed",
		"localhost": "can't be found, or its address is not public", // which of the two is nobody's business
	} {
		errored(t, s, at(host), want, "--fetch-allow")
	}
}

// errored makes an asset of a URL that must fail with a sentence that has the wanted words.
func errored(t *testing.T, s *rig.Server, url string, want ...string) {
	t.Helper()
	a := s.AwaitAsset(t, s.CreateAsset(t, url).Text("id"), "errored", patience, func(o rig.Object) bool {
		return o.Text("status") != "preparing"
	})
	said := strings.Join(a.Texts("errors.messages"), " ")
	if a.Text("status") != "errored" || a.Text("errors.type") != "invalid_input" || len(said) < 15 {
		t.Errorf("%s: %v", url, a)
	}
	for _, w := range want {
		if !strings.Contains(said, w) {
			t.Errorf("%s: %q does not say %q", url, said, w)
		}
	}
	t.Logf("%s", said)
	if code, _, _ := s.Get(t, s.PlayURL(a.Text("playback_ids.0.id"))); code != http.StatusNotFound {
		t.Errorf("playback of an errored asset: status %d", code)
	}
}

// TestClipOutlivesItsSource clips a finished asset of each kind of storage and deletes the source.
func TestClipOutlivesItsSource(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		s := rig.Start(t, rig.Options{Pair: p})
		for _, name := range []string{"a.mp4", "a.ts"} {
			t.Run(name, func(t *testing.T) {
				rig.Parallel(t)
				file := rig.File(t, name, rig.Clip{Size: "320x180", Kbit: 300, GOP: 1, Flash: true, Seconds: 20})
				a := s.CreateAsset(t, rig.Files(t, map[string]string{name: file})+"/"+name)
				a = s.AwaitAsset(t, a.Text("id"), "ready", patience, rig.Ready)
				var clips []rig.Object
				for _, scheme := range []string{"mux", "svc"} {
					_, o := s.Do(t, "POST", "/video/v1/assets", rig.Object{
						"input": rig.Object{
							"url": scheme + "://assets/" + a.Text("id"), "start_time": 5, "end_time": 13,
						},
						"playback_policy": "public",
					})
					clips = append(clips, s.AwaitAsset(t, o.Text("data.id"), "clipped", patience, rig.Ready))
				}
				if code, o := s.Do(t, "DELETE", "/video/v1/assets/"+a.Text("id"), nil); code != http.StatusNoContent {
					t.Fatalf("delete: status %d: %v", code, o)
				}
				gone(t, s, s.PlayURL(a.Text("playback_ids.0.id")))
				if code, o := s.Do(t, "DELETE", "/video/v1/assets/"+clips[1].Text("id"),
					nil); code != http.StatusNoContent {
					t.Fatalf("delete: status %d: %v", code, o)
				}
				gone(t, s, s.PlayURL(clips[1].Text("playback_ids.0.id")))
				c := clips[0]
				if d := c.Number("duration"); d < 8 || d > 17 || c.Text("source_asset_id") != a.Text("id") ||
					c.Text("ingest_type") != "on_demand_clip" {
					t.Errorf("clip of 8 s: %v", c)
				}
				url := s.PlayURL(c.Text("playback_ids.0.id"))
				check(t, "clip", hlscheck.Options{URL: url, Decoder: rig.FFmpeg(t)}, "tfdt", "decodes", "align-ends")
				inStep(t, url, 7)
			})
		}
		nothingLeft(t, s) // behind the parallel ones
	})
}

// nothingLeft deletes every asset in the end, and waits until no media are left.
func nothingLeft(t *testing.T, s *rig.Server) {
	t.Helper()
	t.Cleanup(func() {
		_, list := s.Do(t, "GET", "/video/v1/assets?limit=100", nil)
		for _, a := range list.List("data") {
			s.Do(t, "DELETE", "/video/v1/assets/"+a.Text("id"), nil)
		}
		end := time.Now().Add(patience)
		for {
			left := s.Left(t)
			if len(left) == 0 {
				return
			}
			if time.Now().After(end) {
				t.Errorf("%d files are left after every asset was deleted: %v", len(left), left)
				return
			}
			rig.Pause(100 * time.Millisecond)
		}
	})
}
