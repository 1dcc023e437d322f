// Package respond maps errors to HTTP statuses and JSON bodies, for all parts of the service. It is a leaf: it knows
// the kinds of faults and nothing of the request. It starts no goroutine.
package respond

import (
	"net/http"

	"millrace/internal/fault"
)

// Status is how a kind of errors is told.
type Status struct {
	Code int    // of HTTP
	Type string // of the JSON
}

// What several kinds are told as.
//
//nolint:gochecknoglobals // constants
var (
	invalid     = Status{http.StatusBadRequest, "invalid_parameters"}
	forbidden   = Status{http.StatusForbidden, "forbidden"}
	unavailable = Status{http.StatusServiceUnavailable, "unavailable"}
	over        = Status{http.StatusGone, "upload_over"}
	refused     = Status{Code: http.StatusConflict}
)

// Surface is a part of the service that tells some kinds in a way of its own.
type Surface int

// The surfaces.
const (
	// API and the sign-in to the dashboard. Conflict is 400, not 409: clients written for this wire format repeat a
	// request by themselves after a 409, and a resource that is not in the right state does not get there by being
	// asked again.
	API      Surface = iota
	Playback         // 412 has players ask again
	Licence
	Counts
	Upload // 503 is tried again by clients, and what will not pass is not
	Page   // of the dashboard, in place of the one that was asked for
	Form   // of the dashboard, shown again with what is wrong
	Node   // another node that asks about a live edge; it reads the kind back
)

// usual is the table of kinds and statuses; others has where a surface differs.
//
//nolint:gochecknoglobals // tables
var (
	usual = map[fault.Kind]Status{
		fault.Internal:     {http.StatusInternalServerError, "internal_error"},
		fault.Invalid:      invalid,
		fault.NotFound:     {http.StatusNotFound, "not_found"},
		fault.Conflict:     invalid,
		fault.Unauthorized: {http.StatusUnauthorized, "unauthorized"},
		fault.Denied:       forbidden,
		fault.TooLarge:     {http.StatusRequestEntityTooLarge, "request_too_large"},
		fault.NotReady:     invalid,
		fault.Unavailable:  unavailable,
		fault.TooMany:      {http.StatusTooManyRequests, "too_many_requests"},
	}
	others = map[Surface]map[fault.Kind]Status{
		Playback: {
			fault.Internal: {http.StatusInternalServerError, "internal"}, fault.Unauthorized: forbidden,
			fault.TooLarge: invalid, fault.NotReady: {http.StatusPreconditionFailed, "not_ready"},
		},
		Licence: {
			fault.Unauthorized: forbidden, fault.TooMany: unavailable,
			fault.TooLarge: {http.StatusRequestEntityTooLarge, "invalid_parameters"},
		},
		Counts: {fault.Unauthorized: forbidden, fault.TooLarge: invalid},
		Upload: {
			fault.Conflict: over, fault.NotReady: over, fault.Unauthorized: forbidden, fault.TooMany: unavailable,
		},
		Page: {
			fault.Invalid: refused, fault.Conflict: refused, fault.Unauthorized: refused, fault.Denied: refused,
			fault.TooLarge: refused, fault.NotReady: refused, fault.TooMany: refused,
		},
		Form: {fault.Conflict: refused},
		Node: {
			fault.Internal:    {http.StatusInternalServerError, "internal"},
			fault.Invalid:     {http.StatusBadRequest, "invalid"},
			fault.Conflict:    {http.StatusConflict, "conflict"},
			fault.Denied:      {http.StatusForbidden, "denied"},
			fault.TooLarge:    {http.StatusRequestEntityTooLarge, "too_large"},
			fault.NotReady:    {http.StatusPreconditionFailed, "not_ready"},
			fault.Unavailable: {http.StatusServiceUnavailable, "unavailable"},
			fault.TooMany:     {http.StatusTooManyRequests, "too_many"},
		},
	}
)

// Of is how a surface tells an error.
func (s Surface) Of(err error) Status { return s.of(fault.KindOf(err)) }

// Kind is the kind of errors that a surface tells as st; false: there is none, or several are told so.
func (s Surface) Kind(st Status) (found fault.Kind, ok bool) {
	for kind := range usual {
		if s.of(kind) != st {
			continue
		}
		if ok {
			return 0, false
		}
		found, ok = kind, true
	}
	return found, ok
}

func (s Surface) of(kind fault.Kind) Status {
	if own, is := others[s][kind]; is {
		return own
	}
	return usual[kind]
}
