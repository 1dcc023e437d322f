package app

import (
	"context"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/audience"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
	"millrace/internal/media/watching"
	"millrace/internal/permit"
)

// countViewers builds what counts those who watch. With SQLite there are no other nodes.
func (n *node) countViewers() {
	n.watched = &watching.Register{}
	o := audience.Options{
		Verifier: permit.Counts{Guard: n.guard},
		Finder:   handles{n},
		Local:    localAudience{n.watched},
		Node:     n.id,
	}
	if n.cfg.Database.Engine == config.Postgres {
		o.Store = n.db.Audiences()
	}
	n.counts = audience.New(o)
}

// localAudience is who watches on this node.
type localAudience struct{ *watching.Register }

// Key implements audience.Local.
func (localAudience) Key(p id.Playback) uint64 { return watching.Key(string(p)) }

// Now implements audience.Local.
func (l localAudience) Now(now time.Time) audience.Views { return l.Register.Now(now) }

// handles are the playback IDs of resources.
type handles struct{ n *node }

// PlaybackIDs implements audience.Finder.
func (h handles) PlaybackIDs(ctx context.Context, g audience.Grant) ([]id.Playback, error) {
	var found []playbackid.ID
	switch g.Kind {
	case audience.OfAsset:
		a, err := h.n.assets.Get(ctx, g.Environment, id.Asset(g.ID))
		if err != nil {
			return nil, err
		}
		found = a.PlaybackIDs
	case audience.OfLiveStream:
		s, err := h.n.streams.Get(ctx, g.Environment, id.LiveStream(g.ID))
		if err != nil {
			return nil, err
		}
		found = s.PlaybackIDs
	case audience.OfPlaybackID, audience.OfVideo:
		o, err := h.n.access.Lookup(ctx, g.Environment, id.Playback(g.ID))
		if err != nil {
			return nil, err
		}
		found = []playbackid.ID{o.ID}
	}
	out := make([]id.Playback, 0, len(found))
	for _, p := range found {
		out = append(out, p.ID)
	}
	return out, nil
}
