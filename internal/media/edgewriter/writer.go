// Package edgewriter writes the live edge of one broadcast: the encoder's media, and slate while there is none. It
// starts each stretch of the recording where the edge stands, and has the slate's pictures made. It must never know
// resources, HTTP or who watches. Goroutines: Run, called by the owner, and one for each picture that is fetched or
// encoded, which ends before Run does.
package edgewriter

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/media/packager"
	"millrace/internal/media/slate"
	"millrace/internal/media/timeline"
	"millrace/internal/media/window"
)

// Images fetches images that somebody has named; no secret is in its errors.
type Images interface {
	Image(ctx context.Context, url string, maxBytes int64) ([]byte, error)
}

// Options are what a Writer needs. Callbacks may come from any goroutine.
type Options struct {
	Edge          *window.Edge
	Segment, Part time.Duration // how the broadcast is cut
	Earlier
	URL      string // of the owner's slate image; empty: the default one is shown
	Pictures *Pictures
	Images   Images
	Began    func(slate bool, started time.Time, from float64) // a stretch begins at second `from` of media time
	// Unusable is told that the owner's image can't be used: the default one is shown.
	Unusable func(ctx context.Context, why error)
	// Broken is told that what is written to has panicked: nothing can be written any more.
	Broken func(why error)
	// Held and Room are slate.Options'.
	Held func() bool
	Room func(bytes int64) bool
	// Captions takes the closed captions of encoders' pictures; nil: nobody wants them.
	Captions packager.Captions
	Now      func() time.Time
	Logger   *slog.Logger
}

// Earlier is what an earlier process has recorded.
type Earlier struct {
	Before *timeline.Timeline // nil: nothing
	Since  time.Time          // nothing has come from then on; zero: from now on
}

// Writer writes the edge of one broadcast.
type Writer struct {
	*slate.Writer

	opt    Options
	wake   chan struct{}      // one token: whether slate is wanted has changed, or what it is made of
	cutter *packager.Packager // of the open stretch, or the last one; slate.Writer's lock guards it
	all    sync.WaitGroup

	mu      sync.Mutex
	asked   chan struct{} // closed when the owner's image is there, or will never be; nil before it was asked for
	image   []byte        // the owner's; nil: the default
	working bool          // a still is being made
	failed  slate.Shape   // what none can be made for,
	again   time.Time     // until then; zero: for good
}

// New returns the writer of a broadcast that goes on from o.Before. Nothing is written before an encoder is attached or
// Run is called.
func New(o Options) *Writer {
	w := &Writer{opt: o, wake: make(chan struct{}, 1)}
	w.Writer = slate.New(slate.Options{
		Open: w.open, Now: o.Now, Broken: func(err error) { o.Logger.Error("slate broke", "error", err) },
		Stands: func(started time.Time) { o.Began(true, started, o.Edge.Standing().At) },
		Limit: func() time.Duration {
			if said := o.Edge.PartLimit(timeline.MainVideo); said > 0 {
				return min(said, o.Part)
			}
			return o.Part
		},
		Lasts: w.lasts, Sooner: w.poke, Held: o.Held, Room: o.Room,
	})
	if o.Edge.Standing().Began {
		if o.Since.IsZero() {
			o.Since = o.Now()
		}
		w.Resume(o.Since, recordedConfigs(o.Before)...)
	}
	return w
}

// open begins a stretch of the recording that goes on where the edge stands.
func (w *Writer) open(still bool, started time.Time) slate.Output {
	stands := w.opt.Edge.Standing()
	cutter := packager.Options{
		Edge: w.opt.Edge, Segment: w.opt.Segment, Part: w.opt.Part, At: stands.At,
		Began: stands.Began, Slate: still,
	}
	for i, r := range stands.Renditions {
		cutter.Renditions = append(cutter.Renditions, packager.Rendition{RenditionInfo: r, Next: stands.Next[i]})
	}
	if w.cutter != nil {
		cutter.Lag = w.cutter.Lag()
	}
	if !still {
		cutter.Captions = w.opt.Captions
	}
	w.opt.Began(still, started, stands.At)
	w.opt.Logger.Debug("stretch begins", "slate", still,
		"at", time.Duration(stands.At*float64(time.Second)))
	w.cutter = packager.New(cutter)
	return w.cutter
}

// lasts is for how long players can do without anything that follows what came last, called with slate.Writer's lock.
func (w *Writer) lasts() time.Duration {
	if w.cutter == nil {
		return 0
	}
	return w.opt.Edge.Lasts(w.cutter.Unlisted())
}

// Allow reports whether slate is wanted.
func (w *Writer) Allow(on bool) {
	w.Writer.Allow(on)
	w.poke()
}

// poke has Run look again.
func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Stop ends what is open; nothing is written any more.
func (w *Writer) Stop() {
	if err := fault.Guard(func() error { w.Writer.Stop(); return nil }); err != nil {
		w.opt.Logger.Error("close recording", "error", err, "stack", fault.Trace(err))
	}
}

