package follow

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// writeTime is how long a client may take no bytes.
const writeTime = 10 * time.Second

// ErrGone says that the client takes no bytes any more.
var ErrGone = errors.New("client has gone")

// Stream is a response of server-sent events.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// Open begins the response.
func Open(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass it on at once
	return &Stream{w, http.NewResponseController(w)}
}

// Comment sends one.
func (s *Stream) Comment(text string) error { return s.send([]byte(": " + text + "\n\n")) }

// Event sends one by its name.
func (s *Stream) Event(name, data string) error { return s.send(event(name, data)) }

// Numbered sends one with an ID that the client gives when it comes back. Its data is one line.
func (s *Stream) Numbered(sequence int64, data []byte) error {
	text := strconv.AppendInt([]byte("id: "), sequence, 10)
	return s.send(append(append(append(text, "\ndata: "...), data...), "\n\n"...))
}

// send writes at once: net/http would cut a string into 2 KiB.
func (s *Stream) send(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer has deadlines
	if _, err := s.w.Write(text); err != nil {
		return ErrGone
	}
	if err := s.control.Flush(); err != nil {
		return ErrGone
	}
	return nil
}

// event is one as it is sent. Its data comes in lines, which the browser ends at CR, LF and CRLF alike: what
// somebody else has written, as a title or what a webhook responded, must not begin a field of its own.
func event(name, data string) []byte {
	const before = "data: "
	lines := strings.Count(data, "\n") + strings.Count(data, "\r")
	out := make([]byte, 0, len(name)+len(data)+(lines+8)*len(before))
	out = append(out, "event: "+name+"\n"...)
	for data != "" {
		var line string
		line, data = cutLine(data)
		out = append(out, before...)
		out = append(out, line...)
		out = append(out, '\n')
	}
	return append(out, '\n')
}

// cutLine cuts text behind its first line end, which is CR, LF or CRLF (HTML standard, section 9.2.5).
func cutLine(text string) (line, rest string) {
	end := strings.IndexAny(text, "\r\n")
	if end < 0 {
		return text, ""
	}
	line, rest = text[:end], text[end+1:]
	if text[end] == '\r' {
		rest = strings.TrimPrefix(rest, "\n")
	}
	return line, rest
}
