// Package copies has another node copy what this one publishes of its broadcasts, keeps such copies of other nodes'
// broadcasts in bounded memory, and gets them back for the node that goes on after a death (decision 105). What is
// copied are the records of a broadcast's journals, which it can't read: of parts their bytes too, or how long they are
// alone. It must never know what a broadcast is, playlists, or how nodes trust each other.
//
// Goroutines: one for each node that copies for this one, and one for each of at most mostAsked nodes that are asked
// for their zone, both below Run; and one for each node that is asked for a copy, bounded in time.
package copies

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
)

// Options configures a Service.
type Options struct {
	Self live.Owner // this process
	Zone string     // where it is; empty: nobody has said
	// Media has the bytes of parts copied; else only how long they are.
	Media bool
	Rows  interface {
		Nodes(ctx context.Context) ([]node.Node, error)
	}
	Peer   follow.Peer
	From   func(ctx context.Context) id.Node // whose a request to this node is
	Now    func() time.Time
	Logger *slog.Logger
}

const (
	// chooseEvery is how often it is looked at which node copies what.
	chooseEvery = 2 * time.Second
	// refrain is how long a node that failed is not chosen again.
	refrain = 30 * time.Second
	// mostAsked is how many nodes are asked for their zone at a time, and mostWait how long a choice waits for them.
	mostAsked, mostWait = 64, 200 * time.Millisecond
	// leftFor is for how long a copy is kept of what this process has left to another writer: that one asks for it.
	leftFor = 2 * time.Minute
	// mostOfOne and mostOfAll bound the bytes of one broadcast and of all, here and where they are copied.
	mostOfOne, mostOfAll = 64 << 20, 512 << 20
)

// Service is both sides: what this node has others copy, and what it has copied (Store). Its methods may be called at
// the same time.
type Service struct {
	opt   Options
	store *Store
	stats stats
	again chan struct{} // one token: look which node copies what

	mu     sync.Mutex
	feeds  map[*Feed]struct{}
	links  map[id.Node]*link
	failed map[id.Node]time.Time        // until when it is not chosen
	zones  map[live.Owner]string        // what nodes have said
	asked  map[live.Owner]chan struct{} // closed when they have, or do not
	bytes  int64                        // of all feeds
	left   []left
	run    sync.WaitGroup
}

// left is what this process does not write any more, and another one may go on with.
type left struct {
	media id.Media
	link  *link // that has the copy
	since time.Time
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{
		opt: o, again: make(chan struct{}, 1), feeds: map[*Feed]struct{}{}, links: map[id.Node]*link{},
		failed: map[id.Node]time.Time{}, zones: map[live.Owner]string{}, asked: map[live.Owner]chan struct{}{},
	}
	s.store = newStore(o, &s.stats)
	return s
}

// Store is what this node has copied of others.
func (s *Service) Store() *Store { return s.store }

// Name implements lifecycle.Service.
func (*Service) Name() string { return "copies" }

// Run has what is opened copied until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	defer s.run.Wait()
	tick := time.NewTicker(chooseEvery)
	defer tick.Stop()
	for {
		if err := fault.Guard(func() error { return s.choose(ctx) }); err != nil && ctx.Err() == nil {
			s.opt.Logger.DebugContext(ctx, "nobody could be chosen to copy broadcasts", "error", err)
		}
		s.store.expire()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-s.again:
		}
	}
}

// lookAgain has Run choose now.
func (s *Service) lookAgain() {
	select {
	case s.again <- struct{}{}:
	default:
	}
}

// choose gives each broadcast a node that copies it. It keeps the one that it has for as long as that one is there.
func (s *Service) choose(ctx context.Context) error {
	if !s.any() {
		return nil
	}
	ask, cancel := context.WithTimeout(ctx, chooseEvery)
	defer cancel()
	all, err := s.opt.Rows.Nodes(ask)
	if err != nil {
		return err //nolint:wrapcheck // Run says what it was about
	}
	c := s.candidates(ctx, all)
	now := s.opt.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetLeft()
	for f := range s.feeds {
		if f.link != nil && !c.has(f.link.to.ID, f.link.run) {
			f.assign(nil)
		}
		if f.link == nil {
			if n := c.best(string(f.media), func(n id.Node) bool { return now.Before(f.full[n]) }); n != nil {
				f.assign(s.link(ctx, n))
			}
		}
	}
	s.dropIdle()
	return nil
}

func (s *Service) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.feeds) > 0 || len(s.links) > 0
}

// candidates are the nodes that may copy: those that live, can be reached and have said where they are.
func (s *Service) candidates(ctx context.Context, all []node.Node) candidates {
	c := candidates{zone: s.opt.Zone}
	now := s.opt.Now()
	var able []*node.Node
	for i := range all {
		n := &all[i]
		if n.Name != s.opt.Self.Node && n.Shown() == node.Alive && n.AdvertiseURL != "" &&
			!s.hasFailed(n.Name, now) {
			able = append(able, n)
		}
	}
	s.learnZones(ctx, able)
	for _, n := range able {
		if zone, known := s.zoneOf(n); known {
			c.all = append(c.all, candidate{node: n, zone: zone, copies: s.feedsOf(n.Name)})
		}
	}
	return c
}

