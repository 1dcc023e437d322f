package signing_test

import (
	"context"
	"testing"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// full is a store with as many keys as there may be.
type full struct {
	signing.Store

	t *testing.T
}

func (full) Keys(_ context.Context, _ id.Environment, _, limit int) ([]signing.Key, error) {
	return make([]signing.Key, limit), nil
}

func (f full) InsertKey(context.Context, signing.Key, int) error {
	f.t.Error("a key was made that there is no room for")
	return nil
}

// TestNoKeyIsMadeInVain: where there are as many keys as there may be, the work of another one is not done.
func TestNoKeyIsMadeInVain(t *testing.T) {
	t.Parallel()
	s := signing.New(signing.Options{Store: full{t: t}})
	if _, _, err := s.Create(t.Context(), "e", time.Now()); !fault.Is(err, fault.Conflict) {
		t.Errorf("one key too many: %v", err)
	}
}
