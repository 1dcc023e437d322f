package webhooks

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/id"
	"millrace/internal/web/dashboard/shell"
)

// webhookAct is something that is done to a webhook, and what a person is asked before.
type webhookAct struct {
	operation            string
	Title, Text, Yes, No string // of the question; without a title none is asked
	// do is nil where rotateSecret does it.
	do func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, now time.Time) error
	to func(e endpoint) string // the page that follows
}

const newSecret = "new-secret"

// webhookActs are by their paths below the webhook's.
var webhookActs = map[string]webhookAct{ //nolint:gochecknoglobals // a table
	"enable": {
		operation: "update-webhook", to: missed,
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, now time.Time) error {
			return enable(ctx, a, e, w, true, now)
		},
	},
	"disable": {
		operation: "update-webhook", to: endpoint.Page, Title: "Disable this webhook?",
		Text: "What happens from then on is not sent to it, and what waits to be tried again is given up. Once it is " +
			"enabled again, what was never tried is sent, and what it missed can be.",
		Yes: "Disable it", No: "Keep it on",
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, now time.Time) error {
			return enable(ctx, a, e, w, false, now)
		},
	},
	"test": {
		operation: "test-webhook", to: sent,
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, now time.Time) error {
			_, err := a.Test(ctx, e, w, now)
			return err
		},
	},
	"retry": {
		operation: "retry-webhook-deliveries", to: sent,
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, _ time.Time) error {
			_, err := a.Retry(ctx, e, w)
			return err
		},
	},
	"replay-failed": {
		operation: "replay-failed-webhook-deliveries", to: sent,
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, _ time.Time) error {
			_, err := a.ReplayFailed(ctx, e, w, time.Time{})
			return err
		},
	},
	newSecret: {
		Title: "Make a new secret?",
		Text: "Deliveries are signed with the new one at once, and for 24 hours with the present one too. Put the " +
			"new one into your receiver within that time: after it, one that knows only the present one refuses " +
			"everything.",
		Yes: "Make a new secret", No: "Keep the present one",
	},
	"delete": {
		operation: "delete-webhook",
		to:        func(endpoint) string { return shell.WebhooksPath },
		Title:     "Delete this webhook?",
		Text: "Nothing is sent to it any more. Its secret and the list of what was sent to it are lost, and cannot " +
			"be brought back. The events stay.",
		Yes: "Delete",
		No:  "Keep it",
		do: func(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, _ time.Time) error {
			return a.Delete(ctx, e, w)
		},
	},
}

func enable(ctx context.Context, a webhook.API, e id.Environment, w id.Webhook, on bool, now time.Time) error {
	_, err := a.Patch(ctx, e, w, webhook.PatchInput{Enabled: &on}, now)
	return err
}

// missed is the page of a webhook that is enabled again, on which what it missed is offered to be sent.
func missed(e endpoint) string {
	since := e.UpdatedAt
	if e.Failing() {
		since = e.FailingSince
	}
	return e.Page() + "?since=" + url.QueryEscape(since.UTC().Format(sinceForm)) + "#again"
}

func sent(e endpoint) string { return e.Page() + "#deliveries" }

func (rm *room) askWebhook(name string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		e, err := rm.webhookOf(r)
		if err != nil {
			return shell.View{}, err
		}
		a := webhookActs[name]
		q := shell.Question{
			Heading: a.Title, Text: a.Text, Yes: a.Yes, No: a.No, Class: "harm", Name: e.Address,
			ListAddress: shell.WebhooksPath, ListName: "Webhooks", Address: e.Page(), To: e.Page() + "/" + name,
		}
		if name == newSecret && e.Two() {
			q.Text += " The one before, which signs too until " + shell.UTC(e.OldUntil) + ", stops at once."
		}
		return shell.Show("ask", q), nil
	}
}

func (rm *room) actOnWebhook(name string) shell.Handler {
	return func(r *shell.Request) (shell.View, error) {
		e, err := rm.webhookOf(r)
		if err == nil {
			err = r.StillSo(state(e))
		}
		if err == nil {
			err = webhookActs[name].do(r.Context(), rm.Webhooks, r.Person.Environment.ID, e.ID, rm.Now())
		}
		if err != nil {
			return shell.View{}, err
		}
		// What disabling gives up can't be brought back, nor since when one failed that is enabled.
		if name == "enable" && !e.Failing() || r.Undoes() {
			on := e
			on.Enabled = true
			r.Undoable("Enabled.", e.Page()+"/disable", state(e), state(on))
		}
		to := webhookActs[name].to(e)
		return shell.Redirect(to), nil
	}
}

// rotateSecret makes a new secret, and shows it.
func (rm *room) rotateSecret(r *shell.Request) (shell.View, error) {
	made, err := rm.Webhooks.RotateSecret(r.Context(), r.Person.Environment.ID, webhookID(r), rm.Now())
	if err != nil {
		return shell.View{}, err
	}
	return rm.renderSecret(made, shell.SecretPage{
		Heading: "New signing secret created",
		Keep: "Set it in your receiver by " + shell.UTC(made.OldUntil) +
			": until then requests are signed with the previous one too. If you lose it, " +
			"create another one.",
	}), nil
}

// renderSecret shows the secret of a webhook that was made now.
func (rm *room) renderSecret(
	made webhook.Webhook, v shell.SecretPage,
) shell.View {
	v.Secret, v.Name, v.To = "The signing secret", made.Address, endpoint{Webhook: made}.Page()
	v.ListAddress, v.ListName = shell.WebhooksPath, "Webhooks"
	v.Lines = []shell.CopyLine{{What: "Signing secret", Text: made.Secret}}
	v.Use = "Your receiver checks with it that what comes is from here. webhooks.unwrap of @mux/mux-node does so by " +
		"the header Mux-Signature, the libraries of Standard Webhooks by Webhook-Signature; both take the secret " +
		"as it is here."
	return shell.ShowAs(http.StatusCreated, "once", v)
}
