package delivery

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
)

// noResponse is why an endpoint has not responded, in words for its owner.
func noResponse(err error) string {
	if m := fault.Messages(err); len(m) > 0 {
		return strings.Join(m, "; ")
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no response within %.0f seconds", webhook.Timeout.Seconds())
	}
	return "it can't be reached"
}
