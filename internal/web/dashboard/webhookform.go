package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"millrace/internal/control/webhook"
)

// webhookForm is the page on which a webhook is made or changed: what was chosen, and what is wrong with it.
type webhookForm struct {
	Address string
	Chosen  bool // only events of some types are sent
	Groups  []typeGroup
	Of      *endpoint // that is changed; nil: a new one is made
	Code    code
	types   []string
	said
}

func (s *server) readWebhook(r *request) webhookForm {
	f := webhookForm{
		Address: r.Text("address"), Chosen: r.Text("which") == "chosen",
		said: said{fields: []fieldAt{{"address", "address", "Address"}, {"event_types", "which", "Events"}}},
	}
	for _, t := range s.EventTypes {
		if slices.Contains(r.PostForm["type"], t) || slices.Contains(r.PostForm["group"], groupOf(t)) {
			f.types = append(f.types, t)
		}
	}
	for _, t := range r.PostForm["type"] {
		if !slices.Contains(s.EventTypes, t) { // the service says what is wrong with it
			f.types = append(f.types, strings.ToValidUTF8(t, "\uFFFD"))
		}
	}
	f.Groups = grouped(s.EventTypes, f.types)
	if !f.Chosen {
		f.types = nil
	} else if len(f.types) == 0 {
		f.beside("which", "Choose at least one, or everything.")
	}
	return f
}

func (s *server) showNewWebhook(r *request) (view, error) {
	return s.renderWebhook(r, http.StatusOK, webhookForm{Groups: grouped(s.EventTypes, nil)}, false)
}

func (s *server) createWebhook(r *request) (view, error) {
	f := s.readWebhook(r)
	in := webhook.CreateInput{Address: f.Address, Types: f.types}
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, err := s.Webhooks.Create(r.Context(), r.Person.Environment.ID, in, s.Now())
		if err == nil {
			return s.renderSecret(r, made, shownOnce{
				Heading: "The webhook is made",
				Keep:    "Configure it in your receiver. If it is lost, rotate it on the webhook's page.",
			})
		}
		var known bool
		if status, known = f.refused(err); !known {
			return view{}, err
		}
	} else {
		f.also(in.Check(s.EventTypes))
	}
	return s.renderWebhook(r, status, f, false)
}

func (s *server) showEditWebhook(r *request) (view, error) {
	e, err := s.webhookOf(r)
	if err != nil {
		return view{}, err
	}
	return s.renderWebhook(r, http.StatusOK, webhookForm{
		Address: e.Address, Chosen: len(e.Types) > 0, Groups: grouped(s.EventTypes, e.Types), Of: &e, types: e.Types,
	}, false)
}

// changes is what of the webhook is to be another.
func (f webhookForm) changes() (in webhook.PatchInput) {
	if !kept(f.Address, f.Of.Address) {
		in.Address = &f.Address
	}
	if now := f.Of.Types; !slices.Equal(slices.Sorted(slices.Values(f.types)), slices.Sorted(slices.Values(now))) {
		in.Types = &f.types
	}
	return in
}

func (s *server) editWebhook(r *request) (view, error) {
	e, err := s.webhookOf(r)
	if err != nil {
		return view{}, err
	}
	if err = r.StillSo(webhookFormer(e)); err != nil {
		return view{}, err
	}
	both := r.Merge(webhookFormer(e))
	f := s.readWebhook(r)
	f.Of = &e
	status := http.StatusBadRequest
	if f.overtaken(both) {
		status = http.StatusConflict
	}
	in := f.changes()
	if len(f.Bad) == 0 {
		then := e.Webhook
		if in != (webhook.PatchInput{}) {
			then, err = s.Webhooks.Patch(r.Context(), r.Person.Environment.ID, e.ID, in, s.Now())
		}
		if err == nil {
			r.Undoable("Saved.", e.Page(), webhookFormer(e), webhookFormer(endpoint{Webhook: then}))
			return redirect(e.Page()), nil
		}
		var known bool
		if status, known = f.refused(err); !known {
			return view{}, err
		}
	} else if in != (webhook.PatchInput{}) {
		f.also(in.Check(s.EventTypes))
	}
	return s.renderWebhook(r, status, f, false)
}
