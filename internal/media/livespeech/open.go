package livespeech

import (
	"context"
	"errors"
	"fmt"
	"time"

	"millrace/internal/media/speech"
)

// pauseFirst and pauseMost are how long it is waited before an engine that does not run is tried again: at first, and
// at most.
const pauseFirst, pauseMost = time.Second, 30 * time.Second

// open begins a stream of an engine. One that does not run is tried again until the broadcast ends: it may be about to
// start. The error says that there is no stream, which has been told.
func (r *runner) open(ctx context.Context) error {
	going, end := context.WithCancelCause(ctx)
	defer end(nil)
	r.wait.Go(r.guarded("watch edge", func() { r.watch(going, end) }))
	for pause := pauseFirst; ; pause = min(2*pause, pauseMost) {
		err := r.try(ctx, going)
		if err == nil {
			return nil
		}
		if going.Err() != nil {
			return fmt.Errorf("wait for an engine: %w", context.Cause(going))
		}
		r.Logger.WarnContext(ctx, "speech can't be recognised", "engine", r.engine, "error", err)
		if none, ok := errors.AsType[*speech.NoEngineError](err); ok && !none.Temporary {
			r.warn("subtitles can't be generated: " + none.Message)
			return err
		}
		full := errors.Is(err, speech.ErrNoPlace)
		r.warn("subtitles can't be generated at the moment: " + whatFails(r.engine, full))
		tick := time.NewTimer(pause)
		select {
		case <-tick.C:
		case <-going.Done():
			tick.Stop()
			return fmt.Errorf("wait for an engine: %w", context.Cause(going))
		}
		if full { // the health of the stream says so, for as long as it is
			r.Missed(pause)
		}
		// What was said in the meantime is over: it would only be in the way of what is said now.
		r.follower.Close()
		if r.follower, err = r.follow(ctx); err != nil {
			return err
		}
	}
}

// try opens a stream, which goes on until ctx ends, with an engine that is found before going ends.
func (r *runner) try(ctx, going context.Context) error {
	engine, err := r.Engine(going)
	if err != nil {
		return err
	}
	r.engine, r.corrector = engine.Name(), speech.NewCorrector(engine, r.Config.Phrases)
	r.sentences = speech.NewSentences(engine, r.Config.Language)
	if r.stream, err = engine.Open(ctx, r.Config); err != nil {
		return fmt.Errorf("open stream: %w", err)
	}
	return nil
}

var errEnded = errors.New("the broadcast has ended")

// watch ends what waits for an engine when the broadcast has ended.
func (r *runner) watch(ctx context.Context, end context.CancelCauseFunc) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for !r.Edge.Ended() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
	end(errEnded)
}

// whatFails says what is wrong with an engine, where one was found.
func whatFails(engine string, full bool) string {
	switch {
	case full:
		return engine +
			" recognises as many live streams on this machine as its processors carry; one that ends makes place"
	case engine == "":
		return "speech recognition does not run"
	}
	return engine + " does not run"
}

// warn tells once that what was said is missing.
func (r *runner) warn(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.warned {
		r.warned = true
		r.Warn(message)
	}
}
