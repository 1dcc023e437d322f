package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"millrace/internal/fault"
)

// Response is what a server says to a Post.
type Response struct {
	Status int
	Header http.Header
	Body   []byte // its beginning
	// RetryAfter is the wait that the response asks for, from 0 to 24 hours; 0: none.
	RetryAfter time.Duration
}

// repeatable is the header by which net/http knows that a POST may be sent again on another connection. Without a value
// it is not sent.
const repeatable = "Idempotency-Key"

// drained is how much of a response is read over so that its connection can be used again.
const drained = 16 << 10

// Post sends a body within a Get's time, and reads at most the first mostBytes of the response, whatever its status is.
// Redirects are responses too: they are not followed. An error says why there was no response.
//
// The body is sent once, but for one case: a connection that was kept from an earlier request ends before anything of
// the response has come, as its server had enough of it. Then another connection is taken, a new one at last, and the
// server may get the body twice.
func (c *Client) Post(
	ctx context.Context, rawURL string, header http.Header, body []byte, mostBytes int64,
) (Response, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return Response{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.getTime, errTotal)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return Response{}, fault.New(fault.Invalid, "URL can't be read")
	}
	req.Header = header.Clone()
	req.Header.Set("User-Agent", c.userAgent)
	if _, named := req.Header[repeatable]; !named {
		req.Header[repeatable] = nil
	}
	client := http.Client{
		Transport:     c.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return Response{}, explain(ctx, u, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	out := Response{Status: resp.StatusCode, Header: resp.Header, RetryAfter: retryAfter(resp.Header, time.Now())}
	out.Body, err = io.ReadAll(io.LimitReader(resp.Body, mostBytes))
	if err == nil {
		_, err = io.CopyN(io.Discard, resp.Body, drained)
	}
	if err != nil && err != io.EOF { //nolint:errorlint // exactly this value is the end
		return out, explain(ctx, u, fmt.Errorf("read response: %w", err))
	}
	return out, nil
}
