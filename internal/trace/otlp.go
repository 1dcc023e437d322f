package trace

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// A message of protobuf is written as its fields one after the other. The numbers are those of
// opentelemetry/proto/collector/trace/v1/trace_service.proto and what that imports. The exporter of OpenTelemetry's own
// would link gRPC into the program.

func appendText(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return appendString(b, field, s)
}

// appendString writes what is no UTF-8 as U+FFFD: a collector refuses a whole request for one such byte, and hosts of
// customers' URLs may hold any.
func appendString(b []byte, field protowire.Number, s string) []byte {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}

func appendNumber(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendTime(b []byte, field protowire.Number, at time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), uint64(at.UnixNano()))
}

// request is an ExportTraceServiceRequest of spans of one process.
func request(spans []sdk.ReadOnlySpan) []byte {
	if len(spans) == 0 {
		return nil
	}
	first := spans[0]
	var scoped, own []byte
	own = appendText(own, 1, first.InstrumentationScope().Name)
	own = appendText(own, 2, first.InstrumentationScope().Version)
	scoped = appendBytes(scoped, 1, own)
	for _, s := range spans {
		scoped = appendBytes(scoped, 2, span(s))
	}
	scoped = appendText(scoped, 3, first.InstrumentationScope().SchemaURL)
	var whole []byte
	whole = appendBytes(whole, 1, attributes(nil, 1, first.Resource().Attributes()))
	whole = appendBytes(whole, 2, scoped)
	whole = appendText(whole, 3, first.Resource().SchemaURL())
	return appendBytes(nil, 1, whole)
}

const (
	hasRemote = 0x100 // SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
	isRemote  = 0x200 // SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
)

func span(s sdk.ReadOnlySpan) []byte {
	own, parent := s.SpanContext(), s.Parent()
	trace, name := own.TraceID(), own.SpanID()
	b := appendBytes(appendBytes(nil, 1, trace[:]), 2, name[:])
	if parent.SpanID().IsValid() {
		above := parent.SpanID()
		b = appendBytes(b, 4, above[:])
	}
	b = appendText(b, 5, s.Name())
	b = appendNumber(b, 6, uint64(s.SpanKind()))
	b = appendTime(appendTime(b, 7, s.StartTime()), 8, s.EndTime())
	b = attributes(b, 9, s.Attributes())
	if n := s.DroppedAttributes(); n > 0 {
		b = appendNumber(b, 10, uint64(n))
	}
	if s.Status().Code == codes.Error {
		b = appendBytes(b, 15, appendNumber(nil, 3, 2)) // STATUS_CODE_ERROR
	}
	flags := uint32(own.TraceFlags()) | hasRemote
	if parent.IsRemote() {
		flags |= isRemote
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), flags)
}

func attributes(b []byte, field protowire.Number, all []attribute.KeyValue) []byte {
	for _, a := range all {
		b = appendBytes(b, field, appendBytes(appendText(nil, 1, string(a.Key)), 2, value(a.Value)))
	}
	return b
}

// value is an AnyValue. Of what there are no methods of Span for, it is the text.
func value(v attribute.Value) []byte {
	switch v.Type() { //nolint:exhaustive // all others are text
	case attribute.INT64:
		return appendNumber(nil, 3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		double := protowire.AppendTag(nil, 4, protowire.Fixed64Type)
		return protowire.AppendFixed64(double, math.Float64bits(v.AsFloat64()))
	case attribute.STRING:
		return appendString(nil, 1, v.AsString())
	default:
		return appendString(nil, 1, v.String())
	}
}

// rejected is how many spans a collector says that it does not take: the partial success of an
// ExportTraceServiceResponse.
func rejected(response []byte) int64 {
	partial := field(response, 1, protowire.BytesType)
	if partial == nil {
		return 0
	}
	body, n := protowire.ConsumeBytes(partial)
	if n < 0 {
		return 0
	}
	count, n := protowire.ConsumeVarint(field(body, 1, protowire.VarintType))
	if n < 0 {
		return 0
	}
	return max(0, int64(count))
}

// field is where a field's value begins; nil: it is not there, or this is no message.
func field(message []byte, wanted protowire.Number, kind protowire.Type) []byte {
	for len(message) > 0 {
		number, has, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		if number == wanted && has == kind {
			return message[n:]
		}
		skip := protowire.ConsumeFieldValue(number, has, message[n:])
		if skip < 0 {
			return nil
		}
		message = message[n+skip:]
	}
	return nil
}
