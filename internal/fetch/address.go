package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"millrace/internal/fault"
)

// refused lists what is not the public internet, by the IANA special-purpose registries (RFC 6890 and its updates)
// and the clouds' metadata services. The first match names the reason, so the narrow ones stand first.
//
//nolint:gochecknoglobals // a table
var refused = []struct {
	prefix netip.Prefix
	reason string
}{
	{netip.MustParsePrefix("169.254.169.254/32"), "cloud metadata"},
	{netip.MustParsePrefix("169.254.170.0/24"), "cloud metadata"},
	{netip.MustParsePrefix("100.100.100.200/32"), "cloud metadata"},
	{netip.MustParsePrefix("168.63.129.16/32"), "cloud metadata"},
	{netip.MustParsePrefix("192.0.0.192/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd00:ec2::/32"), "cloud metadata"},
	{netip.MustParsePrefix("fd20:ce::254/128"), "cloud metadata"},
	{netip.MustParsePrefix("0.0.0.0/32"), "unspecified address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "this network"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private network"},
	{netip.MustParsePrefix("100.64.0.0/10"), "carrier-grade NAT"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private network"},
	{netip.MustParsePrefix("192.0.0.0/24"), "protocol assignments"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private network"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("::/128"), "unspecified address"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible address"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated address"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "local NAT64"},
	{netip.MustParsePrefix("100::/32"), "discard-only"},
	{netip.MustParsePrefix("2001::/32"), "Teredo tunnel"},
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
	{netip.MustParsePrefix("2001::/23"), "protocol assignments"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2002::/16"), "6to4 tunnel"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "unique local network"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}

//nolint:gochecknoglobals // constants, but for the language
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // RFC 6052: the last four bytes are an IPv4 address
	global = netip.MustParsePrefix("2000::/3")     // all of IPv6 that is handed out as public
)

// reasonAgainst says why addr is not public, or "".
func reasonAgainst(addr netip.Addr) string {
	for _, r := range refused {
		if r.prefix.Contains(addr) {
			return r.reason
		}
	}
	if addr.Is4() {
		return ""
	}
	b := addr.As16()
	if nat64.Contains(addr) {
		return within("NAT64", [4]byte(b[12:]))
	}
	if !global.Contains(addr) {
		return "not a public address"
	}
	// ISATAP, RFC 5214 6.1: the interface identifier is 00-00-5E-FE or 02-00-5E-FE and an IPv4 address.
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		return within("ISATAP", [4]byte(b[12:]))
	}
	return ""
}

func within(tunnel string, inner [4]byte) string {
	if reason := reasonAgainst(netip.AddrFrom4(inner)); reason != "" {
		return reason + " within " + tunnel
	}
	return ""
}

// hostAddresses lists the addresses of this host's interfaces: what it serves to its own may be open to all who connect
// from there.
func hostAddresses() ([]netip.Addr, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of this host: %w", err)
	}
	var own []netip.Addr
	for _, a := range found {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, p.Addr().WithZone("").Unmap())
		}
	}
	return own, nil
}

// CheckAddr reports whether a connection to addr is allowed: fault.Invalid, with the reason and the remedy, when not.
// Anyone who makes its own sockets calls it with the address that it is going to use, after resolving the name.
func (c *Client) CheckAddr(addr netip.AddrPort) error {
	if addr.Port() == 0 {
		return fault.New(fault.Invalid, "port 0 is not allowed")
	}
	// Without a zone, and an IPv4-mapped address as the IPv4 address that the system will connect to.
	ip := addr.Addr().WithZone("").Unmap()
	if !ip.IsValid() {
		return fault.New(fault.Invalid, "address is not valid")
	}
	for _, p := range c.allow {
		if p.Contains(ip) {
			return nil
		}
	}
	reason := reasonAgainst(ip)
	if reason == "" {
		own, err := c.interfaces()
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "the addresses of this host are not known")
		}
		if slices.Contains(own, ip) || slices.Contains(c.public, ip) {
			reason = "this host"
		}
	}
	if reason != "" {
		return fault.New(fault.Invalid, "address %s is not allowed: %s; add it with --fetch-allow", ip, reason)
	}
	return nil
}
