package dashboard

import (
	"net/http"
	"net/url"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
)

const webhookAPI = "/system/v1/webhooks"

func (s *server) showWebhookCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := s.readWebhook(r)
	f.said = said{}
	s.renderWebhook(w, r, p, http.StatusOK, f, !isResumed(r))
}

func (s *server) showEditWebhookCode(w http.ResponseWriter, r *http.Request, p access.Person) {
	e, err := s.webhookOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	both := merge(r, webhookFormer(e))
	f := s.readWebhook(r)
	f.Of, f.said = &e, said{}
	f.overtaken(both)
	s.renderWebhook(w, r, p, http.StatusOK, f, !isResumed(r))
}

// renderWebhook shows the form of a webhook, with its code.
func (s *server) renderWebhook(
	w http.ResponseWriter, r *http.Request, p access.Person, status int, f webhookForm, open bool,
) {
	if f.Of == nil {
		f.Code = s.code("make", webhooksPath+"/code", call{
			path: webhookAPI, body: object{}.with("address", f.Address).with("event_types", f.types),
			node: "system.webhooks.create", once: "signing_secret",
		})
	} else {
		f.Code = s.code("make", f.Of.Page()+"/code", call{
			method: http.MethodPatch, path: webhookAPI + "/" + url.PathEscape(string(f.Of.ID)),
			of: []string{string(f.Of.ID)}, body: webhookBody(f.changes()), node: "system.webhooks.update",
		})
	}
	f.Code.Open = open
	if f.Chosen && len(f.types) == 0 {
		f.Code.None = "Choose at least one type to see the request."
	}
	s.render(w, r, p, status, "webhookform", f)
}

// webhookBody is what the API would be sent of changes that the form can make. No types stand for all.
func webhookBody(in webhook.PatchInput) (o object) {
	if in.Address != nil {
		o = append(o, member{"address", *in.Address})
	}
	if in.Types != nil {
		o = append(o, member{"event_types", *in.Types})
	}
	return o
}
