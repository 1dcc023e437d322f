package livespeech_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/frame"
	"millrace/internal/media/livespeech"
	"millrace/internal/media/speech"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

const words, scale = "words", 48000

// show is a broadcast whose sound is listened to. A second of sound comes out of its decoder, whatever goes in.
type show struct {
	edge    *window.Edge
	decoded bytes.Buffer
	begun   int // stretches that were decoded
	stream  *stream
	finds   []error // what is said of the engine, one time after the other; then there is one
	tries   []time.Duration
	began   time.Time
	warned  []string
	missed  time.Duration
	broken  []error
}

func (s *show) LivePCM(
	ctx context.Context, input func(context.Context, io.Writer) error, output func(context.Context, io.Reader) error,
) error {
	s.begun++
	heard := make(chan error, 1)
	go func() { heard <- output(ctx, bytes.NewReader(make([]byte, 2*speech.SampleRate))) }()
	err := input(ctx, &s.decoded)
	return errors.Join(err, <-heard)
}

// engine recognises one word in each stream, as soon as it hears something.
type engine struct{ *show }

func (engine) Name() string                         { return "the engine" }
func (engine) Abilities() (speech.Abilities, error) { return speech.Abilities{Punctuation: true}, nil }
func (engine) Probe(context.Context) error          { return nil }
func (e engine) Open(context.Context, speech.Config) (speech.Stream, error) {
	return e.stream, nil
}

func (engine) Transcribe(context.Context, io.Reader, speech.Config, func(speech.Result) error) error {
	return nil
}

type stream struct {
	from   time.Duration // of the first samples
	heard  int           // samples
	status speech.Status
	panics bool
	out    chan speech.Result
}

func (s *stream) Write(at time.Duration, samples []int16) {
	if s.heard == 0 {
		s.from = at
		s.out <- speech.Result{
			Words: []speech.Word{{Text: "Hello.", Start: at, End: at + time.Second/2}}, Until: at + 20*time.Second,
		}
	}
	s.heard += len(samples)
}

func (s *stream) Results() <-chan speech.Result {
	if s.panics {
		panic("results")
	}
	return s.out
}

func (s *stream) Status() speech.Status { return s.status }
func (s *stream) End()                  { close(s.out) }
func (*stream) Close()                  {}

// run listens to a broadcast, and gives what waits for that to end.
func (s *show) run(t *testing.T) (wait func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	s.edge = window.New(window.Options{Media: "m", Mode: window.Mode{Listed: time.Minute, InMemory: 9}, Logger: log})
	s.edge.Texts().Add(words, false)
	s.edge.Target(2, map[string]time.Duration{timeline.MainAudio: time.Second})
	s.stream.out, s.began = make(chan speech.Result, 9), time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		livespeech.Run(t.Context(), livespeech.Options{
			Edge: s.edge, Rendition: words, Decoder: s, Logger: log,
			Engine: func(context.Context) (speech.Engine, error) {
				s.tries = append(s.tries, time.Since(s.began))
				if n := len(s.tries); n <= len(s.finds) {
					return nil, s.finds[n-1]
				}
				return engine{s}, nil
			},
			Init:   func(context.Context, int) ([]byte, error) { return []byte("init"), nil },
			Warn:   func(m string) { s.warned = append(s.warned, m) },
			Missed: func(long time.Duration) { s.missed += long },
			Broken: func(why error) { s.broken = append(s.broken, why) },
		})
	}()
	return func() { <-done }
}

// send has a second of sound come from an encoder, or from slate.
func (s *show) send(second int64, slate bool) {
	n := s.edge.AddInit(frame.Audio, scale, timeline.Init{
		Rendition: timeline.MainAudio, Codec: "mp4a.40.2", SampleRate: scale, Channels: 2,
	}, []byte("init"))
	at := (timeline.Origin + second) * scale
	s.edge.Live(true)
	s.edge.Begin(timeline.MainAudio, timeline.Mark{Start: s.began, Slate: slate}, n, at)
	sound := cmaf.Sample{Duration: scale, Sync: true, Data: []byte("sound")}
	s.edge.Sample(timeline.MainAudio, at, sound)
	part := cmaf.AppendFragment(nil, uint32(second+1), cmaf.TrackID, uint64(at), []cmaf.Sample{sound})
	s.edge.Part(timeline.MainAudio, part, scale, true)
	s.edge.Finish(timeline.MainAudio, scale)
}

// said is what the text rendition shows.
func (s *show) said(t *testing.T) string {
	t.Helper()
	d, err := s.edge.Texts().Whole(words)
	if err != nil {
		t.Fatal(err)
	}
	return string(d.AppendVTT(nil))
}

