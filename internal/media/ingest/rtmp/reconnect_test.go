package rtmp

import (
	"bytes"
	"context"
	"testing"

	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/bytecounter"
	"github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
	"millrace/internal/media/rtmpwire"
)

// TestReconnectRequest: who says in its connect command that it knows a request to reconnect can be sent one, in the
// form of Enhanced RTMP, and is listened to until it leaves. All others can't be asked.
func TestReconnectRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fields []amf0.ObjectEntry
		can    bool
	}{
		"it knows":                {[]amf0.ObjectEntry{{Key: "capsEx", Value: 1.0}}, true},
		"it knows more":           {[]amf0.ObjectEntry{{Key: "capsEx", Value: 15.0}}, true},
		"it knows something else": {[]amf0.ObjectEntry{{Key: "capsEx", Value: 14.0}}, false},
		"it says nonsense":        {[]amf0.ObjectEntry{{Key: "capsEx", Value: -1.0}}, false},
		"it says text":            {[]amf0.ObjectEntry{{Key: "capsEx", Value: "1"}}, false},
		"it says nothing":         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sink := ingesttest.NewRecorder()
			can := false
			s := startServer(t, Options{Gate: ingesttest.Gate(
				func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
					if can = p.Move != nil; can {
						p.Move()
					}
					return ctx, sink, nil
				},
			)})
			said := send(t, s.addr, cat(opening("app", "rtmp://host/app", key, tt.fields...), videoConfig(testAvcC),
				videoFrame(0), videoFrame(33), videoFrame(66)))
			<-sink.Closed
			if can != tt.can {
				t.Fatalf("it can be asked: %t", can)
			}
			if got := len(sink.Of(frame.Video)); got != 3 {
				t.Errorf("%d frames are taken", got)
			}
			var asked []amf0.Object
			r := message.NewReader(bytecounter.NewReader(bytes.NewReader(said[1+2*rtmpwire.HandshakeSize:])),
				bytecounter.NewReader(bytes.NewReader(nil)), nil)
			for {
				m, err := r.Read()
				if err != nil {
					break
				}
				c, ok := m.(*message.CommandAMF0)
				if !ok || c.Name != "onStatus" {
					continue
				}
				info := c.Arguments[len(c.Arguments)-1].(amf0.Object)
				if code, _ := info.Get("code"); code == "NetConnection.Connect.ReconnectRequest" {
					asked = append(asked, info)
					level, _ := info.Get("level")
					if level != "status" || c.MessageStreamID != 0 || c.CommandID != 0 || len(c.Arguments) != 2 ||
						c.Arguments[0] != nil {
						t.Errorf("asked by %+v", c)
					}
				}
			}
			if want := map[bool]int{true: 1}[tt.can]; len(asked) != want {
				t.Errorf("it is asked %d times", len(asked))
			}
		})
	}
}
