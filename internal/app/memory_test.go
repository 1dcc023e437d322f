package app

import (
	"errors"
	"os"
	"testing"

	"millrace/internal/config"
)

// TestLimitMemory: an operator's GOMEMLIMIT is left to the runtime.
func TestLimitMemory(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		environ []string
		want    int64 // 0: it is not set
	}{
		"nothing given": {nil, 3 << 30},
		"empty":         {[]string{"GOMEMLIMIT="}, 3 << 30},
		"given":         {[]string{"GOMEMLIMIT=1GiB"}, 0},
		"off":           {[]string{"GOMEMLIMIT=off"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, err := config.Parse(nil, tt.environ, os.ReadFile)
			if err != nil {
				t.Fatal(err)
			}
			got := int64(0)
			limitMemory(cfg, 4<<30, func(limit int64) int64 { got = limit; return 0 })
			if got != tt.want {
				t.Errorf("set to %d, want %d", got, tt.want)
			}
		})
	}
}

// TestMemory is the machine's, unless the control group has less.
func TestMemory(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	of := func(n uint64, err error) func() (uint64, error) { return func() (uint64, error) { return n, err } }
	for name, tt := range map[string]struct {
		machine, group func() (uint64, error)
		want           uint64
		err            error
	}{
		"no group":      {of(8, nil), of(0, failed), 8, nil},
		"less":          {of(8, nil), of(2, nil), 2, nil},
		"more":          {of(8, nil), of(16, nil), 8, nil},
		"nobody tells":  {of(0, failed), of(2, nil), 0, failed},
		"group of none": {of(8, nil), of(0, nil), 8, nil},
	} {
		if got, err := smaller(tt.machine, tt.group); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if got, err := memoryOf(); got < 64<<20 || err != nil {
		t.Errorf("here: %d, %v", got, err)
	}
}
