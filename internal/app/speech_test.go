package app

import (
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/control/vocabulary"
	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/storage/db/dbtest"
)

// TestRecognisable: subtitles that can't be generated are refused wherever somebody asks for them, and the refusal says
// what has to be installed or configured. That a server does not run now is no reason.
func TestRecognisable(t *testing.T) {
	t.Parallel()
	d, budget := dbtest.Open(t, dbtest.SQLite(t)), encode.NewBudget(encode.BudgetOptions{Cores: 1})
	accounts, vocabularies := access.New(access.Options{Store: d.Access()}), vocabulary.New(d.Vocabularies())
	env, err := accounts.CreateEnvironment(t.Context(), "News", "production", time.Now())
	known, bad := vocabularies.Create(
		t.Context(), env.ID, vocabulary.Input{Phrases: &[]string{"Zorvex"}}, time.Now())
	if err = errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
	vosk := config.Speech{Program: "/nowhere", Servers: []string{"vosk=ws://192.0.2.1:2700"}}
	for name, tt := range map[string]struct {
		speech config.Speech
		asks   assetopt.GeneratedSubtitle
		says   string // "": it is taken
	}{
		"a server that is away": {vosk, assetopt.GeneratedSubtitle{
			LanguageCode: "de", VocabularyIDs: []string{string(known.ID)},
		}, ""},
		"no model for it": {
			config.Speech{Program: "/nowhere"}, assetopt.GeneratedSubtitle{LanguageCode: "de"}, "(--speech-servers)",
		},
		"nothing installed": {
			config.Speech{Program: "/nowhere"}, assetopt.GeneratedSubtitle{}, "put it beside millrace",
		},
		"an engine that is not configured": {
			config.Speech{Rules: "*=whisper"},
			assetopt.GeneratedSubtitle{LanguageCode: "fr"},
			"whisper is not configured",
		},
		"switched off": {config.Speech{Rules: "*=none"}, assetopt.GeneratedSubtitle{}, "millrace environment captions"},
		"an unknown vocabulary": {
			vosk,
			assetopt.GeneratedSubtitle{VocabularyIDs: []string{string(known.ID), "nobody"}},
			`transcription_vocabulary_ids: there is no vocabulary "nobody"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engines, failed := speechEngines(config.Config{Speech: tt.speech}, budget)
			if failed != nil {
				t.Fatal(failed)
			}
			n := &node{access: accounts}
			n.speech, n.vocabularies = engines, vocabularies
			streams := live.New(live.Options{Store: d.LiveStreams(), Recognition: n.recognisable})
			assets := asset.New(asset.Options{Store: d.Assets(), Recognition: n.recognisable})
			uploads := upload.New(upload.Options{Store: d.Uploads(), Recognition: n.recognisable})
			all, ctx, now := []assetopt.GeneratedSubtitle{tt.asks}, t.Context(), time.Now()
			want := func(what, path string, err error) {
				t.Helper()
				if tt.says == "" {
					if err != nil && !fault.Is(err, fault.NotFound) {
						t.Errorf("%s: %v", what, err)
					}
					return
				}
				said := strings.Join(fault.Messages(err), "\n")
				if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(said, path+"[0].") ||
					!strings.Contains(said, tt.says) {
					t.Errorf("%s: %v, want %q", what, err, tt.says)
				}
			}
			_, failed = streams.Create(ctx, env.ID, live.CreateInput{GeneratedSubtitles: all}, now)
			want("a stream", "generated_subtitles", failed)
			s, failed := streams.Create(ctx, env.ID, live.CreateInput{}, now)
			if failed != nil {
				t.Fatal(failed)
			}
			_, failed = streams.SetGeneratedSubtitles(ctx, env.ID, s.ID, all, now)
			want("a stream that is there", "generated_subtitles", failed)
			all[0].VocabularyIDs = nil // for live streams alone
			if strings.Contains(tt.says, "vocabulary") {
				return
			}
			input := assetopt.Options{
				Inputs: []assetopt.Input{{URL: "https://example.com/a.mp4", GeneratedSubtitles: all}},
			}
			_, failed = assets.Create(ctx, env.ID, asset.CreateInput{Options: input}, now)
			want("an asset", "inputs[0].generated_subtitles", failed)
			_, failed = assets.GenerateTracks(ctx, env.ID, "none", "none", all, now)
			want("a track", "generated_subtitles", failed)
			input.Inputs[0].URL = ""
			_, failed = uploads.Create(ctx, env.ID, upload.CreateInput{Options: input, CORSOrigin: "*"}, now)
			want("an upload", "new_asset_settings.inputs[0].generated_subtitles", failed)
		})
	}
}
