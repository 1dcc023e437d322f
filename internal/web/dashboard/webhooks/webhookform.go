package webhooks

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"millrace/internal/control/webhook"
	"millrace/internal/web/dashboard/shell"
	"millrace/internal/web/sdkcode"
)

// webhookForm is the page on which a webhook is made or changed: what was chosen, and what is wrong with it.
type webhookForm struct {
	Address string
	Chosen  bool // only events of some types are sent
	Groups  []typeGroup
	Of      *endpoint // that is changed; nil: a new one is made
	Code    shell.Code
	types   []string
	shell.FormErrors
}

func (rm *room) readWebhook(r *shell.Request) webhookForm {
	f := webhookForm{
		Address: r.Text("address"), Chosen: r.Text("which") == "chosen",
		FormErrors: shell.FormErrors{
			Fields: []shell.Field{
				shell.At("address", "address", "Address"), shell.At("event_types", "which", "Events"),
			},
		},
	}
	for _, t := range rm.EventTypes {
		if slices.Contains(r.PostForm["type"], t) || slices.Contains(r.PostForm["group"], groupOf(t)) {
			f.types = append(f.types, t)
		}
	}
	for _, t := range r.PostForm["type"] {
		if !slices.Contains(rm.EventTypes, t) { // the service says what is wrong with it
			f.types = append(f.types, strings.ToValidUTF8(t, "\uFFFD"))
		}
	}
	f.Groups = grouped(rm.EventTypes, f.types)
	if !f.Chosen {
		f.types = nil
	} else if len(f.types) == 0 {
		f.Add("which", "Choose at least one, or everything.")
	}
	return f
}

func (rm *room) showNewWebhook(_ *shell.Request) (shell.View, error) {
	return rm.renderWebhook(http.StatusOK, webhookForm{Groups: grouped(rm.EventTypes, nil)}, false), nil
}

func (rm *room) createWebhook(r *shell.Request) (shell.View, error) {
	f := rm.readWebhook(r)
	in := webhook.CreateInput{Address: f.Address, Types: f.types}
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, err := rm.Webhooks.Create(r.Context(), r.Person.Environment.ID, in, rm.Now())
		if err == nil {
			return rm.renderSecret(made, shell.SecretPage{
				Heading: "Webhook created",
				Keep:    "Configure it in your receiver. If you lose it, create another one on the webhook's page.",
			}), nil
		}
		if status, err = f.TakeErr(err); err != nil {
			return shell.View{}, err
		}
	} else {
		f.AddErr(in.Check(rm.EventTypes))
	}
	return rm.renderWebhook(status, f, false), nil
}

func (rm *room) showEditWebhook(_ *shell.Request, e endpoint) (shell.View, error) {
	return rm.renderWebhook(http.StatusOK, webhookForm{
		Address: e.Address, Chosen: len(e.Types) > 0, Groups: grouped(rm.EventTypes, e.Types), Of: &e, types: e.Types,
	}, false), nil
}

// changes is what of the webhook is to be another.
func (w webhookForm) changes() (in webhook.PatchInput) {
	if !shell.Unchanged(w.Address, w.Of.Address) {
		in.Address = &w.Address
	}
	if now := w.Of.Types; !slices.Equal(slices.Sorted(slices.Values(w.types)), slices.Sorted(slices.Values(now))) {
		in.Types = &w.types
	}
	return in
}

func (rm *room) editWebhook(r *shell.Request, e endpoint) (shell.View, error) {
	err := r.StillSo(former(e))
	if err != nil {
		return shell.View{}, err
	}
	both := r.Merge(former(e))
	f := rm.readWebhook(r)
	f.Of = &e
	status := http.StatusBadRequest
	if f.Overtaken(both) {
		status = http.StatusConflict
	}
	in := f.changes()
	if len(f.Bad) == 0 {
		then := e.Webhook
		if in != (webhook.PatchInput{}) {
			then, err = rm.Webhooks.Patch(r.Context(), r.Person.Environment.ID, e.ID, in, rm.Now())
		}
		if err == nil {
			r.Undoable("Saved.", e.Page(), former(e), former(endpoint{Webhook: then}))
			return shell.Redirect(e.Page()), nil
		}
		if status, err = f.TakeErr(err); err != nil {
			return shell.View{}, err
		}
	} else if in != (webhook.PatchInput{}) {
		f.AddErr(in.Check(rm.EventTypes))
	}
	return rm.renderWebhook(status, f, false), nil
}

// Former is likewise for a webhook.
func (e endpoint) Former() string { return former(e).Encode() }

// former are the settings of a webhook as the form that changes them sends them.
func former(e endpoint) url.Values {
	v := url.Values{"address": {e.Address}, "which": {"all"}}
	if len(e.Types) > 0 {
		v["which"], v["type"] = []string{"chosen"}, e.Types
	}
	return v
}

// state is whether a webhook is enabled.
func state(e endpoint) url.Values {
	return url.Values{"enabled": {fmt.Sprint(e.Enabled)}}
}

const webhookAPI = "/system/v1/webhooks"

func (rm *room) showWebhookCode(r *shell.Request) (shell.View, error) {
	f := rm.readWebhook(r)
	f.FormErrors = shell.FormErrors{}
	return rm.renderWebhook(http.StatusOK, f, !r.Resumed()), nil
}

func (rm *room) showEditWebhookCode(r *shell.Request, e endpoint) (shell.View, error) {
	both := r.Merge(former(e))
	f := rm.readWebhook(r)
	f.Of, f.FormErrors = &e, shell.FormErrors{}
	f.Overtaken(both)
	return rm.renderWebhook(http.StatusOK, f, !r.Resumed()), nil
}

// renderWebhook shows the form of a webhook, with its code.
func (rm *room) renderWebhook(
	status int, f webhookForm, open bool,
) shell.View {
	if f.Of == nil {
		f.Code = rm.Code("make", shell.WebhooksPath+"/code", sdkcode.Request{
			Path: webhookAPI, Body: sdkcode.Object{}.With("address", f.Address).With("event_types", f.types),
			Node: "system.webhooks.create", Once: "signing_secret",
		})
	} else {
		f.Code = rm.Code("make", f.Of.Page()+"/code", sdkcode.Request{
			Method: http.MethodPatch, Path: webhookAPI + "/" + url.PathEscape(string(f.Of.ID)),
			IDs: []string{string(f.Of.ID)}, Body: webhookBody(f.changes()), Node: "system.webhooks.update",
		})
	}
	f.Code.Open = open
	if f.Chosen && len(f.types) == 0 {
		f.Code.None = "Choose at least one type to see the request."
	}
	return shell.ShowAs(status, "webhookform", f)
}

// webhookBody is what the API would be sent of changes that the form can make. No types stand for all.
func webhookBody(in webhook.PatchInput) (o sdkcode.Object) {
	o = sdkcode.Given(o, "address", in.Address)
	o = sdkcode.Given(o, "event_types", in.Types)
	return o
}
