package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
)

// parseAdvertised reads a URL without a path: the path of a request between nodes is signed, so nothing on the way may
// change it.
func parseAdvertised(s string) (*url.URL, error) {
	u, err := parseWebURL(s)
	if err != nil || u == nil {
		return nil, err
	}
	if u.Path != "" {
		return nil, errors.New("has a path: write scheme, host and port alone, as in http://10.0.0.5:9465")
	}
	return u, nil
}

// AdvertisedBase returns the URL under which other nodes reach this one: advertise-url, or one made from the address
// that internal-addr listens on.
func (c Config) AdvertisedBase(internalAddr string) *url.URL {
	if c.AdvertiseURL != nil {
		u := *c.AdvertiseURL
		return &u
	}
	host, _, _ := net.SplitHostPort(c.InternalAddr)
	if _, port, err := net.SplitHostPort(internalAddr); err == nil { // a name stays: a certificate may be for it
		host = net.JoinHostPort(host, port)
	}
	scheme := "http"
	if c.InternalTLSCert != "" {
		scheme = "https"
	}
	return &url.URL{Scheme: scheme, Host: host}
}

// anywhere reports whether an address to listen on names no host that others could connect to.
func anywhere(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip, notIP := netip.ParseAddr(host)
	return err == nil && (host == "" || notIP == nil && ip.IsUnspecified())
}

// internalConflicts lists what is wrong between the settings of the listener for other nodes.
func (c *Config) internalConflicts() (problems []string) {
	if (c.InternalTLSCert == "") != (c.InternalTLSKey == "") {
		problems = append(problems, "internal-tls-cert and internal-tls-key belong together: set both for TLS between "+
			"nodes, or neither")
	}
	if c.InternalTLSCA != "" && c.InternalTLSCert == "" {
		problems = append(problems, "internal-tls-ca needs a certificate of this node, which other nodes verify: set "+
			"internal-tls-cert and internal-tls-key")
	}
	if c.InternalAddr == "" {
		for _, name := range []string{"advertise-url", "internal-tls-cert", "internal-tls-key", "internal-tls-ca"} {
			if c.Given(name) {
				problems = append(problems, name+" is for nodes that speak to each other: set internal-addr")
			}
		}
		if c.Node.LiveCopies > 1 {
			problems = append(problems, "live-copies 2 needs another node that keeps the copy: set internal-addr")
		}
		return problems
	}
	if c.AdvertiseURL == nil && anywhere(c.InternalAddr) {
		problems = append(problems, "internal-addr "+c.InternalAddr+
			" names no host that other nodes could connect to: say "+
			" with advertise-url where they reach it, or give internal-addr one address, as in 10.0.0.5:9465")
	}
	if c.Database.Engine != Postgres {
		problems = append(problems, "internal-addr is for several nodes on one database, which takes PostgreSQL: set "+
			"database-url, or leave out internal-addr")
	}
	return problems
}
