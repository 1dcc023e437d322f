// Package ingesttest contains what the tests of the ingest protocols have in common: a gate, a sink that keeps
// everything, a server's log, and its shutdown. It must never know a protocol; only tests import it. Serve's goroutine
// ends with the test.
package ingesttest

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/media/frame"
	"millrace/internal/media/ingest"
)

// Patience is for anything, on a busy machine.
const Patience = 2 * time.Minute

// Gate is a function as ingest.Gate.
type Gate func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error)

// Admit implements ingest.Gate.
func (g Gate) Admit(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
	return g(ctx, p)
}

// Admit lets key in with sink and refuses the rest.
func Admit(key string, sink ingest.Sink) Gate {
	return func(ctx context.Context, p ingest.Publication) (context.Context, ingest.Sink, error) {
		if p.Key != key {
			return nil, nil, ingest.ErrUnknownKey
		}
		return ctx, sink, nil
	}
}

// Recorder is a sink that keeps everything.
type Recorder struct {
	// OnWrite and OnClose, when they are not nil, are called when the recorder has noted the call.
	OnWrite func(frame.Frame) error
	OnClose func()
	Closed  chan struct{} // closed by the first Close

	mu      sync.Mutex
	configs []frame.Config
	frames  []frame.Frame
	causes  []error
	news    chan struct{} // poked at each frame
}

// NewRecorder returns an empty Recorder.
func NewRecorder() *Recorder {
	return &Recorder{Closed: make(chan struct{}), news: make(chan struct{}, 1)}
}

// Configure implements ingest.Sink.
func (r *Recorder) Configure(c frame.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs = append(r.configs, c)
	return nil
}

// Write implements ingest.Sink.
func (r *Recorder) Write(f frame.Frame) error {
	r.mu.Lock()
	r.frames = append(r.frames, f)
	r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
	if r.OnWrite != nil {
		return r.OnWrite(f)
	}
	return nil
}

// Close implements ingest.Sink.
func (r *Recorder) Close(cause error) {
	r.mu.Lock()
	r.causes = append(r.causes, cause)
	first := len(r.causes) == 1
	r.mu.Unlock()
	if r.OnClose != nil {
		r.OnClose()
	}
	if first {
		close(r.Closed)
	}
}

// Label is what log lines about a Recorder's publication say besides.
const Label = "live_stream_id=recorded"

// LogAttributes implements ingest.Labelled.
func (r *Recorder) LogAttributes() []any {
	key, value, _ := strings.Cut(Label, "=")
	return []any{key, value}
}

// Frames are those written so far.
func (r *Recorder) Frames() []frame.Frame {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]frame.Frame(nil), r.frames...)
}

// Of are the frames of a kind.
func (r *Recorder) Of(k frame.Kind) (out []frame.Frame) {
	for _, f := range r.Frames() {
		if f.Kind == k {
			out = append(out, f)
		}
	}
	return out
}

// Configs are all that were told.
func (r *Recorder) Configs() []frame.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]frame.Config(nil), r.configs...)
}

// Config is the last one of a kind, and how many there were.
func (r *Recorder) Config(k frame.Kind) (last frame.Config, n int) {
	for _, c := range r.Configs() {
		if c.Kind == k {
			last = c
			n++
		}
	}
	return last, n
}

// Until waits for the recorder to hold what ok wants.
func (r *Recorder) Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	limit := time.After(Patience)
	for !ok() {
		select {
		case <-r.news:
		case <-r.Closed:
			if !ok() { // what was wanted may have been the last that came
				t.Fatalf("%s: publication ended: %v", what, r.Cause(t))
			}
		case <-limit:
			t.Fatalf("%s: not within %v: %d pictures, %d sounds", what, Patience, len(r.Of(frame.Video)),
				len(r.Of(frame.Audio)))
		}
	}
}

// Cause waits for the end and checks that Close came once.
func (r *Recorder) Cause(t testing.TB) error {
	t.Helper()
	select {
	case <-r.Closed:
	case <-time.After(Patience):
		t.Fatal("sink was not closed")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.causes) != 1 {
		t.Errorf("sink closed %d times: %v", len(r.causes), r.causes)
	}
	return r.causes[0]
}

// Log keeps the log of a server.
type Log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Logger writes to the log, down to debugging.
func (l *Log) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Lines are those that contain a text.
func (l *Log) Lines(containing string) (out []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, containing) {
			out = append(out, line)
		}
	}
	return out
}

// Refusals counts the lines that contain a text, and the refusals that they tell of: those that are not logged too.
func (l *Log) Refusals(containing string) (lines, told int) {
	for _, line := range l.Lines(containing) {
		lines, told = lines+1, told+1
		if _, rest, ok := strings.Cut(line, "not_logged="); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			told += n
		}
	}
	return lines, told
}

// CheckLabels checks the lines about an encoder's coming and going, once it is gone: one of each, with the label of
// what it published to.
func (l *Log) CheckLabels(t testing.TB) {
	t.Helper()
	for _, about := range []string{"encoder connected", "encoder disconnected"} {
		if got := l.Lines(about); len(got) != 1 || !strings.Contains(got[0], Label) {
			t.Errorf("%d lines %q with %s:\n%s", len(got), about, Label, l)
		}
	}
}

// Serve runs a server until stop is called, which waits for its end, or the test ends.
func Serve(t testing.TB, serve func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // ended by stop alone
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(Patience):
			t.Error("Serve did not return")
		}
	})
	t.Cleanup(stop)
	return stop
}
