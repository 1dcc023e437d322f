package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/event"
	"millrace/internal/control/live"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// Event is what happened, in responses and in what webhooks are sent.
type Event struct {
	Type           string           `json:"type" example:"video.asset.ready"`
	ID             string           `json:"id" doc:"The same in every delivery of this event."`
	CreatedAt      string           `json:"created_at" format:"date-time"`
	Object         EventObject      `json:"object"`
	Environment    EventEnvironment `json:"environment"`
	Data           EventData        `json:"data" doc:"The object as it was then, as the API returns it, but with created_at as a number. Stream keys are included only in deliveries to webhooks."`
	Accessor       *string          `json:"accessor" nullable:"true"`
	AccessorSource *string          `json:"accessor_source" nullable:"true"`
	RequestID      *string          `json:"request_id" nullable:"true" doc:"X-Request-Id of the API request that caused it."`
	Attempts       []EventAttempt   `json:"attempts" doc:"The last 36 attempts to deliver it to the webhook; in lists, the last 20 to any webhook."`
	Sequence       int64            `json:"sequence" doc:"Increases from event to event: a reader that has got this far has missed none before it."`
	Resource       EventResource    `json:"resource"`
}

// EventData is the object of an event: any of the API's.
type EventData struct{ object any }

// Schema documents it.
func (EventData) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// MarshalJSON implements json.Marshaler.
func (e EventData) MarshalJSON() ([]byte, error) { return json.Marshal(e.object) }

// EventObject is what an event is about.
type EventObject struct {
	Type string `json:"type" example:"asset"`
	ID   string `json:"id"`
}

// EventEnvironment is where it happened.
type EventEnvironment struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// EventResource is what an event is ordered with.
type EventResource struct {
	ID     string `json:"id" doc:"For tracks and files the asset, for simulcast targets the live stream, otherwise the object itself."`
	Number int64  `json:"number" doc:"Counts the resource's events from 1, without gaps."`
}

// EventAttempt is one attempt to send an event to a webhook.
type EventAttempt struct {
	ID          string            `json:"id"`
	WebhookID   string            `json:"webhook_id"`
	Address     string            `json:"address"`
	CreatedAt   string            `json:"created_at" format:"date-time"`
	MaxAttempts int               `json:"max_attempts"`
	Status      int               `json:"response_status_code,omitempty" doc:"Absent if there was no response."`
	Headers     map[string]string `json:"response_headers,omitempty" doc:"At most 32, in 2 KiB; several values of one name are separated by commas."`
	Body        string            `json:"response_body,omitempty" doc:"The first KiB."`
	Error       string            `json:"error,omitempty" doc:"Why there was no response."`
	Duration    int64             `json:"duration_ms,omitempty" doc:"Milliseconds."`
}

// EventForm shows stored events in the form of the API. Fields must be set.
type EventForm struct {
	Environment func(ctx context.Context, e id.Environment) (access.Environment, error)
	LiveStream  func(ctx context.Context, s id.LiveStream) (live.Stream, error)
	Asset       func(ctx context.Context, a id.Asset) (asset.Asset, error)
	Upload      func(ctx context.Context, u id.Upload) (upload.Upload, error)
	PublicURL   string // without a slash at the end
}

// page is the form for events of one page: each environment is read once.
func (ef EventForm) page() EventForm {
	find, known := ef.Environment, map[id.Environment]access.Environment{}
	ef.Environment = func(ctx context.Context, e id.Environment) (access.Environment, error) {
		if env, is := known[e]; is {
			return env, nil
		}
		env, err := find(ctx, e)
		if err == nil {
			known[e] = env
		}
		return env, err
	}
	return ef
}

// Show is an event without secrets, for anyone who may read events.
func (ef EventForm) Show(ctx context.Context, e event.Event) (Event, error) {
	data, err := ef.data(ctx, e, false)
	if err != nil {
		return Event{}, err
	}
	return ef.envelope(ctx, e, data)
}

