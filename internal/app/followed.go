package app

import (
	"context"
	"net/http"
	"time"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	nodes "millrace/internal/control/node"
	"millrace/internal/copies"
	"millrace/internal/fault"
	"millrace/internal/handover"
	"millrace/internal/id"
	"millrace/internal/internode"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/follow"
	edges "millrace/internal/media/follow/owner"
	"millrace/internal/media/playback"
	"millrace/internal/mediastore"
	"millrace/internal/presentation"
	"millrace/internal/stalecache"
	"millrace/internal/streamhealth"
)

const (
	// keptOfOthers is how many bytes of other nodes' broadcasts are kept: half a minute of 25 live streams of 10 Mbit/s
	// each.
	keptOfOthers = 1 << 30
	// ownerFresh is how long it is taken for granted who owns a stream, or that nobody does.
	ownerFresh = time.Second
	// ownersKnown bounds of how many streams that is known.
	ownersKnown = 4096
)

// broadcasts are what viewers of this node can see: its own broadcasts and, where there is a fleet, those of others.
func (n *node) broadcasts() presentation.Broadcasts {
	if n.peers == nil {
		return n.live
	}
	n.internal.Handle("GET "+edges.Prefix, edges.New(edges.Options{
		Broadcasts: n.live, Objects: mediastore.Objects{Blob: n.blob}, Run: n.run, From: internode.FromNode,
		Logger: n.log,
	}))
	n.internal.Handle("GET "+streamhealth.Path, streamhealth.Handler{Own: n.live})
	n.internal.Handle("POST "+handover.Path, handover.Handler{Own: n.live, Self: live.Owner{Node: n.id, Run: n.run}})
	n.internal.Handle("POST "+handover.PromisePath, handover.Promises{Own: n.live, From: internode.FromNode})
	n.internal.Handle(copies.Path, n.copies.Store())
	n.others = follow.New(follow.Options{
		Peer: peers{n.peers}, Directory: n.owners, Moves: n.live.Leaving().Moves, Meter: &n.meter, Bytes: keptOfOthers,
		Now: clock, Logger: n.log,
	})
	n.close = append(n.close, func() error { n.others.Close(); return nil })
	return followed{ofNode{n.live, n.live.Leaving()}, n.others}
}

// followed asks this node first, then the others. What it gives lasts while broadcasts change nodes.
type followed struct {
	own    ownBroadcasts
	others *follow.Follower
}

// ownBroadcasts are those of this node.
type ownBroadcasts interface {
	presentation.Broadcasts

	Begun(ctx context.Context, s id.LiveStream)
}

// ofNode implements ownBroadcasts.
type ofNode struct {
	*broadcast.Service
	broadcast.Leaving
}

// Recovered implements presentation.Broadcasts.
func (f followed) Recovered(ctx context.Context) error { return f.own.Recovered(ctx) }

// Watched implements presentation.Broadcasts. A broadcast that has ended here is shown for as long as no other node has
// the next one.
func (f followed) Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error) {
	own, err := f.own.Watched(ctx, s)
	if b, ok := own.(edgeview.Broadcast); err == nil && ok && b.Edge.Ended() {
		other, failed := f.others.Watched(ctx, s)
		if fault.Is(failed, fault.NotReady) {
			return own, nil
		}
		return f.lasting(s, other, failed)
	}
	return f.find(ctx, s, func(all broadcasts) (playback.Broadcast, error) { return all.Watched(ctx, s) })
}

// OfAsset implements presentation.Broadcasts.
func (f followed) OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error) {
	return f.find(ctx, s, func(all broadcasts) (playback.Broadcast, error) { return all.OfAsset(ctx, s, a) })
}

// Earlier implements presentation.Broadcasts.
func (f followed) Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error) {
	return f.find(ctx, s, func(all broadcasts) (playback.Broadcast, error) { return all.Earlier(ctx, s, m) })
}

// broadcasts are this node's or those of others.
type broadcasts interface {
	Watched(ctx context.Context, s id.LiveStream) (playback.Broadcast, error)
	OfAsset(ctx context.Context, s id.LiveStream, a id.Asset) (playback.Broadcast, error)
	Earlier(ctx context.Context, s id.LiveStream, m id.Media) (playback.Broadcast, error)
}

