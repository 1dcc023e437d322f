package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// service is a running millrace serve.
type service struct {
	*process
	http, rtmp string // host:port that it listens on
}

// patience is how long the service may take to open its ports.
const patience = 60 * time.Second

// serveArgs is the command line of the service: what the demo was given, and over it what the demo needs.
func serveArgs(o Options, dir, httpAddr, rtmpAddr, srtAddr string) []string {
	allow := make([]string, 0, len(o.Config.FetchAllow)+1)
	for _, p := range append(slices.Clip(o.Config.FetchAllow), netip.MustParsePrefix("127.0.0.0/8")) {
		allow = append(allow, p.String())
	}
	// Browsers are told where to send their media, so that any free port will do.
	args := append([]string{"serve", "--webrtc-udp-addr=:0", "--webrtc-tcp-addr=:0"}, o.Flags...)
	args = append(args, "--data-dir="+dir, "--http-addr="+httpAddr, "--rtmp-addr="+rtmpAddr, "--srt-addr="+srtAddr,
		"--fetch-allow="+strings.Join(allow, ","), "--log-format=json")
	if o.Config.LogLevel > 0 { // its addresses are logged at info
		args = append(args, "--log-level=info")
	}
	return args
}

// startService starts the service and waits until it listens. Its warnings and errors go to out.
func startService(ctx context.Context, o Options, args []string, out io.Writer) (*service, error) {
	cmd := exec.Command(o.Binary, args...) //nolint:gosec,noctx // our own program; process stops it
	cmd.Env = append(cmd.Environ(), "MILLRACE_TOKEN_ID="+o.tokenID, "MILLRACE_TOKEN_SECRET="+o.tokenSecret.Reveal())
	w := &watcher{out: out, ready: make(chan struct{}), addrs: map[string]string{}}
	p, err := startProcess("millrace serve", cmd, w.line)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ready:
		return &service{process: p, http: w.addrs["http"], rtmp: w.addrs["rtmp"]}, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = fmt.Errorf("millrace serve does not listen after %s:\n%s", patience, p.last.String())
	case <-p.done:
		if err = p.ended(); err == nil {
			err = errors.New("millrace serve ended at once:\n" + p.last.String())
		}
	}
	p.stop(5 * time.Second)
	return nil, err
}

// dashboardLink has the program make a link to the dashboard in the database of the service that listens on httpAddr.
func dashboardLink(ctx context.Context, o Options, dir, httpAddr string) (string, error) {
	args := append([]string{"dashboard", "link"}, o.Flags...)
	args = append(args, "--data-dir="+dir, "--http-addr="+httpAddr)
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, o.Binary, args...) //nolint:gosec // our own program
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("make link to the dashboard: %w\n%s", err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// watcher reads the service's log.
type watcher struct {
	out   io.Writer
	once  sync.Once
	ready chan struct{} // closed when http and rtmp listen; addrs is not written any more then
	addrs map[string]string
}

// line takes one line of the log.
func (w *watcher) line(text string) {
	var entry struct {
		Level   string `json:"level"`
		Msg     string `json:"msg"`
		What    string `json:"listener"`
		Addr    string `json:"address"`
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	if text == "" || strings.Contains(text, "/dashboard/link/") { // the demo shows a link of its own
		return
	}
	if json.Unmarshal([]byte(text), &entry) != nil {
		entry.Level, entry.Msg = "ERROR", text // a panic, or what was said before the log was there
	}
	if entry.Level == "WARN" || entry.Level == "ERROR" {
		for _, more := range []string{entry.Error, entry.Message} {
			if more != "" {
				entry.Msg += ": " + more
			}
		}
		fmt.Fprintf(w.out, "! serve: %s\n", entry.Msg)
	}
	if entry.Msg != "listening" {
		return
	}
	select {
	case <-w.ready:
		return
	default:
	}
	w.addrs[entry.What] = entry.Addr
	if w.addrs["http"] != "" && w.addrs["rtmp"] != "" {
		w.once.Do(func() { close(w.ready) })
	}
}

// available gives addr if it can be listened on, else the same host with a free port to be chosen by the kernel.
func available(ctx context.Context, network, addr string) (usable string, taken bool) {
	var l io.Closer
	var err error
	if network == "udp" {
		l, err = new(net.ListenConfig).ListenPacket(ctx, network, addr)
	} else {
		l, err = new(net.ListenConfig).Listen(ctx, network, addr)
	}
	if err == nil {
		_ = l.Close() // nothing was accepted
		return addr, false
	}
	host, _, splitErr := net.SplitHostPort(addr)
	if splitErr != nil || !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EACCES) {
		return addr, false // serve will say what is wrong with it
	}
	return net.JoinHostPort(host, "0"), true
}

// loopback turns an address that is listened on into one on this machine to connect to.
func loopback(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip, bad := netip.ParseAddr(host); host == "" || bad == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
