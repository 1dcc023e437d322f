package fetch

import (
	"context"
	"net"
	"net/netip"

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

// ContentRange is what resuming reads.
func ContentRange(s string) (start, total int64, ok bool) { return contentRange(s) }
