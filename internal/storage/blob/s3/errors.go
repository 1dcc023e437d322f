package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/aws/smithy-go"

	"millrace/internal/fault"
)

// What an owner of the bucket has to mend. To callers both are fault.Unavailable: with the next attempt it may be
// mended.
var (
	ErrRefused  = errors.New("the storage refuses the credentials")
	ErrNoBucket = errors.New("the bucket does not exist")
)

const noSuchBucket = "NoSuchBucket"

// because is a cause that is also known by a name.
type because struct {
	error
	name error
}

func (b because) Unwrap() error        { return b.error }
func (b because) Is(target error) bool { return target == b.name }

// Code is that of errors about a storage that is away, for programs.
const Code = "storage_unavailable"

// away is an error of a storage that does not do what it should: whatever it was, that may pass.
func away(err error, format string, args ...any) error {
	e := fault.Ours(fault.Wrap(fault.Unavailable, err, format, args...))
	e.Code = Code
	return e
}

// explain says in plain words what the storage responded, and marks what a caller may act on. A storage that has not
// responded by a deadline of the caller's is away.
func explain(ctx context.Context, err error, doing string) error {
	switch cause := ctx.Err(); {
	case errors.Is(cause, context.DeadlineExceeded):
		return away(cause, "%s: the storage did not respond in time", doing)
	case cause != nil:
		return fmt.Errorf("%s: %w", doing, cause)
	}
	if errors.Is(err, ErrNoCredentials) {
		return away(err, "%s: %v", doing, ErrNoCredentials)
	}
	status := statusOf(err)
	switch code := codeOf(err); {
	case code == noSuchBucket:
		return away(because{err, ErrNoBucket}, "%s: %v", doing, ErrNoBucket)
	case code == "InvalidRange", status == http.StatusRequestedRangeNotSatisfiable:
		return fault.Ours(fault.Wrap(fault.Invalid, err, "%s: offset is not inside the object", doing))
	case code == "ExistingObjectIsDirectory", code == "ObjectParentIsFile": // versitygw on a folder
		return fault.Ours(fault.Wrap(fault.Conflict, err, "%s: a key can't be the folder of another", doing))
	case code == "NoSuchKey", code == "NotFound", status == http.StatusNotFound:
		return fault.Ours(fault.Wrap(fault.NotFound, err, "%s: it does not exist", doing))
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return away(because{err, ErrRefused}, "%s: %v", doing, ErrRefused)
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, isNetwork(err):
		return away(err, "%s: the storage can't be reached or is overloaded", doing)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func codeOf(err error) string {
	if ae, ok := errors.AsType[smithy.APIError](err); ok {
		return ae.ErrorCode()
	}
	return ""
}

func isNetwork(err error) bool {
	_, timeoutOrDial := errors.AsType[net.Error](err)
	return timeoutOrDial || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}
