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
func (f FreePort) Name() string { return f.Setting }

// Run implements Check.
func (f FreePort) Run(ctx context.Context) Finding {
	port := portOf(f.Addr)
	if port == "0" {
		return ok("a free port is taken at start")
	}
	l, err := f.listen(ctx)
	if err == nil {
		_ = l.Close() // nothing was accepted
		return ok("%s is free", f.Addr)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return f.taken(ctx)
	case errors.Is(err, syscall.EACCES):
		return problem("Ports below 1024 need a right: AmbientCapabilities=CAP_NET_BIND_SERVICE in the systemd unit, "+
			"or give a higher port with --"+f.Setting+".", "port %s is not allowed to this user", port)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return problem("Give an address of this machine, or only :"+port+" for all of them, with --"+f.Setting+".",
			"this machine has no address %s", f.Addr)
	}
	return problem("Give another address with --"+f.Setting+".", "cannot listen: %v", err)
}

// taken says by whom.
func (f FreePort) taken(ctx context.Context) Finding {
	const meant = "Nothing to do if that is meant; a second one needs its own ports and data folder."
	look := f.Holders
	if look == nil {
		look = holders
	}
	port := portOf(f.Addr)
	all := look(port, f.UDP)
	stop := "stop it, or give another port with --" + f.Setting + "."
	for _, h := range all {
		switch {
		case h.PID == 0:
		case h.PID == os.Getpid():
			return ok("%s is this service's own", f.Addr)
		case h.Millrace:
			return warning(meant, "%s is in use by a running millrace (process %d)", f.Addr, h.PID)
		default:
			return problem("If it is not needed, "+stop, "%s (process %d) uses %s", h.Program, h.PID, f.Addr)
		}
	}
	if !f.UDP && servesMillrace(ctx, f.Addr) {
		return warning(meant, "%s is in use by a running millrace", f.Addr)
	}
	if servesMillrace(ctx, f.Ours) && sameUser(all, look(portOf(f.Ours), false)) {
		return warning(meant, "%s is in use by a program of the same user as the millrace that is running at %s",
			f.Addr, f.Ours)
	}
	list := "ss -ltnp"
	if f.UDP {
		list = "ss -lunp"
	}
	return problem("Find the program with sudo "+list+" 'sport = :"+port+"' and "+stop, "another program uses %s",
		f.Addr)
}

func (f FreePort) listen(ctx context.Context) (io.Closer, error) {
	var c net.ListenConfig
	if f.UDP {
		return c.ListenPacket(ctx, "udp", f.Addr)
	}
	return c.Listen(ctx, "tcp", f.Addr)
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
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/openapi.json",
		nil)
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
