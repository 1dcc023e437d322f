package broadcast_test

import (
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/media/ingest"
)

// TestHealth measures an encoder over its life.
func TestHealth(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream()
		if got := n.Health(w.row(s.ID)); got.Status != live.HealthIdle || got.Encoder != nil || len(n.Encoders()) != 0 {
			t.Errorf("before: %+v", got)
		}
		var lost int64
		ctx, sink, err := n.Admit(w.ctx, ingest.Publication{
			Protocol: "srt", Key: s.StreamKey, Remote: netip.MustParseAddrPort("192.0.2.1:4711"), Encoder: "first name",
			Link: func() ingest.LinkStats {
				lost += 3
				return ingest.LinkStats{
					Encoder: "full name", Packets: 1000 * lost, Lost: lost, Retransmitted: lost,
					RTT: 20 * time.Millisecond,
				}
			},
		})
		w.must(err)
		e := (&encoder{t: t, ctx: ctx, sink: sink}).send(21 * time.Second)
		got := n.Health(w.row(s.ID))
		if got.Status != live.HealthLive || len(got.Samples) != 4 || got.Trouble != nil ||
			got.Encoder.Name != "full name" || got.Encoder.Remote != "192.0.2.1:4711" ||
			got.Encoder.Protocol != "srt" || got.Encoder.VideoFrames < 199 || got.Encoder.Counts.PacketsLost != 12 ||
			!got.Encoder.Until.IsZero() {
			t.Errorf("live: %+v, %+v", got, got.Encoder)
		}
		last := got.Samples[3]
		const edge = 1.01 / 5 // the frame of the moment in which a sample is taken counts before or behind it
		if last.GOP != time.Second || math.Abs(last.Video.Rate-fps) > edge || last.Audio.Rate < 46 ||
			last.Pace < 0.97 || last.Counts.PacketsLost != 3 || last.RTT != 20*time.Millisecond {
			t.Errorf("a sample: %+v", last)
		}
		if all := n.Encoders(); len(all) != 1 || all[0].Stream != s.ID || n.Broadcasts() != 1 {
			t.Errorf("connected: %+v", all)
		}
		w.wait(6 * time.Second)
		if got := n.Health(w.row(s.ID)).Status; got != live.HealthSilent {
			t.Errorf("an encoder that sends nothing is %s", got)
		}
		e.stop()
		w.wait(time.Second)
		got = n.Health(w.row(s.ID))
		if got.Status != live.HealthAway || got.Samples != nil || got.Encoder == nil ||
			!strings.Contains(got.Encoder.Cause, "ended the stream") || got.Encoder.Until.IsZero() ||
			got.Encoder.VideoFrames != 21*fps {
			t.Errorf("away: %+v, %+v", got, got.Encoder)
		}
		w.wait(61 * time.Second)
		if got := n.Health(w.row(s.ID)); got.Status != live.HealthIdle || got.Encoder == nil || len(n.Encoders()) != 0 {
			t.Errorf("afterwards: %+v", got)
		}
	})
}

// TestHealthOfAudioOnly sees nothing of the video that is dropped.
func TestHealthOfAudioOnly(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(audioOnly)
		e := n.publish(s.StreamKey).send(40 * time.Second)
		got := n.Health(w.row(s.ID))
		if got.Encoder.VideoFrames != 0 || got.Samples[3].Video != (live.Flow{}) || got.Samples[3].GOP != 0 ||
			got.Trouble != nil {
			t.Errorf("measured %+v, %+v", got, got.Encoder)
		}
		e.stop()
		w.wait(61 * time.Second)
		w.expect(strings.Fields(begun + " " + closed)...)
	})
}

// TestHealthElsewhere says where the figures are.
func TestHealthElsewhere(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		a, b, s := w.start("a"), w.start("b"), w.stream()
		e := a.publish(s.StreamKey).send(10 * time.Second)
		if x, y := a.Health(w.row(s.ID)).Status, b.Health(w.row(s.ID)).Status; x != live.HealthLive ||
			y != live.HealthElsewhere {
			t.Errorf("a says %s, b says %s", x, y)
		}
		e.stop()
		w.wait(61 * time.Second)
	})
}

// TestWarnings tells of an encoder's troubles once, in the log and as events; ones that flap flood nobody.
func TestWarnings(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		n, s := w.start("a"), w.stream(window(1800))
		e := n.publish(s.StreamKey)
		e.noAudio = true
		e.send(30 * time.Second)
		if got := n.Health(w.row(s.ID)).Trouble; len(got) != 1 || got[0].Type != "audio_missing" {
			t.Fatalf("troubles %+v", got)
		}
		got := last[live.Warned](w, "warning")
		if got.ID != s.ID || got.Warning.Type != "audio_missing" ||
			got.Warning.Message != "The encoder sends no sound." {
			t.Errorf("told %+v", got)
		}
		e.stop()
		if got := n.Health(w.row(s.ID)).Trouble; got != nil {
			t.Errorf("nobody sends, and wrong is %+v", got)
		}
		for range 10 {
			e := n.publish(s.StreamKey)
			e.noAudio = true
			e.send(20 * time.Second).stop()
		}
		w.wait(1801 * time.Second)
		warnings := 0
		for _, e := range w.events() {
			if e == "warning" {
				warnings++
			}
		}
		if warnings != 1 {
			t.Errorf("told %d times", warnings)
		}
		if n := strings.Count(w.logged(), `level=WARN msg="ingest warning"`); n != 1 {
			t.Errorf("%d warnings in the log", n)
		}
		if strings.Contains(w.logged(), s.StreamKey) {
			t.Error("the log shows a stream key")
		}
	})
}
