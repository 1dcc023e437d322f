package whip

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/internal/media/captions"
	"millrace/internal/media/captions/cea608/cea608test"
	"millrace/internal/media/closedcaptions"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestPublish publishes over each transport and ends with DELETE.
func TestPublish(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]wants{
		"udp": {}, "tcp": {tcp: true}, "audio only": {noVideo: true}, "video only": {noAudio: true},
	} {
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
			if c, n := sink.Config(frame.Audio); !w.noAudio &&
				(n != 1 || c.Codec != frame.Opus || c.Channels != 2 || c.SampleRate != 48000) {
				t.Errorf("%d audio configurations, the last %+v", n, c)
			}
			if a := ask(t, http.MethodDelete, p.url, "", "Authorization",
				"Bearer "+key); a.status != http.StatusNotFound {
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

// cues notes captions.
type cues []captions.Cue

func (cs *cues) Publish(_ string, c captions.Cue) bool {
	*cs = append(*cs, c)
	return true
}

// TestCaptions: the captions that pictures carry come with them.
func TestCaptions(t *testing.T) {
	t.Parallel()
	sink := ingesttest.NewRecorder()
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	p := newPublisher(t, wants{})
	p.says = &cea608test.Encoder{}
	for at := range 20 { // the first pictures may be over before there is a session
		p.says.PopOn(1, float64(at), float64(at)+1, float64(at)+1.4, 15, "bonjour")
	}
	p.publish(s.url)
	stop := p.start()
	sink.Until(t, "three seconds of pictures", func() bool { return len(sink.Of(frame.Video)) >= 75 })
	stop()
	p.delete()
	pictures := sink.Of(frame.Video)
	var got cues
	r := closedcaptions.New(pictures[0].PTS, &got, map[string]string{"cc1": "text"}, nil)
	for i := range pictures {
		r.Picture(frame.H264, &pictures[i])
	}
	first := float64(numberOf(pictures[0].Data)) / 25 // second of the publisher
	if len(got) == 0 {
		t.Fatal("there are no captions")
	}
	for _, c := range got {
		if shown := math.Mod(c.Start.Seconds()+first, 1); c.Text != "bonjour" || shown > 0.1 && shown < 0.9 ||
			c.End-c.Start > time.Second {
			t.Errorf("%q from %s to %s, the first picture is that of second %.2f", c.Text, c.Start, c.End, first)
		}
	}
}
