package whip

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// candidates are the lines that tell a publisher where it can connect: the public addresses first, as they are set,
// then those that this machine has or that its sockets are bound to.
func candidates(public []netip.Addr, udp, tcp netip.AddrPort, machine []netip.Addr) []string {
	var out []string
	add := func(transport string, at netip.AddrPort, preference uint32, suffix string) {
		if !at.IsValid() {
			return
		}
		var local []netip.Addr
		if at.Addr().IsUnspecified() {
			local = reachable(machine, at.Addr().Is4())
		} else {
			local = []netip.Addr{at.Addr().Unmap()}
		}
		if len(public) > 0 { // who is told the public ones has no use for the loopback interface
			local = slices.DeleteFunc(local, func(a netip.Addr) bool {
				return a.IsLoopback() && at.Addr().IsUnspecified()
			})
		}
		seen := map[netip.Addr]bool{}
		for _, a := range slices.Concat(public, local) {
			if a = a.Unmap(); seen[a] || at.Addr().Unmap().Is4() && !a.Is4() {
				continue
			}
			seen[a] = true
			// RFC 8445 section 5.1.2.1: host candidates; all of UDP are better than any of TCP
			priority := uint32(126)<<24 | (preference-uint32(len(seen)))<<8 | 255
			out = append(out,
				fmt.Sprintf("%d 1 %s %d %s %d typ host%s", len(out)+1, transport, priority, a, at.Port(), suffix))
		}
	}
	add("udp", udp, 65535, "")
	add("tcp", tcp, 8192, " tcptype passive")
	return out
}

// reachable picks the addresses by which others may reach a socket that is bound to all of them; the loopback ones when
// there are no others.
func reachable(machine []netip.Addr, only4 bool) []netip.Addr {
	var others, loopback []netip.Addr
	for _, a := range machine {
		a = a.Unmap().WithZone("")
		switch {
		case only4 && !a.Is4(), a.IsLinkLocalUnicast(), a.IsMulticast(), a.IsUnspecified(), slices.Contains(others, a):
		case a.IsLoopback():
			loopback = append(loopback, a)
		default:
			others = append(others, a)
		}
	}
	if len(others) == 0 {
		return loopback
	}
	return others
}

// machineAddresses are those of this machine's interfaces.
func machineAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of this machine: %w", err)
	}
	var out []netip.Addr
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out, nil
}

// addrPort is the address of a socket; the zero value when there is none.
func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case *net.UDPAddr:
		return a.AddrPort()
	case *net.TCPAddr:
		return a.AddrPort()
	}
	return netip.AddrPort{}
}
