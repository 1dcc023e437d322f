package broadcast_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/ingest"
)

// asking has a node ask the others of the world for what they lead, as nodes do that have internal addresses.
func asking(others ...*node) func(*broadcast.Options) {
	return func(o *broadcast.Options) {
		o.Ask = func(ctx context.Context, s id.LiveStream, w live.Writer) (time.Duration, error) {
			for _, n := range others {
				if n.name == w.Node {
					return n.HandOver(ctx, s, w)
				}
			}
			return 0, fault.New(fault.Unavailable, "no such node")
		}
	}
}

// patience is after how long slate begins behind an encoder that has left.
const patience = 500 * time.Millisecond

// near reports whether two durations are equal but for a picture.
func near(seconds, want float64) bool { return math.Abs(seconds-want) < 1.05/fps }

// TestHandOver has the encoder come to another node after it has left: all that the first one had received is recorded,
// and the second one goes on behind it, with the next number.
func TestHandOver(t *testing.T) {
	t.Parallel()
	for _, mode := range []live.LatencyMode{live.Low, live.Standard} {
		for _, away := range []time.Duration{
			0, 100 * time.Millisecond, 800 * time.Millisecond, 2500 * time.Millisecond, 20 * time.Second,
		} {
			t.Run(fmt.Sprintf("%s after %v", mode, away), func(t *testing.T) {
				t.Parallel()
				run(t, func(w *world) {
					a := w.start("a")
					b := w.start("b", asking(a))
					s := w.stream(window(60), func(in *live.CreateInput) { in.LatencyMode = mode })
					a.publish(s.StreamKey).send(11300 * time.Millisecond).stop()
					w.wait(away)
					b.publish(s.StreamKey).send(9 * time.Second).stop()
					w.wait(61 * time.Second)
					w.expect(strings.Fields(begun + " disconnected connected recording " + closed)...)
					times, _ := w.recorded(w.row(s.ID).RecentAssets[0])
					slate := len(times) == 3 && mode == live.Low && away > patience &&
						times[1].Duration <= away.Seconds()
					if n := len(times); n != 2 && !slate || !near(times[0].Duration, 11.3) ||
						!near(times[n-1].Duration, 9) {
						t.Errorf("recorded %v", times)
					}
					line := w.timeline(w.row(s.ID).RecentAssets[0])
					for _, r := range line.Renditions {
						for i, c := range r.Chunks {
							if c.Gap {
								t.Errorf("segment %d of %d of %s is a gap", i, len(r.Chunks), r.ID)
							}
						}
					}
				})
			})
		}
	}
}

// TestHandOverOfWhatIsLive refuses an encoder while another one sends, and lets it in when that one is silent.
func TestHandOverOfWhatIsLive(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a := w.start("a")
		b := w.start("b", asking(a))
		s := w.stream(window(60))
		first := a.publish(s.StreamKey)
		first.stream()
		w.wait(5 * time.Second)
		if _, err := b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
			t.Errorf("a second encoder while the first one sends: %v", err)
		}
		w.wait(5 * time.Second)
		if first.dropped() != nil {
			t.Errorf("the first encoder was dropped: %v", first.dropped())
		}
		first.hangUp()
		w.wait(0)
		second := a.publish(s.StreamKey).send(5 * time.Second) // and is silent then, with its connection open
		w.wait(900 * time.Millisecond)
		if _, err := b.admit(s.StreamKey); !errors.Is(err, ingest.ErrBusy) {
			t.Errorf("a second encoder when the first one has been silent for less than a second: %v", err)
		}
		w.wait(200 * time.Millisecond)
		third := b.publish(s.StreamKey).send(10 * time.Second)
		if !errors.Is(second.dropped(), ingest.ErrReplaced) {
			t.Errorf("the silent encoder was dropped: %v", second.dropped())
		}
		third.stop()
		w.wait(61 * time.Second)
		ended(w, s.ID, 1, []time.Duration{10 * time.Second, 5 * time.Second, 10 * time.Second})
	})
}

// TestHandOverUnasked lets the encoder in where the node that it left can't be asked.
func TestHandOverUnasked(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b", asking()), w.stream(window(60))
		a.publish(s.StreamKey).send(11 * time.Second).stop()
		w.wait(5 * time.Second)
		b.publish(s.StreamKey).send(10 * time.Second).stop()
		w.wait(61 * time.Second)
		w.expect(strings.Fields(begun + " disconnected connected recording " + closed)...)
		if got := w.row(s.ID); len(got.RecentAssets) != 1 || got.Node != "b" {
			t.Errorf("the stream is left as %+v", got)
		}
	})
}

// following is the media sequence number behind what a playlist lists whole.
func following(playlist string) int {
	first := 0
	for line := range strings.Lines(playlist) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "#EXT-X-MEDIA-SEQUENCE:"); ok {
			first, _ = strconv.Atoi(n)
		}
	}
	return first + strings.Count(playlist, "#EXTINF:")
}

