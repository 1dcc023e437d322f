package delivery

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"millrace/internal/fault"
)

// TestNoResponse: the owner of an endpoint reads a sentence, and nothing of Go's.
func TestNoResponse(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	for want, err := range map[string]error{
		"host refuses":                 fault.Wrap(fault.Unavailable, refused, "host refuses"),
		"no response within 5 seconds": fmt.Errorf("fetch https://example.com: %w", context.DeadlineExceeded),
		"it can't be reached":          errors.New("dial tcp 10.0.0.1:1: connect: nonsense"),
	} {
		if got := noResponse(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
