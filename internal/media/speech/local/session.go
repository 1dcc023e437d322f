package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"millrace/internal/media/encode"
	"millrace/internal/media/speech"
	"millrace/internal/media/speech/wire"
)

const (
	// maxAhead is how much sound of a live stream waits for an engine that is behind, or is started again: what is
	// older would be recognised too late to be shown. maxHeld bounds it together with what the engine has.
	maxAhead, maxHeld = 7 * time.Second, 20 * time.Second
	// pipeSize is how much a process is sent ahead, in bytes: sound on the way can't be left out any more.
	pipeSize = 8 << 10
	// pauseFirst and pauseMost are how long after a crash another process is started: at first, and at most.
	pauseFirst, pauseMost = 100 * time.Millisecond, 10 * time.Second
	// deaths is how many processes in a row the same sound may kill.
	deaths = 3
	// outbox is how many results may wait for their reader.
	outbox = 64
)

// session is one stream with the process that recognises it at the moment.
type session struct {
	engine   *Engine
	config   speech.Config
	pace     *pace
	priority encode.Priority
	patient  bool // nobody waits: the error comes back when a few processes have died
	audio    *speech.Backlog
	results  chan speech.Result
	ended    chan struct{}
	cancel   context.CancelFunc
	release  func() // its place; nil: it has none
	failed   error  // once ended

	restarts atomic.Int64
	until    atomic.Int64 // sample up to which all is told
	mu       sync.Mutex
	problem  error // why the last one ended
}

func (e *Engine) newSession(c speech.Config, audio *speech.Backlog) *session {
	return &session{
		engine: e, config: c, priority: encode.OnDemand, audio: audio, pace: newPace(c.Effort, e.opt.Spare),
		results: make(chan speech.Result, outbox), ended: make(chan struct{}),
	}
}

// open starts a stream, which has a place, and gives it back when nothing of it runs any more.
func (e *Engine) open(ctx context.Context, c speech.Config) *session {
	s := e.newSession(c, speech.NewBacklog(maxHeld, maxAhead))
	s.release = func() { <-e.places }
	ctx, s.cancel = context.WithCancel(ctx)
	go s.run(ctx)
	return s
}

// Write implements speech.Stream.
func (s *session) Write(at time.Duration, samples []int16) {
	s.audio.Add(speech.Samples(at), samples)
	held, ahead, _ := s.audio.Waiting()
	s.pace.adjust(speech.Duration(int64(len(samples))), held, ahead)
}

// Results implements speech.Stream.
func (s *session) Results() <-chan speech.Result { return s.results }

// Status implements speech.Stream.
func (s *session) Status() speech.Status {
	held, _, left := s.audio.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	return speech.Status{
		Behind:   held,
		LeftOut:  left,
		Effort:   s.pace.now(),
		Restarts: int(s.restarts.Load()),
		Problem:  s.problem,
	}
}

// End implements speech.Stream.
func (s *session) End() { s.audio.End() }

// Close implements speech.Stream.
func (s *session) Close() {
	s.cancel()
	<-s.ended
}

// run has processes recognise the sound until it has ended.
func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	if s.release != nil {
		defer s.release()
	}
	defer close(s.results)
	pause := pauseFirst
	for died := 0; ctx.Err() == nil; {
		before := s.until.Load()
		err := s.once(ctx)
		if err == nil {
			return
		}
		if errors.Is(err, errEffort) {
			s.audio.Again(false)
			continue
		}
		if s.until.Load() > before {
			died, pause = 0, pauseFirst
		}
		died++
		if ctx.Err() != nil || s.patient && died >= deaths {
			s.failed = err
			return
		}
		s.restarts.Add(1)
		s.mu.Lock()
		s.problem = err
		s.mu.Unlock()
		s.audio.Again(died >= deaths)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		pause = min(2*pause, pauseMost)
	}
	s.failed = fmt.Errorf("recognise speech: %w", context.Cause(ctx))
}

// once has one process recognise what there is, until the sound ends.
func (s *session) once(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := wire.Start{
		Model: s.engine.opt.Model, Phrases: s.config.Phrases, MaxSamples: longestUtterance,
		Effort: int(s.pace.begin(cancel)), Whole: s.patient,
	}
	return encode.NewProcess(encode.ProcessOptions{
		Program: s.engine.opt.Program, Args: s.engine.opt.Args, Limits: s.engine.opt.Limits, Priority: s.priority,
		InputAhead: pipeSize,
		Input:      func(ctx context.Context, w io.Writer) error { return s.feed(ctx, w, start) },
		Output:     func(ctx context.Context, r io.Reader) error { return s.read(ctx, r) },
	}).Run(ctx)
}

func (s *session) feed(ctx context.Context, w io.Writer, start wire.Start) error {
	body, err := json.Marshal(start)
	if err != nil {
		return fmt.Errorf("write how to start: %w", err)
	}
	buf := append(wire.AppendHeader(nil, wire.KindStart, len(body)), body...)
	if _, err = w.Write(buf); err != nil {
		return err // the process says what was written
	}
	for {
		b, ok := s.audio.Take(ctx)
		if !ok {
			return nil
		}
		if _, err = w.Write(wire.AppendSound(buf[:0], b.First, b.Samples)); err != nil {
			return err
		}
	}
}

// maxLine of a process's response, in bytes.
const maxLine = 1 << 20

func (s *session) read(ctx context.Context, r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var got wire.Result
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil {
			return fmt.Errorf("read result: %w", err)
		}
		if got.Error != "" {
			return errors.New(got.Error)
		}
		if err := s.emit(ctx, got); err != nil {
			return err
		}
	}
	return lines.Err() //nolint:wrapcheck // the process says what was read
}

// emit passes on what was not told before: a process that was started again begins with sound of which some words were
// told.
func (s *session) emit(ctx context.Context, got wire.Result) error {
	passed := s.until.Load()
	out := speech.Result{Until: speech.Duration(max(got.Until, passed))}
	for _, w := range got.Words {
		if (w.Start+w.End)/2 >= passed {
			out.Words = append(out.Words, speech.Word{
				Text: w.Text, Start: speech.Duration(w.Start), End: speech.Duration(w.End), Confidence: w.Confidence,
			})
		}
	}
	if len(out.Words) == 0 && got.Until <= passed {
		return nil
	}
	select {
	case s.results <- out:
	case <-ctx.Done():
		return fmt.Errorf("tell result: %w", context.Cause(ctx))
	}
	s.until.Store(max(got.Until, passed))
	s.audio.Done(got.Until)
	return nil
}
