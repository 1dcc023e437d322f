package srt

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	gosrt "github.com/datarhei/gosrt"
	"github.com/datarhei/gosrt/circular"
	"github.com/datarhei/gosrt/packet"

	"millrace/internal/fault"
	"millrace/internal/media/container/mpegts"
	"millrace/internal/media/ingest"
)

// conn is one caller. Everything but inspect, link, acknowledged and shutDown runs on its goroutine.
type conn struct {
	server  *Server
	opts    *Options
	remote  netip.AddrPort
	req     gosrt.ConnRequest
	places  *ingest.Limiter // one of whose places it has until it is admitted
	begun   time.Time
	encoder string
	log     *slog.Logger

	wire    gosrt.Conn
	demuxer *mpegts.Demuxer
	bytes   int64 // of media
	plain   int   // packets that were not encrypted, and not taken
	ignored int   // streams of which the log says that they are not recorded

	taken   atomic.Uint64 // packets read
	missing atomic.Int64  // packets that never came in time
	gone    chan struct{} // closed when nobody reads any more

	mu       sync.Mutex // what gosrt's and other goroutines share
	accepted bool       // wire is there
	started  bool       // media has come
	ended    bool       // the caller has sent a shutdown
	lastACK  time.Time  // when the caller last acknowledged an acknowledgement (ACKACK)
	cause    error      // why inspect closed the connection
}

