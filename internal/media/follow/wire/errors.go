package wire

import (
	"encoding/json"
	"net/http"
	"time"

	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

// failure is an error as it is sent.
type failure struct {
	Kind       string   `json:"kind"`
	Messages   []string `json:"messages,omitempty"`
	RetryAfter int64    `json:"retry_after_ms,omitempty"`
	Moved      bool     `json:"moved,omitempty"`
}

// MovedError says that a node does not have the edge any more that was asked about.
type MovedError struct{ Err error }

func (m *MovedError) Error() string {
	return "the broadcast is not at that node any more: " + m.Err.Error()
}

// Unwrap returns what the node said.
func (m *MovedError) Unwrap() error { return m.Err }

// Fail writes an error, with the kind and the sentences of a fault and nothing else of it; moved: the edge that was
// asked about is not here any more.
func Fail(w http.ResponseWriter, err error, moved bool) {
	status := respond.Node.Of(err)
	data, err := json.Marshal(failure{
		Kind: status.Type, Messages: fault.Messages(err),
		RetryAfter: fault.RetryAfter(err).Milliseconds(), Moved: moved,
	})
	if err != nil || len(data) > MaxError {
		data = []byte(`{"kind":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status.Code)
	_, _ = w.Write(data) // who asked may be gone; there is nothing left to tell
}

// Failed is the error that a response has; its kind is that of the fault at the node that sent it.
func Failed(status int, data []byte) error {
	f, err := Decode[failure](data)
	if err != nil {
		return err
	}
	kind, ok := respond.Node.Kind(respond.Status{Code: status, Type: f.Kind})
	if !ok {
		return garbled(nil)
	}
	out := &fault.Error{Kind: kind, RetryAfter: time.Duration(f.RetryAfter) * time.Millisecond}
	for _, m := range f.Messages {
		out.Messages = append(out.Messages, fault.Message{Text: m})
	}
	if f.Moved {
		return &MovedError{out}
	}
	return out
}
