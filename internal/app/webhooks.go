package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"millrace/internal/app/cli"
	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/delivery"
	"millrace/internal/fetch"
	"millrace/internal/id"
	"millrace/internal/lifecycle"
	"millrace/internal/web/api"
)

// idlePerEndpoint is how many connections to a host of endpoints are kept for the next deliveries.
const idlePerEndpoint = 16

// webhooks is what sends events to endpoints, with a client of package fetch of its own: it follows no redirects and
// waits for nobody.
func (n *node) webhooks() lifecycle.Service {
	client := fetch.New(fetch.Options{
		Allow:       n.cfg.FetchAllow,
		Public:      n.cfg.WebRTCPublicIPs,
		UserAgent:   "millrace/" + cli.Version(),
		KeepPerHost: idlePerEndpoint,
		Logger:      n.log,
		Timeouts: fetch.Timeouts{
			Dial:      webhook.Timeout,
			Handshake: webhook.Timeout,
			Header:    webhook.Timeout,
			Get:       webhook.Timeout,
		},
	})
	n.close = append(n.close, func() error { client.Close(); return nil })
	return delivery.New(delivery.Options{
		Outbox: n.db, Node: n.id, Now: clock, Logger: n.log,
		Body: func(ctx context.Context, e event.Event, attempts []webhook.Attempt) ([]byte, error) {
			shown, err := formOf(n.db, n.base).Send(ctx, e)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(shown.Attempted(attempts))
			if err != nil {
				return nil, fmt.Errorf("encode event: %w", err)
			}
			return text, nil
		},
		Post: n.tracing.Post(postBy(client)),
	})
}

// endpoints are the webhooks that events are sent to.
func (n *node) endpoints() webhook.API { return webhook.New(n.db, api.EventTypes()) }

// postBy sends deliveries with a client.
func postBy(
	client *fetch.Client,
) func(ctx context.Context, to string, headers map[string]string, body []byte) (delivery.Response, error) {
	return func(ctx context.Context, to string, headers map[string]string, body []byte) (delivery.Response, error) {
		header := http.Header{"Content-Type": {"application/json"}}
		for name, value := range headers {
			header.Set(name, value)
		}
		a, err := client.Post(ctx, to, header, body, webhook.KeptBody)
		return delivery.Response{Status: a.Status, Headers: a.Header, Body: a.Body, RetryAfter: a.RetryAfter}, err
	}
}

// openWebhooks opens the webhooks of an environment, of the default one for an empty ID, whether the service runs or
// not.
func openWebhooks(
	ctx context.Context, cfg config.Config, e id.Environment,
) (webhook.API, id.Environment, func() error, error) {
	d, err := openDatabase(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, "", nil, err
	}
	env, err := access.New(access.Options{Store: d.Access()}).Named(ctx, e, clock())
	if err != nil {
		return nil, "", nil, errors.Join(err, d.Close())
	}
	return webhook.New(d, api.EventTypes()), env.ID, d.Close, nil
}
