package express

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"millrace/internal/socket"
	"millrace/internal/web/express/tlsrecord"
)

// secure is TLS on a connection.
type secure struct {
	*tls.Conn

	wire *tlsrecord.Conn // beneath it
}

func newSecure(nc *socket.Counted, config *tls.Config) *secure {
	wire := tlsrecord.New(nc)
	return &secure{tls.Server(wire, config), wire}
}

// shakeHands makes the handshake. It is false when the connection is not for HTTP/1.1, whatever came of it.
func (c *conn) shakeHands() (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			c.l.opt.Logger.ErrorContext(c.l.ctx, "handshake panicked", "error", p, "stack", string(debug.Stack()))
			_ = c.nc.Close() // whoever has it now sees so
			ok = false
		}
	}()
	if c.nc.SetDeadline(time.Now().Add(c.l.opt.HeaderTimeout)) != nil {
		return false
	}
	c.idle.Store(true)
	if c.resting.Load() {
		_ = c.nc.SetReadDeadline(past) // it ends with the handshake
	}
	err := c.over.HandshakeContext(c.l.ctx)
	c.idle.Store(false)
	state := c.over.ConnectionState()
	c.request.TLS = &state
	if p := state.NegotiatedProtocol; err != nil || p != "" && p != "http/1.1" {
		return false
	}
	return c.nc.SetWriteDeadline(time.Time{}) == nil // that for reading is set for each request
}

// record is how many bytes of plain text a record of TLS has at most, RFC 8446 section 5.1, and stretch how many of a
// file go out together.
const record, stretch = 16 << 10, 64 << 10

// What is about to be encrypted: the beginnings of responses, and stretches of files.
//
//nolint:gochecknoglobals // used again
var (
	beginnings = sync.Pool{New: func() any { return new([record]byte) }}
	stretches  = sync.Pool{New: func() any { return new([stretch]byte) }}
)

// sealed is the outlet of a secure connection: what belongs together is in few records, which go out together.
type sealed struct{ *secure }

// Write implements outlet: b begins in the record that a is in.
func (s sealed) Write(a, b []byte) error {
	s.wire.Hold()
	err := s.seal(a, b)
	return s.release(err)
}

func (s sealed) seal(a, b []byte) error {
	if len(a) > 0 && len(a) < record {
		buf, _ := beginnings.Get().(*[record]byte)
		n := copy(buf[:], a)
		n += copy(buf[n:], b)
		a, b = nil, b[n-len(a):]
		_, err := s.Conn.Write(buf[:n])
		beginnings.Put(buf)
		if err != nil {
			return err
		}
	}
	for _, p := range [2][]byte{a, b} {
		if len(p) == 0 {
			continue
		}
		if _, err := s.Conn.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// release sends the records. err is why there are not all that there should be.
func (s sealed) release(err error) error {
	if failed := s.wire.Release(); err == nil {
		err = failed
	}
	return err
}

// SendFile implements outlet. While records wait for the viewer, what they were made of is not kept.
func (s sealed) SendFile(head []byte, f *os.File, off, n int64) (sent int64, err error) {
	for len(head) > 0 || sent < n {
		buf, _ := stretches.Get().(*[stretch]byte)
		k := copy(buf[:], head)
		head = head[k:]
		some := buf[k:][:min(int64(stretch-k), n-sent)]
		read, failed := f.ReadAt(some, off+sent)
		if failed == io.EOF && read < len(some) {
			failed = io.ErrUnexpectedEOF // the file is shorter
		}
		s.wire.Hold()
		_, err = s.Conn.Write(buf[:k+read])
		stretches.Put(buf)
		if err = s.release(err); err != nil {
			return sent, err
		}
		if sent += int64(read); read < len(some) {
			return sent, failed
		}
	}
	return sent, nil
}

// Patience implements outlet.
func (s sealed) Patience(d time.Duration, until time.Time) (moved bool) {
	return s.wire.Patience(d, until)
}

// remainder is the connection for net/http: what was read comes again.
func (s *secure) remainder(ahead []byte) net.Conn {
	s.wire.Patience(0, time.Time{})
	return &secureAgain{Conn: s.Conn, ahead: ahead, counted: s.wire.Whole()}
}

// close ends the connection, and says so to the viewer, if it takes anything.
func (s *secure) close() {
	s.wire.Patience(0, time.Time{}) // crypto/tls has a limit of its own
	_ = s.Close()                   // nothing is left to be said
}

// secureAgain is a connection over TLS of which something was read. It tells net/http its state, as one of crypto/tls.
type secureAgain struct {
	*tls.Conn

	ahead   []byte
	counted *socket.Counted
}

// Whole is the connection as it counts against its budget.
func (s *secureAgain) Whole() *socket.Counted { return s.counted }

func (s *secureAgain) Read(p []byte) (int, error) {
	if len(s.ahead) == 0 {
		return s.Conn.Read(p)
	}
	return again(&s.ahead, p), nil
}

// again reads what was read already.
func again(ahead *[]byte, p []byte) int {
	n := copy(p, *ahead)
	if *ahead = (*ahead)[n:]; len(*ahead) == 0 {
		*ahead = nil // the memory goes
	}
	return n
}
