// Package certificate provides the TLS certificate of the HTTPS and RTMPS listeners: from files, which are read again
// when they change, or from a certificate authority over ACME (RFC 8555), renewed in time. A handshake never waits for
// a disk or for the authority.
//
// It must never know which protocol is spoken over TLS, and opens no connections: ACME uses the HTTP client that it is
// given. Goroutines: Run is a service's. Each request to the authority has one of its own, because autocert cannot be
// told to stop.
package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"
)

const (
	lookEvery = 5 * time.Second // how soon a renewed file is taken
	warnEvery = 24 * time.Hour
	warnLeft  = 7 * 24 * time.Hour // of a certificate in files: somebody's renewal has not run
)

// FilesOptions are what Files needs; all are required.
type FilesOptions struct {
	Cert, Key string // PEM files
	Reload    <-chan os.Signal
	Now       func() time.Time
	Logger    *slog.Logger
}

// Files is a certificate in two PEM files.
type Files struct {
	opts   FilesOptions
	pair   atomic.Pointer[tls.Certificate]
	read   [2]stamp // of the files when they were last read, with success or without
	warned time.Time
}

// stamp tells a file from the one that was there before.
type stamp struct {
	changed time.Time
	size    int64
}

// NewFiles reads the files.
func NewFiles(o FilesOptions) (*Files, error) {
	f := &Files{opts: o, read: stamps(o)}
	if err := f.load(context.Background()); err != nil { //nolint:forbidigo // for its log lines alone
		return nil, err
	}
	return f, nil
}

// Name implements lifecycle.Service.
func (*Files) Name() string { return "certificate" }

// Run looks whether the files have changed, every few seconds and at once when Reload says so, until ctx ends. A pair
// that can not be read, or does not belong together because only one half is there yet, leaves the one before in use
// and is tried again.
func (f *Files) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		forced := false
		select {
		case <-ctx.Done():
			return nil
		case <-f.opts.Reload:
			forced = true
		case <-tick.C:
		}
		f.look(ctx, forced)
		f.warn(ctx)
	}
}

func (f *Files) look(ctx context.Context, forced bool) {
	now := stamps(f.opts)
	if now == f.read && !forced {
		return
	}
	f.read = now
	if err := f.load(ctx); err != nil {
		f.opts.Logger.WarnContext(ctx, "changed certificate is not taken, the one before stays in use", "error", err)
	}
}

func stamps(o FilesOptions) (s [2]stamp) {
	for i, name := range []string{o.Cert, o.Key} {
		if info, err := os.Stat(name); err == nil {
			s[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return s
}

func (f *Files) load(ctx context.Context) error {
	pair, err := tls.LoadX509KeyPair(f.opts.Cert, f.opts.Key)
	if err != nil {
		return fmt.Errorf("load certificate: %w", err)
	}
	if pair.Leaf == nil {
		if pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return fmt.Errorf("load certificate: %w", err)
		}
	}
	f.pair.Store(&pair)
	f.warned = time.Time{}
	f.opts.Logger.InfoContext(ctx, "certificate loaded", "domains", names(pair.Leaf), "expires_at", pair.Leaf.NotAfter)
	f.warn(ctx)
	return nil
}

// warn says once a day that the certificate ends soon or has ended.
func (f *Files) warn(ctx context.Context) {
	leaf, now := f.pair.Load().Leaf, f.opts.Now()
	if leaf.NotAfter.Sub(now) > warnLeft || now.Sub(f.warned) < warnEvery {
		return
	}
	f.warned = now
	f.opts.Logger.WarnContext(ctx, "certificate ends soon or has ended: renew it", "file", f.opts.Cert, "expires_at",
		leaf.NotAfter)
}

// GetCertificate serves every handshake.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.pair.Load(), nil
}

func names(leaf *x509.Certificate) []string {
	out := append([]string{}, leaf.DNSNames...)
	for _, ip := range leaf.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}
