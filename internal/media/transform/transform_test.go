package transform_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/leaktest"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/vp8"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/overlay"
	"millrace/internal/media/transform"
	"millrace/internal/programtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// output notes what a packager would get.
type output struct {
	mu     sync.Mutex
	calls  []string // all but frames of a kind in a row, which count as one
	frames [2][]frame.Frame
	config frame.Config
}

func (o *output) note(call string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := len(o.calls); n == 0 || o.calls[n-1] != call {
		o.calls = append(o.calls, call)
	}
	return nil
}

func (o *output) Configure(c frame.Config) error {
	if c.Kind == frame.Video {
		o.config = c
	}
	return o.note("configure " + string(c.Codec))
}
func (o *output) Discontinuity(reason string) error  { return o.note("discontinuity: " + reason) }
func (o *output) Rate(fps float64, fixed bool) error { return o.note(fmt.Sprint("rate ", fps, fixed)) }
func (o *output) Close(cause error) error            { return o.note(fmt.Sprint("close: ", cause)) }
func (o *output) Write(f frame.Frame) error {
	o.mu.Lock()
	o.frames[f.Kind] = append(o.frames[f.Kind], f)
	o.mu.Unlock()
	return o.note(f.Kind.String())
}

func (o *output) said() string { return strings.Join(o.calls, ", ") }

var quiet = slog.New(slog.DiscardHandler)

// start runs a Transform until the test closes it.
func start(t *testing.T, o transform.Options) *transform.Transform {
	t.Helper()
	o.Logger = quiet
	tr := transform.New(o)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { ended <- tr.Run(ctx) }()
	t.Cleanup(func() {
		if t.Failed() { // it may not be closed
			cancel()
		}
		if err := <-ended; err != nil && !t.Failed() {
			t.Error(err)
		}
		cancel()
	})
	return tr
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ffmpeg(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ffmpeg",
		append([]string{"-nostdin", "-v", "error"}, args...)...).Output()
	if err != nil {
		t.Fatalf("ffmpeg %v: %v", args, err)
	}
	return out
}

// made is what ffmpeg makes of the arguments, in a container that the name's ending chooses.
func made(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(programtest.SharedMedia(t, name, args...))
	must(t, err)
	return data
}

func engine(t *testing.T) *encode.Engine {
	t.Helper()
	program := programtest.Path(t, "ffmpeg")
	e, err := encode.NewEngine(encode.Options{
		FFmpeg: program, FFprobe: program, Budget: encode.NewBudget(encode.BudgetOptions{Cores: 2}),
	})
	must(t, err)
	return e
}

const picture = "testsrc2=size=320x180:rate=30:duration=2"

// filmed is two seconds of H.264 in access units, with a key frame each second.
func encodedPictures(t *testing.T, args ...string) (frame.Config, []frame.Frame) {
	t.Helper()
	args = append([]string{
		"-f", "lavfi", "-i", picture, "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-g", "30",
	}, args...)
	out := made(t, "film.mp4", append(args, "-movflags", "+frag_keyframe+empty_moov+default_base_moof")...)
	r := cmaf.NewReader(bytes.NewReader(out), cmaf.ReaderOptions{})
	tracks, err := r.Tracks()
	must(t, err)
	config := tracks[0].Config
	if at := bytes.Index(out, []byte("hvcC")); at > 0 {
		vps, sps, pps, _, err := hevc.ParseHVCC(out[at+4:][:int(binary.BigEndian.Uint32(out[at-4:]))-8])
		must(t, err)
		config, err = hevc.TrackConfig(vps[0], sps[0], pps[0])
		must(t, err)
	}
	var frames []frame.Frame
	at := func(ticks int64) time.Duration {
		return time.Duration(ticks) * time.Second / time.Duration(tracks[0].Timescale)
	}
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			return config, frames
		}
		must(t, err)
		for _, f := range fragments {
			dts := int64(f.BaseMediaDecodeTime)
			for _, s := range f.Samples {
				frames = append(frames, frame.Frame{
					DTS: at(dts), PTS: at(dts + int64(s.CompositionOffset)),
					Duration: at(dts+int64(s.Duration)) - at(dts), Key: s.Sync, Data: bytes.Clone(s.Data),
					Received: time.Unix(1000, 0).Add(at(dts)),
				})
				dts += int64(s.Duration)
			}
		}
	}
}

