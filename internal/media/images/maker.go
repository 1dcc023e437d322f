// Package images makes still pictures, animations and storyboards of video on request: it handles parameters and
// geometry, finds the segment and the picture, and lays out storyboards and their text tracks. ffmpeg decodes as little
// as possible to show one picture; everything else is done here.
//
// It must never know HTTP, resources, playback IDs, or where objects are kept. Images are stored below the video's
// prefix, up to a limit for each kind; images of video that is still growing are only kept in memory for a few seconds.
// Goroutines: one for each image that is being made, which belong to Run.
package images

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/encode"
	"millrace/internal/media/frame"
	"millrace/internal/media/turns"
)

// Encoder makes several pictures at once; encode.Engine fits.
type Encoder interface {
	Picture(ctx context.Context, r frame.VideoRange, job encode.ImageJob) error
	Tiles(ctx context.Context, args encode.TilesArgs, job encode.ImageJob) error
	Animation(ctx context.Context, args encode.AnimationArgs, job encode.ImageJob) error
}

// Spares do small jobs on programs that are there already; encode.Warm fits.
type Spares interface {
	Do(ctx context.Context, job encode.ImageJob) error
}

// Store keeps what was made.
type Store interface {
	// PutNew stores an object unless there is one; created says that it was this one.
	PutNew(ctx context.Context, key string, data []byte) (created bool, err error)
	// Read is a whole object; fault.NotFound: there is none.
	Read(ctx context.Context, key string) ([]byte, error)
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
	Delete(ctx context.Context, keys ...string) error
}

// Claims have one of several nodes make what is stored at a key.
type Claims interface {
	// Claim asks for what will be stored at keys: the first n are the caller's to make, until it calls done. wanted is
	// called when another node waits for one of them. It returns soon.
	Claim(ctx context.Context, keys []string, wanted func()) (n int, done func(keys ...string))
	// Wait waits until no other node makes what is stored at key; false: that takes too long.
	Wait(ctx context.Context, key string) bool
}

// Options are what a Maker needs.
type Options struct {
	Encoder  Encoder
	Pictures Spares // with encode.PictureArgs, of SDR
	WebPs    Spares // with encode.WebPArgs
	// Budget has a place for each image while it is decoded, scaled and encoded: what plays goes first.
	Budget *encode.Budget
	Store  Store
	Claims Claims // nil: there is one node
	Now    func() time.Time
	Logger *slog.Logger
}

// Maker makes images.
type Maker struct {
	opt  Options
	line *turns.Line

	mu     sync.Mutex
	base   context.Context //nolint:containedctx // of what is being made: others may wait for it than the one who asked first
	cancel context.CancelCauseFunc
	making map[string]*making
	recent map[string]recent // of videos that grow
	held   int               // bytes of recent
	all    sync.WaitGroup
	ended  bool
}

// making is an image on its way; it stays until it is kept.
type making struct {
	done chan struct{} // closed when data and err are there
	data []byte        // nil without an error: it is in the store
	err  error
}

// recent is an image of a video that grows.
type recent struct {
	data  []byte
	until time.Time
}

const (
	// mostWaiting is how many images wait to be made, mostUnkept how many there are at all: made ones may wait for
	// storage.
	mostWaiting, mostUnkept = 64, 256
	// patience is how long one may take.
	patience = 60 * time.Second
	// memory bounds what all that are being made take together, maxHeld those that are remembered, in bytes.
	memory, maxHeld = 256 << 20, 64 << 20
	// small is what is given to viewers from memory, in bytes: what is larger they read from the store, however slowly.
	small = 1 << 20
)

// New returns a Maker; what it makes ends with Run.
func New(o Options) *Maker {
	ctx, cancel := context.WithCancelCause(context.Background()) //nolint:forbidigo // no request's: Run ends it
	return &Maker{
		opt: o, line: turns.New(turns.Options{
			What: "images", Places: o.Budget.Cores(), Bytes: memory,
			Waiting: mostWaiting,
		}),
		base: ctx, cancel: cancel, making: map[string]*making{}, recent: map[string]recent{},
	}
}

// Name implements lifecycle.Service.
func (m *Maker) Name() string { return "images" }

// Run implements lifecycle.Service: it ends what is being made when ctx ends.
func (m *Maker) Run(ctx context.Context) error {
	<-ctx.Done()
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.cancel(context.Cause(ctx))
	m.all.Wait()
	return context.Cause(ctx)
}

// Make makes what a plan of a video says; nil without an error: it is large, and in the store. Anyone who asks for the
// same meanwhile gets the same. A storyboard's text is given as its layout: see Plan.Words.
func (m *Maker) Make(ctx context.Context, f *Video, p Plan) ([]byte, error) {
	id := f.Name + "/" + p.Name
	m.mu.Lock()
	if r, ok := m.recent[id]; ok && f.Prefix == "" && m.opt.Now().Before(r.until) {
		m.mu.Unlock()
		return r.data, nil
	}
	x := m.making[id]
	if x == nil {
		if m.ended || len(m.making) >= mostUnkept {
			m.mu.Unlock()
			return nil, fault.New(fault.Unavailable, "the service is busy making images: ask again in a moment")
		}
		x = &making{done: make(chan struct{})}
		m.making[id] = x
		m.all.Go(func() { m.run(id, x, f, p) })
	}
	m.mu.Unlock()
	select {
	case <-x.done:
		return x.data, x.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for image: %w", context.Cause(ctx))
	}
}

