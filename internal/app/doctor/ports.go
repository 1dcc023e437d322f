package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"time"
)

// FreePort checks that an address can be listened on, or that it is millrace itself that does.
type FreePort struct {
	Setting string // http-addr, rtmp-addr, …
	Addr    string // host:port
	Ours    string // address at which a running millrace serves HTTP
	UDP     bool   // instead of TCP
	// Holders tells who has a port; nil: the system's own list.
	Holders func(port string, udp bool) []Holder
}

// Name implements Check.
func (p FreePort) Name() string { return p.Setting }

// Run implements Check.
func (p FreePort) Run(ctx context.Context) Finding {
	port := portOf(p.Addr)
	if port == "0" {
		return ok("a free port is taken at start")
	}
	l, err := p.listen(ctx)
	if err == nil {
		_ = l.Close() // nothing was accepted
		return ok("%s is free", p.Addr)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return p.taken(ctx)
	case errors.Is(err, syscall.EACCES):
		return problem("Ports below 1024 need a right: AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit, or give a higher port with --"+p.Setting+".", "port %s is not allowed to this user", port)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return problem("Give an address of this machine, or only :"+port+" for all of them, with --"+p.Setting+".", "this machine has no address %s", p.Addr)
	}
	return problem("Give another address with --"+p.Setting+".", "cannot listen: %v", err)
}

// taken says by whom.
func (p FreePort) taken(ctx context.Context) Finding {
	const meant = "Nothing to do if that is meant; a second one needs its own ports and data folder."
	look := p.Holders
	if look == nil {
		look = holders
	}
	port := portOf(p.Addr)
	all := look(port, p.UDP)
	stop := "stop it, or give another port with --" + p.Setting + "."
	for _, h := range all {
		switch {
		case h.PID == 0:
		case h.PID == os.Getpid():
			return ok("%s is this service's own", p.Addr)
		case h.Millrace:
			return warning(meant, "%s is in use by a running millrace (process %d)", p.Addr, h.PID)
		default:
			return problem("If it is not needed, "+stop, "%s (process %d) uses %s", h.Program, h.PID, p.Addr)
		}
	}
	if !p.UDP && servesMillrace(ctx, p.Addr) {
		return warning(meant, "%s is in use by a running millrace", p.Addr)
	}
	if servesMillrace(ctx, p.Ours) && sameUser(all, look(portOf(p.Ours), false)) {
		return warning(meant, "%s is in use by a program of the same user as the millrace that is running at %s", p.Addr, p.Ours)
	}
	list := "ss -ltnp"
	if p.UDP {
		list = "ss -lunp"
	}
	return problem("Find the program with sudo "+list+" 'sport = :"+port+"' and "+stop, "another program uses %s", p.Addr)
}

func (p FreePort) listen(ctx context.Context) (io.Closer, error) {
	var c net.ListenConfig
	if p.UDP {
		return c.ListenPacket(ctx, "udp", p.Addr)
	}
	return c.Listen(ctx, "tcp", p.Addr)
}

// servesMillrace asks for the API's description and looks at its title.
func servesMillrace(ctx context.Context, addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if ip, bad := netip.ParseAddr(host); host == "" || bad == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/openapi.json", nil)
	if err != nil {
		return false
	}
	t := &http.Transport{DisableKeepAlives: true}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // only read
	var doc struct {
		Info struct {
			Title string `json:"title"`
		} `json:"info"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, 8<<20)).Decode(&doc)
	return err == nil && strings.HasPrefix(doc.Info.Title, "Millrace ")
}
