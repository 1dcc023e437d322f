package internode

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"millrace/internal/id"
)

// Code says why a node refuses a request, or why a response is none of a node.
type Code string

// The codes.
const (
	Unsigned   Code = "unsigned"    // there is no signature, or none that can be read
	Protocol   Code = "protocol"    // the two nodes have no version of the protocol in common
	ForeignKey Code = "foreign_key" // it is made with another key: another database, or a stranger
	Altered    Code = "altered"     // the request is not the one that was signed
	Clock      Code = "clock"       // it was signed too long ago, or the clocks of the two machines differ
	OtherNode  Code = "other_node"  // the request is for another node
	Replayed   Code = "replayed"    // it has come before
	TooMany    Code = "too_many"    // more come than can be remembered: ask again
	TooLarge   Code = "too_large"   // the body is larger than MaxBody

	// The following are said by the caller.

	Unreachable Code = "unreachable"  // nothing responds there, or not in time
	NotMillrace Code = "not_millrace" // what responds is no listener for nodes
	Unproven    Code = "unproven"     // a response that should be signed with the key is not
	Certificate Code = "certificate"  // the node's certificate can't be verified
)

// statuses are the HTTP statuses of refusals.
var statuses = map[Code]int{ //nolint:gochecknoglobals // a table
	Unsigned: http.StatusUnauthorized, Protocol: http.StatusUnauthorized, ForeignKey: http.StatusUnauthorized,
	Altered: http.StatusUnauthorized, Clock: http.StatusUnauthorized, OtherNode: http.StatusMisdirectedRequest,
	Replayed: http.StatusConflict, TooMany: http.StatusServiceUnavailable, TooLarge: http.StatusRequestEntityTooLarge,
}

// Error is why a request to another node has failed. What a program decides on is its Code.
type Error struct {
	Code Code
	URL  string  // the base URL that was called
	To   id.Node // for whom the request was
	Node id.Node // that has responded, as it says itself; empty: none has
	// Off is how far the other node's clock is ahead of this one's, of the code Clock; negative: behind. It is known to
	// a few seconds.
	Off time.Duration
	// Status is that of a response that is none of a node; 0: there was none.
	Status int
	// Proven reports whether the response is signed with the key of this database's nodes.
	Proven bool
	Err    error // the cause, if there is one
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Error says what is wrong and what to do.
func (e *Error) Error() string {
	who := e.URL
	if e.Node != "" {
		who = fmt.Sprintf("node %s at %s", e.Node, e.URL)
	}
	switch e.Code {
	case Unsigned, Altered:
		return who + " refuses the signature: something on the way changes requests; connect the nodes directly, or " +
			"by a proxy that leaves path, query and Authorization as they are"
	case Protocol:
		return who + " speaks other versions of the protocol of nodes than this one: run the same version of " +
			"Millrace on both, or two that follow one another"
	case ForeignKey:
		return who + " does not know the key of this database's nodes: it belongs to another database, or has " +
			"another master key; correct the URL"
	case Clock:
		return fmt.Sprintf("%s refuses the request: %s; have the clocks of both machines set by NTP", who, e.clocks())
	case OtherNode:
		return fmt.Sprintf("%s is not node %s, for which the request was: give each node an advertise-url that leads "+
			"to it alone", who, e.To)
	case Replayed:
		return who + " has had the request before: something on the way sends requests twice"
	case TooMany:
		return who + " gets more requests than it can remember: ask again"
	case TooLarge:
		return fmt.Sprintf("%s refuses the request: its body is larger than %d bytes", who, MaxBody)
	case NotMillrace:
		return e.stranger(who)
	case Unproven:
		return who + " gives a response without the signature of this database's nodes: correct the URL, or look who " +
			"is between the nodes"
	case Certificate:
		return withCause("the certificate of "+who+" can't be verified", e.Err) + ": it has to be for the host of " +
			"the URL, and of an authority in internal-tls-ca"
	case Unreachable:
	}
	return withCause("nothing responds at "+who, e.Err) + ": check that the node runs, that the network lets " +
		"requests through, and whether the URL should begin with https or http"
}

func (e *Error) stranger(who string) string {
	const todo = ": the URL has to lead to the internal-addr of a node, over HTTP/2 all the way"
	if e.Status != 0 {
		return fmt.Sprintf("what responds at %s is not the listener of a node (status %d)%s", who, e.Status, todo)
	}
	return withCause("what responds at "+who+" is not the listener of a node", e.Err) + todo
}

func withCause(s string, err error) string {
	if err != nil {
		s += " (" + err.Error() + ")"
	}
	return s
}

// clocks says which of two clocks is ahead.
func (e *Error) clocks() string {
	off := e.Off.Round(time.Second)
	if off < 0 {
		return fmt.Sprintf("its clock is %s behind this machine's", -off)
	}
	return fmt.Sprintf("its clock is %s ahead of this machine's", off)
}

// CodeOf is the code of an error of this package; empty: it is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// refusal is what a node responds with when it refuses a request.
type refusal struct {
	Code Code    `json:"code"`
	Node id.Node `json:"node"`
	Time int64   `json:"time"` // its clock, in Unix milliseconds
}

// Headers of requests and responses.
const (
	speaksHeader  = "Millrace-Speaks"    // the sender's Range; not signed, as nothing is gained by another
	refusedHeader = "Millrace-Refused"   // the code
	answerHeader  = "Millrace-Signature" // of what this package itself responds
)

func (r refusal) body() []byte {
	b, _ := json.Marshal(r) // of strings and a number: never fails
	return b
}
