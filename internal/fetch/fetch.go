// Package fetch makes all connections to addresses that somebody outside has named. It refuses addresses that are not
// on the public internet at the moment of connecting, applies the same rule to redirects, limits bytes and time, and
// resumes interrupted downloads.
//
// It must never know what it fetches or for whom. Goroutines belong to net/http and end with the call or with Close.
// URLs may contain secrets: only their scheme, host and path appear in errors and logs.
package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"millrace/internal/disk"
	"millrace/internal/fault"
)

const (
	maxURLBytes    = 8 << 10
	maxHeaderBytes = 64 << 10
	maxIdleConns   = 16
)

// Options of a Client. The zero value is a strict and patient client.
type Options struct {
	Allow        []netip.Prefix // addresses that pass although they are not public, or are this host's
	Public       []netip.Addr   // of this host that none of its interfaces has, as behind a NAT
	MaxRedirects int            // 0 is 5, negative is none
	Timeouts     Timeouts
	Retry        Retry
	KeepPerHost  int           // idle connections that are kept for each host: 2
	UserAgent    string        // empty is "millrace"
	Resolver     *net.Resolver // nil is the system's
	Logger       *slog.Logger  // nil logs nothing
}

// Timeouts bound the stages of one request; a zero takes the default.
type Timeouts struct {
	Dial      time.Duration // name lookup and connect: 10 s
	Handshake time.Duration // TLS: 10 s
	Header    time.Duration // from the end of the request to the end of the response's header: 30 s
	Get       time.Duration // a whole Get with its retries: 60 s
}

// Retry says how often a call tries again after an error that may pass; a zero takes the default.
type Retry struct {
	Tries int           // attempts in a row without a new mebibyte: 5
	First time.Duration // wait before the second attempt, doubled for each further one: 500 ms
	Max   time.Duration // longest wait, also when the server asks for more: 15 s
}

// Client fetches. It may be used by many at a time.
type Client struct {
	allow        []netip.Prefix
	maxRedirects int
	getTime      time.Duration
	retry        Retry
	userAgent    string
	logger       *slog.Logger
	dialer       *net.Dialer
	transport    *http.Transport
	http         *http.Client
	space        func(path string) (disk.Space, error)
	public       []netip.Addr
	interfaces   func() ([]netip.Addr, error)
}

// New makes a client and connects to nothing.
func New(o Options) *Client {
	c := &Client{
		maxRedirects: orElse(o.MaxRedirects, 5),
		getTime:      orElse(o.Timeouts.Get, time.Minute),
		retry: Retry{
			Tries: max(1, orElse(o.Retry.Tries, 5)),
			First: orElse(o.Retry.First, 500*time.Millisecond),
			Max:   orElse(o.Retry.Max, 15*time.Second),
		},
		userAgent: orElse(o.UserAgent, "millrace"),
		logger:    o.Logger,
		space:     disk.SpaceOf,
		public:    o.Public, interfaces: hostAddresses,
	}
	for _, p := range o.Allow {
		c.allow = append(c.allow, unmapPrefix(p))
	}
	if c.logger == nil {
		c.logger = slog.New(slog.DiscardHandler)
	}
	c.dialer = &net.Dialer{
		Timeout:        orElse(o.Timeouts.Dial, 10*time.Second),
		Resolver:       o.Resolver,
		ControlContext: c.control,
	}
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy would connect where we can't look
		DialContext:            c.connect,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    orElse(o.Timeouts.Handshake, 10*time.Second),
		ResponseHeaderTimeout:  orElse(o.Timeouts.Header, 30*time.Second),
		MaxResponseHeaderBytes: maxHeaderBytes,
		MaxIdleConns:           maxIdleConns * max(1, o.KeepPerHost),
		MaxIdleConnsPerHost:    o.KeepPerHost,
		IdleConnTimeout:        30 * time.Second,
		DisableCompression:     true, // a small response must not unpack into a large one
		ForceAttemptHTTP2:      true,
	}
	c.http = &http.Client{Transport: c.transport, CheckRedirect: c.checkRedirect}
	return c
}

// HTTP gives a client for libraries that speak HTTP themselves, to an address that the operator has set: connections go
// through the same checks and redirects under the same rule. An exchange takes a Get's time at most. What a response
// may hold is up to the library.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: c.transport, CheckRedirect: c.checkRedirect, Timeout: c.getTime}
}

