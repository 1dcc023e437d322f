package rig

import (
	"bytes"
	"container/heap"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// SRTURL is where an SRT encoder of a live stream connects, as the API's users write it; more is added to the query.
func (s *Server) SRTURL(l Object, more string) string {
	return SRTURL(s.SRT, l.Text("stream_key"), l.Text("srt_passphrase"), more)
}

// SRTURL is the address of an SRT listener with what a caller says to it. A caller that ends waits until its last
// packets are there.
func SRTURL(addr, streamID, passphrase, more string) string {
	return "srt://" + addr + "?streamid=" + streamID + "&passphrase=" + passphrase + "&pkt_size=1316&linger=3" + more
}

// Weather is what a network does to datagrams, in either direction.
type Weather struct {
	Loss   float64       // share of datagrams that vanish
	Delay  time.Duration // of each
	Jitter time.Duration // more delay, of each by chance up to this, which also changes their order
	Seed   uint64        // of the chance
	Junk   bool          // garbage from elsewhere arrives among them
	// of every so many packets of SRT's data one never arrives, however often it is sent; 0: all may
	Never uint32

	// nothing goes to or from such an address; called for each datagram, from several goroutines
	Deaf func(caller string) bool
}

// Through puts weather in front of a UDP address until the test ends, and gives the address to send to.
func (w Weather) Through(t testing.TB, addr string) string {
	t.Helper()
	front, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	open := []io.Closer{front}
	var mu sync.Mutex
	t.Cleanup(func() {
		cancel()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	up := w.sky(1, &wg, ctx)
	wg.Go(func() {
		backs := map[string]net.Conn{} // by caller
		b := make([]byte, 2048)
		for {
			n, from, err := front.ReadFrom(b)
			if err != nil {
				return
			}
			if w.Deaf != nil && w.Deaf(from.String()) {
				continue
			}
			back := backs[from.String()]
			if back == nil {
				if back, err = net.DialUDP("udp", nil, to); err != nil {
					return
				}
				mu.Lock()
				open = append(open, back)
				mu.Unlock()
				backs[from.String()] = back
				down := w.sky(2, &wg, ctx)
				wg.Go(func() {
					response := make([]byte, 2048)
					for {
						size, err := back.Read(response)
						if errors.Is(err, syscall.ECONNREFUSED) {
							continue
						}
						if err != nil {
							return
						}
						if w.Deaf == nil || !w.Deaf(from.String()) {
							down.carry(response[:size], func(p []byte) { _, _ = front.WriteTo(p, from) })
						}
					}
				})
			}
			up.carry(b[:n], func(p []byte) { _, _ = back.Write(p) })
		}
	})
	if w.Junk {
		stranger, err := net.DialUDP("udp", nil, to)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, stranger)
		wg.Go(func() { w.junk(ctx, stranger) })
	}
	return front.LocalAddr().String()
}

// junk sends garbage from an address of its own: anything, and what looks like SRT.
func (w Weather) junk(ctx context.Context, to io.Writer) {
	chance := rand.New(rand.NewPCG(w.Seed, 3))
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p := make([]byte, chance.IntN(1500))
		for i := range p {
			p[i] = byte(chance.Uint32())
		}
		if len(p) > 16 && chance.IntN(2) == 0 { // a handshake, or another control packet
			copy(p, []byte{0x80, byte(chance.IntN(8)), 0, 0})
			copy(p[12:], []byte{0, 0, 0, 0})
		}
		_, _ = to.Write(p)
	}
}

// sky delays and drops what goes one way.
type sky struct {
	w      Weather
	chance *rand.Rand // of the goroutine that calls carry
	first  uint32     // number of the first data packet; likewise
	began  bool       // that is known
	in     chan drop
}

// drop is a datagram on its way.
type drop struct {
	due  time.Time
	turn int // keeps those that are due at the same time in order
	p    []byte
	send func([]byte)
}

func (w Weather) sky(way uint64, wg *sync.WaitGroup, ctx context.Context) *sky { //nolint:revive // the group owns it
	s := &sky{w: w, chance: rand.New(rand.NewPCG(w.Seed, way)), in: make(chan drop, 4096)}
	wg.Go(func() { s.rain(ctx) })
	return s
}

// carry takes a datagram: every decision is by chance of the seed, in the order in which they come.
func (s *sky) carry(p []byte, send func([]byte)) {
	lost, more := s.chance.Float64() < s.w.Loss, time.Duration(s.chance.Float64()*float64(s.w.Jitter))
	if lost || s.never(p) {
		return
	}
	select {
	case s.in <- drop{due: time.Now().Add(s.w.Delay + more), p: bytes.Clone(p), send: send}:
	default: // as a router would
	}
}

// never reports whether p is one of the data packets that do not arrive.
func (s *sky) never(p []byte) bool {
	const control = 0x80
	if s.w.Never == 0 || len(p) < 16 || p[0]&control != 0 {
		return false
	}
	number := binary.BigEndian.Uint32(p)
	if !s.began {
		s.first, s.began = number, true
	}
	return (number-s.first)%s.w.Never == s.w.Never-1
}

// rain lets datagrams go on when they are due.
func (s *sky) rain(ctx context.Context) {
	var up drops
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	for turn := 0; ; turn++ {
		wait := time.Hour
		if len(up) > 0 {
			wait = time.Until(up[0].due)
		}
		next.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case d := <-s.in:
			d.turn = turn
			heap.Push(&up, d)
		case <-next.C:
			for len(up) > 0 && time.Until(up[0].due) <= 0 {
				d := heap.Pop(&up).(drop) //nolint:forcetypeassert // nothing else is in it
				d.send(d.p)
			}
		}
	}
}

// drops is a heap.
type drops []drop

func (d drops) Len() int { return len(d) }
func (d drops) Less(i, j int) bool {
	return d[i].due.Before(d[j].due) || d[i].due.Equal(d[j].due) && d[i].turn < d[j].turn
}
func (d drops) Swap(i, j int) { d[i], d[j] = d[j], d[i] }

// Push implements heap.Interface.
func (d *drops) Push(x any) { *d = append(*d, x.(drop)) } //nolint:forcetypeassert // nothing else is in it

// Pop implements heap.Interface.
func (d *drops) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}

// LogLines are the log's lines with this message, as values.
func (s *Server) LogLines(msg string) (lines []Object) {
	for line := range strings.Lines(s.Log()) {
		var o Object
		if json.Unmarshal([]byte(line), &o) == nil && o.Text("msg") == msg {
			lines = append(lines, o)
		}
	}
	return lines
}

// AwaitLogLine waits for a line with this message and gives the last one.
func (s *Server) AwaitLogLine(t testing.TB, msg string, limit time.Duration) Object {
	t.Helper()
	s.AwaitLog(t, limit, fmt.Sprintf(`"msg":%q`, msg))
	lines := s.LogLines(msg)
	return lines[len(lines)-1]
}
