// Package event is the envelope of an event, whatever resource it is about and whoever receives it.
package event

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"millrace/internal/id"
)

// Event is appended in the same transaction as the change it tells of.
type Event struct {
	ID          string // UUID
	Environment id.Environment
	Type        string // "video.live_stream.created"
	ObjectKind  string // "live_stream", "asset", "track"
	ObjectID    string
	// Resource is what the event is ordered with: the asset of a track, the live stream of a simulcast target, else the
	// object itself.
	Resource string
	At       time.Time
	Data     json.RawMessage // the object at that time, as its noun stores it, without secrets

	// Given by the store.
	Number int64 // counts the events of the resource, from 1, without holes
	// counts all events in the order in which they can be read: who has read up to one has missed none before it
	Sequence  int64
	RequestID string // of the API request that caused it; empty: none did
}

// New makes an event about data. data holds no secrets: it is stored, and shown to everybody who may read events.
func New(env id.Environment, typ, kind, object string, at time.Time, data any) Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("event data of " + typ + " is not JSON: " + err.Error()) // a noun's own type always marshals
	}
	return Event{
		ID:          id.NewOrderedUUID(at),
		Environment: env,
		Type:        typ,
		ObjectKind:  kind,
		ObjectID:    object,
		Resource:    object,
		At:          at,
		Data:        raw,
	}
}

// Of orders the event with those of another resource, which its object is a part of.
func (e Event) Of(resource string) Event {
	e.Resource = resource
	return e
}

// Last reports whether the resource is gone: nothing happens to it any more. Deleting what is a part of it, such as the
// master of an asset, is not its end.
func (e Event) Last() bool {
	return e.Resource == e.ObjectID && strings.HasSuffix(e.Type, "."+e.ObjectKind+".deleted")
}

// Query selects events. Fields that are empty select all.
type Query struct {
	Environment  id.Environment
	Types        []string
	Object       string    // ID of the object, or of the resource that it is a part of
	Since, Until time.Time // of Event.At: from Since on, before Until
	After        int64     // sequence of the event that they come after
	Before       int64     // sequence of the event that they come before; 0: of none
	Sequences    []int64   // those alone; none: all
	NewestFirst  bool
	Limit        int // at most so many; it must be given
}

type requestKey struct{}

// WithRequest has the events of changes that are made with the context name a request.
func WithRequest(ctx context.Context, request string) context.Context {
	return context.WithValue(ctx, requestKey{}, request)
}

// RequestOf is the request that a context belongs to, or "".
func RequestOf(ctx context.Context) string {
	v, _ := ctx.Value(requestKey{}).(string)
	return v
}
