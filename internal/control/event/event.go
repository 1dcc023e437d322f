// Package event is the envelope of what happened; it knows no noun and not who listens.
package event

import (
	"encoding/json"
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
	At          time.Time
	Data        json.RawMessage // the resource at that time, as its noun stores it
}

// New makes an event about data.
func New(env id.Environment, typ, kind, object string, at time.Time, data any) Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic("event data of " + typ + " is not JSON: " + err.Error()) // a noun's own type always marshals
	}
	return Event{ID: id.NewUUID(), Environment: env, Type: typ, ObjectKind: kind, ObjectID: object, At: at, Data: raw}
}
