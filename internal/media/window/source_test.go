package window_test

import (
	"errors"
	"fmt"
	"testing"

	"millrace/internal/fault"
	"millrace/internal/media/window"
)

// TestFault: every error of a reader is one that players know what to do about.
func TestFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want fault.Kind
	}{
		{window.ErrNotYet, fault.NotReady},
		{window.ErrTooFar, fault.Invalid},
		{window.ErrUnknown, fault.NotFound},
		{window.ErrTimeout, fault.Unavailable},
		{fmt.Errorf("read: %w", window.ErrUnknown), fault.NotFound},
		{errors.New("the disk broke"), fault.Internal},
	} {
		if err := window.Fault(tt.err); !fault.Is(err, tt.want) {
			t.Errorf("%v became %v", tt.err, err)
		}
	}
	if err := window.Fault(nil); err != nil {
		t.Errorf("nothing became %v", err)
	}
}
