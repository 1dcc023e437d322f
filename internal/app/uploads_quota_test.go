package app

import (
	"errors"
	"testing"

	"millrace/internal/disk"
)

// TestUploadQuota: the quota is what was set, and never more than the disk can have.
func TestUploadQuota(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	of := func(s disk.Space, err error) func() (disk.Space, error) {
		return func() (disk.Space, error) { return s, err }
	}
	for name, tt := range map[string]struct {
		space func() (disk.Space, error)
		want  int64
	}{
		"a bucket":         {nil, 200 * gib},
		"a large disk":     {of(disk.Space{Total: 1000 * gib}, nil), 200 * gib},
		"a small one":      {of(disk.Space{Total: 100 * gib}, nil), 99 * gib},
		"one not known":    {of(disk.Space{}, errors.New("not known")), 200 * gib},
		"one of no size":   {of(disk.Space{}, nil), 200 * gib},
		"a full one":       {of(disk.Space{Total: 100 * gib, Free: 1}, nil), 99 * gib},
		"a very small one": {of(disk.Space{Total: 20}, nil), 19},
	} {
		if got := uploadQuota(200*gib, tt.space); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
