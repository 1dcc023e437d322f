package speech

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// The windows of sound that an engine is given which does not stream.
const (
	windowLeast = 3 * SampleRate
	windowMost  = 8 * SampleRate // or Config.MaxLatency, if that is less
	windowGap   = SampleRate / 2 // of silence, which ends one
	preroll     = SampleRate / 2 // of silence in front of speech that goes with it
	waitMost    = 6 * SampleRate // of windows: what is older would be recognised too late to be shown
	// quiet is the mean square of samples that are taken for silence.
	quiet = 60 * 60
	frame = SampleRate / 50
)

// Windowed has an engine that recognises only what has ended recognise sound while it streams: in windows that end
// where it is silent, or, where it is not for Config.MaxLatency, where it is quietest.
func Windowed(ctx context.Context, e Engine, c Config) Stream {
	ctx, cancel := context.WithCancel(ctx)
	w := &windowed{
		engine:  e,
		config:  c,
		most:    windowMost,
		cancel:  cancel,
		results: make(chan Result, 64),
		ended:   make(chan struct{}),
		wake:    make(chan struct{}, 1),
	}
	if c.MaxLatency > 0 {
		w.most = min(windowMost, max(int(Samples(c.MaxLatency)), 2*windowGap))
	}
	w.least = min(windowLeast, w.most*3/4)
	go w.run(ctx)
	return w
}

type window struct {
	from    int64
	samples []int16 // none: silence up to from
}

type windowed struct {
	engine  Engine
	config  Config
	least   int // samples of a window with a pause behind it
	most    int
	cancel  context.CancelFunc
	results chan Result
	ended   chan struct{}
	wake    chan struct{}

	open window // what is gathered; for Write alone
	loud int    // so many of its samples end with what is not silent; 0: all is

	mu      sync.Mutex
	waiting []window
	status  Status
	last    bool
}

// Write implements Stream.
func (w *windowed) Write(at time.Duration, samples []int16) {
	first := Samples(at)
	if end := w.open.from + int64(len(w.open.samples)); first != end {
		w.close(end)
		w.open = window{from: first}
	}
	for len(samples) > 0 {
		n := min(frame, len(samples))
		w.frame(samples[:n])
		samples = samples[n:]
	}
}

func (w *windowed) frame(samples []int16) {
	w.open.samples = append(w.open.samples, samples...)
	sum := int64(0)
	for _, s := range samples {
		sum += int64(s) * int64(s)
	}
	n := len(w.open.samples)
	if sum/int64(len(samples)) > quiet {
		w.loud = n
	}
	switch end := w.open.from + int64(n); {
	case w.loud == 0 && n > 2*preroll:
		keep := w.open.samples[n-preroll:]
		w.open = window{from: end - preroll, samples: slices.Clone(keep)}
		w.put(window{from: end - preroll})
	case w.loud > 0 && n >= w.least && n-w.loud >= windowGap:
		w.close(end)
	case w.loud > 0 && n >= w.most:
		w.cut()
	}
}

// cut ends a window in the middle of speech: what is behind the cut begins the next one.
func (w *windowed) cut() {
	n := quietest(len(w.open.samples), w.most/2, func(i int) int16 { return w.open.samples[i] })
	w.put(window{from: w.open.from, samples: w.open.samples[:n]})
	w.open = window{from: w.open.from + int64(n), samples: slices.Clone(w.open.samples[n:])}
	w.loud = max(w.loud-n, 0)
}

// close gives what was gathered to the engine.
func (w *windowed) close(end int64) {
	if w.loud > 0 {
		w.put(w.open)
	}
	w.open, w.loud = window{from: end}, 0
}

// put has a window wait for the engine. Where too much waits, the oldest is left out: recognition jumps to live.
func (w *windowed) put(p window) {
	w.mu.Lock()
	held := len(p.samples)
	for _, q := range w.waiting {
		held += len(q.samples)
	}
	for i := 0; i < len(w.waiting) && held > waitMost; i++ {
		old := len(w.waiting[i].samples)
		held -= old
		w.status.LeftOut += Duration(int64(old))
		w.waiting[i] = window{from: w.waiting[i].from + int64(old)}
	}
	w.status.Behind = Duration(int64(held))
	if n := len(w.waiting); n > 0 && p.samples == nil && w.waiting[n-1].samples == nil {
		w.waiting[n-1] = p
	} else {
		w.waiting = append(w.waiting, p)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Results implements Stream.
func (w *windowed) Results() <-chan Result { return w.results }

// Status implements Stream.
func (w *windowed) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status
}

// End implements Stream.
func (w *windowed) End() {
	w.close(w.open.from + int64(len(w.open.samples)))
	w.mu.Lock()
	w.last = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Close implements Stream.
func (w *windowed) Close() {
	w.cancel()
	<-w.ended
}

func (w *windowed) take(ctx context.Context) (window, bool) {
	for {
		w.mu.Lock()
		if len(w.waiting) > 0 {
			p := w.waiting[0]
			w.waiting = w.waiting[1:]
			w.mu.Unlock()
			return p, true
		}
		w.status.Behind = 0
		last := w.last
		w.mu.Unlock()
		if last {
			return window{}, false
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return window{}, false
		}
	}
}

func (w *windowed) run(ctx context.Context) {
	defer close(w.ended)
	defer close(w.results)
	for {
		p, ok := w.take(ctx)
		if !ok {
			return
		}
		r := Result{Until: Duration(p.from + int64(len(p.samples)))}
		if p.samples != nil {
			w.recognise(ctx, p, &r)
		}
		if ctx.Err() != nil {
			return // it is not known whether all words are in r
		}
		select {
		case w.results <- r:
		case <-ctx.Done():
			return
		}
	}
}

func (w *windowed) recognise(ctx context.Context, p window, r *Result) {
	raw := make([]byte, 0, 2*len(p.samples))
	for _, s := range p.samples {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(s))
	}
	from := Duration(p.from)
	err := w.engine.Transcribe(ctx, bytes.NewReader(raw), w.config, func(got Result) error {
		for _, word := range got.Words {
			word.Start, word.End = word.Start+from, word.End+from
			r.Words = append(r.Words, word)
		}
		return nil
	})
	if err != nil && ctx.Err() == nil { // the next window may go well
		w.mu.Lock()
		defer w.mu.Unlock()
		w.status.LeftOut += Duration(int64(len(p.samples)))
		w.status.Restarts++
		w.status.Problem = err
	}
}
