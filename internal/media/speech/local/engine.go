// Package local is the engine that works out of the box: PocketSphinx in processes of its own, bounded and confined
// like those of ffmpeg. If one crashes, it is restarted and given the audio that it had not finished.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
)

// Model is the folder of the model that Debian's pocketsphinx-en-us has.
const Model = "/usr/share/pocketsphinx/model/en-us"

// Options of an Engine.
type Options struct {
	Program string // absolute path of millrace-speech
	Model   string // folder; empty: Model
	// Budget has a place for each process that recognises what has ended. What is live has a share of its own.
	Budget *encode.Budget
	// Streams is how many live streams are recognised at a time; 0: perProcessor for each processor.
	Streams int
	// Spare reports whether the machine has processor time to spare; nil: as the system tells.
	Spare  func() bool
	Args   []string      // of the program, which needs none
	Limits encode.Limits // of each process; zero means DefaultLimits
}

// perProcessor is how many live streams a processor carries: one with a person who speaks all the time takes 0.3 to 0.6
// of it, and less where the engine is behind and looks less hard.
const perProcessor = 2

// Engine is PocketSphinx.
type Engine struct {
	opt    Options
	places chan struct{} // one for each live stream
}

// New returns an engine; nothing runs yet.
func New(o Options) *Engine {
	if o.Model == "" {
		o.Model = Model
	}
	if o.Limits == (encode.Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Spare == nil {
		o.Spare = spare
	}
	if o.Streams <= 0 {
		o.Streams = perProcessor * runtime.NumCPU()
	}
	return &Engine{opt: o, places: make(chan struct{}, o.Streams)}
}

// Name implements speech.Engine.
func (e *Engine) Name() string { return "pocketsphinx" }

// DefaultLimits fit a model with a thousand phrases, which takes 180 MB, and the longest broadcast.
func DefaultLimits() encode.Limits {
	return encode.Limits{AddressSpace: 2 << 30, CPU: 48 * time.Hour, FileSize: 64 << 20}
}

// Abilities implements speech.Engine.
func (e *Engine) Abilities() (speech.Abilities, error) {
	can := speech.Abilities{Streaming: true, WordTimes: true, Bias: speech.LexiconBias, Languages: []string{"en"}}
	if e.opt.Program == "" {
		return can,
			errors.New("the program millrace-speech is not there: put it beside millrace, or set --speech-program")
	}
	if _, err := os.Stat(filepath.Join(e.opt.Model, "en-us.lm.bin")); err != nil {
		return can, fmt.Errorf("the model is not there: apt-get install pocketsphinx-en-us: %w", err)
	}
	return can, nil
}

// Probe implements speech.Engine: it starts a process, which loads the library and the model.
func (e *Engine) Probe(ctx context.Context) error {
	if _, err := e.Abilities(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, errSlowStart)
	defer cancel()
	s := e.newSession(speech.Config{}, speech.NewBacklog(0, 0))
	s.audio.End()
	if err := s.once(ctx); encode.IsLate(err) || errors.Is(err, errSlowStart) {
		return fmt.Errorf("%w (%w)", speech.ErrNotInTime, err)
	} else if err != nil {
		return fmt.Errorf("the engine does not start: %w (apt-get install libpocketsphinx3 libflite1)", err)
	}
	return nil
}

// startTime bounds a start, which takes a second on a machine with nothing else to do, and may take minutes where
// encoders wait for every processor.
const startTime = 5 * time.Minute

var errSlowStart = errors.New("the engine takes too long to start")

// longestUtterance is after how much speech without a pause, in samples, it is cut. Words are told about a second after
// they were said (worker.TestCutWithRewind), whatever Config.MaxLatency is.
const longestUtterance = 10 * speech.SampleRate

// Open implements speech.Engine.
func (e *Engine) Open(ctx context.Context, c speech.Config) (speech.Stream, error) {
	select {
	case e.places <- struct{}{}:
		return e.open(ctx, c), nil
	default:
		return nil, fmt.Errorf("%w: %d streams", speech.ErrNoPlace, cap(e.places))
	}
}

// chunk is how much is read at once.
const chunk = speech.SampleRate

// Transcribe implements speech.Engine. It waits for a processor.
func (e *Engine) Transcribe(ctx context.Context, pcm io.Reader, c speech.Config, emit func(speech.Result) error) error {
	release, err := e.opt.Budget.AcquirePart(ctx, encode.Background, 1, c.Left)
	if err != nil {
		return err
	}
	defer release()
	if err = c.StillWanted(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s := e.newSession(c, speech.NewBacklog(0, 0))
	s.priority, s.patient = encode.Background, true
	done := make(chan error, 1)
	go func() {
		failed := s.write(ctx, pcm)
		s.audio.End()
		done <- failed
	}()
	go s.run(ctx)
	for r := range s.results {
		if err = emit(r); err != nil {
			cancel(err)
			break
		}
	}
	cancel(nil)
	<-s.ended
	return errors.Join(err, <-done, s.failed)
}

// write hands over all sound, and waits where the engine is behind.
func (s *session) write(ctx context.Context, pcm io.Reader) error {
	raw := make([]byte, 2*chunk)
	samples := make([]int16, chunk)
	for at := int64(0); ; {
		n, err := io.ReadFull(pcm, raw)
		n /= 2
		for i := range n {
			samples[i] = int16(raw[2*i]) | int16(raw[2*i+1])<<8
		}
		if n > 0 {
			if bad := s.audio.Wait(ctx, at, samples[:n]); bad != nil {
				return bad
			}
		}
		at += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read sound: %w", err)
		}
	}
}
