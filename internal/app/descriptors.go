package app

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/socket"
	"millrace/internal/unsent"
)

// Shares of the descriptors that the process may open. The rest is for what connections ask for, and for what must go
// on however many connect: the journal, storage, the database, encoders.
const (
	mostReserved   = 8192 // a half, at most so many
	mostPublishers = 2048 // a tenth for RTMP and RTMPS, at most so many
	mostWebRTC     = 2048 // a thirtieth for WHIP over TCP, at most so many
	mostNodes      = 256  // connections from other nodes, of which each has one: a sixteenth, out of what is reserved

	memoryShare      = 8        // viewers' connections take an eighth of the memory at most
	memoryConnection = 16 << 10 // bytes that one takes
)

// Kinds of requests that have places of their own among the viewers' connections.
const (
	viewing   socket.Kind = iota // whatever is not below; that of express, too
	calling                      // the API, the dashboard and WHIP
	uploading                    // files
)

// kindShares divide connections up between those that are at work for one kind of request each. One address has half of
// a share at most, and viewers behind one, as a CDN's, half of all.
func kindShares(connections int) []socket.Share {
	eighth := connections / 8
	half := max(eighth/2, 1)
	return []socket.Share{
		viewing:   {Places: connections - 2*eighth},
		calling:   {Places: eighth, PerOrigin: half},
		uploading: {Places: eighth, PerOrigin: half, Patience: uploadPatience},
	}
}

// uploadPatience is how far an upload may be behind before it makes way for another, when there is no place left: it
// goes on when a mobile link does. Any other body comes with its request, and has none.
const uploadPatience = 5 * time.Second

// budgets are who may have how many connections, and how much of the memory.
type budgets struct {
	viewers, publishers, webrtc, nodes *socket.Budget

	unsent *unsent.Budget // of what viewers and callers are sent
}

// shares divides descriptors up. One address has half of what is for all like it, at most.
func shares(descriptors, memory uint64) (viewers, publishers, webrtc int) {
	publishers = int(min(descriptors/10, mostPublishers))
	webrtc = int(min(descriptors/30, mostWebRTC))
	left := descriptors - min(descriptors/2, mostReserved) - uint64(publishers) - uint64(webrtc)
	return int(min(left, max(memory/memoryShare/memoryConnection, 64))), publishers, webrtc
}

// connections asks the system how many connections the process can have.
func (n *node) connections(ctx context.Context) error {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("read limit of open files: %w", err)
	}
	memory, err := memoryOf()
	if err != nil {
		return err
	}
	limitMemory(n.cfg, memory, debug.SetMemoryLimit)
	v, p, w := shares(files.Cur, memory)
	others := int(min(files.Cur/16, mostNodes))
	n.budgets = budgets{
		viewers:    socket.NewBudget(v, v/2, kindShares(v)...),
		publishers: socket.NewBudget(p, p/2), webrtc: socket.NewBudget(w, w/2),
		nodes:  socket.NewBudget(others, others/2),
		unsent: unsent.New(unsent.LimitsOf(memory)),
	}
	n.log.InfoContext(ctx, "connections", "open_files", files.Cur, "viewers", v, "publishers", p, "webrtc_tcp", w)
	return nil
}
