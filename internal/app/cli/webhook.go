package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const listed = 100 // webhooks or deliveries

func webhookCommands() []command {
	return []command{
		of("webhook create ADDRESS", "create a webhook",
			"Creates a webhook, which sends events from now on to an http or https URL, and prints its signing "+
				"secret, which can't be shown again.", &webhookCreate{}),
		of("webhook list", "list the webhooks",
			"Lists the webhooks, without their secrets.", &onWebhook{do: webhookList}),
		of("webhook enable WEBHOOK-ID", "redeliver events to a webhook",
			"Sends events from now on to a disabled webhook again. Events it missed can be replayed.",
			&onWebhook{do: enabling(true, "enabled")}),
		of("webhook disable WEBHOOK-ID", "disable a webhook",
			"Stops sending events to a webhook until it is enabled.", &onWebhook{do: enabling(false, "disabled")}),
		of("webhook delete WEBHOOK-ID", "delete a webhook",
			"Deletes a webhook.",
			&onWebhook{do: func(ctx context.Context, w webhookOf, r *request) error {
				return r.done(w.hooks.Delete(ctx, w.environment, w.key), "Webhook %s is deleted.", w.key)
			}}),
		of("webhook rotate-secret WEBHOOK-ID", "rotate the signing secret of a webhook",
			"Creates a new signing secret and prints it once. For 24 hours deliveries are signed with the old one "+
				"as well.",
			&onWebhook{do: func(ctx context.Context, w webhookOf, r *request) error {
				rotated, err := w.hooks.RotateSecret(ctx, w.environment, w.key, r.now)
				return printSecret(r, rotated, err)
			}}),
		of("webhook test WEBHOOK-ID", "send a test event to a webhook",
			"Sends the event system.webhook.test to a webhook; millrace webhook deliveries shows the result. The "+
				"service must be running.",
			&onWebhook{do: func(ctx context.Context, w webhookOf, r *request) error {
				e, err := w.hooks.Test(ctx, w.environment, w.key, r.now)
				return r.done(err, "%s", e.ID)
			}}),
		of("webhook deliveries WEBHOOK-ID", "list a webhook's deliveries",
			"Lists the last 100 events sent to a webhook, newest first, each with its last attempt and, if it is "+
				"waiting, why.", &webhookDeliveries{}),
		of("webhook replay WEBHOOK-ID", "redeliver events to a webhook",
			"Sends one event, or all events since a time, to a webhook again, delivered before or not. With "+
				"--failed only those that were given up.", &webhookReplay{}),
		of("webhook retry WEBHOOK-ID", "retry a webhook's waiting deliveries now",
			"Retries at once all deliveries that wait for their next attempt, at most 100,000. Events that wait for "+
				"an earlier event of the same object still follow it. The service must be running.",
			&onWebhook{do: func(ctx context.Context, w webhookOf, r *request) error {
				n, err := w.hooks.Retry(ctx, w.environment, w.key)
				return r.done(err, "Events that waited for their next attempt and are sent now: %d.", n)
			}}),
		of("webhook skip WEBHOOK-ID EVENT-ID", "skip a webhook's waiting event",
			"Skips a waiting event, so that the next event of the same object is sent. It can be replayed later, "+
				"and then arrives after those.",
			&onWebhook{do: func(ctx context.Context, w webhookOf, r *request) error {
				_, err := w.hooks.Skip(ctx, w.environment, w.key, r.words[1])
				return r.done(err, "Event %s is not sent to webhook %s.", r.words[1], w.key)
			}}),
	}
}

// webhookOf are the webhooks of an environment, and which of them is meant.
type webhookOf struct {
	hooks       webhook.API
	environment id.Environment
	key         id.Webhook
}

// onWebhook is a command about the webhooks of an environment, or one of them.
type onWebhook struct {
	inEnvironment

	do func(ctx context.Context, w webhookOf, r *request) error
}

func (o *onWebhook) run(ctx context.Context, r *request) error {
	hooks, env, closeDB, err := r.Webhooks(ctx, r.cfg, o.environment)
	return closing(closeDB, err, func() error {
		w := webhookOf{hooks: hooks, environment: env}
		if len(r.words) > 0 {
			w.key = id.Webhook(r.words[0])
		}
		return o.do(ctx, w, r)
	})
}

// webhookCreate makes a webhook.
type webhookCreate struct {
	onWebhook

	types []string
}

func (wc *webhookCreate) flags(f *flags) {
	f.types(&wc.types)
	f.mayCreate()
	wc.onWebhook.flags(f)
	wc.do = func(ctx context.Context, w webhookOf, r *request) error {
		in := webhook.CreateInput{Address: r.words[0], Types: wc.types}
		made, err := w.hooks.Create(ctx, w.environment, in, r.now)
		return printSecret(r, made, err)
	}
}

