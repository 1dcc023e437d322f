package dashboard

import (
	"context"
	"net/http"
	"strconv"

	"millrace/internal/control/access"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
)

// canResend looks whether there is something that could be sent now or again.
func (s *server) canResend(ctx context.Context, v *webhookPage) error {
	newest := func(state webhook.State) ([]webhook.Delivery, error) {
		return s.Webhooks.Deliveries(ctx, v.Environment, v.ID, webhook.DeliveryQuery{State: state, Limit: 1})
	}
	waits, err := newest(webhook.Waiting)
	if err != nil {
		return err
	}
	for _, d := range waits { // behind an earlier event is one that was tried
		v.Pauses = d.Reason == webhook.BeforeRetry || d.Reason == webhook.AfterEarlier
	}
	failed, err := newest(webhook.Failed)
	v.Failed = atMost(len(failed), maxCounted)
	return err
}

// replayEvent has one event sent again, and goes back to the page.
func (s *server) replayEvent(w http.ResponseWriter, r *http.Request, p access.Person) {
	if _, err := s.Webhooks.ReplayEvent(r.Context(), p.Environment.ID, webhookID(r), r.PathValue("event")); err != nil {
		s.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, local(r.PostFormValue("back")), http.StatusSeeOther) //nolint:gosec // local sees to it
}

// askSkip asks whether an event is to be skipped.
func (s *server) askSkip(w http.ResponseWriter, r *http.Request, p access.Person) {
	d, err := s.deliveryOf(r, p)
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	s.render(w, r, p, http.StatusOK, "ask", question{
		Heading: "Skip this event?", Name: d.EventType, Class: "harm", Yes: "Skip it", No: "Keep trying",
		Text: "It is not sent to " + d.Webhook.Address + " any more. What waits behind it for the same object is " +
			"sent at once. It can be sent again later; then it comes after those.",
		ListAddress: webhooksPath, ListName: "Webhooks", Address: d.Webhook.Page(), To: d.Skip(),
	})
}

// skipEvent has one event not sent.
func (s *server) skipEvent(w http.ResponseWriter, r *http.Request, p access.Person) {
	d, err := s.deliveryOf(r, p)
	if err == nil {
		_, err = s.Webhooks.Skip(r.Context(), p.Environment.ID, d.Webhook.ID, d.EventID)
	}
	if err != nil {
		s.fail(w, r, p, err)
		return
	}
	http.Redirect(w, r, sent(d.Webhook), http.StatusSeeOther)
}

// deliveryOf reads the delivery that a request names.
func (s *server) deliveryOf(r *http.Request, p access.Person) (delivery, error) {
	of, err := s.webhookOf(r, p)
	if err != nil {
		return delivery{}, err
	}
	sequence, _ := strconv.ParseInt(r.PathValue("sequence"), 10, 64) // what is none counts as one that is not there
	found, err := s.Webhooks.Deliveries(r.Context(), p.Environment.ID, of.ID, webhook.DeliveryQuery{
		Before: sequence + 1, Limit: 1,
	})
	if err != nil {
		return delivery{}, err
	}
	if len(found) == 0 || found[0].Sequence != sequence {
		return delivery{}, fault.New(fault.NotFound, "the delivery does not exist")
	}
	return delivery{Delivery: found[0], Webhook: of, most: maxTries}, nil
}
