// Package clientaddr finds out which address a request comes from, for limits, fair shares and the audit log. It must never know what it is used for.
package clientaddr

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Finder finds addresses of clients. The zero value trusts proxies on this machine and in private networks.
type Finder struct {
	// Proxies are the networks whose X-Forwarded-For is believed; nil: loopback, and private addresses (RFC 1918, RFC 4193).
	Proxies []netip.Prefix
}

// Of is the address of a request's client: that of the connection, or what a proxy says whom it asks for. It is not valid without one.
func (f Finder) Of(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := from.Addr().Unmap()
	said := r.Header["X-Forwarded-For"]
	if len(said) == 0 || !f.trusts(address) {
		return address
	}
	last := said[len(said)-1] // what is in front of that, anybody may have written
	if behind, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err == nil {
		return behind.Unmap()
	}
	return address
}

func (f Finder) trusts(a netip.Addr) bool {
	if f.Proxies == nil {
		return a.IsLoopback() || a.IsPrivate()
	}
	return slices.ContainsFunc(f.Proxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Network is what a single customer has: an IPv4 address, or the /64 of an IPv6 address. Empty: it is not valid.
func Network(a netip.Addr) string {
	const customer = 64
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.Is4() {
		return strings.TrimPrefix(a.String(), "invalid IP")
	}
	p, err := a.Prefix(customer)
	if err != nil {
		return ""
	}
	return p.String()
}
