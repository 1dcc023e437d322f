package fetch

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"millrace/internal/fault"
)

// Get reads a small file into memory, of maxBytes at most, with retries. Errors are those of Download.
func (c *Client) Get(ctx context.Context, rawURL string, maxBytes int64) (data []byte, info Info, err error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, Info{}, err
	}
	ctx, span := begin(ctx, u)
	defer func() { end(span, info, err) }()
	ctx, cancel := context.WithTimeoutCause(ctx, c.getTime, errTotal)
	defer cancel()
	err = c.again(ctx, u, func() int64 { return 0 }, func() (err error) {
		data, info, err = c.getOnce(ctx, u, maxBytes)
		return err
	})
	if err != nil {
		return nil, Info{}, err
	}
	return data, info, nil
}

func (c *Client) getOnce(ctx context.Context, u *url.URL, maxBytes int64) ([]byte, Info, error) {
	resp, err := c.open(ctx, u, nil)
	if err != nil {
		return nil, Info{}, err
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	if resp.StatusCode != 200 {
		return nil, Info{}, fault.New(fault.Invalid, "%s: %s", show(u), describeStatus(resp))
	}
	if resp.ContentLength > maxBytes {
		return nil, Info{}, tooLarge(u, maxBytes)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, Info{}, explain(ctx, u, fmt.Errorf("read response: %w", err))
	}
	if int64(len(data)) > maxBytes {
		return nil, Info{}, tooLarge(u, maxBytes)
	}
	return data, infoOf(resp, int64(len(data))), nil
}

func tooLarge(u *url.URL, maxBytes int64) error {
	return fault.New(fault.TooLarge, "%s is larger than the %d bytes allowed", show(u), maxBytes)
}
