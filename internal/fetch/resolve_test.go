package fetch

import (
	"net/netip"
	"testing"

	"millrace/internal/fault"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	strict, open := New(Options{}), New(Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for _, tt := range []struct {
		client           *Client
		network, address string
		want             string // "": refused for good
	}{
		{strict, "udp", "127.0.0.1:9000", ""},
		{strict, "udp", "localhost:9000", ""},
		{strict, "udp", "[::ffff:10.0.0.1]:9000", ""},
		{strict, "udp", "169.254.169.254:80", ""},
		{strict, "udp", "8.8.8.8:0", ""},
		{strict, "udp", "8.8.8.8:65536", ""},
		{strict, "udp", "8.8.8.8", ""},
		{strict, "unix", "8.8.8.8:1", ""},
		{strict, "udp", "8.8.8.8:9000", "8.8.8.8:9000"},
		{open, "tcp", "[::ffff:127.0.0.1]:9000", "127.0.0.1:9000"},
		{open, "udp", "localhost:9000", "127.0.0.1:9000"},
	} {
		got, err := tt.client.Resolve(t.Context(), tt.network, tt.address)
		if tt.want == "" {
			if err == nil || !fault.Permanent(err) {
				t.Errorf("%s %s: %v, %v", tt.network, tt.address, got, err)
			}
			continue
		}
		if err != nil || got.String() != tt.want {
			t.Errorf("%s %s: %v, %v; want %s", tt.network, tt.address, got, err, tt.want)
		}
	}
}
