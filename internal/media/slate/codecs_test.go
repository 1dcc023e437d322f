package slate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/slate"
	"millrace/internal/programtest"
)

// clips are how an encoder's media is made in each codec: 40 pictures, a key frame each second, every one brighter than
// the one before.
var clips = map[frame.Codec][]string{
	frame.H264: {"-c:v", "libx264", "-preset", "veryfast", "-bf", "2"},
	frame.HEVC: {
		"-c:v", "libx265", "-preset", "ultrafast", "-tag:v", "hvc1", "-x265-params",
		"log-level=error:bframes=2:pools=none:frame-threads=1:open-gop=0:keyint=30",
	},
	frame.VP9: {"-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"},
	frame.AV1: {"-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"},
}

const clipFPS, clipLength, clipWidth, clipHeight = 30, 40, 320, 180

// clip returns an encoder's media of a codec.
func clip(t *testing.T, codec frame.Codec) (frame.Config, []frame.Frame) {
	t.Helper()
	source := fmt.Sprintf(
		"color=black:size=%dx%d:rate=%d,format=gray,geq=lum=20+5*N,scale=out_range=tv:in_range=tv,format=yuv420p",
		clipWidth, clipHeight, clipFPS)
	args := append([]string{
		"-f", "lavfi", "-i", source, "-frames:v", strconv.Itoa(clipLength), "-g", "30",
	}, clips[codec]...)
	args = append(args, "-movflags", "+frag_keyframe+empty_moov+default_base_moof", "-use_editlist", "0")
	data, err := os.ReadFile(programtest.SharedMedia(t, "clip.mp4", args...))
	if err != nil {
		t.Fatal(err)
	}
	r := cmaf.NewReader(bytes.NewReader(data), cmaf.ReaderOptions{MaxHeader: 1 << 20, MaxFragment: 1 << 24})
	tracks, err := r.Tracks()
	if err != nil {
		t.Fatal(err)
	}
	var frames []frame.Frame
	for {
		fragments, err := r.Next()
		if errors.Is(err, io.EOF) {
			return configOf(t, &tracks[0], frames[0].Data), frames
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range fragments {
			for _, s := range f.Samples {
				n := len(frames)
				lag := time.Duration(float64(s.CompositionOffset) / float64(tracks[0].Timescale) * float64(time.Second))
				at := time.Duration(n) * time.Second / clipFPS
				frames = append(frames, frame.Frame{
					Kind: frame.Video, DTS: at, PTS: at + lag, Duration: time.Second / clipFPS, Key: s.Sync,
					Data: s.Data,
				})
			}
		}
	}
}

// configOf reads a clip's parameters.
func configOf(t *testing.T, track *cmaf.Track, key []byte) frame.Config {
	t.Helper()
	c, err := slate.Parameters(track, key)
	if err != nil {
		t.Fatal(err)
	}
	c.Width, c.Height = clipWidth, clipHeight
	return c
}

// nowhere takes a stretch.
type nowhere struct{}

func (nowhere) Configure(frame.Config) error { return nil }
func (nowhere) Discontinuity(string) error   { return nil }
func (nowhere) Rate(float64, bool) error     { return nil }
func (nowhere) Write(frame.Frame) error      { return nil }
func (nowhere) Cut(bool)                     {}
func (nowhere) Close(error) error            { return nil }

// TestEveryCodec has ffmpeg make the slate, and the last picture of an encoder's media, in each codec; decoded, the
// last picture is the one that was presented last, and media, last picture, slate and media again are one stream in
// which each picture has its time.
func TestEveryCodec(t *testing.T) {
	t.Parallel()
	for codec := range clips {
		t.Run(string(codec), func(t *testing.T) {
			t.Parallel()
			e := engine(t)
			config, frames := clip(t, codec)
			shape := slate.Shape{Codec: codec, Width: clipWidth, Height: clipHeight, FPS: clipFPS}
			picture, err := slate.Default(clipWidth, clipHeight)
			if err != nil {
				t.Fatal(err)
			}
			var still, last *slate.Still
			job := encode.StillArgs{Codec: codec, Picture: picture, FPS: clipFPS, Frames: 30}
			if err = e.Still(t.Context(), job, func(mp4 io.Reader) (err error) {
				still, err = slate.Read(mp4, shape)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			g := gap(t, config, frames)
			var written [][]byte
			for _, f := range frames {
				if f.Key {
					f.Data = slate.WithSets(&config, f.Data)
				}
				written = append(written, f.Data, []byte("a picture that is repeated"))
			}
			if g.Find(written[2*31:]) || !g.Find(written) {
				t.Fatal("pictures are found that are not there, or not those that are")
			}
			began := time.Now()
			// a busy machine's time does not count: one that comes late would be of no use
			synctest.Test(t, func(t *testing.T) {
				err = e.Last(t.Context(), encode.LastArgs{Codec: codec, At: g.Last()},
					func(_ context.Context, w io.Writer) error { return g.MP4(w) },
					func(mp4 io.Reader) (err error) { last, err = slate.Read(mp4, shape); return err })
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the last picture is there after %v", time.Since(began))
			if len(still.Samples) != 30 || len(last.Samples) != 1 {
				t.Fatalf("%d pictures of slate, %d last ones", len(still.Samples), len(last.Samples))
			}
			samples := media(frames)
			samples = append(samples, cmaf.Sample{Duration: 3000, Sync: true, Data: last.Samples[0]})
			for i, s := range still.Samples {
				samples = append(samples, cmaf.Sample{Duration: 3000, Sync: i == 0, Data: s})
			}
			again := media(frames) // as behind any slate, with its parameter sets
			again[0].Data = slate.WithSets(&config, again[0].Data)
			joined(t, config, append(samples, again...))
		})
	}
}

// gap plays frames to a Writer and has it notice that nothing follows.
func gap(t *testing.T, config frame.Config, frames []frame.Frame) slate.Group {
	t.Helper()
	now := time.Now()
	f := slate.New(slate.Options{
		Open:  func(bool, time.Time) slate.Output { return nowhere{} },
		Limit: func() time.Duration { return time.Second },
		Now:   func() time.Time { return now }, Broken: func(err error) { t.Error(err) },
		Lasts: func() time.Duration { return 0 }, Sooner: func() {},
	})
	f.Allow(true)
	p := f.Attach()
	if err := errors.Join(p.Configure(config), p.Rate(clipFPS, true)); err != nil {
		t.Fatal(err)
	}
	for _, fr := range frames {
		fr.Received = now
		if err := p.Write(fr); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := f.Gap(); ok {
		t.Error("a gap at once")
	}
	now = now.Add(time.Second)
	g, ok := f.Gap()
	if _, again := f.Gap(); !ok || again {
		t.Fatalf("a gap: %t, and again: %t", ok, again)
	}
	return g
}

// media is an encoder's frames as samples of 90 kHz.
func media(frames []frame.Frame) []cmaf.Sample {
	var out []cmaf.Sample
	for _, f := range frames {
		out = append(out, cmaf.Sample{
			Duration: 3000, CompositionOffset: int32((f.PTS - f.DTS + time.Microsecond*50) * 9 / 100000), Sync: f.Key,
			Data: f.Data,
		})
	}
	return out
}

// joined decodes media, its last picture, 30 of slate and media.
func joined(t *testing.T, config frame.Config, samples []cmaf.Sample) {
	t.Helper()
	head, err := cmaf.Init(config, 90000)
	if err != nil {
		t.Fatal(err)
	}
	// All presented as late as the encoder's pictures are, as the recording has it.
	lag := samples[0].CompositionOffset
	for i := clipLength; i < clipLength+31; i++ {
		samples[i].CompositionOffset = lag
	}
	path := filepath.Join(t.TempDir(), "joined.mp4")
	if err = os.WriteFile(path, cmaf.AppendFragment(head, 1, cmaf.TrackID, 0, samples), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ffmpeg", "-nostdin", "-v", "error", "-copyts", "-i", path, "-fps_mode",
		"passthrough",
		"-vf", "scale=in_range=tv:out_range=tv,format=gray,showinfo,scale=1:1:flags=area", "-f", "rawvideo", "-")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.Args[3] = "info" // showinfo's words
	if err := cmd.Run(); err != nil {
		t.Fatalf("ffmpeg says: %v: %s", err, said.String())
	}
	const whole = 2*clipLength + 31
	if out.Len() != whole {
		t.Fatalf("%d pictures decoded, want %d: %s", out.Len(), whole, said.String())
	}
	n := 0
	for line := range strings.Lines(said.String()) {
		_, rest, ok := strings.Cut(line, "pts_time:")
		if !ok || !strings.Contains(line, "Parsed_showinfo") {
			continue
		}
		at, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
		if want := float64(n)/clipFPS + float64(lag)/90000; err != nil || at < want-0.001 || at > want+0.001 {
			t.Errorf("picture %d is shown at %.4f s, want %.4f (%v)", n, at, want, err)
		}
		n++
	}
	if n != whole {
		t.Errorf("%d times of %d pictures", n, whole)
	}
	got := out.Bytes()
	apart := func(i, j int) int { return int(got[i]) - int(got[j]) }
	const last, again = clipLength - 1, clipLength + 31
	if apart(last, 0) < 100 || apart(last, last-1) < 3 ||
		max(apart(last+1, last), apart(last, last+1), apart(again, 0), apart(0, again)) > 2 {
		t.Errorf("the first picture has a brightness of %d, the last ones %d and %d, what stands for the last one "+
			"%d, the first one again %d",
			got[0], got[last-1], got[last], got[last+1], got[again])
	}
}
