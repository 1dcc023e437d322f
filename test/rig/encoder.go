package rig

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/internal/programtest"
)

// Clip describes what an encoder sends. The zero value is 640x360 at 30 frames a second with a key frame each 2 s,
// B-frames, and sound that comes and goes like speech.
type Clip struct {
	Rate    int     // frames a second
	Drop    bool    // 1000/1001 of Rate, as in 29.97
	GOP     float64 // seconds between key frames
	NoB     bool    // without B-frames
	NoAudio bool
	NoVideo bool
	Size    string
	Kbit    int
	Hertz   int     // sample rate; 48000 when 0
	Seconds float64 // 0: until stopped
	Offset  float64 // seconds that the first timestamp is later than 0
	Video   string  // ffmpeg's encoder; libx264 when empty
	Audio   string  // the same; aac when empty
	Tone    int     // Hz: a steady tone in place of the hum
	// every Rate frames three white ones with a beep, in place of the hum: shows how picture and sound stand to each
	// other
	Flash bool
	File  string   // published as it is, instead of all that
	More  []string // more of ffmpeg's output options
	Says  string   // what the publisher calls itself over RTMP; empty: ffmpeg's own name
	// Progress is a file that the publisher writes into how many frames it has sent; empty: none.
	Progress string
}

// FPS is the exact frame rate, and the seconds from one flash to the next.
func (c Clip) FPS() (fps, flash float64) {
	c = c.withDefaults()
	fps = float64(c.Rate)
	if c.Drop {
		fps *= 1000.0 / 1001
	}
	return fps, float64(c.Rate) / fps
}

func (c Clip) withDefaults() Clip {
	if c.Rate == 0 {
		c.Rate = 30
	}
	if c.GOP == 0 {
		c.GOP = 2
	}
	if c.Size == "" {
		c.Size = "640x360"
	}
	if c.Kbit == 0 {
		c.Kbit = 800
	}
	if c.Hertz == 0 {
		c.Hertz = 48000
	}
	return c
}

// args gives ffmpeg's options up to the output: a moving picture with a running clock, and a voice-like hum.
func (c Clip) args() []string {
	c = c.withDefaults()
	var args []string
	input := func(spec string) { args = append(args, "-f", "lavfi", "-i", spec) }
	if !c.NoVideo {
		input(c.picture())
	}
	if !c.NoAudio {
		input(c.sound())
	}
	if !c.NoVideo {
		b := "2"
		if c.NoB {
			b = "0"
		}
		gop := fmt.Sprint(int(c.GOP*float64(c.Rate) + 0.5))
		if c.Video == "" {
			args = append(args, "-c:v", "libx264", "-preset", "ultrafast", "-profile:v", "main", "-bf", b,
				"-keyint_min", gop, "-sc_threshold", "0")
		} else {
			args = append(args, "-c:v", c.Video)
		}
		args = append(args, "-pix_fmt", "yuv420p", "-g", gop, "-b:v", fmt.Sprintf("%dk", c.Kbit), "-maxrate",
			fmt.Sprintf("%dk", c.Kbit), "-bufsize", fmt.Sprintf("%dk", c.Kbit))
	}
	if !c.NoAudio {
		args = append(args, "-c:a", cmp.Or(c.Audio, "aac"), "-ac", "2", "-b:a", "96k")
	}
	if c.Seconds > 0 {
		args = append(args, "-t", fmt.Sprint(c.Seconds))
	}
	return append(args, c.More...)
}

// clipSeconds is how long a clip without an end is until it begins again: longer than most tests last.
const clipSeconds = 120

// publishArgs gives all of ffmpeg's options to publish the clip to an RTMP or SRT URL at its own speed. The clip is
// encoded once, before it is published: a busy machine sends it as an idle one does, and many encoders cost next to
// nothing.
func (c Clip) publishArgs(t testing.TB, url string) []string {
	t.Helper()
	container := []string{"-flvflags", "no_duration_filesize", "-f", "flv"}
	name := "clip.flv"
	if strings.HasPrefix(url, "srt:") {
		container, name = []string{"-f", "mpegts"}, "clip.ts"
	}
	args := []string{"-nostdin", "-loglevel", "error", "-re"}
	if c.Seconds == 0 {
		c.Seconds = clipSeconds
		args = append(args, "-stream_loop", "-1")
	}
	clips := c.File
	if clips == "" {
		clips = programtest.SharedMedia(t, name, c.args()...)
	}
	args = append(args, "-i", clips, "-c", "copy")
	if c.Offset != 0 {
		args = append(args, "-output_ts_offset", strconv.FormatFloat(c.Offset, 'f', -1, 64))
	}
	if c.Progress != "" {
		args = append(args, "-progress", c.Progress)
	}
	if c.Says != "" { // with bitexact ffmpeg does not name itself in the stream's metadata
		args = append(args, "-rtmp_flashver", c.Says, "-fflags", "+bitexact")
	}
	return append(append(args, container...), url)
}

func (c Clip) picture() string {
	rate := fmt.Sprint(c.Rate)
	if c.Drop {
		rate = fmt.Sprintf("%d000/1001", c.Rate)
	}
	spec := fmt.Sprintf("testsrc2=size=%s:rate=%s", c.Size, rate)
	if c.Flash {
		spec += fmt.Sprintf(",drawbox=x=0:y=0:w=iw:h=ih:color=white:t=fill:enable='lt(mod(n,%d),3)'", c.Rate)
	}
	return spec
}

