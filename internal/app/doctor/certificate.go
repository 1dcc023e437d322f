package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Certificate checks the files for HTTPS and RTMPS.
type Certificate struct {
	CertFile, KeyFile string
	Now               func() time.Time
}

// Name implements Check.
func (Certificate) Name() string { return "certificate" }

// Run implements Check.
func (c Certificate) Run(context.Context) Finding {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return problem("Give PEM files that belong together with --tls-cert and --tls-key, readable to the user that "+
			"runs millrace.", "%v", err)
	}
	leaf := pair.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(pair.Certificate[0]); err != nil {
			return problem("Give a valid certificate with --tls-cert.", "%v", err)
		}
	}
	return validity(leaf, c.Now(), 14*24*time.Hour, "Renew it: a running millrace takes the new files by itself.")
}

// validity judges a certificate's days; mend says how it is renewed.
func validity(leaf *x509.Certificate, now time.Time, soon time.Duration, mend string) Finding {
	left := leaf.NotAfter.Sub(now)
	switch {
	case left <= 0:
		return problem(mend, "it ended on %s", leaf.NotAfter.Format(time.DateOnly))
	case now.Before(leaf.NotBefore):
		return problem("Set the clock, or wait.", "it is valid from %s on", leaf.NotBefore.Format(time.DateTime))
	case left < soon:
		return warning(mend, "it ends on %s", leaf.NotAfter.Format(time.DateOnly))
	}
	return ok("for %v until %s", leaf.DNSNames, leaf.NotAfter.Format(time.DateOnly))
}

// ACME checks the certificate that an authority has given for a domain, or whether it could be got.
type ACME struct {
	Domain      string
	Folder      string // where certificates are kept, by domain
	HTTP, HTTPS string // addresses that are listened on
	Now         func() time.Time
	LookUp      func(ctx context.Context, host string) ([]string, error)
}

// Name implements Check.
func (a ACME) Name() string { return "acme " + a.Domain }

// Run implements Check.
func (a ACME) Run(ctx context.Context) Finding {
	addrs, err := a.LookUp(ctx, a.Domain)
	if err != nil {
		return problem("Let the name's DNS records lead to this machine, or mend --acme-domain.",
			"%s has no address: %v", a.Domain, err)
	}
	leaf, err := kept(filepath.Join(a.Folder, a.Domain))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if portOf(a.HTTP) != "80" && portOf(a.HTTPS) != "443" {
			return warning("Listen with --http-addr :80 or --https-addr :443, unless something in front passes one "+
				"of these ports on.",
				"the authority comes to port 80 or 443 of %s, and neither is listened on", strings.Join(addrs, ", "))
		}
		return ok("%s leads to %s; a certificate is asked for at the start", a.Domain, strings.Join(addrs, ", "))
	case err != nil:
		return problem("Let the user that runs millrace read the folder "+a.Folder+".", "%v", err)
	}
	const third, day = 3, 24 * time.Hour
	soon := min(leaf.NotAfter.Sub(leaf.NotBefore)/third, 30*day) - day
	return validity(leaf, a.Now(), soon,
		"Look for the authority's reason in the log: it should have been renewed when a third of its life was left.")
}

// kept reads the first certificate of a file that begins with a key.
func kept(name string) (*x509.Certificate, error) {
	data, err := os.ReadFile(name) //nolint:gosec // of the operator's folder
	if err != nil {
		return nil, err
	}
	for rest := bytes.TrimSpace(data); len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New(name + " has no certificate in it")
}