// send gives frames in as a session does, a piece of sound behind each picture.
func send(t *testing.T, tr *transform.Transform, frames []frame.Frame, from time.Duration) {
	t.Helper()
	for _, f := range frames {
		f.DTS, f.PTS = f.DTS+from, f.PTS+from
		must(t, tr.Write(f))
		must(t,
			tr.Write(frame.Frame{
				Kind: frame.Audio, DTS: f.DTS, PTS: f.DTS, Duration: f.Duration, Key: true, Data: []byte("sound"),
				Received: f.Received,
			}))
	}
}

// compare holds what came out against what went in: each picture at its time, key frames where they were.
func compare(t *testing.T, got, sent []frame.Frame, from time.Duration) {
	t.Helper()
	want := slices.Clone(sent)
	slices.SortFunc(want, func(a, b frame.Frame) int { return int(a.PTS - b.PTS) })
	if len(got) != len(want) {
		t.Fatalf("%d pictures of %d", len(got), len(want))
	}
	for i, f := range got {
		if off := f.PTS - want[i].PTS - from; off > time.Millisecond || off < -time.Millisecond || f.DTS != f.PTS ||
			f.Key != want[i].Key {
			t.Errorf("picture %d: %v (key %t), want %v (key %t)", i, f.PTS, f.Key, want[i].PTS+from, want[i].Key)
		}
		if i > 0 && f.DTS < got[i-1].DTS+got[i-1].Duration {
			t.Errorf("picture %d at %v overlaps the last one", i, f.DTS)
		}
	}
}

// TestMarked has pictures of several kinds marked, over a discontinuity, and looks at what comes out.
func TestMarked(t *testing.T) {
	t.Parallel()
	e := engine(t)
	for name, args := range map[string][]string{
		"B-frames":    {"-bf", "2"},
		"no B-frames": {"-bf", "0"},
		"HEVC": {
			"-c:v", "libx265", "-x265-params", "log-level=none:keyint=30:min-keyint=30:open-gop=0", "-tag:v", "hvc1",
		},
		"odd rate": {"-vf", "fps=24000/1001", "-g", "24"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, frames := encodedPictures(t, args...)
			var out output
			tr := start(t, transform.Options{
				Output: &out, Encoder: e,
				Layers: func(context.Context) []overlay.Layer { return []overlay.Layer{red()} },
			})
			must(t, tr.Configure(config))
			must(t, tr.Rate(30, true))
			must(t, tr.Configure(frame.Config{Kind: frame.Audio, Codec: frame.AAC}))
			send(t, tr, frames, 0)
			const later = 10 * time.Second
			must(t, tr.Discontinuity("a jump"))
			send(t, tr, frames, later)
			must(t, tr.Close(io.EOF))
			n := len(frames)
			compare(t, out.frames[frame.Video][:min(n, len(out.frames[0]))], frames, 0)
			compare(t, out.frames[frame.Video][n:], frames, later)
			if got := len(out.frames[frame.Audio]); got != 2*n {
				t.Errorf("%d pieces of sound, want %d", got, 2*n)
			}
			if said := out.said(); !strings.HasPrefix(said, "rate 30 true, configure aac, configure h264, video, ") ||
				strings.Count(said, "configure h264") != 1 ||
				!strings.Contains(said, ", discontinuity: a jump, video, ") ||
				!strings.HasSuffix(said, ", close: EOF") {
				t.Error(said)
			}
			if out.config.Width != 320 || out.config.Height != 180 {
				t.Errorf("%dx%d", out.config.Width, out.config.Height)
			}
			looked(t, out.config, out.frames[frame.Video][n-1-15:n])
		})
	}
}

// red is a mark for a corner.
func red() overlay.Layer {
	return overlay.Layer{
		Settings: overlay.Settings{
			HorizontalAlign: "right", Width: "300px", Height: "100px", HorizontalMargin: "2%", VerticalMargin: "1%",
		},
		Load: func(context.Context) (image.Image, error) {
			red := image.NewRGBA(image.Rect(0, 0, 3, 1))
			draw.Draw(red, red.Rect, image.NewUniform(color.RGBA{R: 0xff, A: 0xff}), image.Point{}, draw.Src)
			return red, nil
		},
	}
}