// refusal is a "no" that was given to the caller.
type refusal struct {
	code gosrt.RejectionReason
	err  error  // why, for the log
	kind string // of reason, of which there are few
	ours bool   // the fault is this service's
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// The reasons for a refusal that are not the gate's.
const (
	errOldCaller   = ingest.Ended("the caller speaks an SRT before 1.3")
	errTinyPackets = ingest.Ended("the caller asks for packets that are too small for media")
	errRequest     = ingest.Ended("the caller asks for something other than publishing")
	errPlain       = ingest.Ended("the caller does not encrypt: a passphrase is required")
	errPassphrase  = ingest.Ended("wrong passphrase")
	errNoAnswer    = ingest.Ended("the caller's media did not come")
	errFlood       = ingest.Ended("the caller sent more than may be held")
	errMute        = ingest.Ended("the caller does not answer acknowledgements")
)

// run serves the caller to its end. ctx ends when the connection is to be closed.
func (c *conn) run(ctx context.Context) error {
	var pub context.Context
	var sink ingest.Sink
	err := fault.Guard(func() (err error) {
		defer c.places.Release(c.remote)
		pub, sink, err = c.admit(ctx) //nolint:fatcontext // once
		return err
	})
	if err == nil {
		return c.publish(ctx, pub, sink)
	}
	// a panic: anyone without a response must not stay on gosrt's lists
	if _, refused := errors.AsType[*refusal](err); !refused {
		c.req.Reject(gosrt.REJX_ISE)
		if sink != nil {
			sink.Close(err)
		}
	}
	return err
}

// callersPatience is how long callers wait for a response, 3 s, less the way to them: one that has given up must not be
// let in, because it would be in its own way when it calls again.
const callersPatience = 2900 * time.Millisecond

// admit accepts the caller or refuses it.
func (c *conn) admit(ctx context.Context) (pub context.Context, sink ingest.Sink, err error) {
	looking, cancel := context.WithTimeout(ctx, min(c.opts.HandshakeTimeout, callersPatience))
	defer cancel()
	id, err := c.check(looking)
	if err != nil {
		return nil, nil, c.refuse(ctx, err)
	}
	// The publication must not end with this function, but an admission that comes too late must be given up.
	admitted, giveUp := context.WithCancelCause(ctx)
	late := context.AfterFunc(looking, func() { giveUp(context.Cause(looking)) })
	pub, sink, err = c.opts.Gate.Admit(admitted, ingest.Publication{
		Protocol: "srt",
		Key:      id.key,
		Remote:   c.remote,
		Encoder:  c.encoder,
		Link:     c.link,
	})
	intime := late()
	if err != nil {
		giveUp(err)
		return nil, nil, c.refuse(ctx, err)
	}
	if !intime { // nobody waits for the response any more
		err = errors.New("admission took longer than callers wait")
		sink.Close(err)
		return nil, nil, c.refuse(ctx, err)
	}
	c.begun = time.Now() // before gosrt begins to wait for signs of life
	if c.wire, err = c.req.Accept(); err != nil {
		err = fmt.Errorf("accept connection: %w", err)
		sink.Close(err)
		return nil, nil, c.refuse(ctx, err)
	}
	c.server.keys.add(id.key)
	c.mu.Lock()
	c.accepted = true
	c.mu.Unlock()
	return pub, sink, nil
}

// check reads what the caller wants and whether its passphrase is right.
func (c *conn) check(ctx context.Context) (streamID, error) {
	if c.req.Version() != 5 {
		return streamID{}, errOldCaller
	}
	if payloadSize(c.req) > gosrt.MAX_PAYLOAD_SIZE {
		return streamID{}, errTinyPackets
	}
	id, err := parseStreamID(c.req.StreamId())
	if err != nil {
		return streamID{}, err
	}
	c.encoder = id.user
	switch {
	case id.mode != "" && id.mode != "publish":
		return streamID{}, errRequest
	case !c.req.IsEncrypted():
		return streamID{}, errPlain
	}
	passphrase, err := c.opts.Secrets.Passphrase(ctx, id.key)
	unknown := errors.Is(err, ingest.ErrUnknownKey)
	if err != nil && !unknown {
		return streamID{}, err
	}
	if unknown { // takes as long as a known one does
		passphrase = rand.Text()
	}
	if wrong := c.req.SetPassphrase(passphrase); unknown {
		return streamID{}, ingest.ErrUnknownKey
	} else if wrong != nil {
		return streamID{}, errPassphrase
	}
	return id, nil
}

// payloadSize is what gosrt makes of the packet size that the caller announces. For one below its own headers that is a
// number that has gone around below zero, which gosrt does not notice and then allocates so much; and it does not let
// one see it.
func payloadSize(req gosrt.ConnRequest) uint64 {
	config := reflect.ValueOf(req).Elem().FieldByName("config")
	return config.FieldByName("PayloadSize").Uint()
}

// refuse tells the caller why it is refused and makes the refusal. Callers show the code or its text.
func (c *conn) refuse(ctx context.Context, err error) error {
	r := &refusal{code: gosrt.REJX_ISE, err: err, kind: "internal", ours: true}
	if ctx.Err() != nil {
		r.code, r.err, r.kind, r.ours = gosrt.REJX_DOWN, context.Cause(ctx), "shutdown", false
	}
	for _, known := range rejections {
		if errors.Is(err, known.err) {
			r.code, r.kind, r.ours = known.code, known.err.Error(), false
			break
		}
	}
	c.req.Reject(r.code)
	return r
}

// rejections are the codes: those of the protocol, and from 1400 on those of its Access Control guidelines.
var rejections = []struct { //nolint:gochecknoglobals // a table
	err  error
	code gosrt.RejectionReason
}{
	{errOldCaller, gosrt.REJ_VERSION},
	{errTinyPackets, gosrt.REJ_ROGUE},
	{errPlain, gosrt.REJ_UNSECURE},
	{errPassphrase, gosrt.REJ_BADSECRET},
	{errStreamID, gosrt.REJX_BAD_REQUEST},
	{errRequest, gosrt.REJX_BAD_MODE},
	{ingest.ErrUnknownKey, gosrt.REJX_UNAUTHORIZED},
	{ingest.ErrDisabled, gosrt.REJX_FORBIDDEN},
	{ingest.ErrBusy, gosrt.REJX_CONFLICT},
	{ingest.ErrShutdown, gosrt.REJX_DOWN},
}

// publish carries the media until the publication's end.
func (c *conn) publish(ctx, pub context.Context, sink ingest.Sink) error {
	c.demuxer = mpegts.NewDemuxer(sink)
	c.demuxer.PresumeSound()
	c.lastACK, c.gone = time.Now(), make(chan struct{})
	c.log = ingest.Logger(c.log, sink)
	hangUp := func() { _ = c.wire.Close() }
	defer hangUp()
	defer close(c.gone)
	for _, end := range []context.Context{ctx, pub} {
		defer context.AfterFunc(end, hangUp)()
	}
	c.server.enter(c)
	defer c.server.leave(c)
	c.log.InfoContext(ctx, "encoder connected", "protocol", "srt", "remote", c.remote, "encoder", c.encoder)
	err := fault.Guard(c.carry)
	c.mu.Lock()
	cause := c.cause
	c.mu.Unlock()
	_, panicked := errors.AsType[*fault.PanicError](err)
	switch {
	case panicked:
	case pub.Err() != nil:
		err = context.Cause(pub)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case cause != nil:
		err = cause
	}
	if cerr := fault.Guard(func() error { sink.Close(err); return nil }); cerr != nil {
		return cerr
	}
	return err
}

// carry moves media from the connection to the sink. It always returns an error: why it ended.
func (c *conn) carry() error {
	var expected circular.Number
	for known := false; ; known = true {
		p, err := c.wire.ReadPacket()
		if err != nil {
			if ferr := c.demuxer.Flush(); ferr != nil {
				return fmt.Errorf("take media: %w", ferr)
			}
			return c.ending()
		}
		h, data := p.Header(), p.Data()
		if gap := h.PacketSequenceNumber.Distance(expected); known && gap > 0 {
			c.missing.Add(int64(gap))
			c.demuxer.Missing(int(gap) * max(len(data), mpegts.PacketSize))
		}
		expected = h.PacketSequenceNumber.Inc()
		c.taken.Add(1)
		if h.KeyBaseEncryptionFlag == packet.UnencryptedPacket { // anybody could have sent it
			c.plain++
			c.demuxer.Missing(len(data))
		} else {
			c.bytes += int64(len(data))
			err = c.demuxer.Write(data, time.Now())
			c.logIgnored()
		}
		p.Decommission()
		switch {
		case errors.Is(err, mpegts.ErrUnsupported), errors.Is(err, mpegts.ErrNotTS):
			return ingest.Unsupported(err.Error())
		case err != nil:
			return fmt.Errorf("take media: %w", err)
		}
		if !known {
			c.mu.Lock()
			c.started = true
			c.mu.Unlock()
		}
	}
}

// logIgnored says once which streams are not recorded: an encoder can't be told while its others are.
func (c *conn) logIgnored() {
	names := c.demuxer.Ignored()
	if len(names) > c.ignored {
		c.log.Info("encoder sends streams that are not recorded", "protocol", "srt", "remote", c.remote,
			"ignored_streams", strings.Join(names, ", "))
	}
	c.ignored = max(c.ignored, len(names))
}

// ending is why there is nothing more to read. A caller that says goodbye as soon as it is let in may do so before it
// is listened for: whatever ends before silence can have been noticed was ended by the caller.
func (c *conn) ending() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || time.Since(c.begun) < c.opts.IdleTimeout {
		return ingest.ErrEncoderEnded
	}
	return fmt.Errorf("%w: no sign of life for %v", ingest.ErrSilent, c.opts.IdleTimeout)
}

