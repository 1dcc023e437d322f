// Package clientaddr determines the client address of a request, for rate limits, fair shares and the audit log. It
// must never know what the address is used for.
package clientaddr

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Finder finds addresses of clients. The zero value trusts proxies on this machine and in private networks.
type Finder struct {
	// Proxies are the networks whose word is believed; nil: loopback, and private addresses (RFC 1918, RFC 4193).
	Proxies []netip.Prefix
}

// Of is the address of a request's client: that of the connection, or the one that a proxy says it asks for, by
// X-Forwarded-For or Forwarded (RFC 7239). Where the two differ, one of them is the client's own word, and neither is
// believed. It is not valid without an address.
func (f Finder) Of(r *http.Request) netip.Addr {
	from, _ := netip.ParseAddrPort(r.RemoteAddr)
	address := from.Addr().Unmap()
	if !f.Trusts(address) {
		return address
	}
	there, said := f.behind(r.Header["X-Forwarded-For"], netip.ParseAddr)
	other, saidToo := f.behind(r.Header["Forwarded"], forwarded)
	switch {
	case said && (!saidToo || there == other):
		return there
	case saidToo && !said && len(r.Header["X-Forwarded-For"]) == 0:
		return other
	}
	return address
}

// behind is the address that a header's lists say, the last of them first: the proxies that are named may stand behind
// each other, and what is in front of the first one that is none of them, anybody may have written.
func (f Finder) behind(lists []string, parse func(string) (netip.Addr, error)) (address netip.Addr, said bool) {
	for _, list := range slices.Backward(lists) {
		for more := true; more; {
			var element string
			list, element, more = cutLast(list)
			a, err := parse(strings.Trim(element, " \t"))
			if err != nil {
				return address, said
			}
			address, said = a.Unmap().WithZone(""), true
			if f.Proxies == nil || !f.Trusts(address) {
				return address, true
			}
		}
	}
	return address, said
}

// cutLast cuts a list at its last comma.
func cutLast(list string) (rest, last string, more bool) {
	i := strings.LastIndexByte(list, ',')
	if i < 0 {
		return "", list, false
	}
	return list[:i], list[i+1:], true
}

// errNotForwarded is an element of a Forwarded header that names no address, as "for=unknown" does (RFC 7239, 6.2 and
// 6.3).
var errNotForwarded = errors.New("no address in Forwarded")

// forwarded reads the address that one element of a Forwarded header says it is for (RFC 7239, 4 and 6).
func forwarded(element string) (netip.Addr, error) {
	for pair := range strings.SplitSeq(element, ";") {
		name, value, _ := strings.Cut(pair, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "for") {
			continue
		}
		node := strings.Trim(strings.Trim(value, " \t"), `"`)
		if a, err := netip.ParseAddrPort(node); err == nil { // "[2001:db8::1]:4711", "192.0.2.1:4711"
			return a.Addr(), nil
		}
		return netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(node, "["), "]"))
	}
	return netip.Addr{}, errNotForwarded
}

// Trusts reports whether a proxy at this address is believed.
func (f Finder) Trusts(a netip.Addr) bool {
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
