package respond

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"millrace/internal/fault"
)

// Error is what a response says that is not a success.
type Error struct {
	Type     string   `json:"type"`
	Code     string   `json:"code,omitempty"`
	Message  string   `json:"message,omitempty"` // all messages in one string, which some players look for
	Messages []string `json:"messages"`
}

// Refuse responds with an error.
func Refuse(w http.ResponseWriter, status int, e Error) {
	if e.Messages == nil {
		e.Messages = []string{}
	}
	JSON(w, status, map[string]Error{"error": e})
}

// JSON responds with a body.
func JSON(w http.ResponseWriter, status int, body any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // people read it, and no browser takes it for HTML
	if err := e.Encode(body); err != nil {
		status, b = http.StatusInternalServerError, *bytes.NewBufferString("{}") // bodies marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n"))) // the client may have left
}

// Head is the writer of a response to HEAD: it has no body.
type Head struct{ http.ResponseWriter }

// Write implements http.ResponseWriter.
func (Head) Write(p []byte) (int, error) { return len(p), nil }

// Fail tells an error, with the sentences of a fault and nothing else of it. What is ours to mend is logged.
func (s Surface) Fail(w http.ResponseWriter, r *http.Request, err error, log func(ctx context.Context, err error)) {
	status, messages := s.Of(err), fault.Messages(err)
	switch status.Code {
	case http.StatusServiceUnavailable:
		RetryAfter(w, 0)
		messages = []string{"The service is not available at the moment; try again"}
	case http.StatusInternalServerError:
		if r.Context().Err() == nil {
			log(r.Context(), err)
		}
		messages = []string{"The service could not respond because of an error of its own"}
	}
	Refuse(w, status.Code, Error{Type: status.Type, Messages: messages})
}

// RetryAfter says when asking again can help: in a second at the earliest.
func RetryAfter(w http.ResponseWriter, after time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(after.Seconds())))))
}

// UnreadTime is how long what is left of a body may take to come after the response, so that a client that still sends
// gets to read that.
const UnreadTime = time.Second

// Unread has the connection of a request end whose body nobody reads. Otherwise net/http would read on before it sends
// the response, for the sake of the next request, and for as long as the client likes.
func Unread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(UnreadTime)) // not every writer has deadlines
	}
}

// CleanPath reports whether path.Clean would leave a path as it is. Nearly all are seen to be so at once.
func CleanPath(p string) bool {
	if p != "" && p[0] == '/' && p[len(p)-1] != '/' && !strings.Contains(p, "//") && !strings.Contains(p, "/.") {
		return true
	}
	return path.Clean(p) == p
}

// PlainPath reports whether http.ServeMux takes a path as it is: clean, and with a slash at its end or without.
func PlainPath(p string) bool {
	return CleanPath(p) || p != "//" && strings.HasSuffix(p, "/") && CleanPath(p[:len(p)-1])
}
