package fetch

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"millrace/internal/fault"
)

// Resolve gives the first address of host:port that CheckAddr allows, for a caller that makes its own sockets: it must
// connect to exactly this address. network is tcp or udp. When none is allowed, or the name is not found, the error is
// fault.Invalid.
func (c *Client) Resolve(ctx context.Context, network, address string) (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return netip.AddrPort{}, fault.New(fault.Invalid, "address must have the form host:port")
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || network != "tcp" && network != "udp" {
		return netip.AddrPort{}, fault.New(fault.Invalid, "network %q or port is not allowed", network)
	}
	ctx, cancel := context.WithTimeout(ctx, c.dialer.Timeout)
	defer cancel()
	resolver := c.dialer.Resolver
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve host: %w", inside(host, err))
	}
	var refused error
	for _, ip := range found {
		addr := netip.AddrPortFrom(ip.Unmap(), uint16(port))
		if err := c.CheckAddr(addr); err == nil {
			return addr, nil
		} else if refused == nil {
			refused = err
		}
	}
	return netip.AddrPort{}, inside(host, refused)
}
