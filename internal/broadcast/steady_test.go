package broadcast_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/media/codec/nal"
	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// TestRestlessPublisher has somebody with a key send new parameters 200 times a second, or let the clock leap five
// times a second, for a minute, and connect again whenever the connection is closed. It makes few files and lines, the
// owner is told why, and an encoder that comes later is recorded.
func TestRestlessPublisher(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every time.Duration // between pictures, of which each is a key frame
		leap  time.Duration // of the clock, with each fifth one; 0: new parameters with each one
	}{
		"parameters": {every: 5 * time.Millisecond},
		"clock":      {every: 40 * time.Millisecond, leap: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				n, s := w.start("a"), w.stream()
				reasons := map[string]bool{}
				clock, calls, picture := time.Duration(0), 0, 0
				for end := time.Now().Add(time.Minute); time.Now().Before(end); calls++ {
					e, err := n.admit(s.StreamKey)
					for err == nil && time.Now().Before(end) {
						pause(tt.every)
						picture++
						clock += tt.every
						if picture%5 == 0 {
							clock += tt.leap
						}
						p := []byte{0x68, 0xeb, 0xe3, 0xcb, 0x22, 0xc0}
						if tt.leap == 0 {
							p = append(p, byte(picture>>8), byte(picture), 0x80)
						}
						c := frame.Config{Kind: frame.Video, Codec: frame.H264, SPS: sps, PPS: p}
						c.Width, c.Height = 320, 180
						f := frame.Frame{Kind: frame.Video, DTS: clock, PTS: clock, Key: true, Received: time.Now()}
						f.Data = nal.Append(nil, slice)
						err = errors.Join(e.sink.Configure(c), e.sink.Write(f))
					}
					if u, ok := errors.AsType[ingest.Unsupported](err); ok {
						why, _, _ := strings.Cut(string(u), ":")
						reasons[why] = true
					} else if err != nil {
						t.Fatal(err)
					}
					e.leave(err)
					pause(time.Second)
				}
				const reason = "the encoder changes its parameters, or its clock jumps, all the time"
				if !reasons[reason] || len(reasons) != 1 || calls < 5 {
					t.Errorf("%d connections were ended by %v", calls, reasons)
				}
				warned := map[string]int{}
				for _, e := range w.journal.all() {
					if strings.Contains(string(e.Data), `"encoder_unsteady"`) {
						warned[e.Type]++
					}
				}
				if len(warned) != 2 || warned[live.EventWarning] != 1 || warned[asset.EventWarning] != 1 {
					t.Errorf("warnings %v", warned)
				}
				n.publish(s.StreamKey).send(20 * time.Second).stop()
				w.wait(61 * time.Second)
				// At most 30 at once, one each two seconds, and one for each connection; and the honest one's.
				segments, most := 0, 30+60/2+calls+1+12
				for _, l := range w.timeline(w.row(s.ID).RecentAssets[0]).Renditions {
					segments = max(segments, len(l.Chunks))
				}
				if segments > most || segments < 30 {
					t.Errorf("%d segments, want %d at most", segments, most)
				}
				if lines := strings.Count(w.logged(), "msg=discontinuity"); lines > most || lines < 20 {
					t.Errorf("%d lines about discontinuities, want %d at most", lines, most)
				}
			})
		})
	}
}
