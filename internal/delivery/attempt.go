package delivery

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
)

// attemptResult is one attempt, and what came of it.
type attemptResult struct {
	from     *endpoint // Run's
	webhook  webhook.Webhook
	resource string
	item     item

	attempt    webhook.Attempt
	retryAfter time.Duration // that the endpoint asks for; 0: it does not
	gone       bool          // there is nothing to send any more
	err        error         // of ours: nothing was sent
}

// attempt sends one event to one endpoint, in a goroutine of its own. The lease lasts longer.
func (d *Dispatcher) attempt(ctx context.Context, a attemptResult) {
	bound, cancel := context.WithTimeout(d.attempts, webhook.Timeout)
	defer cancel()
	d.try(bound, &a)
	if a.err != nil && d.attempts.Err() == nil {
		d.o.Logger.WarnContext(ctx, "prepare delivery to webhook", slog.Any("webhook", a.webhook.ID), slog.Any("error", a.err))
	}
	d.outcomes <- a
}

func (d *Dispatcher) try(ctx context.Context, a *attemptResult) {
	a.attempt = webhook.Attempt{At: d.o.Now().UTC(), Address: a.webhook.Address}
	m, err := d.bodies.of(ctx, a.webhook.ID, a.item)
	switch {
	case err == nil:
	case fault.Is(err, fault.NotFound): // its time is over
		a.attempt.Error, a.gone = err.Error(), true
		return
	default:
		a.err = err
		return
	}
	response, err := d.o.Post(ctx, a.webhook.Address, a.webhook.Headers(m.event, m.body, a.attempt.At), m.body)
	if err != nil && d.attempts.Err() != nil { // the service stops: the endpoint is not to blame
		a.err = fmt.Errorf("broken off: %w", err)
		return
	}
	a.attempt.Status, a.attempt.Headers, a.attempt.Body = response.Status, keptHeaders(response.Headers),
		kept(response.Body)
	a.retryAfter = response.RetryAfter
	a.attempt.Duration = d.o.Now().Sub(a.attempt.At)
	if err != nil {
		a.attempt.Error = kept([]byte(err.Error()))
	}
}

// kept is the beginning of a response as text that can be stored.
func kept(text []byte) string { return plain(string(text[:min(len(text), webhook.KeptBody)])) }

// plain is text without what can't be stored.
func plain(text string) string {
	s := strings.ToValidUTF8(text, string(utf8.RuneError))
	return strings.ReplaceAll(s, "\x00", string(utf8.RuneError))
}

// keptHeaders are the headers of a response, taken in the order of their names. One that there is no room for is left
// out.
func keptHeaders(all map[string][]string) map[string]string {
	out, room := map[string]string{}, webhook.KeptHeaderBytes
	for _, key := range slices.Sorted(maps.Keys(all)) {
		name, value := plain(key), plain(strings.Join(all[key], ", "))
		if size := len(name) + len(value); size <= room && len(out) < webhook.KeptHeaders {
			out[name] = value
			room -= size
		}
	}
	return out
}
