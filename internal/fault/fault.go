// Package fault classifies errors: whose fault an error is, and whether a retry can help.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind is what a caller may decide on.
type Kind int

// The kinds.
const (
	Internal     Kind = iota // ours; may pass
	Invalid                  // the caller's input; never passes by itself
	NotFound                 // no such thing, or not the caller's
	Conflict                 // the thing is not in a state that allows it
	Unauthorized             // who are you
	Denied                   // you may not
	TooLarge                 // over a size limit
	NotReady                 // not yet: ask again (412 on playback)
	Unavailable              // a dependency is away: ask again
	TooMany                  // of a kind at a time: ask again
)

// Message is one plain sentence for a caller some layers away.
type Message struct {
	Path string // of the field that it is about, such as inputs[0].url; empty: of none
	Text string // what is wrong with that field, such as "must be given"; without a path the whole sentence
}

// String is the sentence. A text that begins with a colon names the part of the field itself.
func (m Message) String() string {
	if m.Path == "" || strings.HasPrefix(m.Text, ":") {
		return m.Path + m.Text
	}
	return m.Path + " " + m.Text
}

// Error carries a kind and messages for a caller some layers away.
type Error struct {
	Kind     Kind
	Messages []Message
	Err      error // the cause, if there is one
	Ours     bool  // no caller's input is at fault but something of this service; see Permanent
	Remote   bool  // another's server is at fault that a caller has named; see Outside
	// Code is what programs decide on where the kind is not enough, such as token_expired; empty where it is. Messages
	// are for people, and may be reworded.
	Code string
	// Absent is of Invalid: some of what is asked for is not part of this service, however it is asked for.
	Absent bool

	RetryAfter time.Duration // of TooMany: when asking again can help; 0: soon
}

func (e *Error) Error() string {
	s := strings.Join(e.sentences(), "; ")
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func (e *Error) sentences() []string {
	out := make([]string, len(e.Messages))
	for i, m := range e.Messages {
		out[i] = m.String()
	}
	return out
}

// New makes an error of kind k with one message.
func New(k Kind, format string, args ...any) *Error { return At(k, "", format, args...) }

// At makes an error of kind k with one message, about the field at path.
func At(k Kind, path, format string, args ...any) *Error {
	return &Error{Kind: k, Messages: []Message{{path, fmt.Sprintf(format, args...)}}}
}

// Coded makes an error of kind k with a code and one message.
func Coded(k Kind, code, format string, args ...any) *Error {
	e := New(k, format, args...)
	e.Code = code
	return e
}

// CodeOf is the code of err; empty when it has none.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Wrap marks err as of kind k and says it in plain words.
func Wrap(k Kind, err error, format string, args ...any) *Error {
	e := New(k, format, args...)
	e.Err = err
	return e
}

// Later is an error of kind TooMany that passes after a time.
func Later(after time.Duration, format string, args ...any) *Error {
	e := New(TooMany, format, args...)
	e.RetryAfter = after
	return e
}

// RetryAfter is when asking again can help; 0 when err does not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// Ours marks an error of the service's own storage: whatever the kind says to who asked for one thing, that may pass.
func Ours(e *Error) *Error {
	e.Ours = true
	return e
}

// KindOf finds the kind of err; an unmarked error is Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is reports whether err is an error of kind k; an unmarked error is Internal, and nil is of no kind.
func Is(err error, k Kind) bool { return err != nil && KindOf(err) == k }

// Messages returns what may be shown to the caller, each as a sentence, and nil for an unmarked error.
func Messages(err error) []string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.sentences()
	}
	return nil
}

// ByField returns the same with the paths of the fields apart.
func ByField(err error) []Message {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Messages
	}
	return nil
}

// Permanent reports whether doing the same again gives the same: the input or the request is at fault, and not the
// service itself.
func Permanent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Ours {
		return false
	}
	switch e.Kind {
	case Invalid, NotFound, Conflict, Denied, TooLarge:
		return true
	case Internal, Unauthorized, NotReady, Unavailable, TooMany:
	}
	return false
}

// Outside reports whether nothing of the service is at fault when it gives up over err: the input is, or a server that
// a caller has named.
func Outside(err error) bool {
	if Permanent(err) {
		return true
	}
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Ours {
			return false
		}
		if e.Remote {
			return true
		}
		err = e.Err
	}
	return false
}

// Away reports whether something of the service itself that err came of is away: its storage. Nobody is at fault who
// asked for anything, and it passes.
func Away(err error) bool {
	if Permanent(err) {
		return false
	}
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return false
		}
		if e.Ours && e.Kind == Unavailable {
			return true
		}
		err = e.Err
	}
	return false
}

// IsAbsent reports whether err refuses, among others, what is not part of this service.
func IsAbsent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Absent
}

// List collects messages about one input, so that a caller learns all of them at once.
type List struct {
	messages []Message
	absent   bool
}

// Add appends one message that is about no field.
func (l *List) Add(format string, args ...any) { l.At("", format, args...) }

// At appends one message about the field at path.
func (l *List) At(path, format string, args ...any) {
	l.messages = append(l.messages, Message{path, fmt.Sprintf(format, args...)})
}

// AbsentAt appends one message about a field that is not part of this service.
func (l *List) AbsentAt(path, format string, args ...any) {
	l.At(path, format, args...)
	l.absent = true
}

// Take adds the messages of an Invalid error, so that they are told together with what else is wrong. Any other error
// it gives back.
func (l *List) Take(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Kind != Invalid || e.Ours {
		return err
	}
	l.messages = append(l.messages, e.Messages...)
	l.absent = l.absent || e.Absent
	return nil
}

// Err is nil when nothing was added, else an Invalid error with every message.
func (l *List) Err() error {
	if len(l.messages) == 0 {
		return nil
	}
	return &Error{Kind: Invalid, Messages: l.messages, Absent: l.absent}
}