// Run writes slate at the pace of real time, until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	defer w.all.Wait()
	w.guard("write slate", func() { w.run(ctx) })
}

// beside does work on a goroutine of its own, which ends before Run does.
func (w *Writer) beside(what string, work func()) {
	w.all.Go(func() { w.guard(what, work) })
}

// guard tells the owner of a panic.
func (w *Writer) guard(what string, work func()) {
	if err := fault.Guard(func() error { work(); return nil }); err != nil {
		w.opt.Broken(fmt.Errorf("%s: %w%s", what, err, fault.Trace(err)))
	}
}

func (w *Writer) run(ctx context.Context) {
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-alarm.C:
		}
		wait := w.Tick()
		w.provide(ctx)
		if g, ok := w.Gap(); ok {
			w.beside("decode the last picture", func() { w.holdLast(ctx, g) })
			wait = w.Tick()
		}
		alarm.Reset(wait)
	}
}

// provide sees to it that there is a still when slate is needed: the image is fetched with the first frames, and
// encoded once it is known what shape the stream has. What it takes runs in the background.
func (w *Writer) provide(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shape, wants := w.Wants()
	if shape == (slate.Shape{}) || w.opt.Pictures.encoder == nil {
		return
	}
	if w.asked == nil {
		w.asked = make(chan struct{})
		w.beside("fetch slate image", func() { w.fetchImage(ctx) })
	}
	if !wants || w.working || w.failed == shape && (w.again.IsZero() || w.opt.Now().Before(w.again)) {
		return
	}
	w.working = true
	w.beside("encode slate", func() { w.makeStill(ctx, shape) })
}

// holdLast decodes the last picture, which is to stand when nothing comes. Where it can't be had the last key frame
// does.
func (w *Writer) holdLast(ctx context.Context, g slate.Group) {
	var last *slate.Still
	defer func() {
		w.Hold(g, last)
		w.poke()
	}()
	if w.opt.Pictures.encoder == nil || !w.find(&g) {
		return
	}
	shape := slate.Shape{Codec: g.Config.Codec, Width: g.Config.Width, Height: g.Config.Height}
	err := w.opt.Pictures.encoder.Last(ctx, encode.LastArgs{Codec: shape.Codec, At: g.Last()},
		func(_ context.Context, out io.Writer) error { return g.MP4(out) },
		func(mp4 io.Reader) (err error) {
			last, err = slate.Read(mp4, shape)
			return err
		})
	if err != nil {
		last = nil
		w.opt.Logger.DebugContext(ctx, "last picture can't be decoded, the last key frame stands instead", "codec",
			string(shape.Codec), "error", err)
	}
}

// segmentsBack is how many segments before the newest one pictures are looked for in: a group of pictures lies in one,
// but where key frames are further apart than segments may be long.
const segmentsBack = 2

// find looks for the pictures of a group where they were written.
func (w *Writer) find(g *slate.Group) bool {
	newest := w.opt.Edge.Newest(timeline.MainVideo)
	for back := range int64(segmentsBack + 1) {
		samples, err := w.opt.Edge.Since(timeline.MainVideo, newest-back)
		if err != nil {
			return false
		}
		written := make([][]byte, len(samples))
		for i := range samples {
			written[i] = samples[i].Data
		}
		if g.Find(written) {
			return true
		}
	}
	return false
}

// imagePatience bounds the download of an image: a slate that is late is none.
const imagePatience = 20 * time.Second

// fetchImage gets the owner's image. Where it can not be used the default one is shown.
func (w *Writer) fetchImage(ctx context.Context) {
	defer func() { close(w.asked) }()
	if w.opt.URL == "" {
		return
	}
	try, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	data, err := w.opt.Images.Image(try, w.opt.URL, slate.MaxBytes)
	if err == nil {
		if err = w.opt.Pictures.check(try, data); err == nil {
			w.mu.Lock()
			w.image = data
			w.mu.Unlock()
			return
		}
	}
	if ctx.Err() == nil {
		w.opt.Unusable(ctx, err)
	}
}

// stillAgain is when a still that the machine was too busy for is made again.
const stillAgain = time.Minute

// makeStill encodes the slate for a shape.
func (w *Writer) makeStill(ctx context.Context, shape slate.Shape) {
	<-w.asked // fetchImage always ends
	w.mu.Lock()
	data := w.image
	w.mu.Unlock()
	still, err := w.opt.Pictures.still(ctx, shape, w.opt.Segment, data)
	switch {
	case err == nil:
		w.Use(still) // before it is no longer being made: else it is wanted once more
	case ctx.Err() == nil:
		w.opt.Logger.WarnContext(ctx, "slate can't be encoded, the last picture is shown instead", "codec",
			string(shape.Codec), "error", err)
	}
	w.mu.Lock()
	w.working = false
	if err != nil {
		w.failed, w.again = shape, time.Time{}
		if fault.Is(err, fault.Unavailable) { // the machine was too busy for it
			w.again = w.opt.Now().Add(stillAgain)
		}
	}
	w.mu.Unlock()
	w.poke()
}
