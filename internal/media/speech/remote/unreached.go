package remote

import (
	"context"
	"errors"
	"net"
	"syscall"
)

// unreachedError says why a server did not respond, without its address: tenants read it in a track's errors, and need
// not know where an operator's servers are. Its cause is for errors.Is.
type unreachedError struct {
	why   string
	cause error
}

// Error implements error.
func (u *unreachedError) Error() string { return u.why }

// Unwrap returns the cause.
func (u *unreachedError) Unwrap() error { return u.cause }

// unreached is what becomes of an error of a connection to a server.
func unreached(err error) error {
	var name *net.DNSError
	var late net.Error
	why := "the connection to the server failed (one in a private network that has a host name needs --fetch-allow)"
	switch {
	case err == nil || errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "the server takes no connections: does it run?"
	case errors.As(err, &name):
		why = "the server's host name is not known"
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		why = "the server did not respond in time"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		why = "the server closed the connection"
	}
	return &unreachedError{why, err}
}
