package internode

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"millrace/internal/id"
	"millrace/internal/trace"
)

// Peer is a node that is called: its row in the database says both.
type Peer struct {
	Node id.Node
	URL  string // scheme, host and port, without a last slash
}

// ClientOptions are what a Client needs; all but TLS are required.
type ClientOptions struct {
	Key    Key
	Self   Greeting
	TLS    *tls.Config // of peers whose URL has https; nil: Go's defaults
	Now    func() time.Time
	Logger *slog.Logger
}

// Client sends requests to other nodes, over one connection to each. Its methods may be called at the same time.
type Client struct {
	opts      ClientOptions
	signer    *signer
	transport *http.Transport
	quiet     quiet
	refusedAt atomic.Int64 // when a node last refused a request because of the clock, in Unix milliseconds
}

// ClockDiffers reports whether a node has refused a request within the last minute because its clock differs from this
// one's.
func (c *Client) ClockDiffers() bool {
	return c.opts.Now().Sub(time.UnixMilli(c.refusedAt.Load())) < time.Minute
}

const (
	dialTimeout = 3 * time.Second
	// A peer that says nothing for pingAfter is asked whether it is there, and has pingTimeout to respond: so a machine
	// without power is noticed within 5 seconds.
	pingAfter, pingTimeout = 3 * time.Second, 2 * time.Second
	idleTimeout            = 2 * time.Minute
	maxHeader              = 16 << 10 // bytes of the head of a request or response
	maxAnswer              = 4 << 10  // bytes of what this package itself responds
)

// NewClient makes a Client. Close it last.
func NewClient(o ClientOptions) *Client {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &Client{
		opts: o, signer: newSigner(o.Key), quiet: quiet{log: o.Logger, now: o.Now},
		transport: &http.Transport{ // without a proxy of the environment
			DialContext: dial(dialer), TLSClientConfig: o.TLS, TLSHandshakeTimeout: dialTimeout, Protocols: &protocols,
			DisableCompression: true, IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxHeader,
			HTTP2: &http.HTTP2Config{
				StrictMaxConcurrentRequests: true, // one connection, whatever is under way
				SendPingTimeout:             pingAfter, PingTimeout: pingTimeout,
				WriteByteTimeout: pingAfter + pingTimeout,
			},
		},
	}
}

// Close closes the connections that nothing is under way on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do signs a request and sends it to a peer. Of its URL path and query count; its body is read into memory and may have
// MaxBody bytes. An error is an *Error where the peer can't be reached or refuses the request; any other response is
// the caller's, who has to close its body and bound its size and, by ctx, its time. It follows no redirects. Responses
// are not signed: what can be changed on the way is what TLS does not protect.
func (c *Client) Do(ctx context.Context, to Peer, r *http.Request) (*http.Response, error) {
	ctx, span := trace.Begin(ctx, "internode request", trace.Client)
	span.Text(trace.MethodKey, trace.Method(r))
	span.Text(trace.NodeKey, string(to.Node))
	res, _, err := c.send(ctx, to, r)
	if err == nil {
		span.Number(trace.StatusKey, int64(res.StatusCode))
	}
	span.End(err)
	return res, err
}

func (c *Client) send(ctx context.Context, to Peer, r *http.Request) (*http.Response, signature, error) {
	base, err := url.Parse(to.URL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || !isNode(string(to.Node)) {
		return nil, signature{}, errors.New("send request to node: the node has no name or no URL")
	}
	body, err := bodyOf(r)
	if err != nil {
		return nil, signature{}, err
	}
	by := &attempt{}
	r = r.Clone(by.watch(ctx))
	r.URL.Scheme, r.URL.Host, r.Host, r.URL.User, r.URL.Fragment = base.Scheme, base.Host, "", nil, ""
	sig := signature{at: c.opts.Now(), nonce: newNonce(), from: c.opts.Self.Node, to: to.Node, digest: digest(body)}
	r.Header.Set("Authorization", c.signer.sign(sig, r.Method, r.URL.RequestURI()))
	if parent := trace.Parent(ctx); parent != "" {
		r.Header.Set(trace.Header, parent)
	}
	r.Header.Set(speaksHeader, c.opts.Self.Speaks.String())
	r.Body, r.GetBody, r.ContentLength = http.NoBody, nil, int64(len(body))
	if len(body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	res, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, sig, c.failed(to, err, by)
	}
	if res.Header.Get(refusedHeader) != "" {
		return nil, sig, c.refused(ctx, to, sig, res)
	}
	return res, sig, nil
}

func bodyOf(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }() // it has been read, or is not wanted
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	if err != nil {
		return nil, fmt.Errorf("read body of request to node: %w", err)
	}
	if len(body) > MaxBody {
		return nil, fmt.Errorf("the body of a request to a node is larger than %d bytes", MaxBody)
	}
	return body, nil
}