// shutDown notes that the caller has said that it ends, and waits until what it sent before is taken. It runs on the
// goroutine on which gosrt reads the connection's packets, of which no more come: as soon as it returns, gosrt throws
// away what is not due yet, and that is the last part of every broadcast, as long as the latency.
func (c *conn) shutDown() {
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	limit := time.NewTimer(c.opts.IdleTimeout)
	defer limit.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		var s gosrt.Statistics
		c.wire.Stats(&s)
		if s.Instantaneous.PktRecvBuf == 0 && c.taken.Load() >= s.Accumulated.PktRecvUnique {
			return
		}
		select {
		case <-look.C:
		case <-limit.C:
			return
		case <-c.gone:
			return
		}
	}
}

// acknowledged notes that the caller has responded to an acknowledgement.
func (c *conn) acknowledged() {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastACK = now
}

// link tells how the connection does.
func (c *conn) link() ingest.LinkStats {
	c.mu.Lock()
	accepted := c.accepted
	c.mu.Unlock()
	if !accepted {
		return ingest.LinkStats{}
	}
	var s gosrt.Statistics
	c.wire.Stats(&s)
	return ingest.LinkStats{
		Encoder: c.encoder, Packets: int64(s.Accumulated.PktRecv), Lost: int64(s.Accumulated.PktRecvLoss),
		Retransmitted: int64(s.Accumulated.PktRecvRetrans), Dropped: c.missing.Load(),
		RTT: time.Duration(s.Instantaneous.MsRTT * float64(time.Millisecond)),
	}
}

// muteness is how long a peer may go without an ACKACK for acknowledgements, a hundred of which it gets each second:
// gosrt remembers each until it, or a later one, has its ACKACK.
const muteness = time.Minute

// inspect closes the connection if it is beyond its bounds. It runs on the server's watching goroutine.
func (c *conn) inspect(now time.Time) {
	var s gosrt.Statistics
	c.wire.Stats(&s)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cause != nil:
		return
	case s.Instantaneous.ByteRecvBuf > c.opts.MaxBuffer:
		c.cause = errFlood
	case !c.started && now.Sub(c.begun) > c.opts.HandshakeTimeout && s.Accumulated.PktRecv == 0:
		c.cause = errNoAnswer
	case now.Sub(c.lastACK) > muteness:
		c.cause = errMute
	default:
		return
	}
	_ = c.wire.Close() // ends carry
}
