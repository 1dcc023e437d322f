package rig

import (
	"strings"
	"testing"
)

// TestAnyPorts: no test's server takes a port that another's may have, over TLS either.
func TestAnyPorts(t *testing.T) {
	t.Parallel()
	for args, secure := range map[string]bool{
		"":                                   false,
		"--fetch-allow 127.0.0.0/8":          false,
		"--tls-cert c.pem --tls-key k.pem":   true,
		"--acme-domain d --acme-directory u": true,
	} {
		flags := strings.Join(anyPorts(strings.Fields(args)), " ")
		for _, l := range []string{"https", "rtmps"} {
			if strings.Contains(flags, "--"+l+"-addr 127.0.0.1:0") != secure {
				t.Errorf("%q: %s", args, flags)
			}
		}
	}
}
