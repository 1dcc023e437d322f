package webhooks

import (
	"context"
	"strconv"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/web/dashboard/shell"
)

// canResend looks whether there is something that could be sent now or again.
func (rm *room) canResend(ctx context.Context, v *webhookPage) error {
	newest := func(state webhook.State) ([]webhook.Delivery, error) {
		return rm.Webhooks.Deliveries(ctx, v.Environment, v.ID, webhook.DeliveryQuery{State: state, Limit: 1})
	}
	waits, err := newest(webhook.Waiting)
	if err != nil {
		return err
	}
	for _, d := range waits { // behind an earlier event is one that was tried
		v.Pauses = d.Reason == webhook.BeforeRetry || d.Reason == webhook.AfterEarlier
	}
	failed, err := newest(webhook.Failed)
	v.Failed = shell.AtMost(len(failed), maxCounted)
	return err
}

// replayEvent has one event sent again, and goes back to the page.
func (rm *room) replayEvent(r *shell.Request) (shell.View, error) {
	if _, err := rm.Webhooks.ReplayEvent(r.Context(), r.Person.Environment.ID, webhookID(r),
		r.PathValue("event")); err != nil {
		return shell.View{}, err
	}
	return shell.Redirect(shell.Local(r.PostFormValue("back"))), nil
}

// askSkip asks whether an event is to be skipped.
func (rm *room) askSkip(_ *shell.Request, d delivery) (shell.View, error) {
	return shell.Show("ask", shell.Question{
		Heading: "Skip this event?", Name: d.EventType, Class: "harm", Yes: "Skip it", No: "Keep trying",
		Text: "It is not sent to " + d.Webhook.Address + " any more. What waits behind it for the same object is " +
			"sent at once. It can be sent again later; then it comes after those.",
		ListAddress: shell.WebhooksPath, ListName: "Webhooks", Address: d.Webhook.Page(), To: d.Skip(),
	}), nil
}

// skipEvent has one event not sent.
func (rm *room) skipEvent(r *shell.Request) (shell.View, error) {
	d, err := rm.deliveryOf(r)
	if err == nil {
		_, err = rm.Webhooks.Skip(r.Context(), r.Person.Environment.ID, d.Webhook.ID, d.EventID)
	}
	return shell.Redirect(sent(d.Webhook)), err
}

// deliveryOf reads the delivery that a request names.
func (rm *room) deliveryOf(r *shell.Request) (delivery, error) {
	of, err := rm.webhookOf(r)
	if err != nil {
		return delivery{}, err
	}
	sequence, _ := strconv.ParseInt(r.PathValue("sequence"), 10, 64) // what is none counts as one that is not there
	found, err := rm.Webhooks.Deliveries(r.Context(), r.Person.Environment.ID, of.ID, webhook.DeliveryQuery{
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
