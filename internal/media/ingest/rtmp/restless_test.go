package rtmp

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/session"
)

// restless counts the discontinuities of a session.
type restless struct{ breaks int }

func (*restless) Configure(frame.Config) error { return nil }
func (r *restless) Discontinuity(string) error { r.breaks++; return nil }
func (*restless) Rate(float64, bool) error     { return nil }
func (*restless) Write(frame.Frame) error      { return nil }
func (*restless) Close(error) error            { return nil }

// unsteady is a session's sink that refuses as a broadcast's does.
type unsteady struct{ *session.Session }

func (u unsteady) Configure(c frame.Config) error { return refused(u.Session.Configure(c)) }
func (u unsteady) Write(f frame.Frame) error      { return refused(u.Session.Write(f)) }

func refused(err error) error {
	if u, ok := errors.AsType[session.UnsteadyError](err); ok {
		return ingest.Unsupported(u.Error())
	}
	return err
}

// TestRestlessEncoder: an encoder that sends a sequence header before each frame is hung up on, and told why.
func TestRestlessEncoder(t *testing.T) {
	t.Parallel()
	out := &restless{}
	sink := unsteady{session.New(session.Options{Output: out, Logger: quiet})}
	s := startServer(t, Options{Gate: ingesttest.Admit(key, sink)})
	raw := opened()
	for n := range 3000 {
		sets := bytes.Clone(testSPS)
		sets[3] = byte(30 + n%2) // the level
		raw = append(raw, cat(videoConfig(avcC(sets, 4)), videoFrame(uint32(5*n)))...)
	}
	said := string(send(t, s.addr, raw))
	s.stop()
	for _, want := range []string{"NetStream.Publish.Rejected", "the encoder changes its parameters"} {
		if !strings.Contains(said, want) {
			t.Errorf("the encoder is not told %q", want)
		}
	}
	if out.breaks < 20 || out.breaks > 100 {
		t.Errorf("%d discontinuities of 3000 sequence headers", out.breaks)
	}
	if lines := s.log.Lines(slog.LevelInfo.String()); len(lines) > 3 {
		t.Errorf("log:\n%s", s.log)
	}
}
