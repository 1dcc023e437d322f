package app

import (
	"cmp"
	"context"
	"path/filepath"

	"millrace/internal/broadcast"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/journal"
	"millrace/internal/media/rendition"
	"millrace/internal/media/rendition/liveladder"
	"millrace/internal/mediastore"
)

// openBroadcasts opens the journals, and what records broadcasts with them.
func openBroadcasts(n *node, made mediastore.Derived) error {
	journals := filepath.Join(n.cfg.DataDir, "journal")
	if err := journal.Check(journals); err != nil {
		return err
	}
	memory := journal.OpenMemory(journals)
	n.close = append(n.close, memory.Close)
	broadcasts := live.NewBroadcasts(n.db.LiveStreams())
	if n.metrics != nil {
		broadcasts = n.metrics.Broadcasts(broadcasts)
	}
	n.live = broadcast.New(broadcast.Options{
		Streams:   broadcasts,
		Assets:    n.assets,
		Store:     n.blob,
		Owner:     live.Owner{Node: n.id, Run: n.run},
		Grace:     n.cfg.ShutdownTimeout,
		Now:       clock,
		Logger:    n.log,
		Journals:  broadcast.Journals{Dir: journals, Marks: memory.Dir},
		Stills:    n.ffmpeg,
		Images:    slates{n.fetch},
		Simulcast: n.fetch,
		Encoder:   n.ffmpeg,
		Mark:      n.mark,
		Below:     liveRenditions(n, made),
		Meter:     &n.meter,
		Speech:    n.liveSpeech(),
		Fleet:     asks(n),
	})
	return nil
}

// heldRungs are the bytes of live rungs that may wait for storage.
const heldRungs = 256 << 20

// liveRenditions is how the renditions below the videos of broadcasts are made.
func liveRenditions(n *node, made mediastore.Derived) *broadcast.Renditions {
	return &broadcast.Renditions{
		Makers: rendition.Makers{
			Encoder: n.ffmpeg,
			Maker:   n.rungs,
			Waiting: liveladder.NewByteBudget(heldRungs),
			Objects: made,
		},
		Policy: func(ctx context.Context, e id.Environment) (broadcast.Policy, error) {
			env, err := n.access.Environment(ctx, e)
			return broadcast.Policy(cmp.Or(env.LiveRungs, n.cfg.LiveRungs)), err
		},
	}
}