// TestUnevenTimes has pictures encoded whose times are on no grid: each comes out, at its time.
func TestUnevenTimes(t *testing.T) {
	t.Parallel()
	e := engine(t)
	config, frames := encodedPictures(t, "-bf", "0")
	vp8Config, vp8Frames := encodedVP8(t)
	stamps := map[string]func(n int, at time.Duration) time.Duration{
		"each 5 ms off": func(n int, at time.Duration) time.Duration {
			return at + 5*time.Millisecond + time.Duration(n*7%11-5)*time.Millisecond
		},
		"one step of 11 ms": func(n int, at time.Duration) time.Duration {
			if n >= 20 {
				at += 11 * time.Millisecond
			}
			return at
		},
		"a loop with seams of 78 ms": func(n int, at time.Duration) time.Duration {
			return at + time.Duration(n/15)*(78*time.Millisecond-time.Second/30)
		},
		"half a millisecond apart": func(n int, at time.Duration) time.Duration {
			return at/66 + time.Duration(n%2)*time.Millisecond/5
		},
	}
	for name, stamp := range stamps {
		for what, source := range map[string]struct {
			config frame.Config
			frames []frame.Frame
		}{"H.264": {config, frames}, "VP8": {vp8Config, vp8Frames}} {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				uneven := slices.Clone(source.frames)
				for n := range uneven {
					uneven[n].DTS = stamp(n, uneven[n].DTS)
					uneven[n].PTS = uneven[n].DTS
				}
				for n := range uneven[1:] {
					uneven[n].Duration = uneven[n+1].DTS - uneven[n].DTS
				}
				var out output
				tr := start(t, transform.Options{
					Output: &out, Encoder: e,
					Layers: func(context.Context) []overlay.Layer { return []overlay.Layer{red()} },
				})
				must(t, tr.Configure(source.config))
				must(t, tr.Rate(30, false))
				send(t, tr, uneven, 0)
				must(t, tr.Close(nil))
				compareExactly(t, out.frames[frame.Video], uneven)
			})
		}
	}
}

func compareExactly(t *testing.T, got, sent []frame.Frame) {
	t.Helper()
	if len(got) != len(sent) {
		t.Errorf("%d pictures of %d", len(got), len(sent))
	}
	for i, f := range got[:min(len(got), len(sent))] {
		if want := sent[i]; f.PTS != want.PTS || f.DTS != want.PTS || f.Duration != want.Duration || f.Key != want.Key {
			t.Errorf("picture %d: %v for %v (key %t), want %v for %v (key %t)", i, f.PTS, f.Duration, f.Key, want.PTS,
				want.Duration, want.Key)
		}
	}
}

// looked decodes pictures and finds the mark in their corner, but not elsewhere.
func looked(t *testing.T, c frame.Config, frames []frame.Frame) {
	t.Helper()
	for len(frames) > 0 && !frames[0].Key {
		frames = frames[1:]
	}
	if len(frames) == 0 {
		return
	}
	init, err := cmaf.Init(c, 90000)
	must(t, err)
	var samples []cmaf.Sample
	for _, f := range frames {
		samples = append(samples, cmaf.Sample{Duration: 3000, Sync: f.Key, Data: f.Data})
	}
	path := filepath.Join(t.TempDir(), "out.mp4")
	must(t, os.WriteFile(path, cmaf.AppendFragment(init, 1, cmaf.TrackID, 0, samples), 0o600))
	pixels := ffmpeg(t, "-i", path, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", "pipe:1")
	at := func(x, y int) []byte { return pixels[3*(y*320+x):][:3] }
	if p := at(300, 12); p[0] < 180 || p[1] > 90 || p[2] > 90 {
		t.Errorf("no mark in the corner: %v", p)
	}
}

// filmedVP8 is two seconds of VP8, with a key frame each second.
func encodedVP8(t *testing.T) (frame.Config, []frame.Frame) {
	t.Helper()
	file := made(t, "film.ivf", "-f", "lavfi", "-i", picture, "-pix_fmt", "yuv420p", "-c:v", "libvpx", "-deadline",
		"realtime", "-lag-in-frames", "0",
		"-auto-alt-ref", "0", "-g", "30")
	var frames []frame.Frame
	for n, b := 0, file[32:]; len(b) >= 12; n++ {
		size := int(binary.LittleEndian.Uint32(b))
		at := time.Duration(n) * time.Second / 30
		frames = append(frames, frame.Frame{
			DTS: at, PTS: at, Duration: time.Second / 30, Key: vp8.IsKey(b[12 : 12+size]), Data: b[12 : 12+size],
			Received: time.Unix(1000, 0).Add(at),
		})
		b = b[12+size:]
	}
	config, err := vp8.TrackConfig(frames[0].Data)
	must(t, err)
	return config, frames
}

// TestVP8 becomes H.264 without being asked to.
func TestVP8(t *testing.T) {
	t.Parallel()
	e := engine(t)
	config, frames := encodedVP8(t)
	var out output
	tr := start(t, transform.Options{Output: &out, Encoder: e})
	must(t, tr.Configure(config))
	must(t, tr.Rate(30, true))
	send(t, tr, frames, 0)
	must(t, tr.Close(nil))
	compare(t, out.frames[frame.Video], frames, 0)
	if out.config.Codec != frame.H264 || h264.CodecString(out.config.SPS) == "" {
		t.Errorf("%+v", out.config)
	}
}

// fake is an encoder that does as it is told.
type fake func(ctx context.Context, in io.Reader) error

func (f fake) Live(
	ctx context.Context, _ encode.LiveArgs, input func(context.Context, io.Writer) error,
	_ func(context.Context, io.Reader) error,
) error {
	r, w := io.Pipe()
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_ = w.CloseWithError(input(ctx, w))
	}()
	err := f(ctx, r)
	_ = r.CloseWithError(io.ErrClosedPipe)
	<-fed
	return err
}

