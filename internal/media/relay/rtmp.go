package relay

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"millrace/internal/media/container/flv"
	"millrace/internal/media/frame"
	"millrace/internal/media/rtmpwire"
)

const (
	sendChunkSize = 65536
	sendBuffer    = 256 << 10 // of the kernel: a larger one hides for a long time that the destination does not read
	maxCommands   = 64        // messages of a destination before it has admitted us
	goodbyeTime   = time.Second
)

var (
	errRefused    = errors.New("the destination refuses the stream")
	errNoResponse = errors.New("no response among many messages")
)

// rtmpLink publishes to an RTMP or RTMPS server.
type rtmpLink struct {
	nc     net.Conn
	addr   address
	wire   *rtmpwire.Conn
	stream uint32

	configs    [2]*frame.Config
	unreported [2]bool // of configs

	once  sync.Once
	ended chan struct{} // the reader's
	why   error         // before ended is closed
}

// dialRTMP connects and asks to publish. The context bounds all of it.
func dialRTMP(ctx context.Context, t *target, configs []frame.Config) (link, error) {
	for _, c := range configs {
		if err := flvCarries(c); err != nil {
			return nil, err
		}
	}
	nc, err := t.group.opt.Dial.DialContext(ctx, "tcp", t.addr.hostPort())
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if b, ok := nc.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = b.SetWriteBuffer(sendBuffer) // where it can't be set a dead destination is noticed later
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	conn := nc
	if t.addr.scheme == "rtmps" {
		secure := tls.Client(nc, &tls.Config{ServerName: t.addr.host, RootCAs: t.group.opt.Roots, MinVersion: tls.VersionTLS12})
		if err = secure.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("shake hands over TLS: %w", err), nc.Close())
		}
		conn = secure
	}
	l := &rtmpLink{nc: conn, addr: t.addr, ended: make(chan struct{})}
	if err = l.negotiate(enhanced(configs)); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the destination did not admit the stream within %v", openTime)
		}
		return nil, errors.Join(err, conn.Close())
	}
	go l.listen()
	return l, nil
}

// negotiate leads from the handshake to the publish command, sections 5.2 and 7.2.
func (l *rtmpLink) negotiate(enhanced bool) error {
	br, out := bufio.NewReaderSize(l.nc, 4<<10), rtmpwire.Timed(l.nc, writeTime)
	if err := rtmpwire.ClientHandshake(br, out); err != nil {
		return fmt.Errorf("shake hands: %w", err)
	}
	l.wire = rtmpwire.NewConn(br, out, nil) // TCP acknowledges what the destination says
	connect := rtmpwire.Object{
		{Name: "app", Value: l.addr.app},
		{Name: "type", Value: "nonprivate"},
		{Name: "flashVer", Value: "FMLE/3.0 (compatible; millrace)"},
		{Name: "tcUrl", Value: l.addr.tcURL},
	}
	if enhanced { // a server that knows none of it has no use for the rest of the stream either
		connect = append(connect, rtmpwire.Property{Name: "fourCcList", Value: fourCCs()})
	}
	if err := l.wire.Send(rtmpwire.Control(rtmpwire.TypeSetChunkSize, sendChunkSize), command(0, "connect", 1, connect)); err != nil {
		return err
	}
	if _, err := l.result(1); err != nil {
		return fmt.Errorf("connect to application: %w", err)
	}
	name := l.addr.name
	if err := l.wire.Send(command(0, "releaseStream", 2, nil, name), command(0, "FCPublish", 3, nil, name), command(0, "createStream", 4, nil)); err != nil {
		return err
	}
	made, err := l.result(4)
	if err != nil {
		return fmt.Errorf("create stream: %w", err)
	}
	id, _ := made.(float64)
	if id < 1 || id >= 1<<32 {
		return fmt.Errorf("%w: it gives no message stream", errRefused)
	}
	l.stream = uint32(id)
	if err := l.wire.Send(command(l.stream, "publish", 5, nil, name, "live")); err != nil {
		return err
	}
	return l.admitted()
}

