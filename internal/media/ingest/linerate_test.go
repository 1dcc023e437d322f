package ingest_test

import (
	"testing"
	"time"

	"millrace/internal/media/ingest"
)

func TestLineRate(t *testing.T) {
	t.Parallel()
	l := ingest.LineRate{Burst: 2, Every: time.Second}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i, tt := range []struct {
		after time.Duration
		left  int
		ok    bool
	}{{0, 0, true}, {0, 0, true}, {0, 0, false}, {0, 0, false}, {999 * time.Millisecond, 0, false}, {time.Millisecond, 3, true}, {0, 0, false}, {time.Hour, 1, true}, {0, 0, true}} {
		now = now.Add(tt.after)
		if left, ok := l.Take(now); left != tt.left || ok != tt.ok {
			t.Errorf("step %d: %d, %t", i, left, ok)
		}
	}
}
