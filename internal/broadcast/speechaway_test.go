package broadcast_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/speech"
	workerspeech "millrace/internal/worker/speech"
)

// TestProbeIsNotWaitedFor: an engine that does not say whether it runs is not waited for, neither by the encoder nor at
// the end.
func TestProbeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		engine := &ear{probe: func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}}
		n, s := w.start("a", hears(engine)), w.stream(low(0), subtitled("en"))
		began := time.Now()
		e := n.publish(s.StreamKey)
		if took := time.Since(began); took > 0 {
			t.Errorf("the encoder waited for %s", took)
		}
		e.send(10 * time.Second)
		row := w.row(s.ID)
		if tr := w.generatedLive(row.ActiveAsset); row.State != live.Active || tr.Status != asset.TrackReady {
			t.Errorf("the stream is %s, the track %s", row.State, tr.Status)
		}
		e.stop()
		w.wait(time.Second)
		if row = w.row(s.ID); row.State != live.Idle {
			t.Errorf("at the end the stream is %s", row.State)
		}
	})
}

// TestEngineComesBack: an engine that is away when a stream begins is used once it runs; one that is away when the
// stream ends costs the final track an attempt, and no more.
func TestEngineComesBack(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		away := errors.New("the server is still loading its model")
		engine := &ear{}
		starts := time.Now().Add(12 * time.Second)
		engine.probe = func(context.Context) error {
			if time.Now().Before(starts) {
				return away
			}
			return nil
		}
		n, s := w.start("a", hears(engine)), w.stream(low(0), subtitled("en"))
		e := n.publish(s.StreamKey).send(40 * time.Second)
		a := w.row(s.ID).ActiveAsset
		before := w.generatedLive(a)
		all := strings.Join(w.textSegments(n.viewer(), w.playbackID(a), before), "")
		// Where the engine begins as a segment does, it may begin with the one before. Those words come late, and as
		// each one is shown for a second, so do all others.
		if said(all, "w5") || !said(all, "w30") {
			t.Errorf("the track is %s, and listed:\n%s", before.Status, all)
		}
		if told := strings.Count(strings.Join(w.events(), " ")+" ", " warning "); told != 1 {
			t.Errorf("warned %d times", told)
		}
		e.stop()
		w.wait(time.Second)
		w.finish(a)

		final := func() asset.Track {
			for _, tr := range textTracks(w.asset(a)) {
				if tr.TextSource == asset.GeneratedFinal {
					return tr
				}
			}
			t.Fatal("there is no final track")
			return asset.Track{}
		}
		starts = time.Now().Add(time.Minute)
		worker := &workerspeech.Worker{
			Assets: w.assets, Store: w.objects, Footage: n.playback, Decoder: engine, Most: 1, Now: time.Now,
			Engines: &speech.Engines{All: []speech.Engine{engine}, Now: time.Now},
			Rules:   func(context.Context, id.Environment) (speech.Rules, error) { return nil, nil },
		}
		args := job.New(asset.JobSpeech, string(final().ID), asset.TrackArgs{
			Asset: a, Track: final().ID, Media: w.asset(a).Media,
		})
		attempt := job.Job{Kind: args.Kind, Args: args.Args, Attempt: 1, MaxAttempts: worker.Handler().MaxAttempts}
		err := worker.Handler().Work(w.ctx, attempt)
		if tr := final(); !fault.Is(err, fault.Unavailable) || !errors.As(err, new(*speech.NoEngineError)) ||
			tr.Status != asset.TrackPreparing {
			t.Errorf("without the engine: %v, the track is %s", err, tr.Status)
		}
		w.wait(2 * time.Minute)
		attempt.Attempt++
		w.must(worker.Handler().Work(w.ctx, attempt))
		address := "/" + string(w.playbackID(a)) + "/text/" + string(final().ID) + ".vtt"
		if text := n.viewer().Expect("file", http.StatusOK, address); !strings.Contains(text, "better") {
			t.Errorf("recognised:\n%s", text)
		}
	})
}

// TestPhrasesStay: a broadcast keeps the vocabulary that it began with, in the stream that an engine begins later and
// in the final track.
func TestPhrasesStay(t *testing.T) {
	t.Parallel()
	run(t, func(w *world) {
		starts := time.Now().Add(5 * time.Second)
		engine := &ear{probe: func(context.Context) error {
			if time.Now().Before(starts) {
				return errors.New("not yet")
			}
			return nil
		}}
		phrases := []string{"Zorvex"}
		n := w.start("a", hears(engine), func(o *broadcast.Options) {
			o.Speech.Phrases = func(context.Context, id.Environment, []string) ([]string, error) { return phrases, nil }
		})
		s := w.stream(low(0), subtitled("en"))
		e := n.publish(s.StreamKey).send(2 * time.Second)
		phrases = []string{"Quellimar"}
		e.send(20 * time.Second)
		a := w.row(s.ID).ActiveAsset
		e.stop()
		w.wait(time.Second)
		if len(engine.opened) != 1 || !slices.Equal(engine.opened[0].Phrases, []string{"Zorvex"}) {
			t.Errorf("opened with %+v", engine.opened)
		}
		for _, tr := range textTracks(w.asset(a)) {
			if !slices.Equal(tr.Speech.Phrases, []string{"Zorvex"}) {
				t.Errorf("%s has %v", tr.TextSource, tr.Speech.Phrases)
			}
		}
	})
}
