package relay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	srt "github.com/datarhei/gosrt"

	"millrace/internal/media/frame"
)

const (
	srtPayload = 7 * 188 // bytes: TS packets in an SRT packet
	// packets written in a row: more run a receiver's socket over, and the library's queue of 1024 ends the link when
	// it is full.
	srtBurst   = 64
	srtPause   = 10 * time.Millisecond
	srtIdle    = 10 * time.Second // without a word of the peer
	srtLatency = 120 * time.Millisecond
	srtMargin  = 300 * time.Millisecond // for the other side to present what is due
)

// srtLink calls an SRT listener and sends it a transport stream.
type srtLink struct {
	conn  srt.Conn
	ts    *tsWriter
	burst int
	sent  uint64 // packets

	once  sync.Once
	ended chan struct{} // the reader's
}

// dialSRT connects to an address that the Dialer has checked: the library resolves nothing.
func dialSRT(ctx context.Context, t *target, configs []frame.Config) (link, error) {
	for _, c := range configs {
		if err := tsCarries(c); err != nil {
			return nil, err
		}
	}
	addr, err := t.group.opt.Dial.Resolve(ctx, "udp", t.addr.hostPort())
	if err != nil {
		return nil, fmt.Errorf("find destination: %w", err)
	}
	c := srt.DefaultConfig()
	c.StreamId, c.Passphrase = t.addr.streamID, t.addr.passphrase
	if t.addr.keyLength > 0 {
		c.PBKeylen = t.addr.keyLength
	}
	c.Latency = srtLatency
	if t.addr.latency > 0 {
		c.Latency = t.addr.latency
	}
	c.ConnectionTimeout, c.PeerIdleTimeout, c.PayloadSize = openTime/2, srtIdle, srtPayload
	conn, err := srt.DialWithContext(ctx, "srt", addr.String(), c)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	l := &srtLink{conn: conn, ended: make(chan struct{})}
	if l.ts, err = newTSWriter(l, configs); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go l.listen()
	return l, nil
}

// listen waits for the end: a listener that takes a stream has nothing to say.
func (sl *srtLink) listen() {
	defer close(sl.ended)
	buf := make([]byte, 2*srtPayload)
	for {
		if _, err := sl.conn.Read(buf); err != nil {
			return
		}
	}
}

func (sl *srtLink) broken() <-chan struct{} { return sl.ended }

func (sl *srtLink) cause() error { return errors.New("the destination hung up or went silent") }

func (sl *srtLink) configure(c frame.Config) error { return sl.ts.configure(c) }

func (sl *srtLink) write(f frame.Frame) error {
	if err := sl.ts.write(f); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// Write sends one SRT packet. The library has no back-pressure: it ends the connection when its queue is full, so a
// long burst is spread.
func (sl *srtLink) Write(b []byte) (int, error) {
	if sl.burst++; sl.burst >= srtBurst {
		sl.burst = 0
		timer := time.NewTimer(srtPause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-sl.ended:
		}
	}
	n, err := sl.conn.Write(b)
	if err == nil {
		sl.sent++
	}
	return n, err
}

// close ends the link; a clean end waits until what was sent last is presented there.
func (sl *srtLink) close(clean bool) {
	sl.once.Do(func() {
		if clean {
			sl.drain()
		}
		_ = sl.conn.Close()
	})
	<-sl.ended
}

// drain waits until the other side has everything, and then for as long as it holds it: what is not presented when it
// hears of the end it throws away.
func (sl *srtLink) drain() {
	limit := time.NewTimer(farewell)
	defer limit.Stop()
	look := time.NewTicker(srtPause)
	defer look.Stop()
	var s srt.Statistics
	for sl.conn.Stats(&s); s.Accumulated.PktSentUnique < sl.sent || s.Instantaneous.PktSendBuf > 0; sl.conn.Stats(&s) {
		select {
		case <-look.C:
		case <-limit.C:
			return
		case <-sl.ended:
			return
		}
	}
	held := time.NewTimer(time.Duration(s.Instantaneous.MsSendTsbPdDelay)*time.Millisecond + srtMargin)
	defer held.Stop()
	select {
	case <-held.C:
	case <-sl.ended:
	}
}
