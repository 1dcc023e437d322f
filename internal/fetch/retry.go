package fetch

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"time"

	"millrace/internal/fault"
)

const progressBytes = 1 << 20 // an attempt that got this much further starts the count again

// again calls try until it succeeds, fails for good, or has failed too often in a row. reached is how far all attempts
// have come, in bytes.
func (c *Client) again(ctx context.Context, u *url.URL, reached func() int64, try func() error) error {
	mark := int64(0)
	for failures := 0; ; {
		err := try()
		if !fault.Is(err, fault.Unavailable) || errors.Is(err, errNoSpace) || errors.Is(err, errSlow) ||
			context.Cause(ctx) != nil {
			return err
		}
		failures++
		if r := reached(); r >= mark+progressBytes {
			mark, failures = r, 1
		}
		if failures >= c.retry.Tries {
			return remote(err)
		}
		wait := c.wait(failures, err)
		c.logger.LogAttrs(ctx, slog.LevelInfo, "fetch broke off, trying again",
			slog.String("url", show(u)), slog.Int("failures", failures), slog.Duration("retry_in", wait),
			slog.Any("error", err))
		if err := pause(ctx, wait); err != nil {
			return explain(ctx, u, err)
		}
	}
}

// remote marks an error as the other server's.
func remote(err error) error {
	e, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return err
	}
	marked := *e
	marked.Remote = true
	return &marked
}

// wait doubles with each failure, within half and the whole of it by chance, and heeds what the server asked for.
func (c *Client) wait(failures int, err error) time.Duration {
	d := min(c.retry.First<<min(failures-1, 20), c.retry.Max)
	d = d/2 + time.Duration(rand.Int64N(int64(d/2)+1)) //nolint:gosec // spreads load, hides nothing
	if l, ok := errors.AsType[*later](err); ok {
		d = max(d, min(l.after, c.retry.Max))
	}
	return d
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