func printSecret(r *request, w webhook.Webhook, err error) error {
	// In the form of a shell's or a container's environment, so that it can be kept as it is.
	return r.done(err, "WEBHOOK_ID=%s\nWEBHOOK_SECRET=%s", w.ID, w.Secret)
}

// enabling turns a webhook on or off.
func enabling(on bool, word string) func(ctx context.Context, w webhookOf, r *request) error {
	return func(ctx context.Context, w webhookOf, r *request) error {
		_, err := w.hooks.Patch(ctx, w.environment, w.key, webhook.PatchInput{Enabled: &on}, r.now)
		return r.done(err, "Webhook %s is %s.", w.key, word)
	}
}

// webhookReplay sends events again.
type webhookReplay struct {
	onWebhook

	since  time.Time // zero: not given
	event  string
	failed bool
}

func (wr *webhookReplay) flags(f *flags) {
	f.since(&wr.since)
	add(f, &wr.event, anything, "event", "id", "", "Only the event with this ID.")
	f.on(&wr.failed, "failed", "Only failed deliveries; without --since all that are kept.")
	wr.onWebhook.flags(f)
	wr.do = wr.replay
}

func (wr *webhookReplay) replay(ctx context.Context, w webhookOf, r *request) error {
	switch {
	case wr.event != "" && wr.since.IsZero() && !wr.failed:
		_, err := w.hooks.ReplayEvent(ctx, w.environment, w.key, wr.event)
		return r.done(err, "Event %s will be sent to webhook %s again.", wr.event, w.key)
	case wr.event == "" && wr.failed:
		n, err := w.hooks.ReplayFailed(ctx, w.environment, w.key, wr.since)
		return r.done(err, "Events that failed and will be sent to webhook %s again: %d.", w.key, n)
	case wr.event == "" && !wr.since.IsZero():
		_, err := w.hooks.ReplaySince(ctx, w.environment, w.key, wr.since)
		return r.done(err, "All events since %s will be sent to webhook %s again.", timeOrNone(wr.since), w.key)
	}
	return fault.New(fault.Invalid, "give one of --since, --event and --failed, or --since with --failed")
}

func webhookList(ctx context.Context, w webhookOf, r *request) error {
	found, err := w.hooks.List(ctx, w.environment, 1, listed)
	if err != nil {
		return err
	}
	tab := newTable(r.out)
	tab.row("ID", "ADDRESS", "ENABLED", "TYPES", "FAILING SINCE")
	for _, one := range found {
		types := cmp.Or(strings.Join(one.Types, ","), "all")
		tab.row(one.ID, one.Address, one.Enabled, types, timeOrNone(one.FailingSince))
	}
	return tab.end()
}

// webhookDeliveries lists what was sent to a webhook.
type webhookDeliveries struct {
	onWebhook

	state webhook.State
}

func (wd *webhookDeliveries) flags(f *flags) {
	add(f, &wd.state, anything, "status", "status", "", "Only those that are waiting, delivered, failed or skipped.")
	wd.onWebhook.flags(f)
	wd.do = wd.list
}

func (wd *webhookDeliveries) list(ctx context.Context, w webhookOf, r *request) error {
	found, err := w.hooks.Deliveries(ctx, w.environment, w.key, webhook.DeliveryQuery{State: wd.state, Limit: listed})
	if err != nil {
		return err
	}
	tab := newTable(r.out)
	tab.row("SEQUENCE", "EVENT", "TYPE", "STATUS", "ATTEMPTS", "LAST", "WAITS FOR")
	for _, d := range found {
		last := none
		if n := len(d.Attempts); n > 0 {
			a := d.Attempts[n-1]
			last = fmt.Sprintf("%s %s", a.At.Format(time.RFC3339), cmp.Or(a.Error, fmt.Sprint(a.Status)))
		}
		tab.row(d.Sequence, d.EventID, d.EventType, d.State, len(d.Attempts), last, waitsFor(d))
	}
	return tab.end()
}

// waitsFor is what a delivery waits for.
func waitsFor(d webhook.Delivery) string {
	switch d.Reason {
	case webhook.WebhookDisabled:
		return "the webhook to be enabled"
	case webhook.AfterEarlier:
		return "event " + d.Earlier.ID
	case webhook.BeforeRetry:
		return "its next attempt at " + d.NextAt.Format(time.RFC3339)
	case webhook.InQueue:
		return "its turn"
	}
	return none
}
