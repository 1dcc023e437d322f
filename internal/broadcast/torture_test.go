package broadcast_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/codec/aac"
	"millrace/internal/media/codec/av1"
	"millrace/internal/media/codec/h264"
	"millrace/internal/media/codec/hevc"
	"millrace/internal/media/codec/opus"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/playback/playbacktest"
	"millrace/internal/programtest"
)

// command runs a program and returns what it says; a complaint fails the test.
func command(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programtest.Path(t, name), args...)
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil || log.Len() > 0 {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, log.String())
	}
	return out
}

// recording is a track as an encoder made it.
type recording struct {
	config frame.Config
	frames []frame.Frame
}

// body is what the first box of a type holds, wherever it stands.
func body(t *testing.T, file []byte, typ string) []byte {
	t.Helper()
	at := bytes.Index(file, []byte(typ))
	if at < 4 {
		t.Fatalf("no %s", typ)
	}
	return file[at+4 : at-4+int(binary.BigEndian.Uint32(file[at-4:]))]
}

const recordedSeconds = 16 // seconds

func record(t *testing.T, config func(file []byte) (frame.Config, error), args ...string) recording {
	t.Helper()
	file, err := os.ReadFile(programtest.SharedMedia(t, "torture.mp4", append(args,
		"-movflags", "+frag_keyframe+empty_moov+default_base_moof+delay_moov", "-use_editlist", "0")...))
	if err != nil {
		t.Fatal(err)
	}
	c, err := config(file)
	if err != nil {
		t.Fatal(err)
	}
	fragments, err := cmaf.ParseFragments(file)
	if err != nil {
		t.Fatal(err)
	}
	k, scale := recording{config: c}, time.Duration(binary.BigEndian.Uint32(body(t, file, "mdhd")[12:]))
	for _, f := range fragments {
		at := int64(f.BaseMediaDecodeTime)
		for _, s := range f.Samples {
			dts := time.Duration(at) * time.Second / scale
			k.frames = append(k.frames, frame.Frame{
				Kind: c.Kind, DTS: dts, PTS: dts + time.Duration(s.CompositionOffset)*time.Second/scale, Key: s.Sync,
				Data: s.Data,
			})
			at += int64(s.Duration)
		}
	}
	return k
}

func picture(t *testing.T, size string, config func(file []byte) (frame.Config, error), encoder ...string) recording {
	t.Helper()
	return record(t, config, append([]string{
		"-f", "lavfi", "-i", fmt.Sprintf("testsrc2=size=%s:rate=25:duration=%d", size, recordedSeconds), "-pix_fmt",
		"yuv420p", "-g", "25",
	}, encoder...)...)
}

func sound(t *testing.T, rate int, config func(file []byte) (frame.Config, error), encoder ...string) recording {
	t.Helper()
	return record(t, config, append([]string{
		"-f", "lavfi", "-i",
		fmt.Sprintf("aevalsrc='random(0)*0.1+sin(t*t*500)*0.5':sample_rate=%d:duration=%d", rate, recordedSeconds),
		"-ac", "1",
	}, encoder...)...)
}

// recordings are what the torture is made of, by name.
func recordings(t *testing.T) map[string]recording {
	t.Helper()
	avc := func(file []byte) (frame.Config, error) {
		sps, pps, _, err := h264.ParseAVCC(body(t, file, "avcC"))
		if err != nil {
			return frame.Config{}, err
		}
		return h264.TrackConfig(sps[0], pps[0])
	}
	mpeg4 := func(rate byte) func([]byte) (frame.Config, error) {
		return func([]byte) (frame.Config, error) { return aac.TrackConfig([]byte{0x10 | rate>>1, rate<<7 | 0x08}) }
	}
	x264 := []string{"-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-threads", "1"}
	return map[string]recording{
		"H.264":       picture(t, "320x180", avc, x264...),
		"H.264 large": picture(t, "640x360", avc, append(x264, "-bf", "2")...),
		"HEVC": picture(t, "320x180", func(file []byte) (frame.Config, error) {
			vps, sps, pps, _, err := hevc.ParseHVCC(body(t, file, "hvcC"))
			if err != nil {
				return frame.Config{}, err
			}
			return hevc.TrackConfig(vps[0], sps[0], pps[0])
		}, "-c:v", "libx265", "-preset", "ultrafast", "-x265-params",
			"log-level=none:keyint=25:min-keyint=25:open-gop=0:pools=1:bframes=0"),
		"AV1": picture(t, "320x180", func(file []byte) (frame.Config, error) {
			header, err := av1.ParseConfig(body(t, file, "av1C"))
			if err != nil {
				return frame.Config{}, err
			}
			return av1.TrackConfig(header)
		}, "-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8"),
		"AAC":         sound(t, 48000, mpeg4(3), "-c:a", "aac"),
		"AAC at 44.1": sound(t, 44100, mpeg4(4), "-c:a", "aac"),
		"Opus": sound(t, 48000, func(file []byte) (frame.Config, error) {
			return opus.TrackConfig(body(t, file, "dOps"))
		}, "-c:a", "libopus", "-b:a", "32k"),
	}
}

