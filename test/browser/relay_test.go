package browser_test

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// relayed gives an address from which all goes on to another one, over a line with 20 ms each way. It is steady; or in
// bursts, as over a radio: for 150 to 350 ms nothing comes through, about every second; or it has losses: one packet of
// fifty comes 250 ms later, with all of its connection behind it.
func relayed(t testing.TB, to, kind string, seed int) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{kind: kind, random: rand.New(rand.NewPCG(uint64(seed), 1)), shut: time.Now().Add(time.Second)}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", to)
			if err != nil {
				_ = near.Close()
				continue
			}
			go l.carry(far, near)
			go l.carry(near, far)
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String()
}

// line is what all connections of a relay share.
type line struct {
	kind string

	mu         sync.Mutex
	random     *rand.Rand
	shut, open time.Time // when nothing comes through, the next time
}

const oneWay = 20 * time.Millisecond

// arrives is when so many bytes are there that were sent now.
func (l *line) arrives(now time.Time, n int) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := now.Add(oneWay)
	switch l.kind {
	case "bursts":
		for !l.open.After(at) {
			if !l.open.IsZero() {
				l.shut = l.open.Add(time.Duration(300+l.random.IntN(1400)) * time.Millisecond)
			}
			l.open = l.shut.Add(time.Duration(150+l.random.IntN(200)) * time.Millisecond)
		}
		if at.After(l.shut) {
			at = l.open
		}
	case "losses":
		for range 1 + n/1460 {
			if l.random.IntN(50) == 0 {
				return at.Add(250 * time.Millisecond)
			}
		}
	}
	return at
}

// carry takes what one end sends to the other, until either closes.
func (l *line) carry(to, from net.Conn) {
	type packet struct {
		data []byte
		at   time.Time
	}
	packets := make(chan packet, 1000)
	go func() {
		defer close(packets)
		last := time.Time{}
		for {
			data := make([]byte, 16<<10)
			n, err := from.Read(data)
			if n > 0 {
				if at := l.arrives(time.Now(), n); at.After(last) {
					last = at
				}
				packets <- packet{data[:n], last}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range packets {
		<-time.After(time.Until(p.at))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	for range packets { // what is on the way is lost
	}
}
