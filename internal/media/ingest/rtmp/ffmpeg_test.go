package rtmp

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/programtest"
)

// ffmpeg publishes to url and returns what it printed.
func ffmpeg(t *testing.T, url string, args ...string) (string, error) {
	t.Helper()
	return runFFmpeg(t, append(slices.Clip(args), "-f", "flv", url)...)
}

func runFFmpeg(t *testing.T, args ...string) (string, error) {
	t.Helper()
	bin := programtest.Path(t, "ffmpeg")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args = append([]string{"-hide_banner", "-loglevel", "error", "-nostdin"}, args...)
	cmd := exec.CommandContext(ctx, bin, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

const key = "sk-very-secret-key"

var (
	picture = []string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=2"}
	tone    = []string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=2"}
	x264    = []string{"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "30"}
	aacEnc  = []string{"-c:a", "aac", "-ac", "2"}
)

func join(parts ...[]string) (out []string) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestFFmpegPublishes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args         []string
		video, audio int
		reordered    bool
	}{
		"picture and sound": {
			args: join(picture, tone, x264, []string{"-tune", "zerolatency"}, aacEnc), video: 60, audio: 94,
		},
		"B-frames": {
			args: join(picture, tone, x264, []string{"-bf", "2", "-b_strategy", "0"}, aacEnc), video: 60, audio: 94,
			reordered: true,
		},
		"video only": {args: join(picture, x264), video: 60},
		"audio only": {args: join(tone, aacEnc), audio: 94},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			if out, err := ffmpeg(t, "rtmp://"+s.addr+"/app/"+key, tt.args...); err != nil {
				t.Fatalf("ffmpeg: %v\n%s\n%s", err, out, s.log)
			}
			if err := sink.Cause(t); !errors.Is(err, ingest.ErrEncoderEnded) {
				t.Errorf("cause %v, want the encoder's end", err)
			}
			video, audio := sink.Of(frame.Video), sink.Of(frame.Audio)
			if len(video) != tt.video || len(audio) < tt.audio && tt.audio > 0 || tt.audio == 0 && len(audio) > 0 {
				t.Errorf("%d video and %d audio frames, want %d and %d", len(video), len(audio), tt.video, tt.audio)
			}
			if tt.video > 0 {
				checkVideo(t, sink, video, tt.reordered)
			}
			if c, _ := sink.Config(frame.Audio); tt.audio > 0 &&
				(c.SampleRate != 48000 || c.Channels != 2 || len(c.ASC) == 0) {
				t.Errorf("audio configuration %+v", c)
			}
			s.stop()
			if strings.Contains(s.log.String(), key) {
				t.Errorf("the key is in the log:\n%s", s.log)
			}
			if !strings.Contains(s.log.String(), "Lavf") {
				t.Errorf("the encoder's name is not in the log:\n%s", s.log)
			}
		})
	}
}

func checkVideo(t *testing.T, sink *ingesttest.Recorder, video []frame.Frame, reordered bool) {
	t.Helper()
	if c, n := sink.Config(frame.Video); n != 1 || c.Width != 320 || c.Height != 180 || c.FrameRate != 30 {
		t.Errorf("%d video configurations, %+v", n, c)
	}
	keys, offsets := 0, 0
	for i, f := range video {
		if f.Key {
			keys++
		}
		if f.PTS != f.DTS {
			offsets++
		}
		if i > 0 && (f.DTS-video[i-1].DTS < 32*time.Millisecond || f.DTS-video[i-1].DTS > 35*time.Millisecond) {
			t.Errorf("frame %d comes %v after the one before", i, f.DTS-video[i-1].DTS)
		}
		if f.Received.IsZero() || i > 0 && f.Received.Before(video[i-1].Received) {
			t.Errorf("frame %d received at %v", i, f.Received)
		}
	}
	if !video[0].Key || keys != 2 {
		t.Errorf("%d key frames, the first is one: %v; want 2", keys, video[0].Key)
	}
	if (offsets > 0) != reordered {
		t.Errorf("%d frames have a composition time, want some: %v", offsets, reordered)
	}
}

func TestFFmpegShowsRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path string
		err  error
		want string // in ffmpeg's output
	}{
		"unknown key":  {"/app/" + key, ingest.ErrUnknownKey, "stream key is unknown"},
		"disabled":     {"/live/" + key, ingest.ErrDisabled, "live stream is disabled"},
		"busy":         {"/app/" + key, ingest.ErrBusy, "another encoder is live"},
		"internal":     {"/app/" + key, errors.New("database is on fire"), "could not be checked"},
		"other app":    {"/vod/" + key, nil, "no such application"},
		"no key":       {"/app/", nil, "stream key is unknown"},
		"deeper path":  {"/app/x/" + key, nil, "stream key is unknown"},
		"shutting off": {"/app/" + key, ingest.ErrShutdown, "shutting down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t, Options{
				Gate: ingesttest.Gate(func(context.Context, ingest.Publication) (context.Context, ingest.Sink, error) {
					if tt.err == nil {
						t.Error("the gate was asked")
					}
					return nil, nil, tt.err
				}),
			})
			out, err := ffmpeg(t, "rtmp://"+s.addr+tt.path, join(tone, aacEnc)...)
			if err == nil || !strings.Contains(out, tt.want) {
				t.Errorf("ffmpeg: %v, printed %q, want %q in it", err, out, tt.want)
			}
			s.stop()
			if n := strings.Count(s.log.String(), "publish refused"); n != 1 {
				t.Errorf("refusal logged %d times:\n%s", n, s.log)
			}
			if strings.Contains(s.log.String(), key) || strings.Contains(out, "fire") {
				t.Errorf("something leaked:\n%s\n%s", s.log, out)
			}
		})
	}
}

func TestFFmpegLearnsOfUnsupportedCodecs(t *testing.T) {
	t.Parallel()
	// For longer than it takes to be told, in real time: anyone who is told late is told still.
	pictures, sounds := []string{"-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30:duration=20"},
		[]string{"-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=20"}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"Speex": {join(sounds, []string{"-c:a", "libspeex", "-ar", "16000"}), "Speex"},
		"FLV":   {join(pictures, []string{"-c:v", "flv1"}), "Sorenson"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			out, err := ffmpeg(t, "rtmp://"+s.addr+"/app/"+key, append([]string{"-re"}, tt.args...)...)
			if cause := sink.Cause(t); !strings.Contains(cause.Error(), tt.want) {
				t.Errorf("cause %v", cause)
			}
			if err == nil {
				t.Errorf("ffmpeg went on, printed %q", out)
			}
			s.stop()
			if !strings.Contains(s.log.String(), tt.want) {
				t.Errorf("log:\n%s", s.log)
			}
		})
	}
}
