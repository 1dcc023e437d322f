package rtmp

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"time"

	"millrace/internal/media/rtmpwire"
)

const (
	ackWindow     = 2_500_000
	sendChunkSize = 65536
	publishStream = 1        // message stream that createStream gives
	readBuffer    = 8 << 10  // of a peer that has shown no key
	mediaBuffer   = 32 << 10 // of a publisher: most frames come with one read
)

// source reads from the connection: it keeps the time and the count of what came, and once idle is set it moves the
// read deadline along, at most a few times per idle span because each costs a timer.
type source struct {
	nc       net.Conn
	idle     time.Duration
	moved    time.Time
	received time.Time
	count    uint64
	ahead    []byte // was read already
}

func (s *source) Read(p []byte) (int, error) {
	if len(s.ahead) > 0 {
		n := copy(p, s.ahead)
		s.ahead = s.ahead[n:]
		return n, nil
	}
	n, err := s.nc.Read(p)
	s.received = time.Now()
	s.count += uint64(n)
	if s.idle > 0 && s.received.Sub(s.moved) > s.idle/16 {
		s.moved = s.received
		if derr := s.nc.SetReadDeadline(s.received.Add(s.idle)); derr != nil && err == nil {
			err = derr
		}
	}
	return n, err
}

// wire is the protocol below commands and media, and the responses of a server.
type wire struct {
	*rtmpwire.Conn

	src *source
	br  *bufio.Reader
	out io.Writer
}

func newWire(nc net.Conn, writeTimeout time.Duration) *wire {
	src := &source{nc: nc}
	br, out := bufio.NewReaderSize(src, readBuffer), rtmpwire.Timed(nc, writeTimeout)
	return &wire{Conn: rtmpwire.NewConn(br, out, func() uint64 { return src.count }), src: src, br: br, out: out}
}

// allowMedia lets audio and video through once the peer may publish, with a buffer that fits them.
func (w *wire) allowMedia(maxMessage int) {
	rest, _ := w.br.Peek(w.br.Buffered()) // what is there can be peeked at
	w.src.ahead = bytes.Clone(rest)
	w.br = bufio.NewReaderSize(w.src, mediaBuffer)
	w.AllowMedia(w.br, maxMessage)
}

// handshake is the plain one of RTMP 1.0 section 5.2.
func (w *wire) handshake() error { return rtmpwire.ServerHandshake(w.br, w.out) }

// welcome accepts connect, section 7.2.1.1; more are further properties of the server.
func (w *wire) welcome(transaction int, more rtmpwire.Object) error {
	properties := append(rtmpwire.Object{
		{Name: "fmsVer", Value: "FMS/3,5,7,7009"}, {Name: "capabilities", Value: 31.0},
	}, more...)
	succeeded := rtmpwire.Status("status", "NetConnection.Connect.Success", "Connection succeeded.",
		rtmpwire.Property{Name: "objectEncoding", Value: 0.0})
	const dynamic = 2 // the limit of the window may change, section 5.4.5
	bandwidth := rtmpwire.Control(rtmpwire.TypePeerBandwidth, ackWindow)
	bandwidth.Body = append(bandwidth.Body, dynamic)
	err := w.Send(
		rtmpwire.Control(rtmpwire.TypeWindowAckSize, ackWindow),
		bandwidth,
		rtmpwire.Control(rtmpwire.TypeSetChunkSize, sendChunkSize),
		respond("_result", transaction, properties, succeeded),
	)
	if err != nil {
		return fmt.Errorf("respond to connect: %w", err)
	}
	return nil
}

// refuseConnect responds to connect with an error.
func (w *wire) refuseConnect(transaction int, code, description string) error {
	if err := w.Send(respond("_error", transaction, nil, rtmpwire.Status("error", code, description))); err != nil {
		return fmt.Errorf("refuse connect: %w", err)
	}
	return nil
}

// result responds to a command that returns nothing but value.
func (w *wire) result(transaction int, value any) error {
	if err := w.Send(respond("_result", transaction, nil, value)); err != nil {
		return fmt.Errorf("respond to command: %w", err)
	}
	return nil
}

// onStatus tells the encoder what became of its stream, section 7.2.2.6.
func (w *wire) onStatus(level, code, description string) error {
	c := rtmpwire.Command{Name: "onStatus", Args: []any{nil, rtmpwire.Status(level, code, description)}}
	if err := w.Send(c.Message(rtmpwire.ChunkStatus, publishStream)); err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

// askToReconnect asks the encoder to connect again, to the address that it has: Enhanced RTMP, section "Reconnect
// Request".
func (w *wire) askToReconnect() error {
	c := rtmpwire.Command{Name: "onStatus", Args: []any{nil, rtmpwire.Status(
		"status", "NetConnection.Connect.ReconnectRequest", "this server is about to be stopped")}}
	if err := w.Send(c.Message(rtmpwire.ChunkCommand, 0)); err != nil {
		return fmt.Errorf("ask to reconnect: %w", err)
	}
	return nil
}

func respond(name string, transaction int, args ...any) rtmpwire.Out {
	return rtmpwire.Command{Name: name, Transaction: transaction, Args: args}.Message(rtmpwire.ChunkCommand, 0)
}
