// Package copies has another node copy what this one publishes of its broadcasts, keeps such copies of other nodes'
// broadcasts in bounded memory, and gets them back for the node that goes on after a death (decision 105). What is
// copied are the records of a broadcast's journals, which it can't read: of parts their bytes too, or how long they are
// alone. It must never know what a broadcast is, playlists, or how nodes trust each other.
//
// Goroutines: one for each node that copies for this one, below Run, and one for each node that is asked for a copy,
// bounded in time.
package copies

import (
	"context"
	"log/slog"
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
	failed map[id.Node]time.Time // until when it is not chosen
	zones  map[live.Owner]string // what nodes have said
	bytes  int64                 // of all feeds
	run    sync.WaitGroup
}

// New returns a Service.
func New(o Options) *Service {
	s := &Service{
		opt: o, again: make(chan struct{}, 1), feeds: map[*Feed]struct{}{}, links: map[id.Node]*link{},
		failed: map[id.Node]time.Time{}, zones: map[live.Owner]string{},
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
	s.mu.Lock()
	defer s.mu.Unlock()
	for f := range s.feeds {
		if f.link != nil && !c.has(f.link.to.ID, f.link.run) {
			f.assign(nil)
		}
		if f.link == nil {
			if n := c.best(string(f.media)); n != nil {
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
	for i := range all {
		n := &all[i]
		if n.Name == s.opt.Self.Node || n.Shown() != node.Alive || n.AdvertiseURL == "" || s.hasFailed(n.Name, now) {
			continue
		}
		zone, known := s.zoneOf(ctx, n)
		if !known {
			s.fail(n.Name)
			continue
		}
		c.all = append(c.all, candidate{node: n, zone: zone, copies: s.feedsOf(n.Name)})
	}
	return c
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

// zoneOf is the zone of a process, which it is asked once.
func (s *Service) zoneOf(ctx context.Context, n *node.Node) (zone string, known bool) {
	who := live.Owner{Node: n.Name, Run: n.Run}
	s.mu.Lock()
	zone, known = s.zones[who]
	s.mu.Unlock()
	if known {
		return zone, true
	}
	zone, err := s.askZone(ctx, follow.Node{ID: n.Name, URL: n.AdvertiseURL})
	if err != nil {
		s.opt.Logger.DebugContext(ctx, "a node does not say that it may copy", "node", n.Name, "error", err)
		return "", false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.zones) > 4096 {
		clear(s.zones)
	}
	s.zones[who] = zone
	return zone, true
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
	for n, l := range s.links {
		if !used[l] && l.idle() {
			delete(s.links, n)
			l.stop()
		}
	}
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
