package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
)

const (
	// after a failure, which autocert keeps for a minute; doubled, as authorities count failures per hour.
	firstWait = 90 * time.Second
	lastWait  = time.Hour
	checkWait = time.Hour
)

// ErrNone is what a handshake ends with before the authority has given a certificate.
var ErrNone = errors.New("there is no certificate yet: it is asked for over ACME")

// ACMEOptions are what ACME needs. Email may be empty, the rest is required.
type ACMEOptions struct {
	Domains   []string // the first is also for clients that name none, as many encoders
	Email     string   // where the authority writes to about problems
	Directory string   // URL of the authority
	Folder    string   // for account key and certificates, made if need be
	Client    *http.Client
	UserAgent string
	Now       func() time.Time
	Logger    *slog.Logger
}

// ACME gets certificates from an authority and renews them when a third of their life is left. The authority sees that
// the names are ours over HTTP-01, on port 80 behind Challenges, or TLS-ALPN-01, on port 443 with GetCertificate and
// Protocol.
type ACME struct {
	opts    ACMEOptions
	manager *autocert.Manager

	mu  sync.RWMutex
	has map[string]*x509.Certificate // by domain: as last seen
}

// Protocol is what a listener on port 443 has to negotiate for TLS-ALPN-01 to work.
const Protocol = acme.ALPNProto

// NewACME makes the source and asks nobody yet.
func NewACME(o ACMEOptions) *ACME {
	client := *o.Client
	client.Transport = &complaintLogger{next: o.Client.Transport, log: o.Logger}
	return &ACME{opts: o, has: map[string]*x509.Certificate{}, manager: &autocert.Manager{
		Prompt: autocert.AcceptTOS, Email: o.Email, Cache: autocert.DirCache(o.Folder),
		HostPolicy: autocert.HostWhitelist(o.Domains...),
		Client:     &acme.Client{DirectoryURL: o.Directory, HTTPClient: &client, UserAgent: o.UserAgent},
	}}
}

// Challenges responds to the authority's HTTP-01 requests and passes all others on.
func (a *ACME) Challenges(next http.Handler) http.Handler {
	handler := a.manager.HTTPHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") {
			next.ServeHTTP(w, r)
			return
		}
		// autocert compares the host with the domains as it is, and what passes port 80 on may add its own port to it.
		if host, _, err := net.SplitHostPort(r.Host); err == nil {
			r = r.Clone(r.Context())
			r.Host = host
		}
		handler.ServeHTTP(w, r)
	})
}

// Name implements lifecycle.Service.
func (*ACME) Name() string { return "acme" }

// Run gets a certificate for each domain, then sees every hour whether they are renewed, until ctx ends. Here, and not
// in the first handshake, because an encoder does not wait, and so that strangers' handshakes do not use up the
// authority's patience.
func (a *ACME) Run(ctx context.Context) error {
	wait := firstWait
	for {
		failed := false
		for _, domain := range a.opts.Domains {
			failed = !a.obtain(ctx, domain) || failed
		}
		next := checkWait
		if failed {
			next, wait = wait, min(2*wait, lastWait)
		} else {
			wait = firstWait
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// obtain has autocert take the domain's certificate out of its memory, its folder, or from the authority. autocert
// takes no context: its own is of five minutes. So that the service need not wait for that at its end, the call is left
// behind then.
func (a *ACME) obtain(ctx context.Context, domain string) bool {
	type result struct {
		pair *tls.Certificate
		err  error
	}
	got := make(chan result, 1)
	go func() {
		pair, err := a.manager.GetCertificate(modern(domain))
		got <- result{pair, err}
	}()
	var r result
	select {
	case <-ctx.Done():
		return true
	case r = <-got:
	}
	if r.err != nil {
		a.opts.Logger.WarnContext(ctx, "no certificate from the authority", "domain", domain, "directory",
			a.opts.Directory, "error", r.err)
		return false
	}
	leaf := r.pair.Leaf
	a.mu.Lock()
	before := a.has[domain]
	a.has[domain] = leaf
	a.mu.Unlock()
	if before == nil || !before.Equal(leaf) {
		a.opts.Logger.InfoContext(ctx, "certificate loaded", "domains", names(leaf), "expires_at", leaf.NotAfter)
	}
	if left := leaf.NotAfter.Sub(a.opts.Now()); left < leaf.NotAfter.Sub(leaf.NotBefore)/4 {
		a.opts.Logger.WarnContext(ctx, "certificate is due and not renewed yet", "domain", domain, "expires_at",
			leaf.NotAfter)
	}
	return true
}

// modern is a handshake that can do with an ECDSA certificate, which is what is got first. Clients that can not get one
// with RSA.
func modern(domain string) *tls.ClientHelloInfo {
	return &tls.ClientHelloInfo{ServerName: domain, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}}
}

// GetCertificate serves a handshake. Clients that name no domain of ours (encoders that were given an address) get the
// first one's.
func (a *ACME) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return a.manager.GetCertificate(hello)
	}
	domain := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if !slices.Contains(a.opts.Domains, domain) {
		domain = a.opts.Domains[0]
	}
	a.mu.RLock()
	has := a.has[domain] != nil
	a.mu.RUnlock()
	if !has {
		return nil, ErrNone
	}
	named := *hello
	named.ServerName = domain
	pair, err := a.manager.GetCertificate(&named)
	if err != nil {
		return nil, fmt.Errorf("get certificate: %w", err)
	}
	return pair, nil
}

// complaintLogger logs what an authority complains about: autocert renews in silence.
type complaintLogger struct {
	next http.RoundTripper
	log  *slog.Logger
}

// RoundTrip implements http.RoundTripper.
func (c *complaintLogger) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := c.next.RoundTrip(r)
	if err != nil {
		c.log.WarnContext(r.Context(), "certificate authority is not reached", "host", r.URL.Host, "error", err)
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	const most = 16 << 10
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the authority's response: %w", err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var problem struct { // RFC 7807
		Type   string `json:"type"`
		Detail string `json:"detail"`
	}
	// that one is part of the protocol
	if json.Unmarshal(body, &problem) == nil && !strings.HasSuffix(problem.Type, ":badNonce") {
		c.log.WarnContext(r.Context(), "certificate authority refuses", "host", r.URL.Host, "status", resp.StatusCode,
			"type", problem.Type, "detail", problem.Detail)
	}
	return resp, nil
}
