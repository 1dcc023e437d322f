// Package unsent bounds the memory that responses hold until their clients have read them: a client that reads nothing
// cannot fill memory, however many HTTP/2 streams it opens. The budget is in bytes: for all responses, for those to one
// address, and for those of one connection. A response of which nothing is read for a while is aborted. It must never
// know what is sent. It starts no goroutine.
package unsent

import (
	"context"
	"sync"

	"millrace/internal/fault"
)

const (
	// Stream is what a request over HTTP/2 keeps in memory by itself: its goroutine, its fields, and what the stream
	// buffers.
	Stream = 16 << 10
	// Piece is how much of a response is in memory at a time when it is read from a file or from storage.
	Piece = 32 << 10
)

// Limits are what may be unsent, in bytes.
type Limits struct {
	All        int64
	Address    int64 // of one client: an IPv4 address, or the /64 of an IPv6 address
	Connection int64
}

// LimitsOf are those for a machine with so many bytes of memory. An address has enough for 250 viewers of low-latency
// streams behind it, of whom each waits for four things.
func LimitsOf(memory uint64) Limits {
	const share, least, address, connection = 8, 32 << 20, 16 << 20, 6 << 20
	all := max(int64(memory/share), least)
	return Limits{All: all, Address: min(all/2, address), Connection: connection}
}

// Budget counts what is unsent. A nil one bounds nothing.
type Budget struct {
	limits  Limits
	refusal *Budget // for responses that say no, which are unsent too; nil: it is the budget of those

	mu        sync.Mutex
	all       account
	addresses map[string]*account
	unused    []*account // by nobody, at most mostUnused
}

// mostUnused is how many accounts of addresses that have nothing unsent are kept for the next ones, so that a response
// which is taken at once costs no memory.
const mostUnused = 64

// New returns a Budget.
func New(l Limits) *Budget {
	refusals := Limits{All: l.All / 16, Address: l.Address / 8, Connection: l.Address / 8}
	return &Budget{
		limits: l, addresses: map[string]*account{},
		refusal: &Budget{limits: refusals, addresses: map[string]*account{}},
	}
}

// account is what one of those who share a budget has unsent.
type account struct {
	bytes  int64
	shared map[*byte]shared // by where it begins
}

// shared is memory that several responses send, which counts once.
type shared struct {
	bytes     int64
	responses int
}

// room reports whether an account has room for n more bytes. Who has nothing unsent may have a response of any size.
func (a *account) room(n, limit int64) bool { return n == 0 || a.bytes == 0 || a.bytes+n <= limit }

// adds is how many bytes more it would be.
func (a *account) adds(n int64, data *byte) int64 {
	if data != nil && a.shared[data].responses > 0 {
		return 0
	}
	return n
}

func (a *account) add(n int64, data *byte) {
	if data == nil {
		a.bytes += n
		return
	}
	if a.shared == nil {
		a.shared = map[*byte]shared{}
	}
	had, ok := a.shared[data]
	if !ok {
		had.bytes = n
		a.bytes += n
	}
	had.responses++
	a.shared[data] = had
}

func (a *account) remove(n int64, data *byte) {
	if data == nil {
		a.bytes -= n
		return
	}
	had := a.shared[data]
	if had.responses--; had.responses > 0 {
		a.shared[data] = had
		return
	}
	delete(a.shared, data)
	a.bytes -= had.bytes
}

// Hold counts n bytes that a response to an address keeps in memory, until release is called. fault.TooMany: this
// address, or the connection of ctx, has too much unsent already; fault.Unavailable: all together have.
func (b *Budget) Hold(ctx context.Context, address string, n int64) (release func(), err error) {
	return b.hold(ctx, address, n, nil)
}

// HoldData is Hold for data, which counts once however many responses send it at the same time.
func (b *Budget) HoldData(ctx context.Context, address string, data []byte) (release func(), err error) {
	if len(data) == 0 {
		return func() {}, nil
	}
	return b.hold(ctx, address, int64(len(data)), &data[0])
}

func (b *Budget) hold(ctx context.Context, address string, n int64, data *byte) (release func(), err error) {
	if b == nil || n <= 0 {
		return func() {}, nil
	}
	h := held{b: b, address: address, n: n, data: data}
	if conn := connectionOf(ctx); conn != nil {
		h.conn = conn.account(b)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	own, known := b.addresses[address]
	if !known {
		own = b.fresh()
	}
	h.own = own
	if err = h.refused(); err != nil {
		if !known {
			b.unused = append(b.unused, h.own)
		}
		return nil, err
	}
	if !known {
		b.addresses[address] = h.own
	}
	for _, a := range [...]*account{&b.all, h.own, h.conn} {
		if a != nil {
			a.add(n, data)
		}
	}
	return h.release, nil
}

// fresh is an account of nobody. It needs the lock.
func (b *Budget) fresh() *account {
	last := len(b.unused) - 1
	if last < 0 {
		return &account{}
	}
	a := b.unused[last]
	b.unused = b.unused[:last]
	return a
}

// held is what a response keeps in memory.
type held struct {
	b       *Budget
	address string
	own     *account // of the address
	conn    *account // of the connection; nil: it is not known
	n       int64
	data    *byte
}

// refused says why it is too much, if it is. It needs the budget's lock.
func (h *held) refused() error {
	limits := h.b.limits
	switch {
	case h.conn != nil && !h.conn.room(h.conn.adds(h.n, h.data), limits.Connection):
		return fault.New(fault.TooMany,
			"this connection has too many responses that are not read: read them, and ask again")
	case !h.own.room(h.own.adds(h.n, h.data), limits.Address):
		return fault.New(fault.TooMany,
			"this address has too many responses that are not read: read them, and ask again")
	case !h.b.all.room(h.b.all.adds(h.n, h.data), limits.All):
		return fault.New(fault.Unavailable, "too many responses wait to be sent: ask again in a moment")
	}
	return nil
}

// release says that it is not kept any more.
func (h *held) release() {
	b := h.b
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range [...]*account{&b.all, h.own, h.conn} {
		if a != nil {
			a.remove(h.n, h.data)
		}
	}
	if h.own.bytes == 0 {
		delete(b.addresses, h.address)
		if len(b.unused) < mostUnused {
			b.unused = append(b.unused, h.own)
		}
	}
}

// Held is how many bytes are unsent.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.bytes
}
