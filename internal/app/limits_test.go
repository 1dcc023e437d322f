package app

import (
	"os"
	"testing"

	"millrace/internal/config"
	"millrace/internal/web/api"
)

// TestAPILimits: the settings bound requests to the API by token and by address, unless they say otherwise too.
func TestAPILimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		flags          []string
		token, address int // so many at once
	}{
		"defaults": {nil, 1000, 2000},
		"set":      {[]string{"--api-rate-token=3", "--api-rate-address=5"}, 30, 50},
		"off":      {[]string{"--api-rate-token=0", "--api-rate-address=0"}, -1, -1},
	} {
		cfg, err := config.Parse(append([]string{"--data-dir=" + t.TempDir()}, tt.flags...), nil, os.ReadFile)
		if err != nil {
			t.Fatal(err)
		}
		l := (&node{cfg: cfg}).callers().Limits
		for what, x := range map[string]struct {
			of   api.Limiter
			want int
		}{"token": {l.Token, tt.token}, "address": {l.Address, tt.address}} {
			n, now := 0, clock()
			for n <= 3000 && x.of.Take("somebody", now) == 0 {
				n++
			}
			if off := n > 3000; off != (x.want < 0) || !off && n != x.want {
				t.Errorf("%s, %s: %d requests at once, want %d", name, what, n, x.want)
			}
		}
	}
}
