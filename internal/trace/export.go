package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"millrace/internal/fault"
)

const (
	mostWaiting = 2048             // spans that wait to be sent
	mostAtOnce  = 512              // in one request
	sendEvery   = 5 * time.Second  // where there are fewer
	sendTimeout = 10 * time.Second // of one request
	longestWait = time.Minute      // between two attempts
	lastSend    = 3 * time.Second  // for what is left when the service stops
	logEvery    = time.Minute
	maxResponse = 64 << 10 // bytes that are read
)

// ExporterOptions are what an Exporter needs.
type ExporterOptions struct {
	URL     string            // where spans are posted
	Headers map[string]string // with each request; they may be secrets
	Logger  *slog.Logger
}

// Exporter sends spans that have ended. Spans never wait for it: those that a collector is too slow for are lost, the
// oldest first. It is a lifecycle.Service, and a SpanProcessor of the SDK.
type Exporter struct {
	o      ExporterOptions
	client *http.Client
	full   chan struct{} // there is as much as goes into one request

	mu      sync.Mutex
	waiting []sdk.ReadOnlySpan // the oldest first
	lost    int64              // since the log has told

	told time.Time // only Run uses it
}

// NewExporter makes an Exporter; nothing is sent before Run.
func NewExporter(o ExporterOptions) *Exporter {
	return &Exporter{
		o: o, full: make(chan struct{}, 1),
		client: &http.Client{
			// without a proxy: a collector is the operator's own
			Transport: &http.Transport{
				MaxIdleConns: 1, IdleConnTimeout: 2 * sendEvery, TLSHandshakeTimeout: sendTimeout,
				MaxResponseHeaderBytes: maxResponse, DisableCompression: true, ForceAttemptHTTP2: true,
			},
			Timeout: sendTimeout,
			// headers are for one address
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// OnStart implements sdk.SpanProcessor.
func (e *Exporter) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (e *Exporter) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, s)
	e.bound()
	if len(e.waiting) >= mostAtOnce {
		select {
		case e.full <- struct{}{}:
		default:
		}
	}
}

// bound forgets the oldest spans of too many.
func (e *Exporter) bound() {
	over := len(e.waiting) - mostWaiting
	if over <= 0 {
		return
	}
	e.lost += int64(over)
	clear(e.waiting[:over])
	e.waiting = e.waiting[over:]
}

// Shutdown implements sdk.SpanProcessor.
func (e *Exporter) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdk.SpanProcessor.
func (e *Exporter) ForceFlush(context.Context) error { return nil }

// Name implements lifecycle.Service.
func (e *Exporter) Name() string { return "traces" }

// Run implements lifecycle.Service. When ctx ends it sends what is left, for a few seconds.
func (e *Exporter) Run(ctx context.Context) error {
	defer e.client.CloseIdleConnections()
	wait := sendEvery
	for {
		timer := time.NewTimer(wait)
		full := e.full
		if wait > sendEvery { // a collector that is away is asked no sooner
			full = nil
		}
		select {
		case <-ctx.Done():
			timer.Stop()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSend)
			defer cancel()
			if err := e.sendAll(last); err != nil {
				e.told = time.Time{}
				e.logLoss(last, err)
			}
			return context.Cause(ctx)
		case <-timer.C:
		case <-full:
			timer.Stop()
		}
		err := e.sendAll(ctx)
		if ctx.Err() == nil {
			e.logLoss(ctx, err)
		}
		wait = next(wait, err)
	}
}

// next is how long after an attempt the next one is.
func next(wait time.Duration, err error) time.Duration {
	if err == nil {
		return sendEvery
	}
	return min(max(2*wait, fault.RetryAfter(err)), longestWait)
}

// sendAll sends until nothing waits, or something goes wrong.
func (e *Exporter) sendAll(ctx context.Context) error {
	for {
		some := e.take()
		if len(some) == 0 {
			return nil
		}
		refused, err := e.send(ctx, request(some))
		switch {
		case err == nil:
			e.lose(refused)
		case fault.Permanent(err):
			e.lose(int64(len(some)))
			return err
		default:
			e.giveBack(some)
			return err
		}
	}
}

func (e *Exporter) take() []sdk.ReadOnlySpan {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.waiting), mostAtOnce)
	some := make([]sdk.ReadOnlySpan, n)
	copy(some, e.waiting)
	clear(e.waiting[:n])
	e.waiting = e.waiting[n:]
	return some
}

func (e *Exporter) giveBack(some []sdk.ReadOnlySpan) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(some, e.waiting...)
	e.bound()
}

func (e *Exporter) lose(n int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lost += n
}

// send posts a request, and tells how many of its spans were refused. An error is permanent where the same would not be
// taken later either.
func (e *Exporter) send(ctx context.Context, body []byte) (refused int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return 0, fault.New(fault.Invalid, "the collector's URL can't be read")
	}
	for k, v := range e.o.Headers {
		req.Header.Set(k, v)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := e.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the URL
		}
		return 0, fmt.Errorf("send traces: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read from
	said, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	switch {
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode == http.StatusBadGateway,
		resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusGatewayTimeout:
		after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		late := fault.New(fault.Unavailable, "the collector responded with %d", resp.StatusCode)
		late.RetryAfter = time.Duration(min(max(after, 0), int(longestWait/time.Second))) * time.Second
		return 0, late
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return 0, fault.New(fault.Invalid, "the collector responded with %d", resp.StatusCode)
	case err != nil:
		return 0, fmt.Errorf("read the collector's response: %w", err)
	}
	return rejected(said), nil
}

// logLoss logs that spans are lost or late, once a minute at most.
func (e *Exporter) logLoss(ctx context.Context, err error) {
	e.mu.Lock()
	lost := e.lost
	e.mu.Unlock()
	now := time.Now()
	if err == nil && lost == 0 || now.Sub(e.told) < logEvery && !e.told.IsZero() {
		return
	}
	e.lose(-lost)
	e.told = now
	if err == nil {
		err = errors.New("the collector is too slow, or refuses some")
	}
	e.o.Logger.WarnContext(ctx, "traces can't be sent", slog.Int64("spans_lost", lost), slog.Any("error", err))
}
