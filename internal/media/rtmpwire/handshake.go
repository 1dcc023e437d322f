package rtmpwire

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
)

const (
	// Version is the first byte of a plain RTMP connection.
	Version = 3
	// HandshakeSize is how many bytes C1, C2, S1 and S2 have, section 5.2.
	HandshakeSize = 1536

	tlsRecord = 0x16 // first byte of a TLS connection
)

// ErrNotRTMP means that the peer speaks something else.
var ErrNotRTMP = errors.New("peer does not speak RTMP")

// ServerHandshake does the server's side of the plain handshake, section 5.2; every encoder has it. RTMPE is not
// offered: RTMPS is.
func ServerHandshake(br *bufio.Reader, w io.Writer) error {
	version, err := br.ReadByte()
	if err != nil {
		return fmt.Errorf("read C0: %w", err)
	}
	if version == tlsRecord {
		return fmt.Errorf("%w: it speaks TLS on the port of plain RTMP", ErrNotRTMP)
	}
	if version != Version {
		return fmt.Errorf("%w: first byte %#02x", ErrNotRTMP, version)
	}
	reply := make([]byte, 1+2*HandshakeSize) // S0, S1, S2
	s1, s2 := reply[1:1+HandshakeSize], reply[1+HandshakeSize:]
	if err := ReadFull(br, s2); err != nil { // S2 is an echo of C1
		return fmt.Errorf("read C1: %w", err)
	}
	reply[0] = Version
	_, _ = rand.Read(s1[8:]) // never fails
	if _, err := w.Write(reply); err != nil {
		return fmt.Errorf("write S0 to S2: %w", err)
	}
	if _, err := br.Discard(HandshakeSize); err != nil {
		return fmt.Errorf("read C2: %w", err)
	}
	return nil
}

// ClientHandshake does the client's side.
func ClientHandshake(br *bufio.Reader, w io.Writer) error {
	hello := make([]byte, 1+HandshakeSize) // C0, C1
	hello[0] = Version
	_, _ = rand.Read(hello[9:]) // never fails
	if _, err := w.Write(hello); err != nil {
		return fmt.Errorf("write C0 and C1: %w", err)
	}
	reply := make([]byte, 1+2*HandshakeSize) // S0, S1, S2
	if err := ReadFull(br, reply); err != nil {
		return fmt.Errorf("read S0 to S2: %w", err)
	}
	if reply[0] != Version {
		return fmt.Errorf("%w: first byte %#02x", ErrNotRTMP, reply[0])
	}
	if _, err := w.Write(reply[1 : 1+HandshakeSize]); err != nil {
		return fmt.Errorf("write C2: %w", err)
	}
	return nil
}
