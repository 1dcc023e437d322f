// Package follow shows broadcasts of other nodes: it makes the edge of another node a playback.Broadcast here, as
// media/edgeview does for this node's edges. It passes viewers' requests to the owner, one for all viewers who ask for
// the same thing, keeps immutable media in bounded memory, and keeps playlists for as long as they are valid.
//
// It must never know which node owns a stream (a Directory says so), how nodes reach and trust each other (a Peer
// does), who watches, or what viewers may see. Goroutines: one for each broadcast that is followed, which ends half a
// minute after the last viewer's request, and one for each request to an owner, which is bounded in time.
package follow

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow/wire"
	"millrace/internal/media/metering"
	"millrace/internal/media/playback"
)

// Node is another node.
type Node struct {
	ID  id.Node
	URL string // scheme, host and port, without a last slash
}

// Peer reaches other nodes.
type Peer interface {
	// Do sends a request, of whose URL path and query count. The caller closes the response's body.
	Do(ctx context.Context, to Node, r *http.Request) (*http.Response, error)
}

// Owner is who has the edge of a live stream.
type Owner struct {
	Node        Node
	Environment id.Environment // of the stream
}

// Directory knows who has the edges of live streams.
type Directory interface {
	// Owner is another node than this one. NotFound: no other node has the stream; ErrHere: this one has it. It is
	// called for each request of a viewer that nothing is followed for, and is to respond from memory where it can.
	Owner(ctx context.Context, s id.LiveStream) (Owner, error)
	// Lost says that a stream's owner does not have it any more, or does not respond.
	Lost(s id.LiveStream)
}

// Options configures a Follower.
type Options struct {
	Peer      Peer
	Directory Directory
	// Moves reports whether this node handed a live stream's broadcast over a moment ago: the next owner may not be
	// known yet, or not show it; nil: it hands none over.
	Moves func(s id.LiveStream) bool
	Meter *metering.Meter // of what viewers are sent; nil: nothing is counted
	// Bytes is how much media and how many playlists are kept; they are kept for as long as nothing newer needs room.
	Bytes  int64
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	// unwatched is for how long a broadcast is followed that no viewer asks for.
	unwatched = 30 * time.Second
	// prompt is how long an owner may take to say that it is there: it says so every second.
	prompt = 4 * time.Second
	// refrain is how long an owner that did not respond is not asked again for a broadcast.
	refrain = time.Second
	// settling is how long the next owner of a broadcast that is handed over may take to show it.
	settling = 10 * time.Second
	// mostAsked is how many requests to one owner may be under way at a time, and mostOfOne how many of its broadcasts
	// are followed, each of which has one request under way beside those. It serves a thousand, on one connection.
	mostAsked, mostOfOne = 700, 290
	// mostFollowed is how many broadcasts are followed at a time.
	mostFollowed = 5000
)

// Follower follows the broadcasts of other nodes. Its methods may be called at the same time.
type Follower struct {
	opt   Options
	kept  *cache
	finds calls[wire.Of, *broadcast]

	mu      sync.Mutex
	closed  bool
	current map[id.LiveStream]*broadcast // that their viewers see
	all     map[id.Media]*broadcast
	assets  map[id.Asset]*broadcast
	failed  map[wire.Of]failure
	asked   map[id.Node]int // requests under way
	coming  int64           // bytes that are read now
	running sync.WaitGroup
}

type failure struct {
	err   error
	until time.Time
}

// New returns a Follower. Close it last.
func New(o Options) *Follower {
	return &Follower{
		opt: o, kept: newCache(o.Bytes), current: map[id.LiveStream]*broadcast{}, all: map[id.Media]*broadcast{},
		assets: map[id.Asset]*broadcast{}, failed: map[wire.Of]failure{}, asked: map[id.Node]int{},
	}
}

// Lookups are those of media of other nodes in memory.
func (f *Follower) Lookups() *metering.Lookups { return &f.kept.lookups }

// Close gives up all that is followed, and waits for its goroutines.
func (f *Follower) Close() {
	f.mu.Lock()
	f.closed = true
	var all []*broadcast
	for _, b := range f.all {
		all = append(all, b)
	}
	f.mu.Unlock()
	for _, b := range all {
		b.end(fault.New(fault.Unavailable, "the service is stopping: ask again in a moment"))
	}
	f.running.Wait()
}

// Following counts the broadcasts that are followed.
func (f *Follower) Following() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.all)
}

// Watched is the broadcast that a live stream's viewers see. NotReady: no other node has one.
func (f *Follower) Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error) {
	b, err := f.find(ctx, wire.Of{Stream: s})
	if fault.Is(err, fault.NotFound) {
		return nil, playback.Inactive()
	}
	return b, err
}

// OfAsset is the broadcast of a live stream that is recorded as an asset. NotFound: no other node has it.
func (f *Follower) OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	return f.find(ctx, wire.Of{Stream: s, Asset: a})
}

// Earlier is a broadcast of a live stream by its media. NotFound: no other node has it.
func (f *Follower) Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error) {
	return f.find(ctx, wire.Of{Stream: s, Media: m})
}

// find is a broadcast that is followed, or will be now.
func (f *Follower) find(ctx context.Context, of wire.Of) (playback.Broadcast, error) {
	b, err := f.known(of)
	if b == nil && err == nil {
		life := context.Background() //nolint:forbidigo // of all who wait for it
		b, err = f.finds.do(ctx, life, of, func(ctx context.Context) (*broadcast, error) { return f.describe(ctx, of) })
	}
	if err != nil {
		return nil, err
	}
	b.touch()
	return b, nil
}