// learnZones asks nodes for their zones, each process once, and waits a moment for those that are being asked. What
// comes later counts for the next choice.
func (s *Service) learnZones(ctx context.Context, able []*node.Node) {
	var awaited []chan struct{}
	for _, n := range able {
		if done := s.askedZone(ctx, n); done != nil {
			awaited = append(awaited, done)
		}
	}
	rest := time.NewTimer(mostWait)
	defer rest.Stop()
	for _, done := range awaited {
		select {
		case <-done:
		case <-rest.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// askedZone is closed when a process has said its zone or does not respond; nil: it is known, or is asked later.
func (s *Service) askedZone(ctx context.Context, n *node.Node) chan struct{} {
	who := ownerOf(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.zones[who]; known {
		return nil
	}
	if done := s.asked[who]; done != nil || len(s.asked) >= mostAsked {
		return done
	}
	done := make(chan struct{})
	s.asked[who] = done
	to := follow.Node{ID: n.Name, URL: n.AdvertiseURL}
	s.run.Go(func() {
		var zone string
		err := fault.Guard(func() (err error) { zone, err = s.askZone(ctx, to); return err })
		if err != nil {
			s.opt.Logger.DebugContext(ctx, "a node does not say that it may copy", "node", to.ID, "error", err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, who)
		close(done)
		if err != nil {
			s.failed[to.ID] = s.opt.Now().Add(refrain)
			return
		}
		if len(s.zones) > 4096 {
			maps.DeleteFunc(s.zones, func(o live.Owner, _ string) bool { // those that copy stay chosen
				l := s.links[o.Node]
				return l == nil || l.run != o.Run
			})
		}
		s.zones[who] = zone
		s.lookAgain()
	})
	return done
}

func (s *Service) hasFailed(n id.Node, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, failed := s.failed[n]
	if failed && !now.Before(until) {
		delete(s.failed, n)
		return false
	}
	return failed
}

// fail has a node not be chosen for a while.
func (s *Service) fail(n id.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed[n] = s.opt.Now().Add(refrain)
}

// refused takes a broadcast from a link whose node has no place for it, and has another node chosen. Until then its
// parts are listed without waiting.
func (s *Service) refused(f *Feed, l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.link != l {
		return
	}
	now := s.opt.Now()
	maps.DeleteFunc(f.full, func(_ id.Node, until time.Time) bool { return !now.Before(until) })
	if f.full == nil {
		f.full = map[id.Node]time.Time{}
	}
	f.full[l.to.ID] = now.Add(refrain)
	f.assign(nil)
	s.stats.refused.Add(1)
	s.lookAgain()
}

func (s *Service) feedsOf(n id.Node) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		if f.link != nil && f.link.to.ID == n {
			count++
		}
	}
	return count
}

func ownerOf(n *node.Node) live.Owner { return live.Owner{Node: n.Name, Run: n.Run} }

// zoneOf is the zone of a process, if it has said it.
func (s *Service) zoneOf(n *node.Node) (zone string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	zone, known = s.zones[ownerOf(n)]
	return zone, known
}

// link is the one to a node, which is made if need be. Called with the lock.
func (s *Service) link(ctx context.Context, n *node.Node) *link {
	to := follow.Node{ID: n.Name, URL: n.AdvertiseURL}
	if l := s.links[to.ID]; l != nil {
		if l.to == to && l.run == n.Run {
			return l
		}
		l.stop() // two would break each other's stream
	}
	l := newLink(s, to, n.Run)
	s.links[to.ID] = l
	life, stop := context.WithCancel(ctx)
	l.stop = stop
	s.run.Go(func() {
		if err := fault.Guard(func() error { l.send(life); return nil }); err != nil {
			s.opt.Logger.ErrorContext(ctx, "a link to a node that copies ended by a panic", "node", to.ID, "error", err)
		}
		s.lose(l)
	})
	return l
}

// lose takes a link's broadcasts from it.
func (s *Service) lose(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		if f.link == l {
			f.assign(nil)
		}
	}
	if s.links[l.to.ID] == l {
		delete(s.links, l.to.ID)
	}
	s.lookAgain()
}

// dropIdle ends the links that nothing is copied over. Called with the lock.
func (s *Service) dropIdle() {
	used := map[*link]bool{}
	for f := range s.feeds {
		used[f.link] = true
	}
	for _, x := range s.left {
		used[x.link] = true
	}
	for n, l := range s.links {
		if !used[l] && l.idle() {
			delete(s.links, n)
			l.stop()
		}
	}
}

// forgetLeft has copies forgotten of what was left a while ago. Called with the lock.
func (s *Service) forgetLeft() {
	s.left = slices.DeleteFunc(s.left, func(x left) bool {
		over := s.opt.Now().Sub(x.since) >= leftFor
		if over {
			x.link.over(x.media)
		}
		return over || s.links[x.link.to.ID] != x.link
	})
}

// of are the broadcasts that are copied over a link.
func (s *Service) of(l *link) (all []*Feed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		if f.link == l {
			all = append(all, f)
		}
	}
	return all
}
