// Package subtitles generates subtitles for a broadcast while it is live: it decides which text tracks there are, and
// which speech engine writes them. It must never know how a broadcast lives or is stored. Its goroutines are those of
// media/livespeech.
package subtitles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/delivered"
	"millrace/internal/media/livespeech"
	"millrace/internal/media/speech"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// Generator makes subtitles of what is said in broadcasts; nil: none can be made.
type Generator struct {
	Engines *speech.Engines
	Decoder livespeech.Decoder
	Objects delivered.Objects // what is stored
	// Rules are those of an environment.
	Rules func(ctx context.Context, e id.Environment) (speech.Rules, error)
	// Phrases are those of vocabularies, joined.
	Phrases func(ctx context.Context, e id.Environment, vocabularies []string) ([]string, error)
}

// latency is after how much speech without a pause words become final while a broadcast goes on, where an engine does
// not tell them sooner, as PocketSphinx does.
const latency = 4 * time.Second

// Tracks are the tracks that are made of a broadcast's sound. That no engine takes the language is an error of the
// tracks alone. No engine is asked whether it runs: the encoder waits for this.
func (gen *Generator) Tracks(ctx context.Context, s live.Stream) (out []asset.LiveText, err error) {
	for _, g := range s.Settings.GeneratedSubtitles {
		t := asset.LiveText{
			Name: g.Name, LanguageCode: g.LanguageCode, Passthrough: g.Passthrough, Source: asset.GeneratedLive,
			Speech: &asset.Speech{Language: g.LanguageCode},
		}
		if gen == nil {
			t.Problem = "this service does not recognise speech"
			out = append(out, t)
			continue
		}
		if t.Speech.Phrases, err = gen.Phrases(ctx, s.Environment, g.VocabularyIDs); err != nil {
			return nil, fmt.Errorf("read vocabularies: %w", err)
		}
		rules, err := gen.rules(ctx, s.Environment)
		if err != nil {
			return nil, err
		}
		if none, ok := errors.AsType[*speech.NoEngineError](gen.Engines.Takes(g.LanguageCode, rules)); ok {
			t.Problem = none.Message
		}
		out = append(out, t)
	}
	return out, nil
}

func (gen *Generator) rules(ctx context.Context, e id.Environment) (speech.Rules, error) {
	rules, err := gen.Rules(ctx, e)
	if err != nil {
		return nil, fmt.Errorf("read which engine recognises speech: %w", err)
	}
	return rules, nil
}

// engine is the one for a language that runs.
func (gen *Generator) engine(ctx context.Context, e id.Environment, language string) (speech.Engine, error) {
	rules, err := gen.rules(ctx, e)
	if err != nil {
		return nil, err
	}
	return gen.Engines.For(ctx, language, rules)
}

// Of are the tracks of a recording that are made of its sound.
func (gen *Generator) Of(a asset.Asset) (out []asset.Track) {
	for _, t := range a.Tracks {
		if gen != nil && t.OfBroadcast() && t.Speech != nil {
			out = append(out, t)
		}
	}
	return out
}

// Reports are told how the subtitles of a broadcast are getting on, from any goroutine.
type Reports struct {
	Warn   func(message string)     // once, that something is missing, and why
	Missed func(long time.Duration) // of what was said, for which there are no cues as the engine was behind
	Broken func(why error)          // of a panic
}

// Run makes cues of what is said until the broadcast ends: of one track of a recording, into its rendition at the edge.
func (gen *Generator) Run(
	ctx context.Context, e id.Environment, t asset.Track, edge *window.Edge, to Reports, log *slog.Logger,
) {
	livespeech.Run(ctx, livespeech.Options{
		Edge: edge, Rendition: t.Rendition, Decoder: gen.Decoder, Warn: to.Warn, Missed: to.Missed, Broken: to.Broken,
		Logger: log,
		Engine: func(ctx context.Context) (speech.Engine, error) { return gen.engine(ctx, e, t.Speech.Language) },
		Config: speech.Config{
			Language: t.Speech.Language, Phrases: t.Speech.Phrases, MaxLatency: latency, Effort: speech.Steady,
		},
		Init: edge.Source(timeline.MainAudio, gen.Objects).Init,
	})
}