// known is what is followed already, or why it could not be a moment ago.
func (f *Follower) known(of wire.Of) (*broadcast, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := f.current[of.Stream]
	switch {
	case of.Media != "":
		b = f.all[of.Media]
	case of.Asset != "":
		b = f.assets[of.Asset]
	}
	if b != nil && b.stream == of.Stream {
		return b, nil
	}
	if had, ok := f.failed[of]; ok && f.opt.Now().Before(had.until) {
		return nil, had.err
	}
	return nil, nil //nolint:nilnil // it has to be asked for
}

// describe asks the owner of a stream which broadcast it is, and begins to follow it. While the broadcast is handed
// over it waits for the next owner.
func (f *Follower) describe(ctx context.Context, of wire.Of) (*broadcast, error) {
	for end := f.opt.Now().Add(settling); ; {
		owner, err := f.opt.Directory.Owner(ctx, of.Stream)
		var b *broadcast
		if err == nil {
			b, err = f.describeAt(ctx, owner, of)
		}
		if err == nil || !f.moves(of.Stream, err) || !f.opt.Now().Before(end) || wait(ctx, lookEvery) != nil {
			return b, err
		}
		f.opt.Directory.Lost(of.Stream)
	}
}

// moves reports whether a broadcast that was not found is being handed over, by this node or by the one that was asked.
func (f *Follower) moves(s id.LiveStream, err error) bool {
	return moved(err) || f.opt.Moves != nil && f.opt.Moves(s)
}

func (f *Follower) describeAt(ctx context.Context, owner Owner, of wire.Of) (*broadcast, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, prompt, errSilent())
	defer cancel()
	r, err := f.ask(ctx, owner.Node, of, wire.Ask{What: wire.About}, wire.MaxShort)
	var about wire.Description
	if err == nil {
		about, err = wire.Decode[wire.Description](r.data)
	}
	if err == nil && (about.Media == "" || about.Edition == "" || of.Media != "" && about.Media != of.Media ||
		of.Asset != "" && about.Asset != of.Asset) {
		err = fault.New(fault.Internal, "the node that has the live stream describes another one")
	}
	if err != nil && errors.Is(context.Cause(ctx), context.Canceled) { // nobody waits for it any more
		return nil, err
	}
	if err != nil {
		if !f.moves(of.Stream, err) {
			f.note(of, err)
		}
		f.opt.Directory.Lost(of.Stream)
		return nil, err
	}
	b, old, err := f.follow(of.Stream, owner, about)
	if old != nil {
		old.adrift.end(b, nil) // before all that is under way ends
		old.end(fault.New(fault.Unavailable, "another node has the live stream now: ask again in a moment"))
	}
	return b, err
}

// note remembers for a moment that a broadcast could not be found, so that many who ask cost its owner nothing.
func (f *Follower) note(of wire.Of, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failed) >= 4096 {
		clear(f.failed)
	}
	f.failed[of] = failure{err, f.opt.Now().Add(refrain)}
}

// follow begins to follow a broadcast, unless it is followed already. old is what was followed by its name
// until now.
func (f *Follower) follow(s id.LiveStream, owner Owner, about wire.Description) (b, old *broadcast, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old = f.all[about.Media]
	if old != nil && old.stream == s && old.owner == owner && old.about.Edition == about.Edition && !old.isAdrift() {
		return old, nil, nil
	}
	switch {
	case f.closed:
		return nil, nil, fault.New(fault.Unavailable, "the service is stopping: ask again in a moment")
	case old == nil && len(f.all) >= mostFollowed || f.of(owner.Node.ID) >= mostOfOne:
		return nil, nil, fault.New(fault.TooMany, "this node follows as many live streams as it can: ask again later")
	}
	b = newBroadcast(f, s, owner, about, old)
	f.all[about.Media], f.assets[about.Asset] = b, b
	if about.Watched == about.Media {
		f.current[s] = b
	}
	f.running.Go(func() {
		if err := fault.Guard(func() error { b.follow(); return nil }); err != nil {
			f.opt.Logger.Error("following a broadcast ended by a panic", "live_stream_id", s, "error", err)
			b.end(err)
		}
	})
	return b, old, nil
}

// of counts the broadcasts of a node that are followed. Called with the lock.
func (f *Follower) of(n id.Node) (count int) {
	for _, b := range f.all {
		if b.owner.Node.ID == n {
			count++
		}
	}
	return count
}

// forget takes a broadcast out of those that are followed.
func (f *Follower) forget(b *broadcast) {
	f.mu.Lock()
	if f.all[b.about.Media] == b {
		delete(f.all, b.about.Media)
	}
	if f.assets[b.about.Asset] == b {
		delete(f.assets, b.about.Asset)
	}
	if f.current[b.stream] == b {
		delete(f.current, b.stream)
	}
	f.mu.Unlock()
	f.kept.drop(b)
	if !b.adrift.succeeded() {
		f.kept.drop(b.adrift.media)
	}
}

// replaced says that a stream's viewers see another broadcast now.
func (f *Follower) replaced(b *broadcast) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current[b.stream] == b {
		delete(f.current, b.stream)
	}
}

func errSilent() error {
	return fault.New(fault.Unavailable, "the node that has the live stream does not respond: ask again in a moment")
}

// moved reports whether an error says that an owner has the edge no more.
func moved(err error) bool {
	_, ok := errors.AsType[*wire.MovedError](err)
	return ok
}
