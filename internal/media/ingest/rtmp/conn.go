package rtmp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/media/ingest"
	"millrace/internal/media/rtmpwire"
)

const (
	maxCommandsBeforePublish = 64
	lingerTime               = time.Second
	lingerBytes              = 1 << 20
)

// conn is one connection; everything runs on its goroutine.
type conn struct {
	nc       net.Conn
	protocol string // rtmp or rtmps
	wire     *wire
	opts     *Options
	remote   netip.AddrPort
	log      *slog.Logger

	request   request
	published bool   // admitted
	busy      func() // from now on the connection is not closed in favour of another
	media     media
	name      atomic.Pointer[string] // that the encoder has given itself in its metadata; for other goroutines
	move      atomic.Bool            // the encoder is to be asked to reconnect; set by other goroutines
}

// request is what an encoder asked for before its media.
type request struct {
	app, tcURL string
	key        string // secret
	encoder    string
	reconnects bool // it can be asked to reconnect
}

// refusal is why a publication is not taken, as it was or is to be shown to the encoder.
type refusal struct {
	code, description string
	err               error // why, for the log
	ours              bool  // the fault is this service's
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

func newConn(nc net.Conn, remote netip.AddrPort, o *Options) *conn {
	c := &conn{
		nc:       nc,
		protocol: "rtmp",
		wire:     newWire(nc, o.WriteTimeout),
		opts:     o,
		remote:   remote,
		log:      o.Logger,
		busy:     func() {},
	}
	if _, secure := nc.(*tls.Conn); secure {
		c.protocol = "rtmps"
	}
	return c
}

// run serves the connection to its end. ctx ends when the connection is to be closed.
func (c *conn) run(ctx context.Context) error {
	// of both directions: a TLS handshake writes, too
	if err := c.nc.SetDeadline(time.Now().Add(c.opts.HandshakeTimeout)); err != nil {
		return fmt.Errorf("set handshake deadline: %w", err)
	}
	err := fault.Guard(func() error {
		if err := c.secure(ctx); err != nil {
			return err
		}
		if err := c.negotiate(); err != nil {
			return err
		}
		return c.publish(ctx)
	})
	if r, ok := errors.AsType[*refusal](err); ok {
		c.linger()
		return r
	}
	if errors.Is(err, ingest.ErrEncoderEnded) {
		c.linger()
		return err
	}
	if _, ok := errors.AsType[*fault.PanicError](err); !ok && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) && !c.published {
		return fmt.Errorf("no publish within %v: %w", c.opts.HandshakeTimeout, err)
	}
	return err
}

// secure does the TLS handshake of RTMPS.
func (c *conn) secure(ctx context.Context) error {
	tc, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := tc.HandshakeContext(ctx); err != nil {
		if h, ok := errors.AsType[tls.RecordHeaderError](err); ok && h.RecordHeader[0] == rtmpwire.Version {
			return fmt.Errorf("%w: it speaks RTMP without TLS on the port of RTMPS", rtmpwire.ErrNotRTMP)
		}
		return fmt.Errorf("TLS handshake: %w", err)
	}
	return nil
}