func (c Clip) sound() string {
	if c.Flash {
		_, period := c.FPS()
		return fmt.Sprintf("aevalsrc='0.8*sin(2*PI*1000*t)*lt(mod(t,%.9f),0.1)':s=%d", period, c.Hertz)
	}
	if c.Tone > 0 {
		return fmt.Sprintf("sine=frequency=%d:sample_rate=%d", c.Tone, c.Hertz)
	}
	// Formants of a vowel, in syllables of a third of a second with a pause each two seconds.
	return fmt.Sprintf(
		"aevalsrc='0.3*(sin(2*PI*140*t)+0.5*sin(2*PI*700*t)+0.3*sin(2*PI*1200*t))*abs(sin(PI*t*3))*lt(mod(t,2),1.6)':s=%d", c.Hertz)
}

// Encoder is an ffmpeg that publishes.
type Encoder struct {
	Began time.Time
	cmd   *exec.Cmd
	out   output
	done  chan error
	once  sync.Once
	err   error
}

// FFmpeg gives ffmpeg's path.
func FFmpeg(t testing.TB) string {
	t.Helper()
	p, err := exec.LookPath("ffmpeg")
	if err != nil {
		Missing(t, "ffmpeg is not installed")
	}
	return p
}

// Publish starts an encoder on a stream key. It ends with the test.
func (s *Server) Publish(t testing.TB, streamKey string, c Clip) *Encoder {
	t.Helper()
	return PublishTo(t, s.RTMP+"/app/"+streamKey, c)
}

// PublishTo starts an encoder on an RTMP or SRT URL. It ends with the test.
func PublishTo(t testing.TB, url string, c Clip) *Encoder {
	t.Helper()
	e := &Encoder{done: make(chan error, 1)}
	args := c.publishArgs(t, url)
	e.Began = time.Now()
	e.cmd = exec.Command(FFmpeg(t), args...) //nolint:noctx // ended by Stop or the test's cleanup
	e.cmd.Stdout, e.cmd.Stderr = &e.out, &e.out
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := e.cmd.Start(); err != nil {
		t.Fatalf("start encoder: %v", err)
	}
	go func() { e.done <- e.cmd.Wait() }()
	t.Cleanup(func() { e.Kill() })
	return e
}

// KeepPublishing starts an encoder that begins again whenever it fails, as those in the field do, until stop is called
// or the test ends. url is asked before each attempt.
func KeepPublishing(t testing.TB, url func() string, c Clip) (stop func()) {
	t.Helper()
	return KeepPublishingOver(t, "rtmp:", url, c)
}

// KeepPublishingOver is KeepPublishing over the protocol of URLs that begin like that: "rtmp:" or "srt:".
func KeepPublishingOver(t testing.TB, protocol string, url func() string, c Clip) (stop func()) {
	t.Helper()
	ffmpeg, args := FFmpeg(t), c.publishArgs(t, protocol)
	args = args[:len(args)-1]
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cmd := exec.CommandContext(ctx, ffmpeg, append(slices.Clip(args), url())...)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
			cmd.WaitDelay = 10 * time.Second
			_ = cmd.Run() // a refusal is tried again
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			<-done
		})
	}
	t.Cleanup(stop)
	return stop
}

// Stop ends the encoder as a person would: it says goodbye.
func (e *Encoder) Stop() { e.end(syscall.SIGINT) }

// Freeze leaves the encoder's connection open and lets it send nothing more.
func (e *Encoder) Freeze() { _ = e.cmd.Process.Signal(syscall.SIGSTOP) }

// Kill ends the encoder without a goodbye.
func (e *Encoder) Kill() { e.end(syscall.SIGKILL) }

func (e *Encoder) end(sig syscall.Signal) {
	e.once.Do(func() {
		_ = e.cmd.Process.Signal(sig)
		select {
		case e.err = <-e.done:
		case <-time.After(10 * time.Second):
			_ = e.cmd.Process.Kill()
			e.err = <-e.done
		}
	})
}

// Wait gives the encoder's end and what it said, when it ends by itself within limit.
func (e *Encoder) Wait(t testing.TB, limit time.Duration) (string, error) {
	t.Helper()
	e.once.Do(func() {
		select {
		case e.err = <-e.done:
		case <-time.After(limit):
			_ = e.cmd.Process.Kill()
			e.err = <-e.done
			t.Errorf("encoder did not end within %v", limit)
		}
	})
	return e.out.String(), e.err
}

// output is a buffer that may be read while it is written.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// File makes a media file with ffmpeg; the ending of name chooses the container.
func File(t testing.TB, name string, c Clip) string {
	t.Helper()
	if c.Seconds == 0 {
		t.Fatal("a file needs a length")
	}
	return programtest.Media(t, name, c.args()...)
}

// Files serves named texts and files from disk over HTTP for the server to fetch: the value is a path when it begins
// with a slash, else the content. It gives the base URL.
func Files(t testing.TB, files map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(content, "/"):
			http.ServeFile(w, r, content)
		default:
			http.ServeContent(w, r, r.URL.Path, time.Unix(1700000000, 0), strings.NewReader(content))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}
