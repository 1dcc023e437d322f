package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	"millrace/internal/media/speech"
)

const (
	// maxAhead is how much sound of a live stream waits for a server: what is older would be recognised too late to be
	// shown. What the server has, and has not answered, is held beside that: it is given again where the connection
	// breaks, and vosk lets a sentence last for 20 s.
	maxAhead, maxHeld = 7 * time.Second, 60 * time.Second
	// maxUnanswered is how much is sent, in samples, before the server has answered any of it: sound on the way can't
	// be left out any more.
	maxUnanswered = 2 * speech.SampleRate
	// pauseFirst and pauseMost are how long it is waited before a server is connected to again.
	pauseFirst, pauseMost = 200 * time.Millisecond, 10 * time.Second
	// breaks is how many connections in a row may break on the same sound.
	breaks = 3
)

// socketStream is a live stream on connections, one behind the other. What one was sent and has not answered, the next
// one is sent again.
type socketStream struct {
	engine  *Socket
	cancel  context.CancelFunc
	results chan speech.Result
	ended   chan struct{}
	backlog *speech.Backlog

	mu     sync.Mutex
	status speech.Status
	until  time.Duration // all is told up to there
}

// Write implements speech.Stream.
func (s *socketStream) Write(at time.Duration, samples []int16) {
	s.backlog.Add(speech.Samples(at), samples)
}

// Results implements speech.Stream.
func (s *socketStream) Results() <-chan speech.Result { return s.results }

// Status implements speech.Stream.
func (s *socketStream) Status() speech.Status {
	_, ahead, left := s.backlog.Waiting()
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.status
	out.Behind, out.LeftOut = ahead, left
	return out
}

// End implements speech.Stream.
func (s *socketStream) End() { s.backlog.End() }

// Close implements speech.Stream.
func (s *socketStream) Close() {
	s.cancel()
	<-s.ended
}

func (s *socketStream) run(ctx context.Context) {
	defer close(s.ended)
	defer close(s.results)
	defer s.engine.gate.enter()()
	pause := pauseFirst
	for broken := 0; ctx.Err() == nil; {
		if _, ok := s.backlog.Take(ctx); !ok {
			return
		}
		s.backlog.Untake()
		before := s.known()
		err := s.engine.talk(ctx, s.backlog, maxUnanswered, func(r speech.Result) error { return s.emit(ctx, r) })
		if err == nil || s.known() > before {
			broken, pause = 0, pauseFirst
		}
		if err == nil {
			continue
		}
		s.fails(err)
		if !errors.Is(err, errAway) {
			broken++
		}
		s.backlog.Again(broken >= breaks)
		wait := time.NewTimer(pause)
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
		}
		pause = min(2*pause, pauseMost)
	}
}

func (s *socketStream) fails(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Restarts++
	s.status.Problem = err
}

func (s *socketStream) known() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until
}

// emit passes on what was not told before: a connection that takes over begins with sound of which some words were
// told.
func (s *socketStream) emit(ctx context.Context, r speech.Result) error {
	passed := s.known()
	out := speech.Result{Until: max(r.Until, passed)}
	for _, w := range r.Words {
		if (w.Start+w.End)/2 >= passed {
			out.Words = append(out.Words, w)
		}
	}
	select {
	case s.results <- out:
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the stream is over
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = out.Until
	return nil
}
