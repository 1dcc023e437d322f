package rtmp

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// gstreamer sends an FLV file with one of GStreamer's sinks: rtmp2sink is its own RTMP, rtmpsink is librtmp, which OBS
// and many encoders are built on too.
func gstreamer(t *testing.T, file, element, url string, properties ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "gst-launch-1.0", slices.Concat([]string{
		"-q", "filesrc", "location=" + file, "!", "flvdemux", "name=d", "flvmux", "name=m", "streamable=true", "!",
		element, "location=" + url,
	}, properties, []string{"d.video", "!", "queue", "!", "m.video", "d.audio", "!", "queue", "!", "m.audio"})...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func hasElement(t *testing.T, name string) bool {
	t.Helper()
	return exec.CommandContext(t.Context(), "gst-inspect-1.0", "--exists", name).Run() == nil
}

func needElements(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if hasElement(t, name) {
			continue
		}
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatalf("GStreamer's %s is not installed", name)
		}
		t.Skipf("GStreamer's %s is not installed", name)
	}
}

func TestGStreamerPublishes(t *testing.T) {
	t.Parallel()
	for _, element := range []string{"rtmp2sink", "rtmpsink"} {
		t.Run(element, func(t *testing.T) {
			t.Parallel()
			needElements(t, element, "flvmux")
			file := filepath.Join(t.TempDir(), "in.flv")
			if out, err := ffmpeg(t, file, join(picture, tone, x264, aacEnc)...); err != nil {
				t.Fatalf("ffmpeg: %v\n%s", err, out)
			}
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			if out, err := gstreamer(t, file, element, "rtmp://"+s.addr+"/app/"+key); err != nil {
				t.Fatalf("gst-launch: %v\n%s\n%s", err, out, s.log)
			}
			cause := sink.Cause(t)
			if v, a := len(sink.Of(frame.Video)), len(sink.Of(frame.Audio)); v != 60 || a < 90 ||
				!errors.Is(cause, ingest.ErrEncoderEnded) {
				t.Errorf("%d video and %d audio frames, cause %v\n%s", v, a, cause, s.log)
			}
			refused := startServer(t, Options{
				Gate: ingesttest.Gate(func(context.Context, ingest.Publication) (context.Context, ingest.Sink, error) {
					return nil, nil, ingest.ErrUnknownKey
				}),
			})
			if out, err := gstreamer(t, file, element, "rtmp://"+refused.addr+"/app/"+key); err == nil {
				t.Errorf("a refused publisher went on, printed %q", out)
			}
		})
	}
}