// Send is an event with the secrets that its object has now, for a webhook.
func (ef EventForm) Send(ctx context.Context, e event.Event) (Event, error) {
	data, err := ef.data(ctx, e, true)
	if err != nil {
		return Event{}, err
	}
	return ef.envelope(ctx, e, data)
}

func (ef EventForm) envelope(ctx context.Context, e event.Event, data any) (Event, error) {
	env, err := ef.Environment(ctx, e.Environment)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return Event{}, err
	}
	out := Event{
		Type:        e.Type,
		ID:          e.ID,
		CreatedAt:   e.At.UTC().Format(microseconds),
		Object:      EventObject{Type: objectType(e.ObjectKind), ID: e.ObjectID},
		Environment: EventEnvironment{Name: env.Name, ID: string(e.Environment)},
		Data:        EventData{data},
		Attempts:    []EventAttempt{},
		Sequence:    e.Sequence,
		Resource:    EventResource{ID: or(e.Resource, e.ObjectID), Number: e.Number},
	}
	if e.RequestID != "" {
		out.RequestID = &e.RequestID
	}
	return out, nil
}

// objectType is a kind of object by its name in events.
func objectType(kind string) string {
	if kind == live.EventObject {
		return "live"
	}
	return strings.ReplaceAll(kind, "_", "-")
}

// data is the object of an event. Kinds that are not known here are shown as they are stored.
func (ef EventForm) data(ctx context.Context, e event.Event, secrets bool) (any, error) {
	switch e.Type {
	case live.EventWarning:
		return ef.liveWarning(ctx, e, secrets)
	case asset.EventWarning:
		return assetWarning(e)
	}
	switch e.ObjectKind {
	case live.EventObject:
		return ef.liveStream(ctx, e, secrets)
	case live.EventTargetObject:
		return ef.target(ctx, e, secrets)
	case asset.EventObject:
		return ef.asset(ctx, e, secrets)
	case asset.EventTrackObject:
		t, err := stored[asset.Track](e)
		return eventTrack{wireTrack(t), string(t.Asset)}, err
	case asset.EventFileObject:
		file, err := stored[asset.StaticRendition](e)
		return eventFile{wireFile(file), string(file.Asset), wireProblem(file.Errors)}, err
	case upload.EventObject:
		return ef.upload(ctx, e, secrets)
	}
	return e.Data, nil
}

// stored is the data of an event as its noun stored it.
func stored[T any](e event.Event) (v T, err error) {
	if err = json.Unmarshal(e.Data, &v); err != nil {
		return v, fmt.Errorf("read data of event %s: %w", e.ID, err)
	}
	return v, nil
}

// The objects of events differ from those in responses of the API in a few fields.
type (
	eventStream struct {
		LiveStream

		CreatedAt int64  `json:"created_at"`
		StreamKey string `json:"stream_key,omitempty"` // only when it is sent
		Connected bool   `json:"connected"`
		Recording bool   `json:"recording"`
	}
	eventAsset struct {
		Asset

		CreatedAt int64 `json:"created_at"`
	}
	eventTrack struct {
		Track

		AssetID string `json:"asset_id"`
	}
	eventFile struct {
		StaticRendition

		AssetID string   `json:"asset_id"`
		Error   *Problem `json:"error,omitempty"`
	}
	eventTarget struct {
		SimulcastTarget

		LiveStreamID string `json:"live_stream_id,omitempty"`
	}
	eventWarning struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	eventLiveWarning struct {
		ID          string       `json:"id"`
		StreamKey   string       `json:"stream_key,omitempty"`
		Status      string       `json:"status"`
		ActiveAsset string       `json:"active_asset_id,omitempty"`
		Passthrough string       `json:"passthrough,omitempty"`
		Warning     eventWarning `json:"warning"`
	}
	eventAssetWarning struct {
		ID          string       `json:"id"`
		Status      string       `json:"status"`
		LiveStream  string       `json:"live_stream_id,omitempty"`
		SourceAsset string       `json:"source_asset_id,omitempty"`
		Upload      string       `json:"upload_id,omitempty"`
		Passthrough string       `json:"passthrough,omitempty"`
		Warning     eventWarning `json:"warning"`
	}
)

