package api

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"millrace/internal/fault"
	"millrace/internal/web/respond"
)

// The types of errors that clients see.
const (
	typeInvalid   = "invalid_parameters"
	typeForbidden = "forbidden"
	typeNotFound  = "not_found"
	typeMethod    = "method_not_allowed"
	typeTooLarge  = "request_too_large"
	typeTooMany   = "too_many_requests"
	typeInternal  = "internal_error"
)

const (
	textUnauth      = "Unauthorized request"
	textCredentials = "Authenticate by HTTP Basic, with an access token's ID as user name and its secret as password; " +
		"millrace token create makes one, millrace token list shows which are revoked or expired"
	textForbidden = "This access token does not have the permission that the request needs"
	textNotFound  = "The requested resource does not exist, or this access token may not see it"
	textNoPath    = "There is nothing under this path; /docs/reference lists every operation, " +
		"below /video/v1 and /system/v1"
	textUnavailable = "The service is not available at the moment; try again"
)

// Error is the body of every response that is not a success.
type Error struct {
	status int
	retry  time.Duration // after which to ask again; 0: soon
	Detail ErrorDetail   `json:"error"`
}

// ErrorDetail says what is wrong.
type ErrorDetail struct {
	Type     string   `json:"type" doc:"The kind of error." example:"invalid_parameters"`
	Messages []string `json:"messages" doc:"What is wrong. A message about a field starts with the field's path and says what is allowed." example:"[\"reconnect_window must be from 0 to 1800 seconds\"]"`
}

func (e *Error) Error() string { return e.Detail.Type }

// GetStatus tells huma the HTTP status.
func (e *Error) GetStatus() int { return e.status }

// GetHeaders tells huma, and writeError, the headers that belong to the status.
func (e *Error) GetHeaders() http.Header {
	h := http.Header{}
	switch e.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Basic realm="api", charset="UTF-8"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(e.retry.Seconds())))))
	}
	return h
}

func newError(status int, typ string, messages ...string) *Error {
	return &Error{status: status, Detail: ErrorDetail{Type: typ, Messages: messages}}
}

func invalid(messages ...string) *Error {
	return newError(http.StatusBadRequest, typeInvalid, messages...)
}

// fail turns any error of a service into a response. What is ours to mend is logged here, with the request's ID, and
// not shown.
func (s *server) fail(ctx context.Context, err error) *Error {
	if cause := context.Cause(ctx); fault.Is(err, fault.Internal) && errors.Is(cause, errLate) {
		err = fault.Wrap(fault.Unavailable, err, "%v", cause)
	}
	kind := fault.KindOf(err)
	status := respond.API.Of(err)
	if fault.IsAbsent(err) {
		status.Type = typeUnsupported
	}
	e := newError(status.Code, status.Type, namesOf(ctx).within(fault.Messages(err))...)
	e.retry = fault.RetryAfter(err)
	switch kind {
	case fault.Internal:
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			s.log.DebugContext(ctx, "client left", slog.String("request_id", requestID(ctx)))
		} else {
			s.log.ErrorContext(ctx, "request failed", slog.String("request_id", requestID(ctx)), slog.Any("error", err))
		}
		return internalError(ctx)
	case fault.Unavailable:
		s.log.WarnContext(ctx, "dependency unavailable", slog.String("request_id", requestID(ctx)),
			slog.Any("error", err))
		e.Detail.Messages = []string{textUnavailable}
	case fault.Unauthorized:
		e.Detail.Messages = []string{textUnauth, textCredentials}
	case fault.NotFound, fault.Denied, fault.Invalid, fault.Conflict, fault.NotReady, fault.TooLarge, fault.TooMany:
	}
	if len(e.Detail.Messages) == 0 {
		text := map[fault.Kind]string{fault.NotFound: textNotFound, fault.Denied: textForbidden}[kind]
		e.Detail.Messages = []string{cmp.Or(text, "The request is not allowed")}
	}
	return e
}

func internalError(ctx context.Context) *Error {
	return newError(http.StatusInternalServerError, typeInternal,
		"The service could not respond because of an error of its own; quote request "+requestID(ctx)+
			" when you report it")
}

// hookOnce guards huma's own settings, which are variables of its package.
var hookOnce sync.Once //nolint:gochecknoglobals // huma's hooks are global, so what sets them once has to be

// setHumaHooks gives huma our error body and arrays that are never null. Our own middleware refuses bad requests before
// huma looks at them, so this body is met in the document only.
func setHumaHooks() {
	hookOnce.Do(func() {
		huma.DefaultArrayNullable = false
		huma.NewError = func(status int, _ string, _ ...error) huma.StatusError {
			if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
				return invalid("The request could not be read")
			}
			return newError(http.StatusInternalServerError, typeInternal,
				"The service could not respond because of an error of its own")
		}
	})
}
