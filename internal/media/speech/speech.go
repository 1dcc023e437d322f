// Package speech turns audio into words with times, and words into cues. Speech recognition engines are behind one
// interface: a library in a process of its own, programs, and remote servers.
//
// Audio has one form only: signed 16-bit samples, mono, 16 kHz. It must never know resources, jobs, HLS or HTTP.
package speech

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// SampleRate of all sound here, in Hz.
const SampleRate = 16000

// AnyLanguage says that an engine takes every language.
const AnyLanguage = "*"

// ErrNoStreaming says that an engine recognises only sound that has ended.
var ErrNoStreaming = errors.New("the engine does not recognise sound while it streams")

// ErrNotInTime says that an engine on this machine got too little processor time to respond: it may be installed, and
// the machine busy.
var ErrNotInTime = errors.New("the engine did not respond in time: this machine is busy, or its disk slow")

// ErrBusy says that a server runs and has something else to do.
var ErrBusy = errors.New("the server is busy")

// ErrNoPlace says that an engine recognises as many streams as it can carry. One that ends makes place.
var ErrNoPlace = errors.New("as much is recognised live already as the processors carry")

// Bias is how an engine is told of words that are likely.
type Bias int

// The ways.
const (
	NoBias Bias = iota
	PromptBias
	HotwordBias
	LexiconBias // any number of phrases
)

// Abilities are what an engine can do.
type Abilities struct {
	Streaming   bool
	WordTimes   bool
	Punctuation bool
	Detects     bool // finds out the language
	Bias        Bias
	Languages   []string // BCP 47, base languages; AnyLanguage
	// LongestPiece is how long a piece of sound that has ended may be at most, so that nothing that is live waits for
	// it for long; 0: any.
	LongestPiece time.Duration
}

// Speaks reports whether the engine takes a language, whose region is left out of account.
func (a Abilities) Speaks(language string) bool {
	base, _, _ := strings.Cut(language, "-")
	for _, l := range a.Languages {
		if l == AnyLanguage || strings.EqualFold(l, base) || strings.EqualFold(l, language) {
			return base != "auto" || a.Detects
		}
	}
	return base == "auto" && a.Detects
}

// Config is how sound is to be recognised.
type Config struct {
	Language string   // BCP 47, or auto
	Phrases  []string // likely ones, the most important first
	// MaxLatency is after how much speech without a pause words become final; 0: as the engine does. Sound that has
	// ended is not cut.
	MaxLatency time.Duration
	// Effort is how hard the engine looks.
	Effort Effort
	// Left is how much is left of the sound that has ended of which this is a piece: where pieces wait for a processor,
	// those of what is done soonest go first. 0: nobody knows.
	Left time.Duration
	// Wanted is asked before sound that has ended is recognised, once there is a processor or a place for it: that may
	// have taken hours. An error says that nobody wants it any more, and ends it. nil: it is wanted.
	Wanted func(ctx context.Context) error
}

// StillWanted asks Wanted.
func (c Config) StillWanted(ctx context.Context) error {
	if c.Wanted == nil {
		return nil
	}
	return c.Wanted(ctx)
}

// Effort is how hard an engine looks for the right words.
type Effort int

// The efforts, from the least.
const (
	Quick    Effort = iota // the least processor time
	Steady                 // what one does live
	Thorough               // for sound that has ended
)

// Word is one word that was recognised, in the stream's time.
type Word struct {
	Text       string        `json:"text"` // with the punctuation that the engine gives
	Start      time.Duration `json:"start"`
	End        time.Duration `json:"end"`
	Confidence float32       `json:"confidence,omitempty"` // 0 to 1
}

// Result is a stretch of words that will not change.
type Result struct {
	Words []Word
	// Until is the time up to which all is known: no later result has words that begin before. It moves on in silence,
	// too.
	Until time.Duration
	// Language that was found, and how sure that is from 0 to 1; empty and 0 where the engine does not say.
	Language   string
	Confidence float64
}

// Engine recognises speech. It may be used from many goroutines.
type Engine interface {
	// Name is what configuration calls it.
	Name() string
	// Abilities are what the engine can do while it runs. The error says to an operator what has to be installed or set
	// first. It waits for nothing: neither a server nor a process is asked.
	Abilities() (Abilities, error)
	// Probe tries whether the engine runs at the moment; the error says to an operator what is wrong.
	Probe(ctx context.Context) error
	// Open recognises sound while it streams; ErrNoStreaming, ErrNoPlace.
	Open(ctx context.Context, c Config) (Stream, error)
	// Transcribe recognises sound that has ended: samples as bytes, least significant first. Times begin at zero.
	Transcribe(ctx context.Context, pcm io.Reader, c Config, emit func(Result) error) error
}

// Stream is sound that is recognised while it streams. Write and Close are for one goroutine, Results for another.
type Stream interface {
	// Write takes samples that begin at a time of the stream. It keeps none of them and does not wait: what the engine
	// can't take in time is left out, as Status says. Where a time is not the end of the samples before, what was said
	// ends there.
	Write(at time.Duration, samples []int16)
	// Results has what was recognised, in order. It is closed behind the last one, when the stream has ended.
	Results() <-chan Result
	// Status says how it is getting on.
	Status() Status
	// End says that no samples follow. Results then come to an end.
	End()
	// Close ends the stream at once, and returns when nothing of it runs any more.
	Close()
}

// Status is how a stream is getting on.
type Status struct {
	Behind   time.Duration // sound that waits
	Effort   Effort        // at the moment
	LeftOut  time.Duration // sound that nobody has recognised, as the engine was behind
	Restarts int           // of an engine that has ended by itself
	Problem  error         // why it did, the last time
}

// Samples is a duration in samples.
func Samples(d time.Duration) int64 {
	return int64(d)/int64(time.Second)*SampleRate + int64(d)%int64(time.Second)*SampleRate/int64(time.Second)
}

// Duration is a number of samples as time.
func Duration(samples int64) time.Duration {
	return time.Duration(samples/SampleRate)*time.Second + time.Duration(samples%SampleRate)*time.Second/SampleRate
}
