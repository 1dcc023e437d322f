package dashboard

import (
	"net/http"
	"slices"
	"strings"

	"millrace/internal/control/access"
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

func (s *server) readWebhook(r *http.Request) webhookForm {
	f := webhookForm{
		Address: typed(r, "address"), Chosen: typed(r, "which") == "chosen",
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

func (s *server) showNewWebhook(w http.ResponseWriter, r *http.Request, p access.Person) {
	s.renderWebhook(w, r, p, http.StatusOK, webhookForm{Groups: grouped(s.EventTypes, nil)}, false)
}

func (s *server) createWebhook(w http.ResponseWriter, r *http.Request, p access.Person) {
	f := s.readWebhook(r)
	in := webhook.CreateInput{Address: f.Address, Types: f.types}
	status := http.StatusBadRequest
	if len(f.Bad) == 0 {
		made, err := s.Webhooks.Create(r.Context(), p.Environment.ID, in, s.Now())
		if err == nil {
			s.renderSecret(w, r, p, made, shownOnce{
				Heading: "The webhook is made",
				Keep:    "Configure it in your receiver. If it is lost, rotate it on the webhook's page.",
			})
			return
		}
		var known bool
		if status, known = f.refused(err); !known {
			s.fail(w, r, p, err)
			return
		}
	} else {
		f.also(in.Check(s.EventTypes))
	}
	s.renderWebhook(w, r, p, status, f, false)
}

func (s *server) showEditWebhook(w http.ResponseWriter, r *http.Request, p access.Person) {
	e, err := s.webhookOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.renderWebhook(w, r, p, http.StatusOK, webhookForm{
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

func (s *server) editWebhook(w http.ResponseWriter, r *http.Request, p access.Person) {
	e, err := s.webhookOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	if err = stillSo(r, webhookFormer(e)); err != nil {
		s.fail(w, r, p, err)
		return
	}
	both := merge(r, webhookFormer(e))
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
			then, err = s.Webhooks.Patch(r.Context(), p.Environment.ID, e.ID, in, s.Now())
		}
		if err == nil {
			s.undoable(w, r, p, "Saved.", e.Page(), webhookFormer(e), webhookFormer(endpoint{Webhook: then}))
			http.Redirect(w, r, e.Page(), http.StatusSeeOther) //nolint:gosec // of the dashboard
			return
		}
		var known bool
		if status, known = f.refused(err); !known {
			s.fail(w, r, p, err)
			return
		}
	} else if in != (webhook.PatchInput{}) {
		f.also(in.Check(s.EventTypes))
	}
	s.renderWebhook(w, r, p, status, f, false)
}
