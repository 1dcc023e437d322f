package app

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestServiceThatDoesNotStop, as its database hangs, is cut off; one that stops is not, whatever it says.
func TestServiceThatDoesNotStop(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		stop, takes time.Duration // when it is asked to, and how long it takes then
		err, want   error
		after       time.Duration
	}{
		"stops":      {time.Hour, 29 * time.Second, nil, nil, time.Hour + 29*time.Second},
		"breaks":     {time.Hour, -time.Minute, broken, broken, time.Hour - time.Minute},
		"never ends": {time.Hour, 24 * time.Hour, nil, errLate, time.Hour + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.stop)
				defer cancel()
				began, tested := time.Now(), make(chan struct{})
				defer close(tested)
				err := within(ctx, 30*time.Second, func() error {
					select {
					case <-time.After(tt.stop + tt.takes):
					case <-tested:
					}
					return tt.err
				})
				if !errors.Is(err, tt.want) || time.Since(began) != tt.after {
					t.Errorf("%v after %v", err, time.Since(began))
				}
			})
		})
	}
}
