// Package audience counts current viewers: what a token asks for, and the count over all nodes. It must never know how
// viewers are told apart, SQL, HTTP or the clock (`now` is an argument).
package audience

import (
	"context"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/sketch"
)

// Kind is what a token is about; the claim aud of a token for viewer counts.
type Kind string

// The kinds.
const (
	OfPlaybackID Kind = "playback_id"
	OfAsset      Kind = "asset_id"
	OfLiveStream Kind = "live_stream_id"
	OfVideo      Kind = "video_id" // that a player's page says to an analytics service, which this is not
)

// Grant is what a token allows to count.
type Grant struct {
	Environment id.Environment
	Kind        Kind
	ID          string
}

// Request is who asks.
type Request struct {
	Token      string
	Referrers  []string // of the field Referer
	UserAgents []string
}

// Verifier says what a request's token allows. Errors are faults: Denied where it is none, of no key of ours, its time
// is over, or its playback restriction does not allow the request.
type Verifier interface {
	Verify(ctx context.Context, r Request, now time.Time) (Grant, error)
}

// Finder finds the playback IDs of what a Grant names; what is not there, or another environment's, is fault.NotFound.
type Finder interface {
	PlaybackIDs(ctx context.Context, g Grant) ([]id.Playback, error)
}

// Views are the viewers of playback IDs, by a key that the playback ID has on every node.
type Views map[uint64]sketch.Sketch

// Local is who is watching on this node.
type Local interface {
	// Key is what a playback ID is known by.
	Key(p id.Playback) uint64
	Now(now time.Time) Views
}

// Store is what nodes tell one another; storage/db implements it.
type Store interface {
	// Tell replaces the viewers that a node has reported.
	Tell(ctx context.Context, node id.Node, v Views) error
	// Reported is what nodes but one have told a short while ago about the playback IDs with these keys, each node's on
	// its own.
	Reported(ctx context.Context, but id.Node, keys []uint64) ([]Views, error)
}

// Counts is how many watch. A viewer, who is an address and a player, has one view for each playback ID that it
// watches.
type Counts struct {
	Views     int
	Viewers   int
	UpdatedAt time.Time
}

// Options configures a Service.
type Options struct {
	Verifier Verifier
	Finder   Finder
	Local    Local
	Store    Store // nil: there are no other nodes
	Node     id.Node
}

// Service counts.
type Service struct {
	opt       Options
	published bool // the other nodes have something of this one
}

// New returns a Service.
func New(o Options) *Service { return &Service{opt: o} }

// Count says how many watch what the token of a request is about.
func (s *Service) Count(ctx context.Context, r Request, now time.Time) (Counts, error) {
	if r.Token == "" {
		return Counts{}, fault.New(fault.Invalid, "token must be given")
	}
	g, err := s.opt.Verifier.Verify(ctx, r, now)
	if err != nil {
		return Counts{}, err
	}
	switch g.Kind {
	case OfPlaybackID, OfAsset, OfLiveStream:
	case OfVideo:
		return Counts{}, fault.New(fault.Invalid,
			"aud must not be video_id: players tell this service nothing of that name; use playback_id, asset_id or "+
				"live_stream_id")
	default:
		return Counts{}, fault.New(fault.Denied, "aud must be one of: playback_id, asset_id, live_stream_id")
	}
	ids, err := s.opt.Finder.PlaybackIDs(ctx, g)
	if err != nil {
		return Counts{}, err
	}
	return s.count(ctx, ids, now)
}

func (s *Service) count(ctx context.Context, ids []id.Playback, now time.Time) (Counts, error) {
	out := Counts{UpdatedAt: now}
	if len(ids) == 0 {
		return out, nil
	}
	keys := make([]uint64, 0, len(ids))
	for _, p := range ids {
		keys = append(keys, s.opt.Local.Key(p))
	}
	nodes := []Views{s.opt.Local.Now(now)}
	if s.opt.Store != nil {
		others, err := s.opt.Store.Reported(ctx, s.opt.Node, keys)
		if err != nil {
			return Counts{}, err
		}
		nodes = append(nodes, others...)
	}
	var all []sketch.Sketch
	for _, key := range keys {
		var here []sketch.Sketch
		for _, n := range nodes {
			here = append(here, n[key])
		}
		u := sketch.Union(here...)
		out.Views += u.Count()
		all = append(all, u)
	}
	out.Viewers = sketch.Union(all...).Count()
	return out, nil
}

// Share tells the other nodes who is watching on this one. It has to be called every few seconds, by one goroutine.
func (s *Service) Share(ctx context.Context, now time.Time) error {
	if s.opt.Store == nil {
		return nil
	}
	v := s.opt.Local.Now(now)
	if len(v) == 0 && !s.published {
		return nil
	}
	err := s.opt.Store.Tell(ctx, s.opt.Node, v)
	s.published = err != nil || len(v) > 0
	return err
}