// find looks here, then elsewhere, and here again: rows say that a broadcast is here while it is about to begin.
func (f followed) find(
	ctx context.Context, s id.LiveStream, look func(broadcasts) (playback.Broadcast, error),
) (playback.Broadcast, error) {
	b, err := look(f.own)
	if err == nil {
		return f.lasting(s, b, nil)
	}
	b, failed := look(f.others)
	if failed == nil {
		return f.lasting(s, b, nil)
	}
	f.own.Begun(ctx, s)
	if b, err = look(f.own); err == nil {
		return f.lasting(s, b, nil)
	}
	return nil, failed
}

func (f followed) lasting(s id.LiveStream, b playback.Broadcast, err error) (playback.Broadcast, error) {
	if err != nil {
		return nil, err
	}
	again := func(ctx context.Context) (playback.Broadcast, error) { return f.Earlier(ctx, s, b.About().Media) }
	return follow.Lasting{Broadcast: b, Moved: edgeview.Moved, Next: again}, nil
}

// owners knows which other nodes have live streams. The database is asked at most once a second for each.
type owners struct {
	rows  nodes.Directory
	self  id.Node
	known *stalecache.Cache[id.LiveStream, nodes.Owner]
}

// newOwners returns what says which other nodes than self have live streams.
func newOwners(rows nodes.Directory, self id.Node) *owners {
	known := stalecache.New[id.LiveStream, nodes.Owner](ownersKnown, ownerFresh).GoodFor(time.Minute)
	return &owners{rows: rows, self: self, known: known}
}

// Owner implements follow.Directory.
func (o *owners) Owner(ctx context.Context, s id.LiveStream) (follow.Owner, error) {
	found, err := o.known.Get(ctx, s, clock(), func(ctx context.Context) (nodes.Owner, error) {
		return o.rows.Owner(ctx, s)
	})
	if err != nil {
		return follow.Owner{}, err
	}
	if found.Name == o.self {
		return follow.Owner{}, follow.ErrHere
	}
	return follow.Owner{
		Node: follow.Node{ID: found.Name, URL: found.AdvertiseURL}, Environment: found.Environment,
	}, nil
}

// Lost implements follow.Directory.
func (o *owners) Lost(s id.LiveStream) { o.known.Drop(s) }

// peers is internode's client as media asks it.
type peers struct{ client *internode.Client }

// Do implements follow.Peer.
func (p peers) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	return p.client.Do(ctx, internode.Peer{Node: to.ID, URL: to.URL}, r)
}

// asks is how other nodes are asked, where there are any: to hand broadcasts over, and for their promises.
func asks(n *node) broadcast.Fleet {
	if n.peers == nil {
		return broadcast.Fleet{}
	}
	others := &handover.Others{
		Self: live.Owner{Node: n.id, Run: n.run}, Rows: n.db.Nodes(), Peer: peers{n.peers},
	}
	ask := handover.Client{Owners: n.owners, Peer: peers{n.peers}, Others: others}.Ask
	n.copies = copies.New(copies.Options{
		Self: live.Owner{Node: n.id, Run: n.run}, Zone: n.cfg.Node.Zone, Media: n.cfg.Node.LiveCopies > 1,
		Rows: n.db.Nodes(), Peer: peers{n.peers}, From: internode.FromNode, Now: clock, Logger: n.log,
	})
	return broadcast.Fleet{
		Ask: ask, Others: others, Copies: copied{n.copies}, Spectator: !n.cfg.Node.Roles.Has(nodes.RoleIngest),
	}
}

// copied is what nodes copy of each other as broadcasts use it.
type copied struct{ service *copies.Service }

// Open implements broadcast.Copies.
func (c copied) Open(m id.Media, generation int64, left broadcast.Copied) broadcast.Copying {
	return c.service.Open(copies.Of{Media: m, Generation: generation, Own: left.Own, Derived: left.Derived})
}

// Has implements broadcast.Copies.
func (c copied) Has(m id.Media) bool { return c.service.Store().Has(m) }

// Left implements broadcast.Copies.
func (c copied) Left(ctx context.Context, m id.Media) broadcast.Copied {
	found, _ := c.service.Left(ctx, m)
	return broadcast.Copied{Own: found.Own, Derived: found.Derived}
}

// health tells how encoders do, those of other nodes too.
func (n *node) health() *streamhealth.All {
	o := streamhealth.Options{Own: n.live, Now: clock, Logger: n.log}
	if n.owners != nil {
		o.Owners, o.Peer = n.owners, peers{n.peers}
	}
	return streamhealth.New(o)
}
