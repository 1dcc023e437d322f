package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/event"
	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestWebhookCommands: an endpoint is made, listed, tested, replayed to, disabled and deleted, and its secret is shown
// only where it is made.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	hooks, closed := webhook.New(d, []string{"video.asset.ready", "video.asset.errored"}), 0
	run := func(args ...string) (string, string, int) {
		t.Helper()
		var out, problems bytes.Buffer
		code := Run(t.Context(), append([]string{"webhook"}, args...), nil, &out, &problems, Actions{
			Webhooks: func(
				context.Context, config.Config, id.Environment,
			) (webhook.API, id.Environment, func() error, error) {
				return hooks, "env", func() error { closed++; return nil }, nil
			},
		})
		return out.String(), problems.String(), code
	}
	out, _, code := run("create", "https://example.com/hook", "--type", "video.asset.ready,video.asset.errored")
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != 3 {
		t.Fatalf("create: %d %s", code, out)
	}
	key, secret := strings.TrimPrefix(lines[0], "WEBHOOK_ID="), strings.TrimPrefix(lines[1], "WEBHOOK_SECRET=")
	if out, _, _ = run("list"); !strings.Contains(out,
		key+"  https://example.com/hook  true     video.asset.ready,video.asset.errored  -") ||
		strings.Contains(out, secret) {
		t.Errorf("list:\n%s", out)
	}
	if out, _, code = run("rotate-secret", key); code != 0 || !strings.Contains(out, "WEBHOOK_SECRET=") ||
		strings.Contains(out, secret) {
		t.Errorf("rotate-secret: %s", out)
	}
	out, _, code = run("test", key)
	e, err := d.GetEvent(t.Context(), "env", strings.TrimSpace(out))
	if code != 0 || err != nil || e.Type != webhook.EventTest {
		t.Errorf("test: %d %s: %+v, %v", code, out, e, err)
	}
	if _, problem, ended := run("replay", key); ended != 1 ||
		!strings.Contains(problem, "give one of --since, --event and --failed") {
		t.Errorf("replay: %d %s", ended, problem)
	}
	if _, problem, ended := run("replay", key, "--event", e.ID); ended != 0 {
		t.Errorf("replay one: %d %s", ended, problem)
	}
	if out, _, code = run("deliveries", key); code != 0 ||
		!strings.Contains(out, e.ID+"  system.webhook.test  waiting  0         -     its turn\n") {
		t.Errorf("deliveries:\n%s", out)
	}
	since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	again := "All events since " + since + " will be sent to webhook " + key + " again.\n"
	if out, problem, ended := run("replay", key, "--since", since); ended != 0 || out != again {
		t.Errorf("replay since: %d %s%s", ended, out, problem)
	}
	if _, _, code = run("disable", key); code != 0 {
		t.Errorf("disable: %d", code)
	}
	if _, problem, ended := run("test", key); ended != 1 || !strings.Contains(problem, "is disabled; enable it first") {
		t.Errorf("test of a disabled one: %d %s", ended, problem)
	}
	if _, _, code = run("enable", key); code != 0 {
		t.Errorf("enable: %d", code)
	}
	if _, _, code = run("delete", key); code != 0 {
		t.Errorf("delete: %d", code)
	}
	if _, problem, ended := run("delete", key); ended != 1 || !strings.Contains(problem, "does not exist") {
		t.Errorf("delete again: %d %s", ended, problem)
	}
	if closed != 13 {
		t.Errorf("closed %d times", closed)
	}
	if all, err := d.ListEvents(t.Context(), event.Query{Limit: 10}); err != nil || len(all) != 1 {
		t.Errorf("%d events, %v", len(all), err)
	}
}

// TestDeliveryCommands: what waits says for what, and is sent now, skipped or, where it failed, sent again.
func TestDeliveryCommands(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	hooks := webhook.New(d, nil)
	w, err := hooks.Create(t.Context(), "env", webhook.CreateInput{Address: "https://example.com/hook"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var events []event.Event
	for range 3 {
		e, failed := hooks.Test(t.Context(), "env", w.ID, time.Now())
		if failed != nil {
			t.Fatal(failed)
		}
		events = append(events, e)
	}
	if _, err = d.Claim(t.Context(), "node", time.Hour); err != nil {
		t.Fatal(err)
	}
	step := webhook.Step{Webhook: w.ID, To: events[2].Sequence, Events: events}
	if _, err = d.Queue(t.Context(), "node", []webhook.Step{step}); err != nil {
		t.Fatal(err)
	}
	becomes := func(state webhook.State) {
		t.Helper()
		r := webhook.Result{
			Webhook: w.ID, Sequence: events[0].Sequence, State: state,
			Attempt: webhook.Attempt{At: time.Now(), Status: 500},
			NextAt:  time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		}
		if err = d.Record(t.Context(), "node", []webhook.Result{r}, nil); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want string, args ...string) {
		t.Helper()
		var out, problems bytes.Buffer
		Run(t.Context(), append([]string{"webhook"}, args...), nil, &out, &problems, Actions{
			Webhooks: func(
				context.Context, config.Config, id.Environment,
			) (webhook.API, id.Environment, func() error, error) {
				return hooks, "env", func() error { return nil }, nil
			},
		})
		if all := out.String() + problems.String(); !strings.Contains(all, want) {
			t.Errorf("%q prints, without %q:\n%s", args, want, all)
		}
	}
	key := string(w.ID)
	becomes(webhook.Waiting)
	run("  its next attempt at 2030-01-02T03:04:05Z\n", "deliveries", key)
	run("  event "+events[0].ID+"\n", "deliveries", key)
	run("Events that waited for their next attempt and are sent now: 1.\n", "retry", key)
	run("  its turn\n", "deliveries", key, "--status", "waiting")
	becomes(webhook.Failed)
	run("Events that failed and will be sent to webhook "+key+" again: 1.\n", "replay", key, "--failed")
	run("Event "+events[0].ID+" is not sent to webhook "+key+".\n", "skip", key, events[0].ID)
	run("does not wait to be sent to the webhook", "skip", key, events[0].ID)
	run("system.webhook.test  skipped", "deliveries", key, "--status", "skipped")
	run("status must be one of: waiting, delivered, failed, skipped", "deliveries", key, "--status", "odd")
	run("give one of --since, --event and --failed", "replay", key, "--failed", "--event", events[0].ID)
	run("Webhook "+key+" is disabled.", "disable", key)
	run("  the webhook to be enabled\n", "deliveries", key)
}