// Close ends idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// DialContext connects over TCP or UDP, as net.Dialer does, to an address that CheckAddr allows. The decision is made
// on the address of the socket itself, after the name was resolved, so a name that changes its address gains nothing.
// A refusal is fault.Invalid, and so is a name that is not found, in the same words.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.connect(ctx, network, address)
	if err == nil {
		return conn, nil
	}
	host, _, bad := net.SplitHostPort(address)
	if bad != nil {
		return nil, fault.New(fault.Invalid, "address must have the form host:port")
	}
	return nil, inside(host, err)
}

// connect is DialContext with the error as it is: a refusal is fault.Invalid, wrapped in a *net.OpError.
func (c *Client) connect(ctx context.Context, network, address string) (net.Conn, error) {
	switch network {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6":
		return c.dialer.DialContext(ctx, network, address)
	}
	return nil, fault.New(fault.Invalid, "network %q is not allowed", network)
}

func (c *Client) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fault.Wrap(fault.Invalid, err, "address can't be read")
	}
	return c.CheckAddr(addr)
}

// CheckURL reports whether rawURL is one that a fetch would try: http or https, a host, no credentials, 8 KiB at most.
// Where its name leads is decided when connecting.
func CheckURL(rawURL string) error {
	_, err := parseURL(rawURL)
	return err
}

func parseURL(rawURL string) (*url.URL, error) {
	if len(rawURL) > maxURLBytes {
		return nil, fault.New(fault.Invalid, "URL has more than %d bytes", maxURLBytes)
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "URL can't be read") // its error repeats the URL
	}
	return u, checkURL(u)
}

func checkURL(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fault.New(fault.Invalid, "URL begins with %q: http:// or https:// is allowed", u.Scheme+":")
	case u.User != nil:
		return fault.New(fault.Invalid, "URL holds a user name or password, which is not allowed")
	case u.Hostname() == "":
		return fault.New(fault.Invalid, "URL has no host")
	case strings.TrimLeft(u.Port(), "0") == "" && u.Port() != "":
		return fault.New(fault.Invalid, "port 0 is not allowed")
	case u.Port() != "":
		if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return fault.New(fault.Invalid, "the URL's port is none: the largest is 65535")
		}
	}
	return nil
}

func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > c.maxRedirects {
		return fault.New(fault.Invalid, "URL is redirected more than %d times", max(0, c.maxRedirects))
	}
	if err := checkURL(req.URL); err != nil {
		return fault.New(fault.Invalid, "URL is redirected to another that is not allowed: %s", err)
	}
	req.Header.Del("Referer") // the earlier URL may hold a secret
	return nil
}

// open sends one GET. The response has status 200, 206 or 416, and its body as stored on the server.
func (c *Client) open(ctx context.Context, u *url.URL, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fault.New(fault.Invalid, "URL can't be read")
	}
	if header != nil {
		req.Header = header.Clone()
	}
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, explain(ctx, u, err)
	}
	if err := checkResponse(resp, u); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func checkResponse(resp *http.Response, u *url.URL) error {
	switch resp.StatusCode {
	case http.StatusOK, http.StatusPartialContent:
		if e := resp.Header.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
			return fault.New(fault.Invalid, "%s is sent as %.20q, though it was asked for as it is", show(u), e)
		}
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return nil
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return laterBy(resp, u)
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		return laterBy(resp, u)
	}
	return fault.New(fault.Invalid, "%s: %s", show(u), describeStatus(resp))
}

func laterBy(resp *http.Response, u *url.URL) error {
	return &later{
		error: fault.New(fault.Unavailable, "%s: %s", show(u), describeStatus(resp)),
		after: retryAfter(resp.Header, time.Now()),
	}
}

func describeStatus(resp *http.Response) string {
	if text := http.StatusText(resp.StatusCode); text != "" {
		return fmt.Sprintf("the server responded with %d %s", resp.StatusCode, text)
	}
	return fmt.Sprintf("the server responded with %d", resp.StatusCode)
}

// show gives the part of u that may be shown.
func show(u *url.URL) string {
	const most = 200
	s := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// Causes of a context that we end ourselves.
var (
	errIdle  = errors.New("no data came for too long")
	errTotal = errors.New("it took too long")
)

func orElse[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// unmapPrefix turns ::ffff:10.0.0.0/104 into 10.0.0.0/8, since addresses are compared unmapped.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