// TestWordsBecomeCues: what an encoder sends is decoded from its init segment on and heard at its own time; what is
// recognised is shown while the broadcast goes on, behind the segment that is listed already, and all ends with it.
func TestWordsBecomeCues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &show{stream: &stream{}}
		wait := s.run(t)
		time.Sleep(time.Second) // nobody has sent sound
		s.send(0, false)
		synctest.Wait()
		time.Sleep(time.Second) // until it is looked for sound again
		s.send(1, false)
		synctest.Wait()
		if got := s.said(t); !strings.Contains(got, "00:00:02.000 --> ") || !strings.Contains(got, "Hello.") {
			t.Errorf("shown is %q", got)
		}
		s.edge.Close()
		wait()
		got := s.decoded.String()
		if !strings.HasPrefix(got, "init") || strings.Count(got, "sound") != 1 || s.begun != 1 {
			t.Errorf("%d stretches were decoded: %q", s.begun, got)
		}
		if s.stream.from != time.Second || s.stream.heard < speech.SampleRate*17/10 {
			t.Errorf("%d samples were heard from %v on, not a second of sound with silence behind it", s.stream.heard,
				s.stream.from)
		}
		if len(s.warned) > 0 || s.missed > 0 || len(s.broken) > 0 {
			t.Errorf("warned of %q, missed %v, broken %v", s.warned, s.missed, s.broken)
		}
	})
}

// TestSlateIsNotHeard: nobody says anything while the encoder is away.
func TestSlateIsNotHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &show{stream: &stream{}}
		wait := s.run(t)
		s.send(0, true)
		time.Sleep(time.Second)
		s.send(1, true)
		time.Sleep(10 * time.Second)
		s.edge.Close()
		wait()
		if s.begun > 0 || s.stream.heard > 0 {
			t.Errorf("%d stretches were decoded, and %d samples heard", s.begun, s.stream.heard)
		}
	})
}

// TestEngineThatDoesNotRun is tried again, ever more seldom, and its owner is told once; where there will be none, that
// is said instead.
func TestEngineThatDoesNotRun(t *testing.T) {
	t.Parallel()
	starting := &speech.NoEngineError{Message: "it is starting", Temporary: true}
	for name, tt := range map[string]struct {
		finds  []error
		gaps   []time.Duration // between two tries
		warns  string
		missed time.Duration
	}{
		"it starts": {
			[]error{starting, starting, starting},
			[]time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
			"speech recognition does not run", 0,
		},
		"there is no place": {
			[]error{speech.ErrNoPlace},
			[]time.Duration{time.Second},
			" recognises as many live streams on this machine as its processors carry; one that ends makes place",
			time.Second,
		},
		"there will be none": {
			[]error{&speech.NoEngineError{Message: "no engine knows Latin"}},
			nil,
			"subtitles can't be generated: no engine knows Latin", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &show{stream: &stream{}, finds: tt.finds}
				wait := s.run(t)
				s.send(0, false)
				time.Sleep(20 * time.Second)
				s.edge.Close()
				wait()
				var gaps []time.Duration
				for i := range len(s.tries) - 1 {
					gaps = append(gaps, s.tries[i+1]-s.tries[i])
				}
				if len(gaps) != len(tt.gaps) {
					t.Fatalf("tried at %v", s.tries)
				}
				for i := range gaps {
					if gaps[i] != tt.gaps[i] {
						t.Errorf("tried again after %v, want %v", gaps, tt.gaps)
					}
				}
				if len(s.warned) != 1 || !strings.HasSuffix(s.warned[0], tt.warns) || s.missed != tt.missed {
					t.Errorf("warned of %q, missed %v", s.warned, s.missed)
				}
			})
		})
	}
}

// TestEngineBehind: what nobody recognised is told, and its owner once that there are gaps.
func TestEngineBehind(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status speech.Status
		warns  string // empty: it is too little
	}{
		"a little": {speech.Status{LeftOut: time.Second}, ""},
		"more": {
			speech.Status{LeftOut: 3 * time.Second},
			"subtitles have gaps: the engine does not keep up with the sound",
		},
		"it failed": {
			speech.Status{LeftOut: 3 * time.Second, Restarts: 1},
			"subtitles have gaps: the engine fails, or does not keep up with the sound",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &show{stream: &stream{}}
				wait := s.run(t)
				s.send(0, false)
				time.Sleep(time.Second)
				synctest.Wait()
				s.stream.status = tt.status
				s.send(1, false)
				synctest.Wait()
				s.edge.Close()
				wait()
				if s.missed != tt.status.LeftOut || strings.Join(s.warned, ", ") != tt.warns {
					t.Errorf("missed %v, warned of %q", s.missed, s.warned)
				}
			})
		})
	}
}

// TestPanicIsTold: a panic ends the subtitles of this broadcast, and its owner hears of it.
func TestPanicIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &show{stream: &stream{panics: true}}
		wait := s.run(t)
		s.send(0, false)
		time.Sleep(time.Second)
		s.edge.Close()
		wait()
		if len(s.broken) != 1 || !strings.HasPrefix(s.broken[0].Error(), "publish cues: ") {
			t.Errorf("told of %v", s.broken)
		}
	})
}