func still(n int) []frame.Frame {
	out := make([]frame.Frame, n)
	for i := range out {
		at := time.Duration(i) * 100 * time.Millisecond
		out[i] = frame.Frame{
			DTS: at, PTS: at, Duration: 100 * time.Millisecond, Key: true, Data: make([]byte, 1000),
			Received: time.Unix(1000, 0).Add(at),
		}
	}
	return out
}

var vp8Config = frame.Config{Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180}

// TestNotNeeded: what players can play goes straight through, on the caller's goroutine.
func TestNotNeeded(t *testing.T) {
	t.Parallel()
	var out output
	tr := start(t, transform.Options{Output: &out})
	must(t, tr.Configure(frame.Config{Kind: frame.Video, Codec: frame.H264}))
	must(t, tr.Rate(25, false))
	send(t, tr, still(2), 0)
	must(t, tr.Discontinuity("why"))
	must(t, tr.Close(nil))
	if said := out.said(); said !=
		"configure h264, rate 25 false, video, audio, video, audio, discontinuity: why, close: <nil>" {
		t.Error(said)
	}
}

// TestEncoderThatDies is started again, but not for ever.
func TestEncoderThatDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		var out output
		tr := start(t, transform.Options{Output: &out, Encoder: fake(func(context.Context, io.Reader) error {
			runs++
			return errors.New("out of luck")
		})})
		must(t, tr.Configure(vp8Config))
		var err error
		sent := 0
		for _, f := range still(20) {
			if err = tr.Write(f); err != nil {
				break
			}
			sent++
			synctest.Wait()
		}
		if !errors.Is(err, transform.ErrPicture) || runs != 3 {
			t.Errorf("%v after %d pictures and %d encoders", err, sent, runs)
		}
		if tr.Close(err) == nil {
			t.Error("closed without an error")
		}
		if !strings.Contains(out.said(), "close: ") {
			t.Error("the output is not closed: " + out.said())
		}
	})
}

// TestEncoderThatHangs is ended, and the publication with it.
func TestEncoderThatHangs(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]fake{
		"reads nothing": func(ctx context.Context, _ io.Reader) error {
			<-ctx.Done()
			return context.Cause(ctx)
		},
		"says nothing": func(ctx context.Context, in io.Reader) error {
			_, _ = io.Copy(io.Discard, in)
			<-ctx.Done()
			return context.Cause(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out output
				tr := start(t, transform.Options{Output: &out, Encoder: f})
				must(t, tr.Configure(vp8Config))
				var err error
				for n, f := range still(3000) {
					f.Received = time.Now()
					if err = tr.Write(f); err != nil {
						break
					}
					if n > 1000 {
						t.Fatal("it goes on for ever")
					}
					time.Sleep(100 * time.Millisecond)
				}
				_ = tr.Close(err)
				if !errors.Is(err, transform.ErrPicture) {
					t.Error(err)
				}
			})
		})
	}
}

// TestEncoderThatIsSlow costs pictures: memory has its bound.
func TestEncoderThatIsSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out output
		release := make(chan struct{})
		tr := start(t, transform.Options{Output: &out, Encoder: fake(func(_ context.Context, in io.Reader) error {
			<-release
			_, _ = io.Copy(io.Discard, in)
			return nil
		})})
		must(t, tr.Configure(vp8Config))
		big := make([]byte, 1<<20)
		for _, f := range still(40) { // within the encoder's patience
			f.Data, f.Received = big, time.Now()
			must(t, tr.Write(f))
			synctest.Wait()
		}
		if held := tr.Held(); held > 17<<20 || held < 15<<20 {
			t.Errorf("%d bytes are held", held)
		}
		close(release)
		_ = tr.Close(nil)
	})
}
