package webhooks

import (
	"net/http"

	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/shell"
)

// rotateSecret makes a new secret, and shows it.
func (s *room) rotateSecret(r *shell.Request) (shell.View, error) {
	made, err := s.Webhooks.RotateSecret(r.Context(), r.Person.Environment.ID, webhookID(r), s.Now())
	if err != nil {
		return shell.View{}, err
	}
	return s.renderSecret(r, made, shell.SecretPage{
		Heading: "The new secret is made",
		Keep: "Put it into your receiver by " + shell.UTC(made.OldUntil) + ": until then the one before signs too. When it " +
			"is lost, make another one.",
	})
}

// renderSecret shows the secret of a webhook that was made now.
func (s *room) renderSecret(
	r *shell.Request, made webhook.Webhook, v shell.SecretPage,
) (shell.View, error) {
	v.Secret, v.Name, v.To = "The signing secret", made.Address, endpoint{Webhook: made}.Page()
	v.ListAddress, v.ListName = shell.WebhooksPath, "Webhooks"
	v.Lines = []shell.CopyLine{{What: "Signing secret", Text: made.Secret}}
	v.Use = "Your receiver checks with it that what comes is from here. webhooks.unwrap of @mux/mux-node does so by " +
		"the header Mux-Signature, the libraries of Standard Webhooks by Webhook-Signature; both take the secret " +
		"as it is here."
	return shell.ShowAs(http.StatusCreated, "once", v), nil
}
