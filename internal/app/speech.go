package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/broadcast/subtitles"
	"millrace/internal/config"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/vocabulary"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/filter"
	"millrace/internal/media/speech/local"
	"millrace/internal/media/speech/remote"
	"millrace/internal/mediastore"
	workerspeech "millrace/internal/worker/speech"
)

// speechProgram is the path of millrace-speech; empty: it is not there.
func speechProgram(cfg config.Config) string {
	path := cfg.Speech.Program
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return ""
		}
		path = filepath.Join(filepath.Dir(self), "millrace-speech")
	}
	whole, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	if _, err = os.Stat(whole); err != nil {
		return ""
	}
	return whole
}

// speechEngines are those that recognise speech, in the order in which they are tried.
func speechEngines(cfg config.Config, budget *encode.Budget) (*speech.Engines, error) {
	rules, err := speech.ParseRules(cfg.Speech.Rules)
	if err != nil {
		return nil, err
	}
	e := &speech.Engines{
		All:     []speech.Engine{local.New(local.Options{Program: speechProgram(cfg), Budget: budget})},
		Default: rules,
		Now:     clock,
	}
	if cfg.Speech.FFmpegModel != "" {
		engine, err := speechFilter(cfg, budget)
		if err != nil {
			return nil, err
		}
		e.All = append(e.All, engine)
	}
	for _, s := range cfg.Speech.Servers {
		kind, where, _ := strings.Cut(s, "=")
		engine, err := speechServer(cfg, kind, where)
		if err != nil {
			return nil, err
		}
		e.All = append(e.All, engine)
	}
	return e, nil
}

// speechFilter is the engine in ffmpeg.
func speechFilter(cfg config.Config, budget *encode.Budget) (speech.Engine, error) {
	program, err := encode.Find("ffmpeg", "")
	if err != nil {
		return nil, fmt.Errorf("prepare speech recognition: %w", err)
	}
	model, err := filepath.Abs(cfg.Speech.FFmpegModel)
	if err != nil {
		return nil, fmt.Errorf("find the model of speech recognition: %w", err)
	}
	return filter.New(filter.Options{FFmpeg: program, Model: model, Budget: budget}), nil
}

// recognition is what recognises speech, and what helps it.
type recognition struct {
	speech       *speech.Engines
	vocabularies *vocabulary.Service
}

func (n *node) prepareSpeech() (err error) {
	n.vocabularies = vocabulary.New(n.db.Vocabularies())
	if n.speech, err = speechEngines(n.cfg, n.ffmpeg.Budget()); err != nil {
		return fmt.Errorf("prepare speech recognition: %w", err)
	}
	return nil
}

// speechRules are an environment's.
func (n *node) speechRules(ctx context.Context, e id.Environment) (speech.Rules, error) {
	env, err := n.access.Environment(ctx, e)
	if err != nil {
		return nil, err
	}
	return speech.ParseRules(env.Captions)
}

// recognisable says what stands in the way of generated subtitles. Whether an engine runs at the moment does not.
func (n *node) recognisable(
	ctx context.Context, e id.Environment, g assetopt.GeneratedSubtitle,
) (out []assetopt.Obstacle, err error) {
	missing, err := n.vocabularies.Missing(ctx, e, g.VocabularyIDs)
	if err != nil {
		return nil, err
	}
	for _, v := range missing {
		out = append(out, assetopt.Obstacle{
			Field: "transcription_vocabulary_ids",
			Message: fmt.Sprintf("there is no vocabulary %q: make one (POST /video/v1/transcription-vocabularies), "+
				"or leave it out", v),
		})
	}
	rules, err := n.speechRules(ctx, e)
	if err != nil {
		return nil, err
	}
	if none, ok := errors.AsType[*speech.NoEngineError](n.speech.Takes(g.LanguageCode, rules)); ok {
		out = append(out, assetopt.Obstacle{Field: "language_code", Message: none.Message})
	}
	return out, nil
}

// liveSpeech is what recognises what is said in broadcasts.
func (n *node) liveSpeech() *subtitles.Generator {
	return &subtitles.Generator{
		Engines: n.speech,
		Decoder: n.ffmpeg,
		Objects: mediastore.Objects{Blob: n.blob},
		Rules:   n.speechRules,
		Phrases: n.vocabularies.Phrases,
	}
}

// speechWorker makes text tracks of sound.
func (n *node) speechWorker(scratch string) *workerspeech.Worker {
	return &workerspeech.Worker{
		Assets:  n.assets,
		Store:   n.blob,
		Footage: n.viewers,
		Decoder: n.ffmpeg,
		Engines: n.speech,
		Rules:   n.speechRules,
		Most:    runtime.NumCPU(),
		Scratch: scratch,
		Now:     clock,
	}
}

// speechServer is an engine elsewhere. It is reached through package fetch, which allows the address in its URL, or
// localhost, since the operator has written it.
func speechServer(cfg config.Config, kind, where string) (speech.Engine, error) {
	client, err := speechClient(cfg, where)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "vosk":
		return remote.NewSocket(remote.SocketOptions{
			Name:    kind,
			Dialect: remote.Vosk,
			URL:     where,
			Client:  client,
			AtOnce:  cfg.Speech.Requests,
		}), nil
	case "sherpa":
		return remote.NewSocket(remote.SocketOptions{
			Name:    kind,
			Dialect: remote.Sherpa,
			URL:     where,
			Client:  client,
			AtOnce:  cfg.Speech.Requests,
		}), nil
	case "whisper":
		return remote.NewHTTP(remote.HTTPOptions{
			Name:    kind,
			Flavour: remote.WhisperCPP,
			URL:     where,
			Client:  client,
		}), nil
	}
	return remote.NewHTTP(remote.HTTPOptions{
		Name:    kind,
		Flavour: remote.OpenAI,
		URL:     where,
		Model:   cfg.Speech.Model,
		Key:     cfg.Speech.Key.Reveal(),
		Client:  client,
		AtOnce:  cfg.Speech.Requests,
	}), nil
}

// speechPatience is how long a server may take to begin its response: as long as it takes to recognise what it was
// sent.
const speechPatience = 5 * time.Minute

func speechClient(cfg config.Config, where string) (*http.Client, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("read URL of speech server: %w", err)
	}
	allow := slices.Clone(cfg.FetchAllow)
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		allow = append(allow, netip.PrefixFrom(addr, addr.BitLen()))
	} else if u.Hostname() == "localhost" {
		allow = append(allow, netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))
	}
	client := fetch.New(fetch.Options{
		Allow:     allow,
		Public:    cfg.WebRTCPublicIPs,
		UserAgent: "millrace/" + cli.Version(),
		Timeouts:  fetch.Timeouts{Header: speechPatience},
	}).HTTP()
	transport, ok := client.Transport.(*http.Transport)
	if !ok {
		return nil, errors.New("the client of package fetch has no http.Transport")
	}
	transport = transport.Clone()
	transport.ForceAttemptHTTP2 = false // websockets want HTTP/1.1
	transport.TLSClientConfig.NextProtos = []string{"http/1.1"}
	// What is sent has a key: it goes to no other address.
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
