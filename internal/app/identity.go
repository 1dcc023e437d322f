package app

import (
	"crypto/tls"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"millrace/internal/app/cli"
	"millrace/internal/certificate"
	"millrace/internal/lifecycle"
)

// identity is what the listeners over TLS show. nil is a service without.
type identity struct {
	source interface {
		lifecycle.Service
		GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
	}
	acme *certificate.ACME // nil: from files
}

// identity makes what the settings ask for: a certificate in files, one over ACME, or none.
func (n *node) identity() (*identity, error) {
	if len(n.cfg.ACMEDomains) > 0 {
		source := certificate.NewACME(certificate.ACMEOptions{
			Domains: n.cfg.ACMEDomains, Email: n.cfg.ACMEEmail, Directory: n.cfg.ACMEDirectory,
			Folder: filepath.Join(n.cfg.DataDir, "acme"), Client: n.fetch.HTTP(),
			UserAgent: "millrace/" + cli.Version(), Now: clock, Logger: n.log,
		})
		return &identity{source: source, acme: source}, nil
	}
	if n.cfg.TLSCert == "" {
		return nil, nil //nolint:nilnil // nil is the documented value of "none"
	}
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	n.close = append(n.close, func() error { signal.Stop(reload); return nil })
	source, err := certificate.NewFiles(certificate.FilesOptions{
		Cert: n.cfg.TLSCert, Key: n.cfg.TLSKey, Reload: reload, Now: clock, Logger: n.log,
	})
	if err != nil {
		return nil, err
	}
	return &identity{source: source}, nil
}

// plain adds to the listener without TLS what the authority asks for there.
func (id *identity) plain(mux http.Handler) http.Handler {
	if id == nil || id.acme == nil {
		return mux
	}
	return id.acme.Challenges(mux)
}

func (id *identity) web() *tls.Config {
	c := id.encoders()
	c.DynamicRecordSizingDisabled = true // records go out together
	c.NextProtos = []string{"h2", "http/1.1"}
	if id.acme != nil {
		c.NextProtos = append(c.NextProtos, certificate.Protocol)
	}
	return c
}

// encoders is without protocol negotiation, which RTMPS has no names for.
func (id *identity) encoders() *tls.Config {
	return &tls.Config{GetCertificate: id.source.GetCertificate, MinVersion: tls.VersionTLS12}
}
