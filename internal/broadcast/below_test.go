package broadcast_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/rendition"
	"millrace/internal/media/rendition/justintime"
	"millrace/internal/media/rendition/liveladder"
)

// asked counts how often it was to encode, and encodes nothing.
type asked struct{ atomic.Int64 }

func (a *asked) Ladder(
	context.Context, encode.LadderArgs, func(context.Context, io.Writer) error,
	[]func(context.Context, io.Reader) error,
) error {
	a.Add(1)
	return errors.New("there is no encoder here")
}

// TestPolicyOfRungs: an environment reports whether its broadcasts are offered in lower renditions, and whether those
// are made while nobody watches; what holds as a broadcast begins, holds for all of it.
func TestPolicyOfRungs(t *testing.T) {
	t.Parallel()
	for policy, want := range map[broadcast.Policy]struct{ offered, made bool }{
		broadcast.Off: {}, broadcast.OnDemand: {offered: true}, broadcast.Always: {offered: true, made: true},
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				var encoder asked
				said := policy
				n := w.start("a", func(o *broadcast.Options) {
					o.Below = &broadcast.Renditions{
						Makers: rendition.Makers{
							Encoder: &encoder,
							Maker:   justintime.New(justintime.Options{Version: "test", Now: time.Now}),
							Waiting: liveladder.NewByteBudget(1 << 20),
						},
						Policy: func(_ context.Context, e id.Environment) (broadcast.Policy, error) {
							if e != env {
								t.Errorf("asked of environment %q", e)
							}
							return said, nil
						},
					}
				})
				s := w.stream()
				e := n.publish(s.StreamKey)
				e.hd = true
				w.wait(0)
				said = broadcast.Off
				e.send(10 * time.Second)
				text := n.viewer().Expect("live", http.StatusOK, "/"+string(s.PlaybackIDs[0].ID)+".m3u8")
				if offered := strings.Count(text, "#EXT-X-STREAM-INF") > 1; offered != want.offered {
					t.Errorf("lower renditions are offered: %t\n%s", offered, text)
				}
				if made := encoder.Load() > 0; made != want.made {
					t.Errorf("lower renditions are made: %t", made)
				}
				e.stop()
			})
		})
	}
}

// A broadcast whose policy can't be read does not begin: the encoder comes again.
func TestPolicyOfRungsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n := w.start("a", func(o *broadcast.Options) {
			o.Below = &broadcast.Renditions{
				Policy: func(context.Context, id.Environment) (broadcast.Policy, error) { return "", errCut },
			}
		})
		if _, err := n.admit(w.stream().StreamKey); !errors.Is(err, errCut) {
			t.Errorf("got %v", err)
		}
	})
}
