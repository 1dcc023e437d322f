package whip

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestPublish publishes over each transport and ends with DELETE.
func TestPublish(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]wants{"udp": {}, "tcp": {tcp: true}, "audio only": {noVideo: true}, "video only": {noAudio: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
			p := newPublisher(t, w)
			p.publish(s.url)
			stop := p.start()
			sink.Until(t, "two seconds of media", func() bool {
				return (w.noVideo || len(sink.Of(frame.Video)) >= 50) && (w.noAudio || len(sink.Of(frame.Audio)) >= 100)
			})
			stop()
			p.delete()
			if cause := sink.Cause(t); !errors.Is(cause, ingest.ErrEncoderEnded) {
				t.Errorf("cause %v\n%s", cause, s.log)
			}
			if !w.noVideo {
				checkVideo(t, sink)
			}
			if c, n := sink.Config(frame.Audio); !w.noAudio && (n != 1 || c.Codec != frame.Opus || c.Channels != 2 || c.SampleRate != 48000) {
				t.Errorf("%d audio configurations, the last %+v", n, c)
			}
			if a := ask(t, http.MethodDelete, p.url, "", "Authorization", "Bearer "+key); a.status != http.StatusNotFound {
				t.Errorf("a second DELETE is answered %d", a.status)
			}
			if !strings.Contains(s.log.String(), "pion test") {
				t.Error("the publisher's name is not in the log")
			}
			s.stop()
			s.log.CheckLabels(t)
		})
	}
}

// checkVideo checks that no picture is missing, that the first is a key frame, and that their distances are right.
func checkVideo(t *testing.T, sink *ingesttest.Recorder) {
	t.Helper()
	if c, n := sink.Config(frame.Video); n != 1 || c.Codec != frame.H264 || c.Width != 1920 {
		t.Errorf("%d video configurations, the last %+v", n, c)
	}
	frames := sink.Of(frame.Video)
	if !frames[0].Key {
		t.Error("the first picture is no key frame")
	}
	for i, f := range frames[1:] {
		if got, want := numberOf(f.Data), numberOf(frames[0].Data)+i+1; got != want {
			t.Fatalf("picture %d comes when %d is due", got, want)
		}
		if d := f.DTS - frames[i].DTS; d != 40*time.Millisecond || f.PTS != f.DTS {
			t.Errorf("picture %d comes %v after the one before", i+1, d)
		}
	}
}