// result waits for the response to a command and returns its last value.
func (l *rtmpLink) result(transaction int) (any, error) {
	for range maxCommands {
		c, err := l.next()
		if err != nil {
			return nil, err
		}
		switch {
		case c.Transaction != transaction:
			err = l.refusal(c)
		case c.Name == "_result" && len(c.Args) > 0:
			return c.Args[len(c.Args)-1], nil
		case c.Name == "_result":
			return 0.0, nil
		case c.Name == "_error":
			err = l.no(c)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errNoResponse
}

// admitted waits for NetStream.Publish.Start.
func (l *rtmpLink) admitted() error {
	for range maxCommands {
		c, err := l.next()
		if err == nil {
			err = l.refusal(c)
		}
		if err != nil {
			return err
		}
		for _, a := range c.Args {
			if o, ok := a.(rtmpwire.Object); ok && o.Text("code") == "NetStream.Publish.Start" {
				return nil
			}
		}
	}
	return errNoResponse
}

// refusal is the error that a command tells, if it does.
func (l *rtmpLink) refusal(c rtmpwire.Command) error {
	if c.Name != "onStatus" && c.Name != "_error" && c.Name != "close" {
		return nil
	}
	isError := func(a any) bool {
		o, ok := a.(rtmpwire.Object)
		return ok && o.Text("level") == "error"
	}
	if c.Name == "close" || slices.ContainsFunc(c.Args, isError) {
		return l.no(c)
	}
	return nil
}

// no is a refusal in the destination's words, without what is secret in them.
func (l *rtmpLink) no(c rtmpwire.Command) error {
	for _, a := range c.Args {
		o, ok := a.(rtmpwire.Object)
		if !ok {
			continue
		}
		said := o.Text("code") + " " + o.Text("description")
		_, query, _ := strings.Cut(l.addr.app, "?")
		for _, secret := range []string{l.addr.name, query} {
			if secret != "" {
				said = strings.ReplaceAll(said, secret, "…")
			}
		}
		said = strings.TrimSpace(strings.Map(func(c rune) rune {
			if c < ' ' {
				return -1
			}
			return c
		}, said))
		return fmt.Errorf("%w: %.200s", errRefused, said)
	}
	return errRefused
}

// next returns the next command.
func (l *rtmpLink) next() (rtmpwire.Command, error) {
	for {
		p, err := l.wire.Next()
		if err != nil {
			return rtmpwire.Command{}, err
		}
		if c, ok := rtmpwire.ParseCommand(p); ok {
			return c, nil
		}
	}
}

// listen reads what the destination says until it hangs up or says no. Its acknowledgements are not needed: TCP has
// them.
func (l *rtmpLink) listen() {
	defer close(l.ended)
	for {
		c, err := l.next()
		if err == nil {
			err = l.refusal(c)
		}
		if err != nil {
			l.why = err
			return
		}
	}
}

func (l *rtmpLink) broken() <-chan struct{} { return l.ended }

func (l *rtmpLink) cause() error { return fmt.Errorf("the destination hung up: %w", l.why) }

// command is a command message, section 7.2.
func command(stream uint32, name string, transaction int, args ...any) rtmpwire.Out {
	return rtmpwire.Command{Name: name, Transaction: transaction, Args: args}.Message(rtmpwire.ChunkCommand, stream)
}

// configure keeps a track's parameters; they are sent before the next frame, together.
func (l *rtmpLink) configure(c frame.Config) error {
	if err := flvCarries(c); err != nil {
		return err
	}
	l.configs[c.Kind], l.unreported[c.Kind] = &c, true
	return nil
}

func (l *rtmpLink) write(f frame.Frame) error {
	at := flv.Timestamp(f.DTS)
	if slices.Contains(l.unreported[:], true) {
		if err := l.headers(at); err != nil {
			return err
		}
	}
	c := l.configs[f.Kind]
	if c == nil {
		return nil
	}
	m := rtmpwire.Out{ChunkStream: rtmpwire.ChunkVideo, Stream: l.stream, Kind: rtmpwire.TypeVideo, Timestamp: at, Body: f.Data}
	if f.Kind == frame.Audio {
		m.ChunkStream, m.Kind = rtmpwire.ChunkAudio, rtmpwire.TypeAudio
	}
	var head [16]byte
	m.Head = flv.AppendHead(head[:0], *c, f)
	if err := l.wire.Send(m); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// headers sends metadata and the sequence headers that are not told yet.
func (l *rtmpLink) headers(at uint32) error {
	meta := metadata(l.configs)
	if err := l.wire.Send(rtmpwire.Out{ChunkStream: rtmpwire.ChunkAudio, Stream: l.stream, Kind: rtmpwire.TypeDataAMF0, Timestamp: at, Body: meta}); err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	for k, unreported := range l.unreported {
		if !unreported {
			continue
		}
		l.unreported[k] = false
		body, err := flv.SequenceHeader(*l.configs[k])
		if err != nil {
			return impossible("%s", err)
		}
		if body == nil {
			continue
		}
		m := rtmpwire.Out{ChunkStream: rtmpwire.ChunkVideo, Stream: l.stream, Kind: rtmpwire.TypeVideo, Timestamp: at, Body: body}
		if frame.Kind(k) == frame.Audio {
			m.ChunkStream, m.Kind = rtmpwire.ChunkAudio, rtmpwire.TypeAudio
		}
		if err := l.wire.Send(m); err != nil {
			return fmt.Errorf("write sequence header: %w", err)
		}
	}
	return nil
}

// close says goodbye, if it is clean, and waits for a moment until the destination has read it and hung up by itself:
// closing a connection at once would cut off what is on its way.
func (l *rtmpLink) close(clean bool) {
	l.once.Do(func() {
		if clean {
			err := l.wire.Send(command(0, "FCUnpublish", 6, nil, l.addr.name), command(0, "deleteStream", 7, nil, float64(l.stream)))
			if half, ok := l.nc.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
				timer := time.NewTimer(goodbyeTime)
				defer timer.Stop()
				select {
				case <-l.ended:
				case <-timer.C:
				}
			}
		}
		_ = l.nc.Close()
	})
	<-l.ended
}
