package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	listed = 100 // webhooks or deliveries
	none   = "-"
)

// webhooks runs a command about webhooks.
func webhooks(ctx context.Context, c config.Command, cfg config.Config, out io.Writer, a Actions) (err error) {
	hooks, env, closeDB, err := a.Webhooks(ctx, cfg, id.Environment(c.Access.Environment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	var key id.Webhook
	if len(c.Words) > 0 {
		key = id.Webhook(c.Words[0])
	}
	switch c.Name {
	case config.WebhookCreate:
		w, made := hooks.Create(ctx, env, webhook.CreateInput{Address: c.Words[0], Types: c.Types}, time.Now())
		return printSecret(out, w, made)
	case config.WebhookRotate:
		w, made := hooks.RotateSecret(ctx, env, key, time.Now())
		return printSecret(out, w, made)
	case config.WebhookEnable:
		_, err = hooks.Patch(ctx, env, key, webhook.PatchInput{Enabled: new(true)}, time.Now())
		return sayUnless(err, out, "Webhook %s is enabled.", key)
	case config.WebhookDisable:
		_, err = hooks.Patch(ctx, env, key, webhook.PatchInput{Enabled: new(false)}, time.Now())
		return sayUnless(err, out, "Webhook %s is disabled.", key)
	case config.WebhookDelete:
		return sayUnless(hooks.Delete(ctx, env, key), out, "Webhook %s is deleted.", key)
	case config.WebhookTest:
		e, failed := hooks.Test(ctx, env, key, time.Now())
		if failed != nil {
			return failed
		}
		_, err = fmt.Fprintln(out, e.ID)
	case config.WebhookDeliveries:
		err = listDeliveries(ctx, hooks, env, key, webhook.State(c.Replay.Status), out)
	case config.WebhookReplay:
		err = replay(ctx, hooks, env, key, c, out)
	case config.WebhookRetry:
		n, failed := hooks.Retry(ctx, env, key)
		return sayUnless(failed, out, "Events that waited for their next attempt and are sent now: %d.", n)
	case config.WebhookSkip:
		_, err = hooks.Skip(ctx, env, key, c.Words[1])
		return sayUnless(err, out, "Event %s is not sent to webhook %s.", c.Words[1], key)
	default:
		err = listWebhooks(ctx, hooks, env, out)
	}
	return err
}

func printSecret(out io.Writer, w webhook.Webhook, err error) error {
	if err != nil {
		return err
	}
	// In the form of a shell's or a container's environment, so that it can be kept as it is.
	_, err = fmt.Fprintf(out, "WEBHOOK_ID=%s\nWEBHOOK_SECRET=%s\n", w.ID, w.Secret)
	return err
}

func replay(
	ctx context.Context, hooks webhook.API, env id.Environment, key id.Webhook, c config.Command, out io.Writer,
) error {
	r := c.Replay
	switch {
	case r.Event != "" && r.Since.IsZero() && !r.Failed:
		_, err := hooks.ReplayEvent(ctx, env, key, r.Event)
		return sayUnless(err, out, "Event %s will be sent to webhook %s again.", r.Event, key)
	case r.Event == "" && r.Failed:
		n, err := hooks.ReplayFailed(ctx, env, key, r.Since)
		return sayUnless(err, out, "Events that failed and will be sent to webhook %s again: %d.", key, n)
	case r.Event == "" && !r.Since.IsZero():
		_, err := hooks.ReplaySince(ctx, env, key, r.Since)
		return sayUnless(err, out, "All events since %s will be sent to webhook %s again.", timeOrNone(r.Since), key)
	}
	return fault.New(fault.Invalid, "give one of --since, --event and --failed, or --since with --failed")
}

func listWebhooks(ctx context.Context, hooks webhook.API, env id.Environment, out io.Writer) error {
	list, err := hooks.List(ctx, env, 1, listed)
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tADDRESS\tENABLED\tTYPES\tFAILING SINCE")
	for _, w := range list {
		failing := none
		if !w.FailingSince.IsZero() {
			failing = w.FailingSince.Format(time.RFC3339)
		}
		fmt.Fprintf(tab, "%s\t%s\t%t\t%s\t%s\n", w.ID, w.Address, w.Enabled, cmp.Or(strings.Join(w.Types, ","), "all"), failing)
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print webhooks: %w", err)
	}
	return nil
}

func listDeliveries(
	ctx context.Context, hooks webhook.API, env id.Environment, key id.Webhook, state webhook.State, out io.Writer,
) error {
	list, err := hooks.Deliveries(ctx, env, key, webhook.DeliveryQuery{State: state, Limit: listed})
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SEQUENCE\tEVENT\tTYPE\tSTATUS\tATTEMPTS\tLAST\tWAITS FOR")
	for _, d := range list {
		last := none
		if n := len(d.Attempts); n > 0 {
			a := d.Attempts[n-1]
			last = fmt.Sprintf("%s %s", a.At.Format(time.RFC3339), cmp.Or(a.Error, fmt.Sprint(a.Status)))
		}
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%d\t%s\t%s\n",
			d.Sequence, d.EventID, d.EventType, d.State, len(d.Attempts), last, waitsFor(d))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print deliveries: %w", err)
	}
	return nil
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
