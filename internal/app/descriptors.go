package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"millrace/internal/socket"
	"millrace/internal/unsent"
)

// Shares of the descriptors that the process may open. The rest is for what connections ask for, and for what must go on however many connect:
// the journal, storage, the database, encoders.
const (
	mostReserved   = 8192 // a half, at most so many
	mostPublishers = 2048 // a tenth for RTMP and RTMPS, at most so many
	mostWebRTC     = 2048 // a thirtieth for WHIP over TCP, at most so many

	memoryShare      = 8        // viewers' connections take an eighth of the memory at most
	memoryConnection = 16 << 10 // bytes that one takes
)

// budgets are who may have how many connections, and how much of the memory.
type budgets struct {
	viewers, publishers, webrtc *socket.Budget
	unsent                      *unsent.Budget // of what viewers and callers are sent
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
	n.budgets = budgets{
		viewers: socket.NewBudget(v, v/2), publishers: socket.NewBudget(p, p/2), webrtc: socket.NewBudget(w, w/2),
		unsent: unsent.New(unsent.LimitsOf(memory)),
	}
	n.log.InfoContext(ctx, "connections", "open_files", files.Cur, "viewers", v, "publishers", p, "webrtc_tcp", w)
	return nil
}

// connState tells the budget which connections of net/http are at work. Until its first request has come one counts as idle.
func connState(nc net.Conn, state http.ConnState) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	c, ok := nc.(interface{ Whole() *socket.Counted })
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		c.Whole().Busy()
	case http.StateIdle:
		c.Whole().Idle()
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}
