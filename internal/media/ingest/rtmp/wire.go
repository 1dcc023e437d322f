package rtmp

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/bluenviron/gortmplib/pkg/amf0"
	"github.com/bluenviron/gortmplib/pkg/bytecounter"
	"github.com/bluenviron/gortmplib/pkg/message"

	"millrace/internal/media/rtmpwire"
)

const (
	rtmpVersion   = 3    // first byte of a plain RTMP connection
	tlsRecord     = 0x16 // first byte of a TLS connection
	handshakeSize = 1536 // bytes of C1, C2, S1 and S2, RTMP 1.0 section 5.2
	ackWindow     = 2_500_000
	sendChunkSize = 65536
	publishStream = 0x1000000 // message stream 1 as the library stores it
	minAckWindow  = 1 << 16   // a peer that asks for an acknowledgement of every byte gets fewer
	readBuffer    = 8 << 10   // of a peer that has shown no key
	mediaBuffer   = 32 << 10  // of a publisher: most frames come with one read
)

var errNotRTMP = errors.New("peer does not speak RTMP")

// source reads from the connection: it keeps the time and the count of what came, and once idle is set it moves the read
// deadline along, at most a few times per idle span because each costs a timer.
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

// sinkWriter writes under a deadline: a peer that does not read its replies is not waited for.
type sinkWriter struct {
	nc      net.Conn
	timeout time.Duration
}

func (w sinkWriter) Write(p []byte) (int, error) {
	if err := w.nc.SetWriteDeadline(time.Now().Add(w.timeout)); err != nil {
		return 0, err
	}
	return w.nc.Write(p)
}

// wire is the protocol below commands and media: handshake, chunks, protocol control messages.
type wire struct {
	src    *source
	br     *bufio.Reader
	chunks *rtmpwire.Reader
	out    sinkWriter
	w      *message.Writer
	window uint64 // bytes after which the peer wants an acknowledgement; 0: never
	acked  uint64
}

func newWire(nc net.Conn, writeTimeout time.Duration) *wire {
	src := &source{nc: nc}
	br := bufio.NewReaderSize(src, readBuffer)
	out := sinkWriter{nc: nc, timeout: writeTimeout}
	return &wire{
		src: src, br: br, chunks: rtmpwire.NewReader(br), out: out,
		w: message.NewWriter(out, bytecounter.NewWriter(out), false),
	}
}

// allowMedia lets audio and video through once the peer may publish, with a buffer that fits them.
func (w *wire) allowMedia(maxMessage int) {
	rest, _ := w.br.Peek(w.br.Buffered()) // what is there can be peeked at
	w.src.ahead = bytes.Clone(rest)
	w.br = bufio.NewReaderSize(w.src, mediaBuffer)
	w.chunks.Reset(w.br)
	w.chunks.AllowMedia(maxMessage)
}

// handshake is the plain one of RTMP 1.0 section 5.2; every encoder has it. RTMPE is not offered: RTMPS is.
func (w *wire) handshake() error {
	version, err := w.br.ReadByte()
	if err != nil {
		return fmt.Errorf("read C0: %w", err)
	}
	if version == tlsRecord {
		return fmt.Errorf("%w: it speaks TLS on the port of plain RTMP", errNotRTMP)
	}
	if version != rtmpVersion {
		return fmt.Errorf("%w: first byte %#02x", errNotRTMP, version)
	}
	reply := make([]byte, 1+2*handshakeSize) // S0, S1, S2
	s1, s2 := reply[1:1+handshakeSize], reply[1+handshakeSize:]
	if err := rtmpwire.ReadFull(w.br, s2); err != nil { // S2 is an echo of C1
		return fmt.Errorf("read C1: %w", err)
	}
	reply[0] = rtmpVersion
	if _, err := rand.Read(s1[8:]); err != nil {
		return fmt.Errorf("make S1: %w", err)
	}
	if _, err := w.out.Write(reply); err != nil {
		return fmt.Errorf("write S0 to S2: %w", err)
	}
	if _, err := w.br.Discard(handshakeSize); err != nil {
		return fmt.Errorf("read C2: %w", err)
	}
	return nil
}

