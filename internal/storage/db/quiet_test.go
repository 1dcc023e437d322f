package db

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river/riverdriver"
)

// quietFor is a listener that hears nothing: it calls then at the end of each time that it is asked.
type quietFor struct {
	riverdriver.Listener
	then func()
}

func (l quietFor) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	<-ctx.Done()
	err := ctx.Err()
	l.then()
	return nil, err
}

// TestListenerIsInterrupted: River interrupts its listener every five seconds and when it listens for something else,
// and wants to be told that it did. Anything else is a connection that broke: it logs an error, and hears of nothing
// for a while.
func TestListenerIsInterrupted(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]time.Duration{
		"while it asks": listenFor / 2, "when it has asked": listenFor, "while it rests": listenFor + listenEvery/2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithCancel(t.Context())
				began := time.Now()
				if wait != listenFor {
					time.AfterFunc(wait, interrupt)
				}
				l := quietListener{Listener: quietFor{then: func() {
					if time.Since(began) >= wait {
						interrupt()
					}
				}}}
				if _, err := l.WaitForNotification(ctx); !errors.Is(err, context.Canceled) || time.Since(began) != wait {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		})
	}
}
