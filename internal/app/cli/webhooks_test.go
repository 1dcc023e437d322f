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

// TestWebhookCommands: an endpoint is made, listed, tested, replayed to, disabled and deleted, and its secret is shown only where it is made.
func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, dbtest.SQLite(t))
	hooks, closed := webhook.New(d, []string{"video.asset.ready", "video.asset.errored"}), 0
	run := func(args ...string) (string, string, int) {
		t.Helper()
		var out, problems bytes.Buffer
		code := Run(t.Context(), append([]string{"webhook"}, args...), nil, &out, &problems, Actions{
			Webhooks: func(context.Context, config.Config, id.Environment) (webhook.API, id.Environment, func() error, error) {
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
	if out, _, _ = run("list"); !strings.Contains(out, key+"  https://example.com/hook  true     video.asset.ready,video.asset.errored  -") || strings.Contains(out, secret) {
		t.Errorf("list:\n%s", out)
	}
	if out, _, code = run("rotate-secret", key); code != 0 || !strings.Contains(out, "WEBHOOK_SECRET=") || strings.Contains(out, secret) {
		t.Errorf("rotate-secret: %s", out)
	}
	out, _, code = run("test", key)
	e, err := d.GetEvent(t.Context(), "env", strings.TrimSpace(out))
	if code != 0 || err != nil || e.Type != webhook.EventTest {
		t.Errorf("test: %d %s: %+v, %v", code, out, e, err)
	}
	if _, problem, ended := run("replay", key); ended != 1 || !strings.Contains(problem, "give one of --since and --event") {
		t.Errorf("replay: %d %s", ended, problem)
	}
	if _, problem, ended := run("replay", key, "--event", e.ID); ended != 0 {
		t.Errorf("replay one: %d %s", ended, problem)
	}
	if out, _, code = run("deliveries", key); code != 0 || !strings.Contains(out, e.ID+"  system.webhook.test  waiting  0         -") {
		t.Errorf("deliveries:\n%s", out)
	}
	if _, problem, ended := run("replay", key, "--since", time.Now().Add(-time.Hour).Format(time.RFC3339)); ended != 0 {
		t.Errorf("replay since: %d %s", ended, problem)
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
