package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	nodes "millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/edgeview"
	"millrace/internal/media/follow"
	"millrace/internal/media/playback"
	"millrace/internal/presentation"
	"millrace/internal/stalecache"
)

// rows are those of live streams and nodes; it counts how often they are read.
type rows struct {
	owner nodes.Owner
	read  int
}

func (r *rows) Owner(_ context.Context, s id.LiveStream) (nodes.Owner, error) {
	r.read++
	if s != "owned" {
		return nodes.Owner{}, fault.New(fault.NotFound, "no node has the live stream's broadcast")
	}
	return r.owner, nil
}

// TestOwners: who owns a stream is read once a second at most, and that nobody does as well; when it is lost it is read
// again at once. This node itself is no other node.
func TestOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &rows{owner: nodes.Owner{Name: "there", AdvertiseURL: "http://there", Environment: "env"}}
		o := &owners{rows: r, self: "here", known: stalecache.New[id.LiveStream, nodes.Owner](8, ownerFresh)}
		ask := func(s id.LiveStream, reads int) {
			t.Helper()
			r.read = 0
			for range 50 {
				got, err := o.Owner(t.Context(), s)
				want := follow.Owner{Node: follow.Node{ID: "there", URL: "http://there"}, Environment: "env"}
				if s == "owned" && (err != nil || got != want) {
					t.Errorf("%+v, %v", got, err)
				}
				if s != "owned" && !fault.Is(err, fault.NotFound) {
					t.Errorf("of a stream that nobody has: %+v, %v", got, err)
				}
			}
			if r.read != reads {
				t.Errorf("%s: read %d times, want %d", s, r.read, reads)
			}
		}
		ask("owned", 1)
		ask("unknown", 1)
		ask("owned", 0)
		ask("unknown", 0)
		o.Lost("owned")
		ask("owned", 1)
		time.Sleep(ownerFresh)
		ask("owned", 1)
		ask("unknown", 1)
		r.owner.Name = "here"
		o.Lost("owned")
		if got, err := o.Owner(t.Context(), "owned"); !fault.Is(err, fault.NotFound) {
			t.Errorf("of this node's own: %+v, %v", got, err)
		}
	})
}

// here is this node's broadcasts: none until one has begun.
type here struct {
	presentation.Broadcasts

	begun bool
}

func (h *here) Watched(context.Context, id.LiveStream) (playback.Broadcast, error) {
	if !h.begun {
		return nil, playback.Inactive()
	}
	return edgeview.Broadcast{ID: "media"}, nil
}

func (h *here) Begun(context.Context, id.LiveStream) { h.begun = true }

// TestAboutToBegin: a viewer who comes while rows say that this node has the broadcast, and it is about to begin here,
// waits for that.
func TestAboutToBegin(t *testing.T) {
	t.Parallel()
	r := &rows{owner: nodes.Owner{Name: "here"}}
	o := &owners{rows: r, self: "here", known: stalecache.New[id.LiveStream, nodes.Owner](8, ownerFresh)}
	f := followed{&here{}, follow.New(follow.Options{Directory: o, Now: time.Now})}
	b, err := f.Watched(t.Context(), "owned")
	if err != nil || b.About().Media != "media" {
		t.Errorf("%v, %v", b, err)
	}
}
