package app

import (
	"os"
	"testing"

	"millrace/internal/config"
)

// TestCollector: an operator's GOGC is left to the runtime, also where it is Go's default.
func TestCollector(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		environ []string
		want    int // 0: it is not set
	}{
		"nothing given":    {nil, 200},
		"empty":            {[]string{"GOGC="}, 200},
		"Go's own default": {[]string{"GOGC=100"}, 0},
		"ours":             {[]string{"GOGC=200"}, 0},
		"off":              {[]string{"GOGC=off"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse(nil, tt.environ, os.ReadFile)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			collectLess(cfg, func(percent int) int { got = percent; return 100 })
			if got != tt.want {
				t.Errorf("set to %d, want %d", got, tt.want)
			}
		})
	}
}
