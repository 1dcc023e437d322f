package delivery

import (
	"context"
	"errors"
	"fmt"
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

// prepareTime is how long it may take to make what is sent, which is ours and none of the endpoint's time.
const prepareTime = time.Minute

// errNoLease says that an attempt might outlast the lease on its endpoint.
var errNoLease = errors.New("the lease on the endpoint is nearly over")

// attempt sends one event to one endpoint, in a goroutine of its own.
func (d *Dispatcher) attempt(a attemptResult) {
	if m, some := d.prepare(&a); some {
		d.try(&a, m)
	}
	d.outcomes <- a
}

// prepare makes what is sent; else a says why there is none.
func (d *Dispatcher) prepare(a *attemptResult) (m message, some bool) {
	ctx, cancel := context.WithTimeout(d.attempts, prepareTime)
	defer cancel()
	m, err := d.bodies.of(ctx, a.webhook.ID, a.item)
	switch {
	case err == nil:
		return m, true
	case fault.Is(err, fault.NotFound): // its time is over
		a.attempt = webhook.Attempt{At: d.o.Now().UTC(), Address: a.webhook.Address, Error: err.Error()}
		a.gone = true
	default:
		a.err = err
	}
	return message{}, false
}

// try sends a message. The lease lasts longer than that takes.
func (d *Dispatcher) try(a *attemptResult, m message) {
	began := d.o.Now()
	if !a.from.leased(began) {
		a.err = errNoLease
		return
	}
	ctx, cancel := context.WithTimeout(d.attempts, webhook.Timeout)
	defer cancel()
	a.attempt = webhook.Attempt{At: began.UTC(), Address: a.webhook.Address}
	response, err := d.o.Post(ctx, a.webhook.Address, a.webhook.Headers(m.event, m.body, began), m.body)
	if err != nil && d.attempts.Err() != nil { // the service stops: the endpoint is not to blame
		a.err = fmt.Errorf("broken off: %w", err)
		return
	}
	a.attempt.Status, a.attempt.Headers, a.attempt.Body = response.Status, keptHeaders(response.Headers),
		kept(response.Body)
	a.retryAfter = response.RetryAfter
	a.attempt.Duration = d.o.Now().Sub(began)
	if err != nil {
		a.attempt.Error = kept([]byte(noResponse(err)))
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