// run makes an image and keeps it.
func (m *Maker) run(id string, x *making, f *Video, p Plan) {
	defer func() {
		m.mu.Lock()
		delete(m.making, id)
		m.mu.Unlock()
	}()
	ctx, cancel := context.WithTimeout(m.base, patience)
	defer cancel()
	made, done := m.elsewhere(ctx, f, &p)
	defer func() { done() }()
	if x.data = made; made == nil {
		var g *turns.Turn
		x.data, g, x.err = m.work(ctx, f, &p)
		if g != nil {
			defer g.Leave()
		}
	}
	switch {
	case x.err == nil:
	case m.base.Err() != nil:
		x.err = fault.Wrap(fault.Unavailable, x.err, "the service is stopping: ask again in a moment")
	case ctx.Err() != nil && fault.Is(x.err, fault.Internal): // it waited for its turn, a processor or the storage
		x.err = fault.Wrap(fault.Unavailable, x.err,
			"the service is too busy to make the image in time: ask again in a moment")
	}
	if x.err == nil && f.Prefix == "" {
		m.remember(id, x.data, time.Duration(p.MaxAge)*time.Second)
	}
	if x.err != nil || made != nil || f.Prefix == "" {
		close(x.done)
		return
	}
	data := x.data
	if len(data) <= small {
		close(x.done) // who waits does not wait for the storage
	} else {
		defer close(x.done)
	}
	switch err := m.keep(ctx, f, &p, data); {
	case err == nil && len(data) > small:
		x.data = nil
	case err != nil && !fault.Is(err, fault.NotFound):
		m.opt.Logger.Warn("image can not be kept", "image", id, "error", err)
	}
}

// work makes an image once there is memory and a place for it; the turn has what memory it takes.
func (m *Maker) work(ctx context.Context, f *Video, p *Plan) ([]byte, *turns.Turn, error) {
	g, err := m.line.Enter(ctx, p.From, 0, max(f.cost(p), 1))
	if err != nil {
		return nil, nil, err
	}
	release, err := m.opt.Budget.Acquire(ctx, encode.Images, 1)
	if err != nil {
		return nil, g, err
	}
	defer release()
	data, err := m.make(ctx, f, p)
	g.Made(int64(len(data)))
	return data, g, err
}

// rounds is how many other nodes, one after another, are waited for that then have not made an image.
const rounds = 3

// elsewhere gives what another node has just made, or claims it. A thumbnail takes less time than to ask and to wait
// for storage.
func (m *Maker) elsewhere(ctx context.Context, f *Video, p *Plan) (made []byte, done func(...string)) {
	done = func(...string) {}
	if m.opt.Claims == nil || f.Prefix == "" || p.Kind == Thumbnail {
		return nil, done
	}
	key := f.Prefix + "/" + p.Name
	for range rounds {
		n, mine := m.opt.Claims.Claim(ctx, []string{key}, func() {})
		if n > 0 {
			return nil, mine
		}
		if !m.opt.Claims.Wait(ctx, key) {
			break
		}
		data, err := m.opt.Store.Read(ctx, key)
		if err == nil && len(data) > 0 {
			return data, done
		}
	}
	return nil, done
}

func (m *Maker) make(ctx context.Context, f *Video, p *Plan) ([]byte, error) {
	var data []byte
	var err error
	switch p.Kind {
	case Thumbnail:
		data, err = m.thumbnail(ctx, f, p)
	case Animated:
		data, err = m.animation(ctx, f, p)
	case Storyboard:
		data, err = m.storyboard(ctx, f, p)
	}
	if err == nil && len(data) == 0 {
		err = errors.New("the encoder gave nothing")
	}
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", p.Kind, blame(err))
	}
	return data, nil
}

// blame puts it down to what is stored: a viewer did nothing wrong when it can't be decoded.
func blame(err error) error {
	if fault.Is(err, fault.Invalid) {
		return fault.Wrap(fault.NotFound, err, "there is no picture to be had at that time")
	}
	return err
}

// remember keeps what is made of a video that grows, for a while.
func (m *Maker) remember(id string, data []byte, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.opt.Now()
	m.forget(id)
	for k, r := range m.recent {
		if m.held+len(data) > maxHeld || !now.Before(r.until) {
			m.forget(k)
		}
	}
	m.recent[id] = recent{data, now.Add(age)}
	m.held += len(data)
}

// forget is called with the lock.
func (m *Maker) forget(id string) {
	m.held -= len(m.recent[id].data)
	delete(m.recent, id)
}

// keep stores an image and takes others away where there are too many of its kind: any others, as names say nothing
// about age.
func (m *Maker) keep(ctx context.Context, f *Video, p *Plan, data []byte) error {
	own := f.Prefix + "/" + p.Name
	if created, err := m.opt.Store.PutNew(ctx, own, data); !created || err != nil {
		return err
	}
	var there []string
	for key, err := range m.opt.Store.List(ctx, f.Prefix+"/"+string(p.Kind)+"-") {
		if err != nil {
			return err
		}
		there = append(there, key)
	}
	// Names are as good as random: those that follow the new one go.
	at := slices.Index(there, own)
	var gone []string
	for i := 1; at >= 0 && len(there)-len(gone) > f.most(p.Kind); i++ {
		gone = append(gone, there[(at+i)%len(there)])
	}
	if len(gone) == 0 {
		return nil
	}
	return m.opt.Store.Delete(ctx, gone...)
}
