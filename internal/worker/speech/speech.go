// Package speech performs the job track.speech: it turns the speech in an audio track into a text track. It must never
// know HTTP serving or SQL. It starts no goroutine.
package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/language"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/captions"
	"millrace/internal/media/download"
	"millrace/internal/media/objectkey"
	"millrace/internal/media/speech"
	"millrace/internal/storage/blob"
	"millrace/internal/worker/assetfile"
	"millrace/internal/worker/attempt"
)

// Decoder turns sound into samples; encode.Engine fits.
type Decoder interface {
	PCM(
		ctx context.Context, input func(context.Context, io.Writer) error,
		output func(context.Context, io.Reader) error,
	) error
	PCMOfFile(ctx context.Context, path string, fromStart bool, output func(context.Context, io.Reader) error) error
}

// Worker does track.speech.
type Worker struct {
	Assets  asset.TrackMaker
	Store   blob.Store
	Footage assetfile.FootageSource
	Decoder Decoder
	Engines *speech.Engines
	// Rules are those of an environment.
	Rules   func(ctx context.Context, env id.Environment) (speech.Rules, error)
	Most    int    // pieces of one file that are recognised at once; each waits for a processor
	Scratch string // folder for sound that has to lie in a file
	Now     func() time.Time
}

const attempts = 8

// Handler is its place in the queue.
func (w *Worker) Handler() job.Handler {
	return job.Handler{Kind: asset.JobSpeech, MaxAttempts: attempts, Timeout: 24 * time.Hour, Work: w.work}
}

func (w *Worker) work(ctx context.Context, j job.Job) error {
	args, err := job.Decode[asset.TrackArgs](j)
	if err != nil {
		return err
	}
	drop := func(ctx context.Context, a asset.Asset) error { return w.drop(ctx, a, args.Track) }
	return attempt.Task[asset.Track]{
		Assets: w.Assets, Asset: args.Asset, Media: args.Media,
		Cannot: "what is said can't be recognised", Failed: "what is said could not be recognised",
		Find: func(a asset.Asset) (asset.Track, attempt.State) {
			t, is := attempt.TrackOf(a, args.Track)
			if is == attempt.Wanted && (t.Speech == nil || a.Index == "") {
				is = attempt.Ended
			}
			return t, is
		},
		Work: w.attempt, Drop: drop,
		Fail: func(ctx context.Context, a asset.Asset, t asset.Track, why asset.Errors) error {
			why.Type = "generation_failed"
			if err := w.Assets.TrackFailed(ctx, a.ID, t.ID, why, w.Now()); err != nil {
				return err
			}
			return drop(ctx, a)
		},
	}.Do(ctx, j)
}

func (w *Worker) attempt(ctx context.Context, a asset.Asset, t asset.Track) error {
	rules, err := w.Rules(ctx, a.Environment)
	if err != nil {
		return err
	}
	engine, err := w.Engines.For(ctx, t.Speech.Language, rules)
	if none, ok := errors.AsType[*speech.NoEngineError](err); ok && none.Temporary {
		return fault.Wrap(fault.Unavailable, err, "%s", none.Message)
	} else if ok {
		return fault.Wrap(fault.Invalid, err, "%s", none.Message)
	}
	if err != nil {
		return err
	}
	said, err := w.recognise(ctx, a, t, engine)
	if err != nil {
		return err
	}
	d := document(said)
	t.Object, t.Rendition, t.Duration = key(a, t.ID), string(t.ID), d.End().Seconds()
	if t.Speech.Language == auto {
		t.LanguageCode, t.Confidence = undetermined, 0
		if tag, bad := language.Parse(said.Language); bad == nil {
			t.LanguageCode, t.Confidence = tag.String(), said.Confidence
		}
	}
	if err := w.Store.Put(ctx, t.Object, bytes.NewReader(d.AppendVTT(nil))); err != nil {
		return fmt.Errorf("store text track: %w", err)
	}
	return w.Assets.TrackReady(ctx, a.ID, t, w.Now())
}

// auto asks for the language to be found out, and undetermined says that it was not.
const auto, undetermined = "auto", "und"

// document makes cues of words.
func document(said speech.Transcript) captions.Document {
	var c speech.Cues
	all := append(c.Add(said.Words, 0), c.Flush()...)
	out := make([]captions.Cue, 0, len(all))
	for _, cue := range all {
		out = append(out, cue.Caption())
	}
	return captions.New(out)
}

