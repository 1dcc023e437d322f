package broadcast

import (
	"context"
	"os"
	"path/filepath"

	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/media/journal"
)

// Copies are those of the journals of broadcasts that nodes keep of each other. What was published on a node that is
// gone is known from them.
type Copies interface {
	// Open has another node copy what is published of a broadcast, by the writer of a generation; left is what an
	// earlier one has published.
	Open(m id.Media, generation int64, left Copied) Copying
	// Has reports whether this node has copied a broadcast.
	Has(m id.Media) bool
	// Left is what nodes have copied of a broadcast; nothing where nobody has.
	Left(ctx context.Context, m id.Media) Copied
}

// Copied is what was copied of a broadcast's journals: its own, and that of the renditions made of it.
type Copied struct{ Own, Derived []byte }

// Copying is one broadcast that is being copied.
type Copying interface {
	// Taps are given the records of its journals.
	Taps() (own, derived journal.Tap)
	// Close ends it. over: all is stored, and what was copied is of no use any more.
	Close(over bool)
}

// copiedAhead bounds by how much a copy may know more numbers than the row has reserved: hours without a database.
const copiedAhead = 4096

// has reports whether this machine has a journal of a recording.
func (j Journals) has(m id.Media) bool {
	_, err := os.Stat(filepath.Join(j.Dir, string(m)))
	return err == nil
}

// copied is what other nodes have copied of a broadcast, where this one has to go by that.
func copied(ctx context.Context, o *Options, s live.Stream, m id.Media, before stored) Copied {
	c, j := o.Copies, o.Journals
	if c == nil || j.Dir == "" || s.Generation == 0 || before.own && j.has(m) {
		return Copied{}
	}
	return c.Left(ctx, m)
}

// copying has a broadcast copied; nil where nobody copies.
func copying(o *Options, s live.Stream, m id.Media, left Copied) Copying {
	if o.Copies == nil || o.Journals.Dir == "" {
		return nil
	}
	return o.Copies.Open(m, s.Generation, left)
}
