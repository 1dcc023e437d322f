package broadcast_test

import (
	"context"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
)

// brittle is storage that panics when one recording's media come.
type brittle struct {
	nodeObjects
	media atomic.Pointer[string] // the recording's; nil: none
}

func (b *brittle) Link(ctx context.Context, key string, f *os.File) error {
	if m := b.media.Load(); m != nil && strings.Contains(key, *m) {
		panic("storage broke")
	}
	return b.nodeObjects.Link(ctx, key, f)
}

// TestPanicOfABroadcast has goroutines of one broadcast panic while another one runs. The first ends, its owner is
// told, what it had is kept and its encoder may come again; the other one records every picture.
func TestPanicOfABroadcast(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		panics  int64
		trigger func(n *node, b *brittle, s live.Stream)
		adopted bool // it is let go of, and taken up once its lease has run out
	}{
		"the one that leads it": {panics: 1, trigger: func(n *node, _ *brittle, s live.Stream) {
			broadcast.Panic(n.Service, s.ID, false)
		}},
		"the one that leads it, twice": {panics: 2, adopted: true, trigger: func(n *node, _ *brittle, s live.Stream) {
			broadcast.Panic(n.Service, s.ID, true)
		}},
		"the one that stores": {panics: 1, trigger: func(n *node, b *brittle, s live.Stream) {
			media := string(n.w.asset(n.w.row(s.ID).ActiveAsset).Media)
			b.media.Store(&media)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, func(w *world) {
				w.journals(t)
				b := &brittle{}
				n := w.start("a", func(o *broadcast.Options) {
					b.nodeObjects = o.Store.(nodeObjects)
					o.Store = b
				})
				first, second := w.stream(window(20)), w.stream(window(20))
				other := n.publish(second.StreamKey)
				other.stream()
				e := n.publish(first.StreamKey)
				e.stream()
				w.wait(10 * time.Second)
				tt.trigger(n, b, first)
				if err := <-e.ended; err == nil {
					t.Error("the encoder was not disconnected")
				}
				w.wait(time.Second)
				if got := n.Panics(); got != tt.panics {
					t.Errorf("%d panics are counted", got)
				}
				told := !tt.adopted // it is not told by who can't be trusted
				if events := strings.Join(w.events(), " "); strings.Contains(events, "warning") != told {
					t.Errorf("told: %s", events)
				}
				if told {
					if got := last[live.Warned](w, "warning"); got.Warning.Type != broadcast.InternalError {
						t.Errorf("warned of %+v", got.Warning)
					}
					n.publish(first.StreamKey).send(5 * time.Second).stop()
				}
				w.wait(2 * time.Minute)
				other.hangUp()
				w.wait(time.Minute)
				for _, s := range []live.Stream{first, second} {
					row := w.row(s.ID)
					if row.State != live.Idle {
						t.Errorf("a stream is left %s", row.State)
					}
					for _, id := range row.RecentAssets {
						if a := w.asset(id); a.Status != asset.Ready || a.IsLive {
							t.Errorf("an asset is left %s, live %v", a.Status, a.IsLive)
						}
						w.recorded(id)
					}
				}
				if _, kept := w.recorded(w.row(first.ID).RecentAssets[0]); kept.Duration().Seconds() < 7 {
					t.Errorf("%v are kept of what was sent", kept.Duration())
				}
				if _, whole := w.recorded(w.row(second.ID).RecentAssets[0]); whole.Duration().Seconds() < 130 {
					t.Errorf("the other recording has %v", whole.Duration())
				}
			})
		})
	}
}
