// Package filter is the engine inside ffmpeg: the filter whisper, which ffmpeg has from version 8 on where it was built
// with whisper.cpp. It runs on this machine, in processes that are bounded and confined like every ffmpeg; the operator
// provides the model file.
//
// The filter supports no vocabulary, returns times of phrases only, and does not report the language that it detected.
package filter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
)

// Name is what configuration calls the engine.
const Name = "ffmpeg"

const (
	// longestPiece is how much sound one process is given: whisper looks at 30 s at once, so that the filter cuts no
	// word in two.
	longestPiece = 25 * time.Second
	queue        = 30 * time.Second // more than a piece, so that the filter does not begin before it has all of it
	threads      = 4                // that whisper.cpp takes
	// patience is how long a piece may take: this, and twenty times its length.
	patience  = time.Minute
	maxLine   = 64 << 10 // bytes of a phrase
	maxPhrase = 10_000   // phrases of a piece
)

// Options of an Engine.
type Options struct {
	FFmpeg string // absolute path
	Model  string // absolute path of a model in whisper.cpp's format (ggml)
	// Budget has places for the processes that recognise what has ended. What is live has a share of its own.
	Budget *encode.Budget
	Args   []string // before all others; ffmpeg needs none
}

// Engine is ffmpeg's filter.
type Engine struct{ opt Options }

// New returns an engine; nothing runs yet.
func New(o Options) *Engine { return &Engine{o} }

// Name implements speech.Engine.
func (e *Engine) Name() string { return Name }

// Abilities implements speech.Engine. A model whose file name has ".en" in it knows English alone, as whisper.cpp names
// them.
func (e *Engine) Abilities() (speech.Abilities, error) {
	can := speech.Abilities{Punctuation: true, Languages: []string{speech.AnyLanguage}, LongestPiece: longestPiece}
	if strings.Contains(filepath.Base(e.opt.Model), ".en") {
		can.Languages = []string{"en"}
	}
	info, err := os.Stat(e.opt.Model)
	switch {
	case err != nil:
		return can, fmt.Errorf("the model is not there: %w", err)
	case !info.Mode().IsRegular():
		return can, errors.New("the model is no file: whisper.cpp's models are files such as ggml-base.bin")
	}
	return can, nil
}

// Probe implements speech.Engine: it recognises a moment of silence.
func (e *Engine) Probe(ctx context.Context) error {
	if _, err := e.Abilities(); err != nil {
		return err
	}
	silence := strings.NewReader(string(make([]byte, speech.SampleRate))) // half a second
	ignore := func(speech.Result) error { return nil }
	err := e.run(ctx, encode.OnDemand, silence, time.Second/2, speech.Config{Language: "en"}, ignore)
	if exit, ok := errors.AsType[*encode.ExitError](err); ok && strings.Contains(exit.Stderr, "No such filter") {
		return errors.New("this ffmpeg has no filter whisper: it takes version 8 or later, built with --enable-whisper")
	}
	if encode.IsLate(err) {
		return fmt.Errorf("%w (%w)", speech.ErrNotInTime, err)
	}
	return err
}

// Open implements speech.Engine: the filter is given windows of sound that have ended.
func (e *Engine) Open(ctx context.Context, c speech.Config) (speech.Stream, error) {
	return speech.Windowed(ctx, live{e}, c), nil
}

// live is the engine as live streams have it: their processes wait for no place.
type live struct{ *Engine }

// Transcribe implements speech.Engine.
func (l live) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	return l.run(ctx, encode.OnDemand, pcm, longestPiece, c, emit)
}

// Transcribe implements speech.Engine. It waits for processors.
func (e *Engine) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	release, err := e.opt.Budget.AcquirePart(ctx, encode.Background, threads, c.Left)
	if err != nil {
		return err
	}
	defer release()
	if err = c.StillWanted(ctx); err != nil {
		return err
	}
	return e.run(ctx, encode.Background, pcm, longestPiece, c, emit)
}

var errSlow = errors.New("ffmpeg's filter whisper takes too long: take a smaller model")

