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

func (r WebhookRef) id() id.Webhook { return id.Webhook(r.ID) }

func (s *server) routeWebhooks() {
	handle(s, route{
		method: http.MethodPost, path: webhookPath, id: "create-webhook", tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Create a webhook", text: "Sends events from now on. The signing_secret is shown only in this response.",
	}, s.createWebhook)
	handle(s, route{
		method: http.MethodGet, path: webhookPath, id: "list-webhooks", tag: webhookTag, permission: systemRead, summary: "List webhooks", text: "Newest first.",
	}, s.listWebhooks)
	handle(s, route{
		method: http.MethodGet, path: webhookItem, id: "get-webhook", tag: webhookTag, permission: systemRead, summary: "Retrieve a webhook",
	}, s.getWebhook)
	handle(s, route{
		method: http.MethodPatch, path: webhookItem, id: "update-webhook", tag: webhookTag, permission: systemWrite, summary: "Update a webhook",
		text: "Changes only the fields that are sent; at least one is required.",
	}, s.updateWebhook)
	handle(s, route{
		method: http.MethodDelete, path: webhookItem, id: "delete-webhook", tag: webhookTag, status: http.StatusNoContent, permission: systemWrite,
		summary: "Delete a webhook",
	}, s.deleteWebhook)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/rotate-secret", id: "rotate-webhook-secret", tag: webhookTag, status: http.StatusCreated,
		permission: systemWrite, summary: "Rotate the signing secret", text: "For 24 hours deliveries are signed with the old secret as well.",
	}, s.rotateSecret)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/test", id: "test-webhook", tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Send a test event to a webhook", text: "Sends system.webhook.test to this webhook only. Its deliveries show the result.",
	}, s.testWebhook)
	handle(s, route{
		method: http.MethodGet, path: webhookItem + "/deliveries", id: "list-webhook-deliveries", tag: webhookTag, permission: systemRead,
		summary: "List a webhook's deliveries", text: "Newest event first, each with all its attempts.",
	}, s.listDeliveries)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/deliveries/{event_id}/replay", id: "replay-webhook-delivery", tag: webhookTag,
		status: http.StatusCreated, permission: systemWrite, summary: "Redeliver an event",
	}, s.replayDelivery)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/replay", id: "replay-webhook", tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Redeliver all events since a time", text: "In order, before any new events.",
	}, s.replayWebhook)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/replay-failed", id: "replay-failed-webhook-deliveries",
		tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Redeliver failed events",
		text:    "Oldest first, each retried for another 24 hours; at most 100,000 per request.",
	}, s.replayFailed)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/retry", id: "retry-webhook-deliveries", tag: webhookTag,
		status: http.StatusCreated, permission: systemWrite, summary: "Retry waiting deliveries now",
		text: "Makes the next attempt at once for all deliveries that wait for theirs; at most 100,000 per request. " +
			"Deliveries that wait for an earlier event of the same resource still follow that event.",
	}, s.retryDeliveries)
	handle(s, route{
		method: http.MethodPost, path: webhookItem + "/deliveries/{event_id}/skip", id: "skip-webhook-delivery",
		tag: webhookTag, status: http.StatusCreated, permission: systemWrite,
		summary: "Skip a waiting event",
		text: "The event is no longer sent to this webhook, so the next event of its resource can be. An attempt " +
			"already in progress is finished. A skipped event can be redelivered; it then arrives after later events.",
	}, s.skipDelivery)
}

type createWebhookInput struct{ Body WebhookCreate }

func (s *server) createWebhook(ctx context.Context, in *createWebhookInput) (*one[Webhook], error) {
	w, err := s.webhooks.Create(ctx, environment(ctx), in.Body.input(), s.now())
	return just(withSecret(w)), err
}

func (s *server) listWebhooks(ctx context.Context, in *Page) (*many[Webhook], error) {
	page, limit, err := in.read()
	if err != nil {
		return nil, err
	}
	list, err := s.webhooks.List(ctx, environment(ctx), page, limit)
	return all(convert(list, wireWebhook)), err
}

func (s *server) getWebhook(ctx context.Context, in *WebhookRef) (*one[Webhook], error) {
	w, err := s.webhooks.Get(ctx, environment(ctx), in.id())
	return just(wireWebhook(w)), err
}

type updateWebhookInput struct {
	WebhookRef
	Body WebhookUpdate
}

func (s *server) updateWebhook(ctx context.Context, in *updateWebhookInput) (*one[Webhook], error) {
	w, err := s.webhooks.Patch(ctx, environment(ctx), in.id(), in.Body.input(), s.now())
	return just(wireWebhook(w)), err
}

func (s *server) deleteWebhook(ctx context.Context, in *WebhookRef) (*none, error) {
	return &none{}, s.webhooks.Delete(ctx, environment(ctx), in.id())
}

func (s *server) rotateSecret(ctx context.Context, in *WebhookRef) (*one[Webhook], error) {
	w, err := s.webhooks.RotateSecret(ctx, environment(ctx), in.id(), s.now())
	return just(withSecret(w)), err
}

func (s *server) testWebhook(ctx context.Context, in *WebhookRef) (*one[Event], error) {
	e, err := s.webhooks.Test(ctx, environment(ctx), in.id(), s.now())
	if err != nil {
		return nil, err
	}
	shown, err := s.form.Show(ctx, e)
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

func (s *server) listDeliveries(ctx context.Context, in *listDeliveriesInput) (*listDeliveriesOutput, error) {
	var problems fault.List
	q := webhook.DeliveryQuery{
		State: webhook.State(in.Status), Before: readSequence(&problems, "cursor", in.Cursor),
		Limit: readNumber(&problems, "limit", string(in.Limit), maxLimit, defaultLimit),
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	list, err := s.webhooks.Deliveries(ctx, environment(ctx), in.id(), q)
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

func (s *server) replayDelivery(ctx context.Context, in *deliveryInput) (*one[WebhookDelivery], error) {
	d, err := s.webhooks.ReplayEvent(ctx, environment(ctx), in.id(), in.Event)
	return just(wireDelivery(d)), err
}

type replayWebhookInput struct {
	WebhookRef
	Body WebhookReplay
}

func (s *server) replayWebhook(ctx context.Context, in *replayWebhookInput) (*one[Webhook], error) {
	var problems fault.List
	if in.Body.Since == "" {
		problems.At("since", "is required")
	}
	since := moment(&problems, "since", in.Body.Since)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	w, err := s.webhooks.ReplaySince(ctx, environment(ctx), in.id(), since)
	return just(wireWebhook(w)), err
}

type replayFailedInput struct {
	WebhookRef
	Body *WebhookReplayFailed
}

func (s *server) replayFailed(ctx context.Context, in *replayFailedInput) (*one[WebhookResent], error) {
	var problems fault.List
	var since time.Time
	if in.Body != nil {
		since = moment(&problems, "since", in.Body.Since)
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	n, err := s.webhooks.ReplayFailed(ctx, environment(ctx), in.id(), since)
	return just(WebhookResent{n}), err
}

func (s *server) retryDeliveries(ctx context.Context, in *WebhookRef) (*one[WebhookResent], error) {
	n, err := s.webhooks.Retry(ctx, environment(ctx), in.id())
	return just(WebhookResent{n}), err
}

func (s *server) skipDelivery(ctx context.Context, in *deliveryInput) (*one[WebhookDelivery], error) {
	d, err := s.webhooks.Skip(ctx, environment(ctx), in.id(), in.Event)
	return just(wireDelivery(d)), err
}