// current reads what an object has become; the zero value when it is gone.
func current[K ~string, T any](ctx context.Context, key K, find func(context.Context, K) (T, error)) (v T, err error) {
	v, err = find(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return v, nil
	}
	return v, err
}

// upload has its URLs only when it is sent, and only while they can be used.
func (ef EventForm) upload(ctx context.Context, e event.Event, secrets bool) (any, error) {
	u, err := stored[upload.Upload](e)
	if err != nil {
		return nil, err
	}
	u = u.WithoutSecrets()
	if secrets {
		today, err := current(ctx, u.ID, ef.Upload)
		if err != nil {
			return nil, err
		}
		u = u.WithSecrets(today)
	}
	return wireUpload(u, ef.PublicURL), nil
}

func (ef EventForm) liveStream(ctx context.Context, e event.Event, secrets bool) (any, error) {
	st, err := stored[live.Stream](e)
	if err != nil {
		return nil, err
	}
	st = st.WithoutSecrets()
	if secrets {
		today, err := current(ctx, st.ID, ef.LiveStream)
		if err != nil {
			return nil, err
		}
		st = st.WithSecrets(today)
	}
	return eventStream{
		wireLiveStream(st), st.CreatedAt.Unix(), st.StreamKey, st.State.HasEncoder(), st.State.Records(),
	}, nil
}

func (ef EventForm) target(ctx context.Context, e event.Event, secrets bool) (any, error) {
	t, err := stored[live.SimulcastTarget](e)
	if err != nil {
		return nil, err
	}
	t = t.WithoutSecrets()
	if secrets {
		today, err := current(ctx, id.LiveStream(e.Resource), ef.LiveStream)
		if err != nil {
			return nil, err
		}
		t = t.WithSecrets(today)
	}
	out := eventTarget{SimulcastTarget: wireTarget(t)}
	if e.Resource != e.ObjectID { // earlier versions did not store it
		out.LiveStreamID = e.Resource
	}
	return out, nil
}

func (ef EventForm) asset(ctx context.Context, e event.Event, secrets bool) (any, error) {
	a, err := stored[asset.Asset](e)
	if err != nil {
		return nil, err
	}
	a = a.WithoutSecrets()
	if secrets && a.Master != nil {
		today, err := current(ctx, a.ID, ef.Asset)
		if err != nil {
			return nil, err
		}
		a = a.WithSecrets(today)
	}
	return eventAsset{assetAt(ef.PublicURL, a), a.CreatedAt.Unix()}, nil
}

func (ef EventForm) liveWarning(ctx context.Context, e event.Event, secrets bool) (any, error) {
	w, err := stored[live.Warned](e)
	if err != nil {
		return nil, err
	}
	out := eventLiveWarning{
		ID:          string(w.ID),
		Status:      string(w.State.Status()),
		ActiveAsset: string(w.ActiveAsset),
		Passthrough: w.Passthrough,
		Warning:     eventWarning(w.Warning),
	}
	if secrets {
		today, err := current(ctx, w.ID, ef.LiveStream)
		if err != nil {
			return nil, err
		}
		out.StreamKey = today.StreamKey
	}
	return out, nil
}

func assetWarning(e event.Event) (any, error) {
	w, err := stored[asset.Warned](e)
	return eventAssetWarning{
		ID:          string(w.ID),
		Status:      string(w.Status),
		LiveStream:  string(w.LiveStream),
		SourceAsset: string(w.SourceAsset),
		Upload:      string(w.Upload),
		Passthrough: w.Passthrough,
		Warning:     eventWarning(w.Warning),
	}, err
}

// moment reads a time of a query: RFC 3339, or seconds since 1970.
func moment(problems *fault.List, name, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t
	}
	var seconds int64
	if _, err := fmt.Sscanf(text, "%d", &seconds); err == nil && fmt.Sprint(seconds) == text && seconds >= 0 &&
		seconds < 1<<40 {
		return time.Unix(seconds, 0)
	}
	problems.At(name, "must be a time such as 2026-01-02T15:04:05Z, or seconds since 1970")
	return time.Time{}
}