// failed tells apart who does not respond and who responds with something else.
func (c *Client) failed(to Peer, err error, by *attempt) error {
	e := &Error{Code: Unreachable, URL: to.URL, To: to.Node, Err: err}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		e.Code = Certificate
	} else if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || by.stranger() {
		e.Code = NotMillrace
	}
	return e
}

// refused reads why a node has refused a request.
func (c *Client) refused(ctx context.Context, to Peer, sig signature, res *http.Response) error {
	body, proven, err := c.read(sig, res)
	var r refusal
	e := &Error{Code: NotMillrace, URL: to.URL, To: to.Node, Status: res.StatusCode, Proven: proven, Err: err}
	if err != nil || json.Unmarshal(body, &r) != nil || !isNode(string(r.Node)) || statuses[r.Code] != res.StatusCode {
		return e
	}
	e.Code, e.Node = r.Code, r.Node
	if r.Code == Protocol {
		c.quiet.warn(ctx, "protocol "+string(to.Node), "a node speaks other versions of the protocol of nodes: run "+
			"the same version of Millrace on both, or two that follow one another", "node", r.Node,
			"its_protocols", parseRange(res.Header.Get(speaksHeader)).String(),
			"own_protocols", c.opts.Self.Speaks.String(),
			"proven", proven)
	}
	if r.Code == Clock {
		e.Off = time.UnixMilli(r.Time).Sub(c.opts.Now())
		if proven {
			c.refusedAt.Store(c.opts.Now().UnixMilli())
		}
		c.quiet.warn(ctx, "clock "+string(to.Node), "the clocks of two nodes differ: have both set by NTP",
			"node", r.Node, "its_clock_ahead_by", e.Off.Round(time.Second), "proven", proven)
	}
	return e
}

// read reads a response of the other node's package, and reports whether it is signed with the key.
func (c *Client) read(sig signature, res *http.Response) (body []byte, proven bool, err error) {
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	body, err = io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, false, fmt.Errorf("read response of node: %w", err)
	}
	want := c.signer.mac(answerText(sig.nonce, res.StatusCode, body))
	return body, subtle.ConstantTimeCompare([]byte(want), []byte(res.Header.Get(answerHeader))) == 1, nil
}

// Hello asks a peer who it is. Its response is signed, so it has the same key.
func (c *Client) Hello(ctx context.Context, to Peer) (Greeting, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, helloPath, nil)
	if err != nil {
		return Greeting{}, fmt.Errorf("say hello: %w", err)
	}
	res, sig, err := c.send(ctx, to, r) //nolint:bodyclose // read closes it
	if err != nil {
		return Greeting{}, err
	}
	body, proven, err := c.read(sig, res)
	e := &Error{URL: to.URL, To: to.Node, Status: res.StatusCode, Proven: proven, Err: err}
	var g Greeting
	switch {
	case err != nil:
		e.Code = Unreachable
		return g, e
	case res.StatusCode != http.StatusOK || res.Header.Get(answerHeader) == "":
		e.Code = NotMillrace
		return g, e
	case !proven:
		e.Code = Unproven
		return g, e
	}
	if err = json.Unmarshal(body, &g); err != nil {
		e.Code, e.Err = Protocol, err
		return Greeting{}, e
	}
	if c.opts.Self.Speaks.With(g.Speaks) == 0 {
		e.Code, e.Node = Protocol, g.Node
		return g, e
	}
	return g, nil
}

// Check calls a URL that is said to lead to this node itself; nil: it does. The error is an *Error.
func (c *Client) Check(ctx context.Context, base string) error {
	g, err := c.Hello(ctx, Peer{c.opts.Self.Node, base})
	if err != nil {
		return err
	}
	if g.Node != c.opts.Self.Node || g.Run != c.opts.Self.Run {
		return &Error{Code: OtherNode, URL: base, To: c.opts.Self.Node, Node: g.Node, Proven: true}
	}
	return nil
}
