// Package livespeech recognises speech in a broadcast while it is live: it follows the audio at the live edge, decodes
// it, and publishes cues into a text rendition.
//
// It never delays the audio: a follower that is too slow continues at the newest segment. It ignores slate, and starts
// over after a discontinuity. Its goroutines belong to Run and end with it.
package livespeech

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/container/cmaf"
	"millrace/internal/media/speech"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// Decoder turns sound into samples while it streams; encode.Engine fits.
type Decoder interface {
	LivePCM(ctx context.Context, input func(context.Context, io.Writer) error,
		output func(context.Context, io.Reader) error) error
}

// Options of Run.
type Options struct {
	Edge      *window.Edge
	Rendition string // the text rendition
	Decoder   Decoder
	Engine    func(ctx context.Context) (speech.Engine, error) // one that runs
	Config    speech.Config
	// Init is an init segment of the sound.
	Init func(ctx context.Context, n int) ([]byte, error)
	// Warn is told, once, that what was said is missing, and why.
	Warn func(message string)
	// Missed is told of each stretch of what was said that the rendition has no cues for, as the engine was behind.
	Missed func(long time.Duration)
	// Broken is told that a goroutine below Run has panicked.
	Broken func(why error)
	Logger *slog.Logger
}

// look is how often it is looked whether there is sound yet, or again.
const look = 250 * time.Millisecond

// Run goes on until ctx or the broadcast ends.
func Run(ctx context.Context, o Options) {
	r := &runner{Options: o}
	defer o.Edge.Texts().Watermark(o.Rendition, math.MaxInt64)
	o.Edge.Texts().Watermark(o.Rendition, math.MaxInt64) // nothing is waited for before there is sound
	f, err := r.follow(ctx)
	if err != nil {
		return // nobody has sent sound
	}
	defer r.wait.Wait()
	defer func() { // there is none once following it again has failed
		if r.follower != nil {
			r.follower.Close()
		}
	}()
	r.follower = f
	if err = r.open(ctx); err != nil {
		return // the broadcast has ended before
	}
	defer r.stream.Close()
	stream := r.stream
	r.told = stream.Status()
	var published sync.WaitGroup
	published.Go(r.guarded("publish cues", r.publish))
	defer published.Wait()
	defer stream.End()
	for ctx.Err() == nil {
		if err = r.stretch(ctx); errors.Is(err, io.EOF) {
			return
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.WarnContext(ctx, "sound can't be followed for subtitles, going on", "error", err)
			if r.follower, err = r.again(ctx); err != nil {
				return
			}
		}
	}
}

type runner struct {
	Options

	follower  *window.Follower
	engine    string // its name
	stream    speech.Stream
	corrector *speech.Corrector
	sentences *speech.Sentences
	next      *window.Step // what ended the stretch before

	wait   sync.WaitGroup // for what runs beside
	told   speech.Status  // of the stream: what was logged
	late   time.Duration  // of the rendition's cues: what was told
	mu     sync.Mutex
	missed time.Duration // all that was told
	idle   bool          // nobody is listened to
	warned bool
}

// guarded tells the owner of a panic in work.
func (r *runner) guarded(what string, work func()) func() {
	return func() {
		if err := fault.Guard(func() error { work(); return nil }); err != nil {
			r.Broken(fmt.Errorf("%s: %w%s", what, err, fault.Trace(err)))
		}
	}
}

// follow waits for sound, and follows it from the newest segment on.
func (r *runner) follow(ctx context.Context) (*window.Follower, error) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		f, err := r.Edge.Follow(timeline.MainAudio, r.Edge.Newest(timeline.MainAudio))
		if err == nil || !errors.Is(err, window.ErrUnknown) {
			return f, err
		}
		if r.Edge.Ended() {
			return nil, io.EOF
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for sound: %w", context.Cause(ctx))
		}
	}
}