// torturer feeds publications from files and remembers when what was to be seen and heard.
type torturer struct {
	w          *world
	recordings map[string]recording
	clock      time.Duration    // of the encoder, at the first second of the files
	meant      map[string]meant // by sample
	bytes      int
	plays      int
}

// meant is when a sample is to be presented, on the encoder's wall clock; samples of one play belong together.
type meant struct {
	at   time.Duration
	play int
}

// play sends some seconds of two files in time, as one encoder that stamps them with its clock. video comes later than
// audio by lag.
func (tt *torturer) play(e *encoder, video, audio string, from, long, lag time.Duration) {
	tt.w.t.Helper()
	v, a := tt.recordings[video], tt.recordings[audio]
	for _, k := range [...]recording{v, a} {
		if k.config.Kind == frame.Video || len(k.frames) > 0 {
			if err := e.sink.Configure(k.config); err != nil {
				tt.w.t.Errorf("configure %s: %v", k.config.Codec, err)
				return
			}
		}
	}
	type timed struct {
		frame.Frame
		due time.Duration
	}
	var all []timed
	for _, k := range [...]recording{v, a} {
		for _, f := range k.frames {
			if f.DTS >= from && f.DTS < from+long && (f.Kind == frame.Audio || f.DTS >= from+lag) {
				all = append(all, timed{f, f.DTS})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return int(a.due - b.due) })
	began := time.Now()
	tt.plays++
	for _, f := range all {
		pause(time.Until(began.Add(f.due - from)))
		f.Received = time.Now()
		tt.meant[string(f.Data)] = meant{f.PTS - from, tt.plays}
		f.DTS, f.PTS = (f.DTS + tt.clock).Truncate(time.Millisecond), (f.PTS + tt.clock).Truncate(time.Millisecond)
		tt.bytes += len(f.Data)
		if err := e.sink.Write(f.Frame); err != nil {
			tt.w.t.Errorf("write %s: %v", f.Kind, err)
			return
		}
	}
	pause(time.Until(began.Add(long)))
}

// TestTorture has an encoder do everything that encoders do to a broadcast, and expects one asset that can be read from
// end to end.
func TestTorture(t *testing.T) {
	t.Parallel()
	programtest.Path(t, "ffmpeg")
	programtest.Path(t, "ffprobe")
	x := &torturer{recordings: recordings(t), meant: map[string]meant{}}
	dir := t.TempDir()
	var lists []string
	run(t, func(w *world) {
		x.w = w
		const second = time.Second
		n := w.start("a")
		s := w.stream(window(30), func(in *live.CreateInput) { in.LatencyMode = live.Low })
		lost := errors.New("connection reset by peer")
		e := n.publish(s.StreamKey)
		x.play(e, "H.264", "AAC", 0, 5*second, second) // sound first
		x.clock += 26 * time.Hour                      // the encoder's clock jumps
		x.play(e, "H.264", "AAC", 5*second, 3*second, 0)
		x.clock -= 1 << 33 * time.Second / 90000 // and wraps
		x.play(e, "H.264", "AAC", 8*second, 3*second, 0)
		x.play(e, "H.264 large", "AAC", 11*second, 3*second, 0) // another size on the same connection
		e.leave(lost)
		pause(3 * second)
		e = n.publish(s.StreamKey)
		x.play(e, "HEVC", "Opus", 0, 5*second, 0) // other codecs in the window
		x.play(e, "AV1", "AAC at 44.1", 0, 5*second, 0)
		e.leave(lost)
		for i := range 15 { // flapping: a connection lasts 200 ms
			x.clock = time.Duration(i%3) * time.Hour
			e = n.publish(s.StreamKey)
			x.play(e, "H.264 large", "Opus", time.Duration(i%10)*second, 200*time.Millisecond, 0)
			e.leave(lost)
			w.wait(50 * time.Millisecond)
		}
		e = n.publish(s.StreamKey)
		x.play(e, "H.264", "AAC", 11*second, 5*second, 0) // as it began
		a := w.row(s.ID).ActiveAsset
		e.stop()
		w.wait(40 * second)
		if got := w.row(s.ID); got.State != live.Idle {
			t.Errorf("the stream is %s", got.State)
		}
		_, tl := w.recorded(a)
		inits := 0
		for _, l := range tl.Renditions {
			inits += len(l.Inits)
			next := int64(-1)
			for i, c := range l.Chunks {
				if c.Gap {
					continue
				}
				if next >= 0 && c.Time < next {
					t.Errorf("%s %d starts at %d, what came before ended at %d", l.ID, i, c.Time, next)
				}
				next = c.Time + c.Duration
			}
		}
		if inits != 7 {
			t.Errorf("%d init segments of 7 different parameters", inits)
		}
		if have := w.objects.total(); have > 2*int64(x.bytes) { // with boxes and slate
			t.Errorf("%d bytes are stored of %d that were sent", have, x.bytes)
		}
		w.finish(a)
		lists = x.save(n, w.playbackID(a), dir)
	})
	if !t.Failed() {
		x.check(t, dir, lists)
	}
}

// save keeps a presentation as files, for programs that know no time but the world's; it returns its media playlists,
// video first.
func (tt *torturer) save(n *node, playback id.Playback, dir string) []string {
	v := n.viewer()
	keep := func(at, text string) {
		p := filepath.Join(dir, filepath.FromSlash(at))
		tt.w.must(os.MkdirAll(filepath.Dir(p), 0o750))
		tt.w.must(os.WriteFile(p, []byte(text), 0o600))
	}
	synctest.Wait()
	text := v.Expect("multivariant", http.StatusOK, "/"+string(playback)+".m3u8")
	if want := `CODECS="avc1.42c00c,avc1.4d401e,hvc1.1.6.L60.90,av01.0.00M.08,mp4a.40.2,opus"`; !strings.Contains(text,
		want) {
		tt.w.t.Errorf("not %s:\n%s", want, text)
	}
	lists := v.Playlists(playback)
	for _, at := range lists {
		text := v.Expect("media playlist", http.StatusOK, at)
		keep(at, text)
		for _, uri := range playbacktest.URIs(at, text) {
			keep(uri, v.Expect("segment", http.StatusOK, uri))
		}
	}
	return lists
}

// check has ffprobe read every rendition end to end, ffmpeg decode every stretch between parameters, and looks for what
// was sent.
func (tt *torturer) check(t *testing.T, dir string, lists []string) {
	t.Helper()
	type placed struct {
		at, meant float64
		play      int
	}
	seen := make([][]placed, len(lists))
	for i, at := range lists {
		file := filepath.Join(dir, filepath.FromSlash(at))
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var whole []byte // init segment and segments up to the next init segment
		// A connection that breaks between a picture and those shown before it leaves their order open: raw output has
		// no times to mind.
		raw := [...]string{"rawvideo", "s16le"}
		decode := func() {
			if len(whole) == 0 {
				return
			}
			part := filepath.Join(dir, fmt.Sprintf("stretch-%d-%d.mp4", i, len(whole)))
			if err := os.WriteFile(part, whole, 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, "ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", part, "-f", raw[i], "-y", os.DevNull)
			whole = nil
		}
		scale, samples := 1.0, 0
		end := uint64(0)
		once := map[string]bool{} // a key frame stands for a while where nothing comes after it
		for _, uri := range playbacktest.URIs(at, string(text)) {
			data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(uri)))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(path.Base(uri), "init") {
				decode()
				scale = float64(binary.BigEndian.Uint32(body(t, data, "mdhd")[12:]))
			}
			whole = append(whole, data...)
			fragments, err := cmaf.ParseFragments(data)
			if err != nil {
				t.Fatal(uri, err)
			}
			for _, f := range fragments {
				if f.BaseMediaDecodeTime < end {
					t.Errorf("%s: decoding time %d, before it was %d", uri, f.BaseMediaDecodeTime, end)
				}
				ticks := int64(f.BaseMediaDecodeTime)
				for _, s := range f.Samples {
					samples++
					if m, ok := tt.meant[string(s.Data)]; ok && !once[string(s.Data)] {
						once[string(s.Data)] = true
						seen[i] = append(seen[i], placed{
							float64(ticks+int64(s.CompositionOffset)) / scale, m.at.Seconds(), m.play,
						})
					}
					ticks += int64(s.Duration)
				}
				end = uint64(ticks)
			}
		}
		decode()
		if list := strings.Fields(string(command(t, "ffprobe", "-v", "fatal", "-allowed_extensions", "ALL",
			"-show_entries", "packet=pts", "-of", "csv=p=0", file))); len(list) != samples {
			t.Errorf("ffprobe reads %d packets of %s, there are %d", len(list), at, samples)
		}
	}
	pairs, worst := 0, 0.0
	for _, v := range seen[0] {
		for _, a := range seen[1] {
			if a.play == v.play && math.Abs(a.meant-v.meant) < 0.05 && math.Abs(a.at-v.at) < 1 {
				pairs++
				worst = max(worst, math.Abs(a.at-v.at-(a.meant-v.meant)))
			}
		}
	}
	t.Logf("%d pictures and %d frames of sound, %d neighbours, at most %.1f ms apart from where they belong",
		len(seen[0]), len(seen[1]), pairs, 1000*worst)
	if worst >= 0.040 || pairs < 500 {
		t.Errorf("sound and picture are up to %.3f s off, in %d pairs", worst, pairs)
	}
}