// recognise reads the sound and has it recognised.
func (w *Worker) recognise(
	ctx context.Context, a asset.Asset, t asset.Track, engine speech.Engine,
) (said speech.Transcript, err error) {
	batch := speech.Batch{
		Engine: engine, Most: w.Most, Length: time.Duration(a.Facts.Duration * float64(time.Second)),
		Progress: w.progress(ctx, a, t),
	}
	begin := sync.OnceFunc(func() { // what is left is told by the time since; that it can't be is no reason to end
		_ = w.Assets.TrackProgress(ctx, a.ID, t.ID, 0, w.Now())
	})
	listen := func(ctx context.Context, pcm io.Reader) (bad error) {
		said, bad = batch.Run(ctx, pcm, speech.Config{
			Language: t.Speech.Language, Phrases: t.Speech.Phrases, Effort: speech.Thorough,
			Wanted: func(ctx context.Context) error {
				if gone := w.wanted(ctx, a, t); gone != nil {
					return gone
				}
				begin()
				return nil
			},
		})
		return bad
	}
	if t.Speech.Of != "" {
		return said, w.alternate(ctx, a, t, listen)
	}
	f, err := w.Footage.Footage(ctx, a, download.Want{Sound: true})
	if err != nil {
		return said, err
	}
	if len(f.Renditions) == 0 {
		return said, fault.New(fault.Invalid, "the asset has no audio")
	}
	plan, err := download.Plan(ctx, f.Zero, f.Renditions)
	if err != nil {
		return said, fmt.Errorf("plan sound: %w", err)
	}
	return said, w.Decoder.PCM(ctx, func(ctx context.Context, in io.Writer) error {
		_, bad := io.Copy(in, plan.Reader(ctx))
		return bad // the decoder says what was written
	}, listen)
}

// alternate recognises an audio track with a file of its own.
func (w *Worker) alternate(
	ctx context.Context, a asset.Asset, t asset.Track, listen func(context.Context, io.Reader) error,
) (err error) {
	sound, _ := attempt.TrackOf(a, t.Speech.Of)
	if sound.Object == "" {
		return fault.New(fault.Invalid, "the audio track was deleted")
	}
	path := w.sound(t.ID)
	defer func() { err = errors.Join(err, attempt.Discard(path)) }()
	if err = w.fetch(ctx, sound.Object, path); err != nil {
		return err
	}
	fragmented, err := isFragmented(path)
	if err != nil {
		return err
	}
	return w.Decoder.PCMOfFile(ctx, path, fragmented, listen)
}

// wanted returns an error where the track was deleted, or its asset. That it can't be found out is no reason to end.
func (w *Worker) wanted(ctx context.Context, a asset.Asset, t asset.Track) error {
	now, err := w.Assets.Find(ctx, a.ID)
	if _, is := attempt.TrackOf(now, t.ID); attempt.Absent(err) || err == nil && is == attempt.Gone {
		return errGone
	}
	return nil
}

// errGone says that what is said would be recognised for nobody.
var errGone = errors.New("the track was deleted")

// progress writes down how much is recognised. That it can't be is no reason to end, unless the track was deleted.
func (w *Worker) progress(ctx context.Context, a asset.Asset, t asset.Track) func(time.Duration) error {
	var last attempt.Step
	return func(done time.Duration) error {
		if a.Facts.Duration <= 0 {
			return nil
		}
		percent, now := min(100*done.Seconds()/a.Facts.Duration, 99), w.Now()
		if !last.Worth(percent, now) {
			return nil
		}
		last = attempt.Step{Percent: percent, At: now}
		if err := w.Assets.TrackProgress(ctx, a.ID, t.ID, percent, now); attempt.Absent(err) {
			return errGone
		}
		return nil
	}
}

func key(a asset.Asset, t id.Track) string { return objectkey.Track(a.Media, t, "vtt") }

// drop removes what was stored for a track that is not there, unless other assets use the asset's media.
func (w *Worker) drop(ctx context.Context, a asset.Asset, t id.Track) error {
	return assetfile.DropTrack(ctx, w.Store, w.Assets, a, key(a, t))
}
