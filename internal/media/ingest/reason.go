package ingest

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// Ended is why a connection ended, where only its protocol knows it. Its text is for people.
type Ended string

func (e Ended) Error() string { return string(e) }

// Reason implements Reasoned.
func (e Ended) Reason() string { return string(e) }

// Reason implements Reasoned.
func (u Unsupported) Reason() string { return string(u) }

// Reasoned is an error that says to people what it is.
type Reasoned interface {
	error
	Reason() string
}

// What is said of errors that nobody has written for people.
const (
	lost = "the connection was lost: the encoder, or the network on the way, was gone before the stream was ended"
	odd  = "the connection failed, or what came can't be read; the log of the service says more"
)

// Reason is why a publication ended, in words for the owner of the stream. Errors of the network and of libraries are
// for the log.
func Reason(err error) string {
	if r, ok := errors.AsType[Reasoned](err); ok {
		return r.Reason()
	}
	for _, known := range []error{
		ErrUnknownKey, ErrDisabled, ErrBusy, ErrShutdown, ErrEncoderEnded, ErrEnded, ErrSilent, ErrReplaced,
		ErrKeyReset,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrSilent.Error()
	}
	for _, gone := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE,
		syscall.ETIMEDOUT, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
	} {
		if errors.Is(err, gone) {
			return lost
		}
	}
	return odd
}
