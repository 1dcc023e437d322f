package ingest_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestRefusals counts lines, and what they tell of besides, of strangers that are turned away at different rates.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		every   time.Duration // between two refusals of a reason
		refused int           // of each reason
		reasons []string
		lines   int // of all
	}{
		"one":                  {time.Second, 1, []string{"wrong key"}, 1},
		"two at once":          {0, 2, []string{"wrong key"}, 2},
		"300 at once":          {0, 300, []string{"wrong key"}, 2},
		"3000 a second":        {time.Second / 3000, 30_000, []string{"wrong key"}, 11},
		"3000 of two reasons":  {time.Second / 1000, 1500, []string{"wrong key", "busy"}, 6},
		"slow ones":            {1500 * time.Millisecond, 10, []string{"wrong key"}, 10},
		"one more than a line": {600 * time.Millisecond, 3, []string{"wrong key"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log ingesttest.Log
				r := ingest.Refusals{Logger: log.Logger()}
				for n := range tt.refused {
					for _, reason := range tt.reasons {
						r.Log(reason, func(log *slog.Logger) {
							log.Warn("publish refused", "reason", reason, "number", n)
						})
					}
					time.Sleep(tt.every)
				}
				r.Flush()
				r.Flush()
				lines, told := log.Refusals("publish refused")
				if want := tt.refused * len(tt.reasons); lines != tt.lines || told != want {
					t.Errorf("%d lines tell of %d refusals, want %d and %d:\n%s", lines, told, tt.lines, want, &log)
				}
				if len(log.Lines(fmt.Sprintf("number=%d\n", tt.refused-1))) != len(tt.reasons) {
					t.Errorf("the newest is not told:\n%s", &log)
				}
			})
		})
	}
}

// TestRefusalsTellTheRest: what came last is told a second later, without anybody being turned away again.
func TestRefusalsTellTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log ingesttest.Log
		r := ingest.Refusals{Logger: log.Logger()}
		for range 300 {
			r.Log("wrong key", func(log *slog.Logger) { log.Error("publish refused") })
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if lines, told := log.Refusals("ERROR"); lines != 2 || told != 300 {
			t.Errorf("%d lines tell of %d refusals:\n%s", lines, told, &log)
		}
	})
}
