package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	webhookTag  = "Webhooks"
	webhookPath = "/system/v1/webhooks"
	webhookItem = webhookPath + "/{webhook_id}"
)

// WebhookRef names a webhook in a path; exported for huma, which reads embedded fields of exported types only.
type WebhookRef struct {
	ID string `path:"webhook_id" maxLength:"255"`
}

func (w WebhookRef) id() id.Webhook { return id.Webhook(w.ID) }

type webhooks struct {
	webhooks webhook.API
	form     EventForm
	now      func() time.Time
}

func (w webhooks) register(on *server) {
	handle(on, route{
		method: http.MethodPost, path: webhookPath, id: "create-webhook", tag: webhookTag, status: http.StatusCreated,
		permission: systemWrite,
		summary:    "Create a webhook",
		text:       "Sends events from now on. The signing_secret is shown only in this response.",
	}, w.create)
	handle(on, route{
		method: http.MethodGet, path: webhookPath, id: "list-webhooks", tag: webhookTag, permission: systemRead,
		summary: "List webhooks", text: "Newest first.",
	}, w.list)
	handle(on, route{
		method: http.MethodGet, path: webhookItem, id: "get-webhook", tag: webhookTag, permission: systemRead,
		summary: "Retrieve a webhook",
	}, w.get)
	handle(on, route{
		method: http.MethodPatch, path: webhookItem, id: "update-webhook", tag: webhookTag, permission: systemWrite,
		summary: "Update a webhook",
		text:    "Changes only the fields that are sent; at least one is required.",
	}, w.update)
	handle(on, route{
		method: http.MethodDelete, path: webhookItem, id: "delete-webhook", tag: webhookTag,
		status: http.StatusNoContent, permission: systemWrite,
		summary: "Delete a webhook",
	}, w.delete)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/rotate-secret", id: "rotate-webhook-secret", tag: webhookTag,
		status:     http.StatusCreated,
		permission: systemWrite, summary: "Rotate the signing secret",
		text: "For 24 hours deliveries are signed with the old secret as well.",
	}, w.rotateSecret)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/test", id: "test-webhook", tag: webhookTag,
		status: http.StatusCreated, permission: systemWrite,
		summary: "Send a test event to a webhook",
		text:    "Sends system.webhook.test to this webhook only. Its deliveries show the result.",
	}, w.test)
	handle(on, route{
		method: http.MethodGet, path: webhookItem + "/deliveries", id: "list-webhook-deliveries", tag: webhookTag,
		permission: systemRead,
		summary:    "List a webhook's deliveries", text: "Newest event first, each with all its attempts.",
	}, w.listDeliveries)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/deliveries/{event_id}/replay", id: "replay-webhook-delivery",
		tag:    webhookTag,
		status: http.StatusCreated, permission: systemWrite, summary: "Redeliver an event",
	}, w.replayDelivery)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/replay", id: "replay-webhook", tag: webhookTag,
		status: http.StatusCreated, permission: systemWrite,
		summary: "Redeliver all events since a time", text: "In order, before any new events.",
	}, w.replay)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/replay-failed", id: "replay-failed-webhook-deliveries",
		tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Redeliver failed events",
		text:    "Oldest first, each retried for another 24 hours; at most 100,000 per request.",
	}, w.replayFailed)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/retry", id: "retry-webhook-deliveries", tag: webhookTag,
		status: http.StatusCreated, permission: systemWrite, summary: "Retry waiting deliveries now",
		text: "Makes the next attempt at once for all deliveries that wait for theirs; at most 100,000 per request. " +
			"Deliveries that wait for an earlier event of the same resource still follow that event.",
	}, w.retryDeliveries)
	handle(on, route{
		method: http.MethodPost, path: webhookItem + "/deliveries/{event_id}/skip", id: "skip-webhook-delivery",
		tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Skip a waiting event",
		text: "The event is no longer sent to this webhook, so the next event of its resource can be. An attempt " +
			"already in progress is finished. A skipped event can be redelivered; it then arrives after later events.",
	}, w.skipDelivery)
}

type createWebhookInput struct{ Body WebhookCreate }

func (w webhooks) create(ctx context.Context, in *createWebhookInput) (*one[Webhook], error) {
	made, err := w.webhooks.Create(ctx, environment(ctx), in.Body.input(), w.now())
	return just(withSecret(made)), err
}

func (w webhooks) list(ctx context.Context, in *Page) (*many[Webhook], error) {
	return listed(ctx, *in, w.webhooks.List, wireWebhook)
}