// negotiate leads from the handshake to the publish command.
func (c *conn) negotiate() error {
	if err := c.wire.handshake(); err != nil {
		return err
	}
	connected := false
	for range maxCommandsBeforePublish {
		cmd, err := c.command()
		if err != nil {
			return err
		}
		switch {
		case cmd.Name == "connect" && !connected:
			connected = true
			err = c.connect(cmd)
		case !connected:
			err = fmt.Errorf("%w: command before connect", rtmpwire.ErrNotRTMP)
		case cmd.Name == "releaseStream", cmd.Name == "FCPublish":
			err = c.wire.result(cmd.Transaction, nil)
		case cmd.Name == "createStream":
			err = c.wire.result(cmd.Transaction, 1.0)
		case cmd.Name == "play", cmd.Name == "play2":
			err = c.say("NetStream.Play.Failed", "this server takes publishers, it does not play RTMP",
				errors.New("play refused"))
		case cmd.Name == "publish":
			name, _ := cmd.Arg(1).(string)
			c.request.key = streamKey(c.request.app, c.request.tcURL, name)
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: no publish in %d commands", rtmpwire.ErrNotRTMP, maxCommandsBeforePublish)
}

func (c *conn) connect(cmd rtmpwire.Command) error {
	o, _ := cmd.Arg(0).(rtmpwire.Object)
	tcURL := o.Text("tcUrl")
	if tcURL == "" {
		tcURL = o.Text("tcurl")
	}
	c.request = request{
		app: o.Text("app"), tcURL: tcURL, encoder: encoderName(o.Text("flashVer")), reconnects: reconnects(o),
	}
	if !knownApplication(c.request.app, c.request.tcURL) {
		const description = "no such application: publish to /app/{stream key}"
		if err := c.wire.refuseConnect(cmd.Transaction, "NetConnection.Connect.InvalidApp", description); err != nil {
			return err
		}
		return &refusal{description: description, err: errors.New("unknown application")}
	}
	return c.wire.welcome(cmd.Transaction, enhancements(o))
}

// command reads up to the next command.
func (c *conn) command() (rtmpwire.Command, error) {
	for {
		p, err := c.wire.Next()
		if err != nil {
			return rtmpwire.Command{}, err
		}
		if cmd, ok := rtmpwire.ParseCommand(p); ok {
			return cmd, nil
		}
	}
}

// say tells the encoder why it is refused and makes the refusal.
func (c *conn) say(code, description string, why error) error {
	if err := c.wire.onStatus("error", code, description); err != nil {
		return err
	}
	return &refusal{code: code, description: description, err: why}
}

// refuse turns the gate's error into an RTMP error. Encoders show the description, some only the code.
func (c *conn) refuse(err error) error {
	switch {
	case errors.Is(err, ingest.ErrUnknownKey), errors.Is(err, ingest.ErrBusy):
		return c.say("NetStream.Publish.BadName", gateReason(err), err)
	case errors.Is(err, ingest.ErrDisabled), errors.Is(err, ingest.ErrShutdown):
		return c.say("NetStream.Publish.Denied", gateReason(err), err)
	}
	said := c.say("NetStream.Publish.Denied", "the stream key could not be checked, try again", err)
	if r, ok := errors.AsType[*refusal](said); ok {
		r.ours = true
	}
	return said
}

func gateReason(err error) string {
	for _, e := range []error{ingest.ErrUnknownKey, ingest.ErrBusy, ingest.ErrDisabled} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	return ingest.ErrShutdown.Error()
}

// publish asks the gate and carries the media until the publication's end.
func (c *conn) publish(ctx context.Context) error {
	if c.request.key == "" {
		return c.refuse(ingest.ErrUnknownKey)
	}
	p := ingest.Publication{
		Protocol: c.protocol, Key: c.request.key, Remote: c.remote, Encoder: c.request.encoder, Link: c.link,
	}
	if c.request.reconnects {
		p.Move = func() { c.move.Store(true) }
	}
	pub, sink, err := c.opts.Gate.Admit(ctx, p)
	if err != nil {
		return c.refuse(err)
	}
	c.published, c.log = true, ingest.Logger(c.log, sink)
	c.busy()
	stop := context.AfterFunc(pub, func() { _ = c.nc.Close() })
	defer stop()
	err = fault.Guard(func() error { return c.carry(sink) })
	stop() // the sink ends pub when it is closed, which must not cut off an encoder that is saying goodbye
	switch {
	case pub.Err() != nil:
		err = context.Cause(pub)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("%w: no bytes for %v", ingest.ErrSilent, c.opts.IdleTimeout)
	}
	if cerr := fault.Guard(func() error { sink.Close(err); return nil }); cerr != nil {
		return cerr
	}
	return err
}

// carry moves media from the connection to the sink. It always returns an error: why it ended.
func (c *conn) carry(sink ingest.Sink) error {
	if err := c.wire.onStatus("status", "NetStream.Publish.Start", "publish start"); err != nil {
		return err
	}
	c.log.Info("encoder connected", "protocol", c.protocol, "remote", c.remote, "encoder", c.request.encoder)
	c.wire.allowMedia(c.opts.MaxMessage)
	c.wire.src.idle = c.opts.IdleTimeout
	if err := c.nc.SetReadDeadline(time.Now().Add(c.opts.IdleTimeout)); err != nil {
		return fmt.Errorf("set idle deadline: %w", err)
	}
	c.media = newMedia(sink)
	c.media.named = func(encoder string) { c.name.Store(&encoder) }
	for {
		p, err := c.wire.Next()
		if err != nil {
			return err
		}
		if c.move.CompareAndSwap(true, false) { // with the next message, as everything that is written
			if err = c.wire.askToReconnect(); err != nil {
				return err
			}
			c.log.Info("encoder is asked to reconnect", "protocol", c.protocol, "remote", c.remote)
		}
		if cmd, ok := rtmpwire.ParseCommand(p); ok {
			switch cmd.Name {
			case "FCUnpublish", "deleteStream", "closeStream":
				return ingest.ErrEncoderEnded
			}
			continue
		}
		err = c.media.handle(p, c.wire.src.received)
		if u, ok := errors.AsType[ingest.Unsupported](err); ok {
			return c.say("NetStream.Publish.Rejected", u.Error(), err)
		}
		if err != nil {
			return err
		}
	}
}

// link tells what the encoder has said of itself; TCP hides the rest.
func (c *conn) link() ingest.LinkStats {
	if name := c.name.Load(); name != nil {
		return ingest.LinkStats{Encoder: *name}
	}
	return ingest.LinkStats{}
}

// linger gives the encoder time to read the last status and to hang up itself: some take a connection that goes while
// they are saying goodbye for a failure, and closing one with unread bytes resets it, by which the status would be
// lost.
func (c *conn) linger() {
	if c.nc.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	c.wire.src.idle = 0
	_, _ = io.CopyN(io.Discard, c.nc, lingerBytes) // whatever comes is of no interest, nor is how it ends
}
