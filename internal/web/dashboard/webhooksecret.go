package dashboard

import (
	"net/http"

	"millrace/internal/control/webhook"
)

// rotateSecret makes a new secret, and shows it.
func (s *server) rotateSecret(r *request) (view, error) {
	made, err := s.Webhooks.RotateSecret(r.Context(), r.Person.Environment.ID, webhookID(r), s.Now())
	if err != nil {
		return view{}, err
	}
	return s.renderSecret(r, made, shownOnce{
		Heading: "The new secret is made",
		Keep: "Put it into your receiver by " + utc(made.OldUntil) + ": until then the one before signs too. When it " +
			"is lost, make another one.",
	})
}

// renderSecret shows the secret of a webhook that was made now.
func (s *server) renderSecret(
	r *request, made webhook.Webhook, v shownOnce,
) (view, error) {
	v.Secret, v.Name, v.To = "The signing secret", made.Address, endpoint{Webhook: made}.Page()
	v.ListAddress, v.ListName = webhooksPath, "Webhooks"
	v.Lines = []copyLine{{"Signing secret", made.Secret}}
	v.Use = "Your receiver checks with it that what comes is from here. webhooks.unwrap of @mux/mux-node does so by " +
		"the header Mux-Signature, the libraries of Standard Webhooks by Webhook-Signature; both take the secret " +
		"as it is here."
	return showAs(http.StatusCreated, "once", v), nil
}
