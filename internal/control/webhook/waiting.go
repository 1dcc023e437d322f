package webhook

import "millrace/internal/fault"

// Reason is why a delivery waits.
type Reason string

// The reasons, the first that applies.
const (
	WebhookDisabled Reason = "webhook_disabled" // it is sent once the endpoint is enabled
	AfterEarlier    Reason = "earlier_event"    // an earlier event of its resource waits, and comes first
	BeforeRetry     Reason = "retry"            // an attempt has failed, and the next one is at NextAt
	InQueue         Reason = "in_queue"         // it is sent as soon as there is room among the attempts at a time
)

// EarlierEvent is an event that waits for the same endpoint as a later one of its resource.
type EarlierEvent struct {
	Sequence int64
	ID       string
}

// reason is why a delivery of the endpoint waits.
func (w Webhook) reason(d Delivery) Reason {
	switch {
	case d.State != Waiting:
		return ""
	case !w.Enabled:
		return WebhookDisabled
	case d.Earlier.Sequence != 0:
		return AfterEarlier
	case !d.NextAt.IsZero():
		return BeforeRetry
	}
	return InQueue
}

// explained says of deliveries of the endpoint why they wait.
func (w Webhook) explained(all []Delivery) []Delivery {
	for i := range all {
		all[i].Reason = w.reason(all[i])
	}
	return all
}

// Batch is a part of the deliveries that are changed.
type Batch struct {
	After int64 // sequence of the event that they are of later ones than
	Limit int   // how many there are at most
}

// Batched is what has become of a Batch.
type Batched struct {
	Count int   // deliveries that were changed
	Last  int64 // sequence of the last event that was looked at
	More  bool  // there may be more behind it
}

// errNotWaiting is what nothing can be skipped by.
var errNotWaiting = fault.New(fault.Conflict,
	"the event does not wait to be sent to the webhook, so it can't be skipped")

// NotWaiting is what a store returns when a delivery that is to be skipped does not wait.
func NotWaiting() error { return errNotWaiting }