// run has one process recognise sound of at most so long.
func (e *Engine) run(
	ctx context.Context, p encode.Priority, pcm io.Reader, most time.Duration, c speech.Config,
	emit func(speech.Result) error,
) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience+20*most, errSlow)
	defer cancel()
	longest := 2 * speech.Samples(most) // bytes
	sound, err := io.ReadAll(io.LimitReader(pcm, longest+1))
	switch {
	case err != nil:
		return fmt.Errorf("read sound: %w", err)
	case int64(len(sound)) > longest:
		return fmt.Errorf("recognise speech: the sound is longer than %v", most)
	}
	var words []speech.Word
	err = encode.NewProcess(encode.ProcessOptions{
		Program: e.opt.FFmpeg, Args: slices.Concat(e.opt.Args, args(e.opt.Model, c.Language)), Priority: p,
		Reads:  []string{e.opt.Model},
		Limits: encode.Limits{AddressSpace: 16 << 30, CPU: time.Hour, FileSize: 1 << 20},
		Input: func(_ context.Context, w io.Writer) (err error) {
			_, err = w.Write(sound)
			return err //nolint:wrapcheck // a child that takes no more says itself why it ended
		},
		Output: func(_ context.Context, r io.Reader) (err error) {
			words, err = read(r)
			return err
		},
	}).Run(ctx)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("recognise speech: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("recognise speech: %w", err)
	}
	length := speech.Duration(int64(len(sound) / 2))
	return emit(speech.Result{Words: speech.Within(words, length), Until: length})
}

// args are ffmpeg's for samples on its standard input and phrases as JSON on its standard output.
func args(model, language string) []string {
	base, _, _ := strings.Cut(language, "-")
	if base == "" {
		base = "auto"
	}
	filter := fmt.Sprintf("whisper=model=%s:language=%s:queue=%d:format=json:destination=-",
		escape(model), escape(base), int(queue/time.Second))
	return []string{
		"-hide_banner", "-nostdin", "-loglevel", "error", "-protocol_whitelist", "pipe",
		"-f", "s16le", "-ar", strconv.Itoa(speech.SampleRate), "-ac", "1", "-i", "pipe:0", "-af", filter, "-f", "null",
		os.DevNull,
	}
}

// escape writes a value of a filter's option: once for the option, once for the graph, ffmpeg-filters(1), "Notes on
// filtergraph escaping".
func escape(value string) string {
	option := strings.NewReplacer(`\`, `\\`, `'`, `\'`, `:`, `\:`).Replace(value)
	return strings.NewReplacer(`\`, `\\`, `'`, `\'`, `[`, `\[`, `]`, `\]`, `,`, `\,`, `;`, `\;`).Replace(option)
}

// read reads the phrases.
func read(r io.Reader) (words []speech.Word, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for n := 0; lines.Scan(); n++ {
		if n >= maxPhrase {
			return nil, errors.New("the filter whisper has too many phrases")
		}
		from, to, text, ok := phrase(lines.Text())
		if !ok {
			return nil, fmt.Errorf("the filter whisper has written %.60q, which is no phrase", lines.Text())
		}
		words = append(words, speech.Spread(text, from, to)...)
	}
	if err = lines.Err(); err != nil {
		return nil, fmt.Errorf("read phrases: %w", err)
	}
	return words, nil
}

// phrase reads {"start":0,"end":2400,"text":"…"}, in milliseconds. The filter does not escape the text, so that it is
// often no JSON. What is in brackets is no speech: [BLANK_AUDIO], (music).
func phrase(line string) (from, to time.Duration, text string, ok bool) {
	line, isObject := strings.CutPrefix(strings.TrimSpace(line), `{"start":`)
	start, line, hasStart := strings.Cut(line, `,"end":`)
	end, text, hasText := strings.Cut(line, `,"text":"`)
	text, isWhole := strings.CutSuffix(text, `"}`)
	first, err := strconv.ParseInt(start, 10, 40)
	last, err2 := strconv.ParseInt(end, 10, 40)
	if !isObject || !hasStart || !hasText || !isWhole || err != nil || err2 != nil {
		return 0, 0, "", false
	}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") ||
		strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		text = ""
	}
	return time.Duration(first) * time.Millisecond, time.Duration(max(first, last)) * time.Millisecond, text, true
}
