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
		secure := tls.Client(nc, &tls.Config{
			ServerName: t.addr.host,
			RootCAs:    t.group.opt.Roots,
			MinVersion: tls.VersionTLS12,
		})
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
func (r *rtmpLink) negotiate(enhanced bool) error {
	br, out := bufio.NewReaderSize(r.nc, 4<<10), rtmpwire.Timed(r.nc, writeTime)
	if err := rtmpwire.ClientHandshake(br, out); err != nil {
		return fmt.Errorf("shake hands: %w", err)
	}
	r.wire = rtmpwire.NewConn(br, out, nil) // TCP acknowledges what the destination says
	connect := rtmpwire.Object{
		{Name: "app", Value: r.addr.app},
		{Name: "type", Value: "nonprivate"},
		{Name: "flashVer", Value: "FMLE/3.0 (compatible; millrace)"},
		{Name: "tcUrl", Value: r.addr.tcURL},
	}
	if enhanced { // a server that knows none of it has no use for the rest of the stream either
		connect = append(connect, rtmpwire.Property{Name: "fourCcList", Value: fourCCs()})
	}
	if err := r.wire.Send(rtmpwire.Control(rtmpwire.TypeSetChunkSize, sendChunkSize),
		command(0, "connect", 1, connect)); err != nil {
		return err
	}
	if _, err := r.result(1); err != nil {
		return fmt.Errorf("connect to application: %w", err)
	}
	name := r.addr.name
	if err := r.wire.Send(command(0, "releaseStream", 2, nil, name), command(0, "FCPublish", 3, nil, name),
		command(0, "createStream", 4, nil)); err != nil {
		return err
	}
	made, err := r.result(4)
	if err != nil {
		return fmt.Errorf("create stream: %w", err)
	}
	id, _ := made.(float64)
	if id < 1 || id >= 1<<32 {
		return fmt.Errorf("%w: it gives no message stream", errRefused)
	}
	r.stream = uint32(id)
	if err := r.wire.Send(command(r.stream, "publish", 5, nil, name, "live")); err != nil {
		return err
	}
	return r.admitted()
}

// result waits for the response to a command and returns its last value.
func (r *rtmpLink) result(transaction int) (any, error) {
	for range maxCommands {
		c, err := r.next()
		if err != nil {
			return nil, err
		}
		switch {
		case c.Transaction != transaction:
			err = r.refusal(c)
		case c.Name == "_result" && len(c.Args) > 0:
			return c.Args[len(c.Args)-1], nil
		case c.Name == "_result":
			return 0.0, nil
		case c.Name == "_error":
			err = r.no(c)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errNoResponse
}

// admitted waits for NetStream.Publish.Start.
func (r *rtmpLink) admitted() error {
	for range maxCommands {
		c, err := r.next()
		if err == nil {
			err = r.refusal(c)
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
func (r *rtmpLink) refusal(c rtmpwire.Command) error {
	if c.Name != "onStatus" && c.Name != "_error" && c.Name != "close" {
		return nil
	}
	isError := func(a any) bool {
		o, ok := a.(rtmpwire.Object)
		return ok && o.Text("level") == "error"
	}
	if c.Name == "close" || slices.ContainsFunc(c.Args, isError) {
		return r.no(c)
	}
	return nil
}

// no is a refusal in the destination's words, without what is secret in them.
func (r *rtmpLink) no(c rtmpwire.Command) error {
	for _, a := range c.Args {
		o, ok := a.(rtmpwire.Object)
		if !ok {
			continue
		}
		said := o.Text("code") + " " + o.Text("description")
		_, query, _ := strings.Cut(r.addr.app, "?")
		for _, secret := range []string{r.addr.name, query} {
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
func (r *rtmpLink) next() (rtmpwire.Command, error) {
	for {
		p, err := r.wire.Next()
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
func (r *rtmpLink) listen() {
	defer close(r.ended)
	for {
		c, err := r.next()
		if err == nil {
			err = r.refusal(c)
		}
		if err != nil {
			r.why = err
			return
		}
	}
}

func (r *rtmpLink) broken() <-chan struct{} { return r.ended }

func (r *rtmpLink) cause() error { return fmt.Errorf("the destination hung up: %w", r.why) }

// command is a command message, section 7.2.
func command(stream uint32, name string, transaction int, args ...any) rtmpwire.Out {
	return rtmpwire.Command{Name: name, Transaction: transaction, Args: args}.Message(rtmpwire.ChunkCommand, stream)
}

// configure keeps a track's parameters; they are sent before the next frame, together.
func (r *rtmpLink) configure(c frame.Config) error {
	if err := flvCarries(c); err != nil {
		return err
	}
	r.configs[c.Kind], r.unreported[c.Kind] = &c, true
	return nil
}

func (r *rtmpLink) write(f frame.Frame) error {
	at := flv.Timestamp(f.DTS)
	if slices.Contains(r.unreported[:], true) {
		if err := r.headers(at); err != nil {
			return err
		}
	}
	c := r.configs[f.Kind]
	if c == nil {
		return nil
	}
	m := rtmpwire.Out{
		ChunkStream: rtmpwire.ChunkVideo,
		Stream:      r.stream,
		Kind:        rtmpwire.TypeVideo,
		Timestamp:   at,
		Body:        f.Data,
	}
	if f.Kind == frame.Audio {
		m.ChunkStream, m.Kind = rtmpwire.ChunkAudio, rtmpwire.TypeAudio
	}
	var head [16]byte
	m.Head = flv.AppendHead(head[:0], *c, f)
	if err := r.wire.Send(m); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// headers sends metadata and the sequence headers that are not told yet.
func (r *rtmpLink) headers(at uint32) error {
	meta := metadata(r.configs)
	if err := r.wire.Send(rtmpwire.Out{
		ChunkStream: rtmpwire.ChunkAudio,
		Stream:      r.stream,
		Kind:        rtmpwire.TypeDataAMF0,
		Timestamp:   at,
		Body:        meta,
	}); err != nil {
		return fmt.Errorf("write metadata: %w", err)
	}
	for k, unreported := range r.unreported {
		if !unreported {
			continue
		}
		r.unreported[k] = false
		body, err := flv.SequenceHeader(*r.configs[k])
		if err != nil {
			return impossible("%s", err)
		}
		if body == nil {
			continue
		}
		m := rtmpwire.Out{
			ChunkStream: rtmpwire.ChunkVideo,
			Stream:      r.stream,
			Kind:        rtmpwire.TypeVideo,
			Timestamp:   at,
			Body:        body,
		}
		if frame.Kind(k) == frame.Audio {
			m.ChunkStream, m.Kind = rtmpwire.ChunkAudio, rtmpwire.TypeAudio
		}
		if err := r.wire.Send(m); err != nil {
			return fmt.Errorf("write sequence header: %w", err)
		}
	}
	return nil
}

// close says goodbye, if it is clean, and waits for a moment until the destination has read it and hung up by itself:
// closing a connection at once would cut off what is on its way.
func (r *rtmpLink) close(clean bool) {
	r.once.Do(func() {
		if clean {
			err := r.wire.Send(command(0, "FCUnpublish", 6, nil, r.addr.name),
				command(0, "deleteStream", 7, nil, float64(r.stream)))
			if half, ok := r.nc.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
				timer := time.NewTimer(goodbyeTime)
				defer timer.Stop()
				select {
				case <-r.ended:
				case <-timer.C:
				}
			}
		}
		_ = r.nc.Close()
	})
	<-r.ended
}