// TestHandOverShowsNoEnd has a viewer of the first node wait for a part when the broadcast goes to the second one.
func TestHandOverShowsNoEnd(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a := w.start("a")
		b := w.start("b", asking(a))
		s := w.stream(window(60), func(in *live.CreateInput) { in.LatencyMode = live.Low })
		a.publish(s.StreamKey).send(11300 * time.Millisecond).stop()
		w.wait(0)
		v := a.viewer()
		playlist := v.Playlists(s.PlaybackIDs[0].ID)[0]
		before := v.Expect("before", http.StatusOK, playlist)
		type response struct {
			code int
			text string
		}
		waiting := make(chan response, 1)
		go func() {
			code, text := v.Get(playlist + "?_HLS_msn=" + strconv.Itoa(following(before)))
			waiting <- response{code, text}
		}()
		w.wait(100 * time.Millisecond)
		e := b.publish(s.StreamKey)
		if r := <-waiting; r.code != http.StatusServiceUnavailable {
			t.Errorf("who waited at the first node gets %d: %s", r.code, r.text)
		}
		e.send(5 * time.Second)
		after := b.viewer().Expect("at the second node", http.StatusOK, playlist)
		for line := range strings.Lines(before) {
			uri := strings.TrimSpace(line)
			if strings.HasSuffix(uri, ".m4s") && !strings.HasPrefix(uri, "#") && !strings.Contains(after, uri) {
				t.Errorf("%s was listed and is not any more:\n%s", uri, after)
			}
		}
		e.stop()
		w.wait(61 * time.Second)
	})
}

// TestHandOverLoses has the first node's storage fail before its encoder leaves: the other node is told what is lost
// with the handover, and says so in the stream's and the asset's warnings; that much is missing in the recording.
func TestHandOverLoses(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a := w.start("a")
		b := w.start("b", asking(a))
		s := w.stream(window(60))
		e := a.publish(s.StreamKey).send(9 * time.Second)
		w.wait(0)
		a.power.storage.Store(true)
		e.send(11 * time.Second).stop()
		w.wait(100 * time.Millisecond)
		began := time.Now()
		second := b.publish(s.StreamKey)
		if took := time.Since(began); took < 4*time.Second || took > 6*time.Second {
			t.Errorf("the encoder waited %v for its place", took)
		}
		second.send(9 * time.Second).stop()
		w.wait(61 * time.Second)
		times, _ := w.recorded(w.row(s.ID).RecentAssets[0])
		var sum float64
		for _, r := range times {
			sum += r.Duration
		}
		var said float64
		on, of := last[live.Warned](w, "warning").Warning, last[asset.Warned](w, "asset.warning").Warning
		_, err := fmt.Sscanf(on.Message, "%f s of the recording are missing", &said)
		if err != nil || on.Type != broadcast.HandoverIncomplete {
			t.Errorf("the stream is warned of %+v", on)
		}
		if of.Type != on.Type || of.Message != on.Message {
			t.Errorf("the asset is warned of %+v", of)
		}
		if lost := 20 + 9 - sum; said < 4 || math.Abs(lost-said) > 0.2 {
			t.Errorf("%.2f s are missing, told of are %.2f; recorded %v", lost, said, times)
		}
	})
}

// TestHandOverMoves: from the moment a node gives up a broadcast until the next node can show it, the answer is that
// the broadcast moves, not that it does not exist.
func TestHandOverMoves(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a := w.start("a")
		moves := func(s id.LiveStream, m id.Media, asset id.Asset, want bool) {
			t.Helper()
			_, watched := a.Watched(t.Context(), s)
			_, earlier := a.Earlier(t.Context(), s, m)
			_, recorded := a.OfAsset(t.Context(), s, asset)
			for _, err := range []error{watched, earlier, recorded} {
				if err == nil || edgeview.Moved(err) != want {
					t.Errorf("who asks is told %v", err)
				}
			}
			if a.Leaving().Moves(s) != want {
				t.Errorf("the broadcast moves: %v, want %v", !want, want)
			}
		}
		var m id.Media
		var of id.Asset
		handedOver := false
		b := w.start("b", func(o *broadcast.Options) {
			o.Ask = func(ctx context.Context, s id.LiveStream, by live.Writer) (time.Duration, error) {
				lost, err := a.HandOver(ctx, s, by)
				if err == nil {
					handedOver = true
					moves(s, m, of, true)
				}
				return lost, err
			}
		})
		s := w.stream(window(60))
		a.publish(s.StreamKey).send(11 * time.Second).stop()
		w.wait(0)
		found, err := a.Watched(t.Context(), s.ID)
		w.must(err)
		m, of = found.About().Media, found.About().Asset
		second := b.publish(s.StreamKey).send(9 * time.Second)
		if !handedOver {
			t.Error("the broadcast was not handed over")
		}
		moves(s.ID, m, of, true)
		second.send(2 * time.Second)
		moves(s.ID, m, of, false)
		second.stop()
		w.wait(61 * time.Second)
	})
}
