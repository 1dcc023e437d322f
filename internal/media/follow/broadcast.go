package follow

import (
	"context"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
)

// broadcast is a broadcast of another node. It implements playback.Broadcast.
type broadcast struct {
	f      *Follower
	stream id.LiveStream
	owner  Owner
	about  wire.Description // as it was at first
	meter  *metering.Counter
	adrift *adrift

	ctx   context.Context //nolint:containedctx // the life of all that is asked for it
	cease context.CancelCauseFunc
	calls calls[wire.Ask, response]

	mu       sync.Mutex
	used     time.Time // when a viewer asked last
	revision uint64    // the newest one that is known of
	texts    bool
	watched  map[string]time.Time // renditions of which viewers asked for media, and when
}

var _ playback.Broadcast = (*broadcast)(nil)

// newBroadcast follows an owner; before is what was followed of the same media until now, or nil.
func newBroadcast(f *Follower, s id.LiveStream, owner Owner, about wire.Description, before *broadcast) *broadcast {
	b := &broadcast{
		f: f, stream: s, owner: owner, about: about, used: f.opt.Now(), revision: about.Revision, texts: about.Texts,
		adrift: newAdrift(before, f.opt.Now()), watched: map[string]time.Time{},
		meter: f.opt.Meter.Counter(metering.Asset{
			ID: string(about.Asset), Environment: string(owner.Environment), LiveStream: string(s),
		}),
	}
	// It outlives the viewer that asked first.
	b.ctx, b.cease = context.WithCancelCause(context.Background()) //nolint:forbidigo // see above
	return b
}

// About implements playback.Broadcast.
func (b *broadcast) About() playback.About {
	return playback.About{Media: b.about.Media, Asset: b.about.Asset, Title: b.about.Title, Began: b.about.Began}
}

// HasTexts implements playback.Broadcast.
func (b *broadcast) HasTexts() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.texts
}

// View implements playback.Broadcast.
func (b *broadcast) View(w playback.Watch) playback.Live {
	v := view{broadcast: b, objects: w.Objects, event: w.Event, names: wire.TextsOf(w.Texts)}
	if w.Event {
		var added []playback.TextName
		for _, t := range w.Texts {
			if t.Added {
				added = append(added, playback.TextName{Rendition: t.Rendition, Added: true})
			}
		}
		v.added = wire.TextsOf(added)
	}
	return v
}

// touch notes that a viewer asks.
func (b *broadcast) touch() {
	now := b.f.opt.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used = now
}

// follow hears of each change until no viewer asks any more, or the owner has the broadcast no more and nobody else has
// it.
func (b *broadcast) follow() {
	defer b.f.forget(b)
	for b.isWatched() {
		c, err := b.change()
		if err != nil {
			b.lose(err)
			if fault.Is(err, fault.Internal) { // it would lie again and again
				b.end(err)
			}
			b.seek()
			return
		}
		b.changed(c)
	}
	b.end(fault.New(fault.Unavailable, "nobody has asked for this for a while: ask again"))
}

// change waits for the next change.
func (b *broadcast) change() (c wire.Change, err error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, prompt, errSilent())
	defer cancel()
	known := b.newest()
	r, err := b.f.ask(ctx, b.owner.Node, b.of(), wire.Ask{What: wire.Changes, Revision: known}, wire.MaxShort)
	if err == nil {
		c, err = wire.Decode[wire.Change](r.data)
	}
	if err == nil && c.Revision < known { // it would say so again and again
		err = fault.New(fault.Internal, "the node that has the live stream tells of changes of the past")
	}
	return c, err
}

func (b *broadcast) isWatched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.f.opt.Now().Sub(b.used) < unwatched
}

// of names the edge that is followed.
func (b *broadcast) of() wire.Of {
	return wire.Of{Stream: b.stream, Media: b.about.Media, Edition: b.about.Edition}
}

// newest is the newest revision that is known of.
func (b *broadcast) newest() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revision
}

// know notes a revision.
func (b *broadcast) know(revision uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revision = max(b.revision, revision)
}

func (b *broadcast) changed(c wire.Change) {
	b.mu.Lock()
	b.revision, b.texts = max(b.revision, c.Revision), c.Texts
	b.mu.Unlock()
	if c.Watched != b.about.Media {
		b.f.replaced(b)
	}
}

// lose sets a broadcast adrift that its owner has no more, or whose owner does not respond.
func (b *broadcast) lose(err error) {
	if context.Cause(b.ctx) != nil { // it is so already
		return
	}
	b.f.opt.Directory.Lost(b.stream)
	b.f.opt.Logger.Info("a broadcast is not followed any more", "live_stream_id", b.stream, "node", b.owner.Node.ID,
		"error", err)
	b.adrift.begin()
	b.cease(fault.Wrap(fault.Unavailable, err,
		"the node that had the live stream does not respond, or has it no more: ask again in a moment"))
}

// end ends all that is under way, with an error.
func (b *broadcast) end(err error) {
	b.cease(err)
	b.adrift.end(nil, err)
	b.f.forget(b)
}

// ask is one request to the owner for all who want the same; or to the next one.
func (b *broadcast) ask(ctx context.Context, a wire.Ask) (response, error) {
	return onward(ctx, b, func(b *broadcast) (response, error) {
		if r, ok := b.f.kept.get(b, a); ok && b.isAdrift() {
			return r, nil
		}
		return b.direct(ctx, a)
	})
}

// direct is ask of this owner alone.
func (b *broadcast) direct(ctx context.Context, a wire.Ask) (response, error) {
	r, err := b.calls.do(ctx, b.ctx, a, func(ctx context.Context) (response, error) {
		r, err := b.f.ask(ctx, b.owner.Node, b.of(), a, most(a.What))
		switch {
		case err != nil:
			return r, err
		case a.What == wire.Playlist:
			b.listed(a, r)
		case a.What == wire.Multivariant: // for as long as nobody has the broadcast
			b.f.kept.put(b.ctx, b, a, r)
		case a.What == wire.Chunk || a.What == wire.FilmInit || a.What == wire.FilmSegment:
			b.f.kept.put(b.ctx, b.adrift.media, a, r) // before anybody else asks again
		}
		return r, nil
	})
	if moved(err) {
		b.lose(err)
		err = context.Cause(b.ctx)
	}
	return r, err
}

// keep is ask for what never changes.
func (b *broadcast) keep(ctx context.Context, a wire.Ask) (response, error) {
	if r, ok := b.f.kept.get(b.adrift.media, a); ok {
		return r, nil
	}
	return b.ask(ctx, a)
}
