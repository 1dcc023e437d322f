package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/internal/fault"
)

// later is an error that may pass, with the wait that the server asks for.
type later struct {
	error
	after time.Duration
}

func (l *later) Unwrap() error { return l.error }

// explain says in plain words why a request or a read of its response ended, and whether it may pass. It drops the text
// of *url.Error, which repeats the whole URL.
func explain(ctx context.Context, u *url.URL, err error) error {
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errIdle), errors.Is(cause, errTotal):
		return remote(fault.New(fault.Unavailable, "%s: %s", show(u), cause))
	case cause != nil && errors.Is(cause, ctx.Err()):
		return fmt.Errorf("fetch %s: %w", show(u), cause)
	case cause != nil:
		return fmt.Errorf("fetch %s: %w: %w", show(u), ctx.Err(), cause)
	}
	host := u.Hostname()
	if e, ok := errors.AsType[*url.Error](err); ok {
		if last, bad := url.Parse(e.URL); bad == nil { // behind redirects
			host = last.Hostname()
		}
		err = e.Err
	}
	if e, ok := errors.AsType[*fault.Error](err); ok { // the dialer's or the redirect's
		if _, dialed := errors.AsType[*net.OpError](err); dialed {
			return refusal(host, e)
		}
		return e
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return fault.Wrap(fault.Invalid, e, notReached, host)
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fault.Wrap(fault.Invalid, e.Err, "%s has a certificate that is not trusted", show(u))
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return fault.Wrap(fault.Invalid, err, "%s does not speak TLS", show(u))
	}
	return fault.Wrap(fault.Unavailable, err, "%s %s", show(u), passing(err))
}

// notReached is said of names that lead nowhere and of those that lead inside: a person who gives names must not learn
// which of them exist there.
const notReached = "host %.100s can't be found, or its address is not public (--fetch-allow adds addresses)"

// refusal of an address that a name has led to does not tell the person who gave the name that there is one: names of
// the inside would be looked up for the outside. The cause, which is for the log, does.
func refusal(host string, why *fault.Error) error {
	if _, err := netip.ParseAddr(host); err == nil {
		return why
	}
	return fault.Wrap(fault.Invalid, why, notReached, host)
}

// inside is the error of connecting to a host that a caller named, in the same words whether there is no such name or
// its address is refused.
func inside(host string, err error) error {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return refusal(host, e)
	}
	if e, ok := errors.AsType[*net.DNSError](err); ok && e.IsNotFound {
		return fault.Wrap(fault.Invalid, e, notReached, host)
	}
	return err
}

// passing names what may be better the next time.
func passing(err error) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case ok && timeout.Timeout():
		return "did not respond in time"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "broke off"
	}
	return "can't be reached"
}

// maxRetryAfter bounds what a server may ask for.
const maxRetryAfter = 24 * time.Hour

// retryAfter is the wait that a response asks for, by seconds or a date (RFC 9110 10.2.3), from 0 to maxRetryAfter; 0
// also when it can't be read. A date counts from the response's own Date: now is the time of another clock.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	seconds, err := strconv.ParseUint(text, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range it is the largest number
		return time.Duration(min(seconds, uint64(maxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
