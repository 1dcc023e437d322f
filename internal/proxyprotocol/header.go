package proxyprotocol

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/pires/go-proxyproto"

	"millrace/internal/socket"
)

// The PROXY protocol, https://www.haproxy.org/download/3.2/doc/proxy-protocol.txt: how a header begins, and how long it
// may be.
const (
	sign1 = "PROXY "                 // 2.1
	sign2 = "\r\n\r\n\x00\r\nQUIT\n" // 2.2
	most1 = 107                      // bytes, with the end of the line
	head2 = 16                       // bytes, up to and with the length of what follows
	most  = head2 + 4096             // bytes of version 2, which has no bound of its own but 64 KiB
	what  = "PROXY header (protocol versions 1 and 2)"
)

// headerError is a header that is none of the protocol's.
type headerError struct{ err error }

func (h *headerError) Error() string { return "read " + what + ": " + h.err.Error() }

func (h *headerError) Unwrap() error { return h.err }

var errNoRoom = errors.New("too many connections of the client that the proxy passes on")

// read reads the header that a connection begins with, if it begins with one, and not a byte more.
func read(nc *socket.Counted) error {
	var buf [most]byte
	var length int
	var bad error
	n, err := socket.Peek(nc.TCPConn, buf[:], func(have []byte) (enough bool) {
		length, enough, bad = measure(have)
		return enough
	})
	if err != nil {
		return fmt.Errorf("wait for first bytes: %w", err)
	}
	if bad != nil {
		return &headerError{bad}
	}
	if length == 0 {
		return nil
	}
	header, err := proxyproto.Read(bufio.NewReaderSize(bytes.NewReader(buf[:min(n, length)]), most))
	if err != nil {
		return &headerError{err}
	}
	if _, err = io.ReadFull(nc.TCPConn, buf[:length]); err != nil {
		return fmt.Errorf("skip %s: %w", what, err)
	}
	client, _, ok := header.TCPAddrs()
	if !ok || header.Command.IsLocal() {
		return nil // the proxy itself asks, or it does not know who
	}
	if !nc.PassedOn(client) {
		return errNoRoom
	}
	return nil
}

// measure says how long the header is that a connection begins with; 0: it begins with none. It is not enough when more
// bytes have to be seen.
func measure(have []byte) (length int, enough bool, err error) {
	switch {
	case begins(have, sign2):
		if len(have) < head2 {
			return 0, false, nil
		}
		length = head2 + int(binary.BigEndian.Uint16(have[head2-2:]))
		if length > most {
			return 0, true, fmt.Errorf("%d bytes are too many, at most %d are read", length, most)
		}
		return length, len(have) >= length, nil
	case begins(have, sign1):
		if end := bytes.Index(have[:min(len(have), most1)], []byte("\r\n")); end >= 0 {
			return end + len("\r\n"), true, nil
		}
		if len(have) >= most1 {
			return 0, true, fmt.Errorf("the line has more than %d bytes", most1)
		}
		return 0, false, nil
	}
	return 0, true, nil
}

// begins reports whether have begins with sign, or may still come to it.
func begins(have []byte, sign string) bool {
	n := min(len(have), len(sign))
	return string(have[:n]) == sign[:n]
}

var _ net.Listener = (*Listener)(nil)
