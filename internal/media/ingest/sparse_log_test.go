package ingest_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/media/ingest"
	"millrace/internal/media/ingest/ingesttest"
)

// TestSparseLog counts lines, and what they tell of besides, of strangers that are turned away at different rates.
func TestSparseLog(t *testing.T) {
	t.Parallel()
	const second, minute = time.Second, time.Minute
	wrong, both := []string{"wrong key"}, []string{"wrong key", "busy"}
	for name, tt := range map[string]struct {
		every   time.Duration // between two refusals of a reason
		line    time.Duration // between two lines
		atOnce  int
		refused int // of each reason
		reasons []string
		lines   int // of all
	}{
		"one":                    {every: second, refused: 1, reasons: wrong, lines: 1},
		"two at once":            {refused: 2, reasons: wrong, lines: 2},
		"300 at once":            {refused: 300, reasons: wrong, lines: 2},
		"3000 a second":          {every: second / 3000, refused: 30_000, reasons: wrong, lines: 11},
		"3000 of two reasons":    {every: second / 1000, refused: 1500, reasons: both, lines: 6},
		"slow ones":              {every: 1500 * time.Millisecond, refused: 10, reasons: wrong, lines: 10},
		"one more than a line":   {every: 600 * time.Millisecond, refused: 3, reasons: wrong, lines: 3},
		"a minute":               {every: second, line: minute, refused: 600, reasons: wrong, lines: 11},
		"a minute, slow ones":    {every: 61 * second, line: minute, refused: 10, reasons: wrong, lines: 10},
		"three at once":          {line: minute, atOnce: 3, refused: 3, reasons: both, lines: 6},
		"three, then others":     {every: second, line: minute, atOnce: 3, refused: 600, reasons: wrong, lines: 13},
		"three, not in a minute": {every: 31 * second, line: minute, atOnce: 3, refused: 12, reasons: wrong, lines: 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log ingesttest.Log
				r := ingest.SparseLog{Logger: log.Logger(), Every: tt.line, AtOnce: tt.atOnce}
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

// TestSparseLogByClient: clients hide each other only when they are many.
func TestSparseLogByClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log ingesttest.Log
		r := ingest.SparseLog{Logger: log.Logger(), Every: time.Minute}
		refuse := func(from string) {
			r.LogFrom("wrong key", netip.MustParseAddrPort(from), func(log *slog.Logger) {
				log.Warn("refused", "from", from)
			})
		}
		three := []string{"192.0.2.1:1", "192.0.2.1:2", "192.0.2.2:1", "[2001:db8::1]:1", "[2001:db8::2]:1"}
		for _, from := range three {
			refuse(from)
		}
		if got := len(log.Lines("refused")); got != 3 {
			t.Errorf("%d lines of three networks:\n%s", got, &log)
		}
		for i := range 100_000 {
			refuse(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 1).String())
		}
		if got := len(log.Lines("refused")); got > 600 {
			t.Errorf("%d lines of a hundred thousand addresses", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, told := log.Refusals("refused"); told != 100_005 {
			t.Errorf("%d refusals are told", told)
		}
		r.Flush()
	})
}

// TestSparseLogTellsTheRest: what came last is told a second later, without anybody being turned away again.
func TestSparseLogTellsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log ingesttest.Log
		r := ingest.SparseLog{Logger: log.Logger()}
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
