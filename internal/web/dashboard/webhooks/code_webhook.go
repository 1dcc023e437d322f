package webhooks

import (
	"net/http"
	"net/url"

	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

const webhookAPI = "/system/v1/webhooks"

func (s *room) showWebhookCode(r *shell.Request) (shell.View, error) {
	f := s.readWebhook(r)
	f.FormErrors = shell.FormErrors{}
	return s.renderWebhook(r, http.StatusOK, f, !r.Resumed())
}

func (s *room) showEditWebhookCode(r *shell.Request, e endpoint) (shell.View, error) {
	both := r.Merge(former(e))
	f := s.readWebhook(r)
	f.Of, f.FormErrors = &e, shell.FormErrors{}
	f.Overtaken(both)
	return s.renderWebhook(r, http.StatusOK, f, !r.Resumed())
}

// renderWebhook shows the form of a webhook, with its code.
func (s *room) renderWebhook(
	r *shell.Request, status int, f webhookForm, open bool,
) (shell.View, error) {
	if f.Of == nil {
		f.Code = s.Code("make", shell.WebhooksPath+"/code", sdkcode.Request{
			Path: webhookAPI, Body: sdkcode.Object{}.With("address", f.Address).With("event_types", f.types),
			Node: "system.webhooks.create", Once: "signing_secret",
		})
	} else {
		f.Code = s.Code("make", f.Of.Page()+"/code", sdkcode.Request{
			Method: http.MethodPatch, Path: webhookAPI + "/" + url.PathEscape(string(f.Of.ID)),
			IDs: []string{string(f.Of.ID)}, Body: webhookBody(f.changes()), Node: "system.webhooks.update",
		})
	}
	f.Code.Open = open
	if f.Chosen && len(f.types) == 0 {
		f.Code.None = "Choose at least one type to see the request."
	}
	return shell.ShowAs(status, "webhookform", f), nil
}

// webhookBody is what the API would be sent of changes that the form can make. No types stand for all.
func webhookBody(in webhook.PatchInput) (o sdkcode.Object) {
	o = sdkcode.Given(o, "address", in.Address)
	o = sdkcode.Given(o, "event_types", in.Types)
	return o
}