func (w webhooks) get(ctx context.Context, in *WebhookRef) (*one[Webhook], error) {
	found, err := w.webhooks.Get(ctx, environment(ctx), in.id())
	return just(wireWebhook(found)), err
}

type updateWebhookInput struct {
	WebhookRef
	Body WebhookUpdate
}

func (w webhooks) update(ctx context.Context, in *updateWebhookInput) (*one[Webhook], error) {
	changed, err := w.webhooks.Patch(ctx, environment(ctx), in.id(), in.Body.input(), w.now())
	return just(wireWebhook(changed)), err
}

func (w webhooks) delete(ctx context.Context, in *WebhookRef) (*none, error) {
	return &none{}, w.webhooks.Delete(ctx, environment(ctx), in.id())
}

func (w webhooks) rotateSecret(ctx context.Context, in *WebhookRef) (*one[Webhook], error) {
	changed, err := w.webhooks.RotateSecret(ctx, environment(ctx), in.id(), w.now())
	return just(withSecret(changed)), err
}

func (w webhooks) test(ctx context.Context, in *WebhookRef) (*one[Event], error) {
	e, err := w.webhooks.Test(ctx, environment(ctx), in.id(), w.now())
	if err != nil {
		return nil, err
	}
	shown, err := w.form.Show(ctx, e)
	return just(shown), err
}

type listDeliveriesInput struct {
	WebhookRef

	Status string    `query:"status" enum:"waiting,delivered,failed,skipped"`
	Cursor string    `query:"cursor" doc:"The next_cursor of the previous response."`
	Limit  pageLimit `query:"limit" doc:"Deliveries per page, from 1 to 100."`
}

// WebhookDeliveryListResponse is the envelope of a list of deliveries.
type WebhookDeliveryListResponse struct {
	Data       []WebhookDelivery `json:"data"`
	NextCursor *string           `json:"next_cursor" nullable:"true" doc:"The cursor of the next page; null on the last page."`
}

type listDeliveriesOutput struct{ Body WebhookDeliveryListResponse }

func (w webhooks) listDeliveries(ctx context.Context, in *listDeliveriesInput) (*listDeliveriesOutput, error) {
	var problems fault.List
	q := webhook.DeliveryQuery{
		State: webhook.State(in.Status), Before: readSequence(&problems, "cursor", in.Cursor),
		Limit: readNumber(&problems, "limit", string(in.Limit), maxLimit, defaultLimit),
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	list, err := w.webhooks.Deliveries(ctx, environment(ctx), in.id(), q)
	out := WebhookDeliveryListResponse{Data: convert(list, wireDelivery)}
	if len(list) == q.Limit {
		next := strconv.FormatInt(list[len(list)-1].Sequence, 10)
		out.NextCursor = &next
	}
	return &listDeliveriesOutput{out}, err
}

// deliveryInput names a delivery in a path.
type deliveryInput struct {
	WebhookRef

	Event string `path:"event_id" maxLength:"255"`
}

func (w webhooks) replayDelivery(ctx context.Context, in *deliveryInput) (*one[WebhookDelivery], error) {
	d, err := w.webhooks.ReplayEvent(ctx, environment(ctx), in.id(), in.Event)
	return just(wireDelivery(d)), err
}

type replayWebhookInput struct {
	WebhookRef
	Body WebhookReplay
}

func (w webhooks) replay(ctx context.Context, in *replayWebhookInput) (*one[Webhook], error) {
	var problems fault.List
	if in.Body.Since == "" {
		problems.At("since", "is required")
	}
	since := moment(&problems, "since", in.Body.Since)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	changed, err := w.webhooks.ReplaySince(ctx, environment(ctx), in.id(), since)
	return just(wireWebhook(changed)), err
}

type replayFailedInput struct {
	WebhookRef
	Body *WebhookReplayFailed
}

func (w webhooks) replayFailed(ctx context.Context, in *replayFailedInput) (*one[WebhookResent], error) {
	var problems fault.List
	var since time.Time
	if in.Body != nil {
		since = moment(&problems, "since", in.Body.Since)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	n, err := w.webhooks.ReplayFailed(ctx, environment(ctx), in.id(), since)
	return just(WebhookResent{n}), err
}

func (w webhooks) retryDeliveries(ctx context.Context, in *WebhookRef) (*one[WebhookResent], error) {
	n, err := w.webhooks.Retry(ctx, environment(ctx), in.id())
	return just(WebhookResent{n}), err
}

func (w webhooks) skipDelivery(ctx context.Context, in *deliveryInput) (*one[WebhookDelivery], error) {
	d, err := w.webhooks.Skip(ctx, environment(ctx), in.id(), in.Event)
	return just(wireDelivery(d)), err
}
