package trace

import (
	"net/http"
	"slices"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// What is said of spans: names of OpenTelemetry's semantic conventions, and our own where it has none.
const (
	MethodKey     = string(semconv.HTTPRequestMethodKey)
	RouteKey      = string(semconv.HTTPRouteKey)
	StatusKey     = string(semconv.HTTPResponseStatusCodeKey)
	ServerKey     = string(semconv.ServerAddressKey)
	QueueKey      = string(semconv.MessagingDestinationNameKey)
	SystemKey     = string(semconv.MessagingSystemKey)
	OperationKey  = string(semconv.MessagingOperationNameKey)
	MessageKey    = string(semconv.MessagingMessageIDKey)
	ExecutableKey = string(semconv.ProcessExecutableNameKey)
	ExitKey       = string(semconv.ProcessExitCodeKey)

	RequestKey   = "millrace.request_id"
	JobKey       = "millrace.job.kind"
	AttemptKey   = "millrace.job.attempt"
	BytesKey     = "millrace.bytes"
	EncodeKey    = "millrace.encode.kind"
	CPUKey       = "millrace.cpu_seconds"
	StorageOpKey = "millrace.storage.operation"
	NodeKey      = "millrace.node"
	EventKey     = "millrace.event.type"
)

// Method is an HTTP method that is fit for a span: a client may send any word.
func Method(of *http.Request) string {
	known := []string{
		http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions,
	}
	if slices.Contains(known, of.Method) {
		return of.Method
	}
	return "_OTHER"
}
