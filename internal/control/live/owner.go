package live

import (
	"errors"
	"time"

	"millrace/internal/fault"
	"millrace/internal/id"
)

// Owner is the process that leads a broadcast. It lives as long as its node's row is valid and names the same run.
type Owner struct {
	Node id.Node
	// different each time the node's process starts; empty: a process of a version that wrote leases, which is gone
	Run string
}

// Writer is one of those who write a broadcast one after the other. A process has at most one of each broadcast, and
// when it begins to write one again, that is another writer.
type Writer struct {
	Epoch      id.Epoch
	Generation int64
	Owner
}

// Writer is who leads the stream's broadcast, or led the last one.
func (s Stream) Writer() Writer {
	return Writer{Epoch: s.Epoch, Generation: s.Generation, Owner: s.Owner}
}

// ledBy reports whether the stream has a broadcast that w leads.
func (s Stream) ledBy(w Writer) bool { return s.ActiveAsset != "" && s.Writer() == w }

// Connection is an encoder that wants to be let in, and the process that it has come to.
type Connection struct {
	StreamKey, Protocol string
	NewAsset            id.Asset // of the broadcast, should it begin one
	Owner               Owner
	// Led is the writer that this process has of a stream's broadcast; zero: none. It may not block. nil: it has none
	// of any stream.
	Led func(id.LiveStream) Writer
	// Asked is the living writer at another node that was asked to hand the broadcast over, whatever it said; zero:
	// none was.
	Asked Writer
	// Refused is the writer whose node refuses connections (ErrRefused): where nobody has the lock on that node's name
	// either its process has ended, whatever its row says. Zero: none does.
	Refused Writer
	// Bound is for how long a broadcast of a dead owner is not to be taken, which was promised to that one; may be
	// nil.
	Bound func(Owner) time.Duration
}

// AfterDeath is how long at least a broadcast waits for an encoder that was lost with its node, or that its node has
// let go of to leave, whatever the reconnect window: it has not ended anything, and may need several attempts until it
// reaches another node.
const AfterDeath = 60 * time.Second

// ErrRefused says that the machine of a node refuses connections: no process listens there.
var ErrRefused = errors.New("the node refuses connections: no process listens there")

// ElsewhereError is why an encoder is not admitted yet: another node leads the broadcast, lives, and has to be asked to
// hand it over.
type ElsewhereError struct {
	Stream id.LiveStream
	Writer Writer
	For    time.Duration // so long at least, unless it is handed over
}

func (e *ElsewhereError) Error() string {
	return "node " + string(e.Writer.Node) + " leads the broadcast"
}

// Unwrap is what it comes to where nobody is asked.
func (e *ElsewhereError) Unwrap() error {
	return fault.New(fault.Conflict, "another node leads the broadcast of the live stream")
}

// Standing is how an owner stands.
type Standing struct {
	// Sure is for how long nobody else may take its broadcasts, unless their encoders are away or silent; 0 or less: it
	// is not alive.
	Sure time.Duration
	Seen time.Time // when it was last heard of, up to SeeEvery before; zero: never
}

// Alive reports whether the owner lives.
func (s Standing) Alive() bool { return s.Sure > 0 }

// SeeEvery is how often a process that leads broadcasts has to say that it is there (Broadcasts.See): so much of a
// reconnect window may be lost with it.
const SeeEvery = 5 * time.Second

// Held is what changes of a broadcast that a process leads.
type Held struct {
	Stream     id.LiveStream
	Epoch      id.Epoch
	Generation int64
	Revision   int64 // of the stream's row
}

// Reservation says which media sequence numbers of a broadcast may be published: those below Next.
type Reservation struct {
	Stream     id.LiveStream
	Epoch      id.Epoch
	Generation int64
	Next       int64
	Was        int64 // it counts only while this is reserved, unless it is Whatever
}

// Whatever is Reservation.Was of one that counts whatever was reserved before.
const Whatever = -1
