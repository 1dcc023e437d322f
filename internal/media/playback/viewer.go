package playback

import (
	"context"
	"net/netip"
)

// viewerKey is that of a viewer's address in a context.
type viewerKey struct{}

// withViewer keeps a viewer's address with a request.
func withViewer(ctx context.Context, remote string) context.Context {
	return context.WithValue(ctx, viewerKey{}, network(remote))
}

// Viewer says whose request it is, so that what viewers share is shared between them: the address without its port, of IPv6 the /64 that a
// single customer has. Empty: unknown.
func Viewer(ctx context.Context) string {
	v, _ := ctx.Value(viewerKey{}).(string)
	return v
}

func network(remote string) string {
	a, err := netip.ParseAddrPort(remote)
	if err != nil {
		return ""
	}
	const customer = 64
	addr := a.Addr().Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	p, err := addr.Prefix(customer)
	if err != nil {
		return ""
	}
	return p.String()
}