// again goes on at the newest segment.
func (r *runner) again(ctx context.Context) (*window.Follower, error) {
	r.follower.Close()
	r.next = nil
	select { // what was wrong may be so for a while
	case <-time.After(look): //nolint:forbidigo // once in a while
	case <-ctx.Done():
	}
	return r.follow(ctx)
}

// step is the next one to be listened to; slate is passed over. Where none comes, cues are not waited for.
func (r *runner) step(ctx context.Context) (window.Step, error) {
	for {
		s, err := r.soon(ctx)
		if err != nil {
			return s, err
		}
		if s.MSN >= 0 && !s.Slate {
			return s, nil
		}
		r.pause(true)
	}
}

// pause reports whether cues are to be waited for.
func (r *runner) pause(idle bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if idle && !r.idle {
		r.Edge.Texts().Watermark(r.Rendition, math.MaxInt64)
	}
	r.idle = idle
}

// stretch decodes sound up to the next discontinuity. io.EOF: the broadcast has ended.
func (r *runner) stretch(ctx context.Context) error {
	first, err := r.step(ctx)
	for err == nil && len(first.Samples) == 0 {
		first, err = r.step(ctx)
	}
	if err != nil {
		return err
	}
	r.pause(false)
	head, err := r.Init(ctx, first.Init)
	if err != nil {
		return fmt.Errorf("read init segment: %w", err)
	}
	base := r.time(first.Samples[0].Time)
	ended := false
	err = r.Decoder.LivePCM(ctx, func(ctx context.Context, in io.Writer) error {
		if _, bad := in.Write(head); bad != nil {
			return bad // the decoder says what was written
		}
		bad := r.feed(ctx, in, first)
		if errors.Is(bad, io.EOF) {
			ended, bad = true, nil
		}
		return bad
	}, func(_ context.Context, out io.Reader) error { return r.listen(out, base) })
	if ended && (err == nil || ctx.Err() == nil) {
		return io.EOF
	}
	return err
}

// feed writes sound as fragments, with times from 0 on, until what comes does not follow: that is the next stretch.
func (r *runner) feed(ctx context.Context, in io.Writer, step window.Step) error {
	base, begun := step.Samples[0].Time, step
	var buf []byte
	for n := uint32(1); ; n++ {
		if behind := r.behind(step); behind > window.MostLate {
			r.miss(behind)
			return window.ErrBehind
		}
		if step.Slate || step.Init != begun.Init || step.Discontinuity && step.MSN != begun.MSN {
			r.next = &step
			return nil
		}
		buf = buf[:0]
		samples := make([]cmaf.Sample, 0, len(step.Samples))
		for i, s := range step.Samples {
			long := int64(cmafDuration)
			if i+1 < len(step.Samples) {
				long = step.Samples[i+1].Time - s.Time
			}
			samples = append(samples, cmaf.Sample{Duration: uint32(max(long, 1)), Sync: true, Data: s.Data})
		}
		if len(samples) > 0 {
			buf = cmaf.AppendFragment(buf, n, cmaf.TrackID, uint64(max(step.Samples[0].Time-base, 0)), samples)
			if _, err := in.Write(buf); err != nil {
				return err // the decoder says what was written
			}
		}
		var err error
		if step, err = r.soon(ctx); err != nil {
			return err
		}
		if step.MSN < 0 { // what was said last need not wait for what comes next
			return nil
		}
	}
}

// behind is how far behind the live edge a step begins.
func (r *runner) behind(step window.Step) time.Duration {
	if len(step.Samples) == 0 {
		return 0
	}
	return r.Edge.Texts().Live(r.Rendition) - r.time(step.Samples[0].Time)
}

// time is that of ticks of the sound, from the asset's second 0 on.
func (r *runner) time(ticks int64) time.Duration {
	scale := int64(r.follower.Timescale())
	whole := time.Duration(ticks/scale)*time.Second + time.Duration(ticks%scale)*time.Second/time.Duration(scale)
	return whole - timeline.Origin*time.Second
}

// silence is how long no sound comes until a stretch is taken for ended: the encoder is away.
const silence = 2 * time.Second

