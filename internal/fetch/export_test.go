package fetch

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"millrace/internal/disk"
)

// DialBy lets a test in a bubble of time use connections without sockets.
func (c *Client) DialBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	c.transport.DialContext = dial
}

// SpaceBy lets a test say how much room its disk has.
func (c *Client) SpaceBy(space func(path string) (disk.Space, error)) { c.space = space }

// InterfacesBy lets a test say which addresses the interfaces of its host have.
func (c *Client) InterfacesBy(interfaces func() ([]netip.Addr, error)) { c.interfaces = interfaces }

// HostAddresses is what a client asks without a test.
func HostAddresses() ([]netip.Addr, error) { return hostAddresses() }

// MaxRetryAfter bounds RetryAfter.
const MaxRetryAfter = maxRetryAfter

// RetryAfter is the wait that a response asks for.
func RetryAfter(h http.Header, now time.Time) time.Duration { return retryAfter(h, now) }

// ContentRange is what resuming reads.
func ContentRange(s string) (start, total int64, ok bool) { return contentRange(s) }