// TestRefusedCodec has an encoder send what no player of HLS can play: the log and the asset say why nothing was
// recorded, and the key is free again.
func TestRefusedCodec(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		e := n.publish(s.StreamKey)
		err := e.sink.Configure(frame.Config{Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180})
		const reason = "video codec VP8 is not supported, send H.264, HEVC, AV1 or VP9"
		if !errors.Is(err, ingest.Unsupported(reason)) {
			t.Error(err)
		}
		e.leave(err)
		a := w.row(s.ID).ActiveAsset
		w.wait(61 * time.Second)
		if got := w.asset(a); got.Status != asset.Errored || got.Errors == nil ||
			!slices.Contains(got.Errors.Messages, reason) {
			t.Errorf("the asset is %s: %v", got.Status, got.Errors)
		}
		if !strings.Contains(w.logged(), "choose H.264") {
			t.Error("the log does not say it")
		}
		n.publish(s.StreamKey).send(10 * time.Second).stop()
	})
}

// idle is an encoder that is never asked for anything.
type idle struct{}

func (idle) Live(
	context.Context, encode.LiveArgs, func(context.Context, io.Writer) error, func(context.Context, io.Reader) error,
) error {
	return errors.New("not asked for")
}

// TestRefusedBesideAnEncoder: a node that encodes VP8 still refuses at once what nobody can package.
func TestRefusedBesideAnEncoder(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a", func(o *broadcast.Options) { o.Encoder = idle{} }), w.stream()
		e := n.publish(s.StreamKey)
		if err := e.sink.Configure(frame.Config{
			Kind: frame.Video, Codec: frame.VP8, Width: 320, Height: 180,
		}); err != nil {
			t.Errorf("VP8: %v", err)
		}
		err := e.sink.Configure(frame.Config{Kind: frame.Video, Codec: "mpeg2", Width: 320, Height: 180})
		if err == nil {
			t.Error("MPEG-2 is taken")
		}
		e.leave(err)
		w.wait(61 * time.Second)
	})
}