var errSilence = errors.New("no sound comes")

// soon is the step that ended the stretch before, once, and then the follower's next one; one with the segment -1 says
// that there is none in time.
func (r *runner) soon(ctx context.Context) (window.Step, error) {
	if s := r.next; s != nil {
		r.next = nil
		return *s, nil
	}
	soon, cancel := context.WithTimeoutCause(ctx, silence, errSilence)
	defer cancel()
	step, err := r.follower.Next(soon)
	if errors.Is(err, errSilence) {
		return window.Step{MSN: -1}, nil
	}
	return step, err
}

// cmafDuration is how long the last packet of a fragment is said to last, in ticks; the next fragment's time says it.
const cmafDuration = 1024

// pause is how much silence, in samples, is put behind a stretch, so that an engine knows that what was said has ended.
const pause = speech.SampleRate * 7 / 10

// listen hands samples to the engine. It does not wait for it.
func (r *runner) listen(out io.Reader, base time.Duration) error {
	const block = speech.SampleRate / 10
	raw, samples := make([]byte, 2*block), make([]int16, block)
	for n := int64(0); ; {
		got, err := io.ReadFull(out, raw)
		got /= 2
		for i := range got {
			samples[i] = int16(raw[2*i]) | int16(raw[2*i+1])<<8
		}
		if got > 0 {
			r.stream.Write(base+speech.Duration(n), samples[:got])
			r.check(r.stream.Status())
		}
		n += int64(got)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			r.stream.Write(base+speech.Duration(n), make([]int16, pause))
			return nil
		}
		if err != nil {
			return err // the decoder says what was read
		}
	}
}

// check tells what has changed with the stream.
func (r *runner) check(s speech.Status) {
	if s.Effort != r.told.Effort {
		r.Logger.Info("speech is recognised with another effort, as the engine keeps up or does not", "engine",
			r.engine, "effort", int(s.Effort), "previous_effort", int(r.told.Effort))
	}
	if s.Restarts != r.told.Restarts {
		r.Logger.Warn("speech recognition begins again", "engine", r.engine, "restarts", s.Restarts, "error", s.Problem)
	}
	left := s.LeftOut - r.told.LeftOut
	r.told = s
	r.miss(left)
}

// missing is how much may be left out before it is told.
const missing = 2 * time.Second

// miss tells that so much of what was said has no cues.
func (r *runner) miss(long time.Duration) {
	if long <= 0 {
		return
	}
	r.Missed(long)
	r.mu.Lock()
	r.missed += long
	enough := r.missed >= missing
	r.mu.Unlock()
	switch {
	case !enough:
	case r.stream.Status().Restarts > 0:
		r.warn("subtitles have gaps: " + r.engine + " fails, or does not keep up with the sound")
	default:
		r.warn("subtitles have gaps: " + r.engine + " does not keep up with the sound")
	}
}

// publish makes cues of what is recognised.
func (r *runner) publish() {
	cues := speech.Cues{Live: true}
	texts := r.Edge.Texts()
	put := func(all []speech.Cue) {
		for _, c := range all {
			texts.Publish(r.Rendition, c.Caption())
		}
		late := texts.Late(r.Rendition)
		r.miss(late - r.late)
		r.late = late
	}
	drafted := func() {
		if texts.Withdraw(r.Rendition) {
			cues.TakeDraft()
		}
	}
	for got := range r.stream.Results() {
		drafted()
		words := r.sentences.Add(r.corrector.Correct(got.Words), got.Until)
		if r.sentences.Ended() {
			cues.EndSentence()
		}
		put(cues.Add(words, got.Until))
		if c, ok := cues.Draft(); ok {
			texts.Draft(r.Rendition, c.Caption())
		}
		r.mu.Lock()
		if !r.idle {
			texts.Watermark(r.Rendition, cues.Known(got.Until))
		}
		r.mu.Unlock()
	}
	drafted()
	put(cues.Flush())
}