// next returns the next command, data or media message and serves the protocol control messages before it.
func (w *wire) next() (rtmpwire.Packet, error) {
	for {
		p, err := w.chunks.Read()
		if err != nil {
			return rtmpwire.Packet{}, err
		}
		if w.window > 0 && w.src.count-w.acked >= w.window {
			w.acked = w.src.count
			if err := w.w.Write(&message.Acknowledge{Value: uint32(w.acked)}); err != nil {
				return rtmpwire.Packet{}, fmt.Errorf("write acknowledgement: %w", err)
			}
		}
		if p.Kind >= rtmpwire.TypeAudio {
			return p, nil
		}
		if err := w.control(p); err != nil {
			return rtmpwire.Packet{}, err
		}
	}
}

// control serves one protocol control message, sections 5.4 and 7.1.7. Kinds that say nothing to a server are passed over.
func (w *wire) control(p rtmpwire.Packet) error {
	if p.Kind == rtmpwire.TypeUserControl {
		return w.userControl(p.Body)
	}
	if len(p.Body) < 4 {
		return fmt.Errorf("%w: control message type %d of %d bytes", rtmpwire.ErrChunk, p.Kind, len(p.Body))
	}
	v := binary.BigEndian.Uint32(p.Body)
	switch p.Kind {
	case rtmpwire.TypeSetChunkSize:
		if v &= 0x7fffffff; v == 0 {
			return fmt.Errorf("%w: chunk size 0", rtmpwire.ErrChunk)
		}
		w.chunks.ChunkSize = v
	case rtmpwire.TypeAbort:
		w.chunks.Abort(v)
	case rtmpwire.TypeWindowAckSize:
		w.window = uint64(max(v, minAckWindow))
	}
	return nil
}

func (w *wire) userControl(b []byte) error {
	const pingRequest = 6
	if len(b) < 6 || binary.BigEndian.Uint16(b) != pingRequest {
		return nil
	}
	t := binary.BigEndian.Uint32(b[2:])
	if err := w.w.Write(&message.UserControlPingResponse{ServerTime: t}); err != nil {
		return fmt.Errorf("write ping response: %w", err)
	}
	return nil
}

// welcome answers connect, section 7.2.1.1; more are further properties of the server.
func (w *wire) welcome(transaction int, more amf0.Object) error {
	properties := append(amf0.Object{{Key: "fmsVer", Value: "FMS/3,5,7,7009"}, {Key: "capabilities", Value: 31.0}}, more...)
	for _, m := range []message.Message{
		&message.SetWindowAckSize{Value: ackWindow},
		&message.SetPeerBandwidth{Value: ackWindow, Type: 2},
		&message.SetChunkSize{Value: sendChunkSize},
		&message.CommandAMF0{ChunkStreamID: 3, Name: "_result", CommandID: transaction, Arguments: amf0.Data{
			properties,
			status("status", "NetConnection.Connect.Success", "Connection succeeded.", amf0.ObjectEntry{Key: "objectEncoding", Value: 0.0}),
		}},
	} {
		if err := w.w.Write(m); err != nil {
			return fmt.Errorf("answer connect: %w", err)
		}
	}
	return nil
}

// refuseConnect answers connect with an error.
func (w *wire) refuseConnect(transaction int, code, description string) error {
	err := w.w.Write(&message.CommandAMF0{ChunkStreamID: 3, Name: "_error", CommandID: transaction, Arguments: amf0.Data{
		nil, status("error", code, description),
	}})
	if err != nil {
		return fmt.Errorf("refuse connect: %w", err)
	}
	return nil
}

// result answers a command that has nothing to tell but value.
func (w *wire) result(transaction int, value any) error {
	err := w.w.Write(&message.CommandAMF0{ChunkStreamID: 3, Name: "_result", CommandID: transaction, Arguments: amf0.Data{nil, value}})
	if err != nil {
		return fmt.Errorf("answer command: %w", err)
	}
	return nil
}

// onStatus tells the encoder what became of its stream, section 7.2.2.6.
func (w *wire) onStatus(level, code, description string) error {
	err := w.w.Write(&message.CommandAMF0{
		ChunkStreamID: 5, MessageStreamID: publishStream, Name: "onStatus",
		Arguments: amf0.Data{nil, status(level, code, description)},
	})
	if err != nil {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}

func status(level, code, description string, more ...amf0.ObjectEntry) amf0.Object {
	return append(amf0.Object{
		{Key: "level", Value: level}, {Key: "code", Value: code}, {Key: "description", Value: description},
	}, more...)
}
