package leaktest

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type tests int

func (t tests) Run() int { return int(t) }

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code int // of the tests
		ends time.Duration
		want int
		says string
	}{
		"nothing is left":            {0, 0, 0, ""},
		"one that ends late":         {0, patience - time.Second, 0, ""},
		"one that stays":             {0, time.Hour, 1, "left behind: a goroutine"},
		"failed, and one that stays": {2, time.Hour, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				find := func() error {
					if time.Since(began) >= tt.ends {
						return nil
					}
					time.Sleep(430 * time.Millisecond) // of the bubble, as goleak does
					return errors.New("a goroutine")
				}
				var log strings.Builder
				got, said := run(tests(tt.code), &log, find), log.String()
				if got != tt.want || (said == "") != (tt.says == "") || !strings.Contains(said, tt.says) {
					t.Errorf("exit code %d, want %d, with %q", got, tt.want, said)
				}
			})
		})
	}
}
