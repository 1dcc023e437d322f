package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

const domain = "video.example.org"

// shown makes a handshake and gives the certificate that the other side shows, verified where a name is given.
func shown(t *testing.T, addr, name string, roots *x509.CertPool, change func(*tls.Config)) (*x509.Certificate, error) {
	t.Helper()
	c := &tls.Config{ServerName: name, RootCAs: roots, InsecureSkipVerify: name == ""}
	if change != nil {
		change(c)
	}
	conn, err := (&tls.Dialer{Config: c}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], nil
}

// source is an ACME source with the listeners that a service would have.
type source struct {
	*ACME
	log  *journal
	addr string // over TLS
	stop func()
}

// ways say on which of its ports the authority finds the service.
type ways struct{ web, secure bool }

func serve(t *testing.T, a *rig.Authority, folder string, w ways) *source {
	t.Helper()
	roots := x509.NewCertPool()
	trusted, err := os.ReadFile(a.TrustFile)
	if err != nil || !roots.AppendCertsFromPEM(trusted) {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	s := &source{log: &journal{}}
	s.ACME = NewACME(ACMEOptions{
		Domains: []string{domain, "live.example.org"}, Email: "video@example.org", Directory: a.Directory,
		Folder: folder,
		Client: &http.Client{Transport: transport, Timeout: time.Minute}, UserAgent: "test", Now: time.Now,
		Logger: s.log.logger(),
	})
	if !w.web {
		a.Web.To(rig.Nowhere)
	} else {
		server := httptest.NewServer(s.Challenges(http.NotFoundHandler()))
		t.Cleanup(server.Close)
		a.Web.To(server.Listener.Addr().String())
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secure := &http.Server{
		Handler:   http.NotFoundHandler(),
		TLSConfig: &tls.Config{GetCertificate: s.GetCertificate, NextProtos: []string{"http/1.1", Protocol}},
	}
	go func() { _ = secure.ServeTLS(ln, "", "") }()
	s.addr = ln.Addr().String()
	if w.secure {
		a.Secure.To(s.addr)
	} else {
		a.Secure.To(rig.Nowhere)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		s.stop()
		_ = secure.Close()
		transport.CloseIdleConnections()
	})
	return s
}

// loaded waits for both certificates.
func (s *source) loaded(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); strings.Count(s.log.String(),
		"certificate loaded") < 2; rig.Pause(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no certificates:\n%s", s.log)
		}
	}
}

// TestPebbleGivesCertificates gets them over either challenge, and serves them to clients that name a domain, another,
// or none.
func TestPebbleGivesCertificates(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]ways{"http-01": {web: true}, "tls-alpn-01": {secure: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := rig.StartAuthority(t)
			folder := t.TempDir() + "/acme"
			s := serve(t, a, folder, w)
			s.loaded(t)
			first, err := shown(t, s.addr, domain, a.Issued, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = shown(t, s.addr, "live.example.org", a.Issued, nil); err != nil {
				t.Error(err)
			}
			if _, err = shown(t, s.addr, "LIVE.example.org", a.Issued, nil); err != nil {
				t.Error(err)
			}
			for _, other := range []string{"", "elsewhere.example.org"} {
				c, oerr := shown(t, s.addr, other, nil, func(c *tls.Config) { c.InsecureSkipVerify = true })
				if oerr != nil || !c.Equal(first) {
					t.Errorf("%q is shown %v, %v", other, c, oerr)
				}
			}
			old, err := shown(t, s.addr, domain, a.Issued, func(c *tls.Config) {
				c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}
			})
			if err != nil || old.PublicKeyAlgorithm != x509.RSA {
				t.Errorf("a client that can do RSA alone: %v", err)
			}
			if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("folder of keys: %v, %v", info.Mode(), err)
			}
			// The next start asks nobody.
			closed := *a
			closed.Directory = "https://127.0.0.1:1/dir"
			again := serve(t, &closed, folder, w)
			again.loaded(t)
			if c, err := shown(t, again.addr, domain, a.Issued, nil); err != nil || !c.Equal(first) {
				t.Errorf("after a restart: %v, %v", c, err)
			}
		})
	}
}

// TestAuthorityRefuses shows what the operator is told, that handshakes ask nobody, and that the end is not waited for.
func TestAuthorityRefuses(t *testing.T) {
	t.Parallel()
	a := rig.StartAuthority(t)
	s := serve(t, a, t.TempDir(), ways{})
	for end := time.Now().Add(3 * time.Minute); strings.Count(s.log.String(),
		"no certificate from the authority") < 2; rig.Pause(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("log:\n%s", s.log)
		}
	}
	if _, err := s.GetCertificate(&tls.ClientHelloInfo{ServerName: domain}); !errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}
