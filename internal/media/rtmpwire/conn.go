package rtmpwire

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"
)

// Chunk streams that messages are written to. Which one is the writer's choice, but for that of the protocol control
// messages, section 5.4.
const (
	ChunkControl = 2
	ChunkCommand = 3
	ChunkAudio   = 4
	ChunkStatus  = 5
	ChunkVideo   = 6
)

const (
	defaultChunkSize = 128     // bytes, until Set Chunk Size, section 5.4.1
	minAckWindow     = 1 << 16 // bytes: a peer that asks for an acknowledgement of every byte gets fewer
)

// Conn is one end of a connection behind its handshake: messages in and out. Next is for one goroutine, Send for any.
type Conn struct {
	in       *Reader
	received func() uint64 // nil: no acknowledgements are sent
	window   uint64        // bytes after which the peer wants an acknowledgement; 0: never
	acked    uint64

	mu        sync.Mutex
	out       io.Writer
	chunkSize int // of what is written
	buf       []byte
}

// NewConn returns a Conn that reads commands and protocol control messages alone, until AllowMedia. received tells how
// many bytes the peer has sent; nil when acknowledgements are of no use.
func NewConn(br *bufio.Reader, out io.Writer, received func() uint64) *Conn {
	return &Conn{in: NewReader(br), out: out, received: received, chunkSize: defaultChunkSize}
}

// AllowMedia lets audio and video of at most maxMessage bytes through, once the peer may publish, and goes on reading
// from br.
func (c *Conn) AllowMedia(br *bufio.Reader, maxMessage int) {
	c.in.Reset(br)
	c.in.AllowMedia(maxMessage)
}

// Held returns how many bytes of unfinished messages are held, and how many may be.
func (c *Conn) Held() (held, most int) { return c.in.Held() }

// Next returns the next command, data or media message, and serves the protocol control messages before it.
func (c *Conn) Next() (Packet, error) {
	for {
		p, err := c.in.Read()
		if err != nil {
			return Packet{}, err
		}
		if err := c.acknowledge(); err != nil {
			return Packet{}, err
		}
		if p.Kind >= TypeAudio {
			return p, nil
		}
		if err := c.control(p); err != nil {
			return Packet{}, err
		}
	}
}

// acknowledge tells the peer how much has come, when it wants to know, section 5.4.3.
func (c *Conn) acknowledge() error {
	if c.window == 0 || c.received == nil || c.received()-c.acked < c.window {
		return nil
	}
	c.acked = c.received()
	if err := c.Send(Control(TypeAck, uint32(c.acked))); err != nil {
		return fmt.Errorf("write acknowledgement: %w", err)
	}
	return nil
}

// control serves one protocol control message, sections 5.4 and 7.1.7. Those that need nothing done are passed over.
func (c *Conn) control(p Packet) error {
	if p.Kind == TypeUserControl {
		return c.userControl(p.Body)
	}
	if len(p.Body) < 4 {
		return fmt.Errorf("%w: control message type %d of %d bytes", ErrChunk, p.Kind, len(p.Body))
	}
	v := binary.BigEndian.Uint32(p.Body)
	switch p.Kind {
	case TypeSetChunkSize:
		if v &= 0x7fffffff; v == 0 {
			return fmt.Errorf("%w: chunk size 0", ErrChunk)
		}
		c.in.ChunkSize = v
	case TypeAbort:
		c.in.Abort(v)
	case TypeWindowAckSize:
		c.window = uint64(max(v, minAckWindow))
	}
	return nil
}

func (c *Conn) userControl(b []byte) error {
	const pingRequest, pingResponse = 6, 7
	if len(b) < 6 || binary.BigEndian.Uint16(b) != pingRequest {
		return nil
	}
	pong := append([]byte{0, pingResponse}, b[2:6]...)
	if err := c.Send(Out{ChunkStream: ChunkControl, Kind: TypeUserControl, Body: pong}); err != nil {
		return fmt.Errorf("write ping response: %w", err)
	}
	return nil
}

// Control returns a protocol control message of one number.
func Control(kind byte, v uint32) Out {
	return Out{ChunkStream: ChunkControl, Kind: kind, Body: binary.BigEndian.AppendUint32(nil, v)}
}

// Send writes messages together. A Set Chunk Size among them holds for those behind it.
func (c *Conn) Send(all ...Out) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = c.buf[:0]
	for _, m := range all {
		c.buf = AppendMessage(c.buf, m, c.chunkSize)
		if m.Kind == TypeSetChunkSize {
			c.chunkSize = int(binary.BigEndian.Uint32(m.Body))
		}
	}
	_, err := c.out.Write(c.buf)
	return err
}

// timed is a writer each of whose writes has a deadline.
type timed struct {
	w interface {
		io.Writer
		SetWriteDeadline(t time.Time) error
	}
	timeout time.Duration
}

// Timed returns a writer whose writes end after timeout each: a peer that does not read is not waited for. A net.Conn
// fits.
func Timed(w interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
}, timeout time.Duration,
) io.Writer {
	return timed{w, timeout}
}

// Write implements io.Writer.
func (t timed) Write(p []byte) (int, error) {
	if err := t.w.SetWriteDeadline(time.Now().Add(t.timeout)); err != nil {
		return 0, err
	}
	return t.w.Write(p)
}
