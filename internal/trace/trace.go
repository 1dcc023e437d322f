// Package trace makes spans of what a request and its jobs do, and sends them to a collector by OTLP over HTTP. Nobody
// but this package knows the SDK of OpenTelemetry.
//
// A trace has to be begun by somebody with a Tracer: the API, the queue, a listener for other nodes. Everything below
// asks only for the context: where there is no span in it, Begin costs a look at the context and gives nothing. So
// viewers' requests, which begin no trace, cost nothing.
//
// It must never know what a span is about. Errors are told as kinds, never as text, since text names URLs. It owns no
// goroutines: Exporter.Run is a service.
package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	api "go.opentelemetry.io/otel/trace"

	"millrace/internal/fault"
)

// scope is whose spans they are.
const scope = "millrace"

// What a span may have at most: somebody else may have a hand in each value.
const (
	mostAttributes = 32
	mostValue      = 256 // characters
)

// Kind says which end of something a span is.
type Kind int

// The kinds, as OpenTelemetry has them.
const (
	Internal = Kind(api.SpanKindInternal)
	Server   = Kind(api.SpanKindServer)
	Client   = Kind(api.SpanKindClient)
	Consumer = Kind(api.SpanKindConsumer)
)

// Tracer begins traces. A nil one begins none.
type Tracer struct{ spans api.Tracer }

// Options say of what process spans are, and which are made.
type Options struct {
	Version string // of the program
	Node    string // this process, as other processes of the service know it
	// Resource is what else is said of it, and replaces what is said otherwise: service.name and what the operator
	// likes.
	Resource map[string]string
	Sampler  Sampler
}

// Sampler says which traces are made: one of the names that OTEL_TRACES_SAMPLER may have, and of what share.
type Sampler struct {
	Name  string  // empty: parentbased_always_on
	Ratio float64 // of traceidratio, 0 to 1
}

func (s Sampler) sdk() (sdk.Sampler, error) {
	name, byParent := strings.CutPrefix(s.Name, "parentbased_")
	var root sdk.Sampler
	switch name {
	case "":
		byParent = true
		root = sdk.AlwaysSample()
	case "always_on":
		root = sdk.AlwaysSample()
	case "always_off":
		root = sdk.NeverSample()
	case "traceidratio":
		root = sdk.TraceIDRatioBased(s.Ratio)
	default:
		return nil, fmt.Errorf("there is no sampler %q", s.Name)
	}
	if byParent {
		return sdk.ParentBased(root), nil
	}
	return root, nil
}

// New makes a Tracer whose spans e sends.
func New(o Options, e *Exporter) (*Tracer, error) {
	sampler, err := o.Sampler.sdk()
	if err != nil {
		return nil, err
	}
	about := []attribute.KeyValue{
		semconv.ServiceName("millrace"), semconv.ServiceVersion(o.Version), semconv.ServiceInstanceID(o.Node),
		semconv.TelemetrySDKName("opentelemetry"), semconv.TelemetrySDKLanguageGo,
	}
	for k, v := range o.Resource {
		about = append(about, attribute.String(k, v)) // of several with one key the last one counts
	}
	limits := sdk.NewSpanLimits()
	limits.AttributeCountLimit, limits.AttributeValueLengthLimit = mostAttributes, mostValue
	limits.EventCountLimit, limits.LinkCountLimit = 0, 0
	p := sdk.NewTracerProvider(sdk.WithSampler(sampler), sdk.WithSpanProcessor(e), sdk.WithRawSpanLimits(limits),
		sdk.WithResource(resource.NewWithAttributes(semconv.SchemaURL, about...)))
	return &Tracer{p.Tracer(scope, api.WithInstrumentationVersion(o.Version))}, nil
}

// Begin begins a span within the one of ctx, and a trace where there is none.
func (t *Tracer) Begin(ctx context.Context, name string, kind Kind) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return begin(ctx, t.spans, name, kind)
}

// Continue begins a span within one of another process or of an earlier time, which parent names (Parent). Where that
// is empty or is none, a trace begins.
func (t *Tracer) Continue(ctx context.Context, parent, name string, kind Kind) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if before, ok := parse(parent); ok {
		ctx = api.ContextWithRemoteSpanContext(ctx, before)
	}
	return begin(ctx, t.spans, name, kind)
}

// Follow is Continue where parent names a span that is kept; otherwise nothing begins.
func (t *Tracer) Follow(ctx context.Context, parent, name string, kind Kind) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	before, ok := parse(parent)
	if !ok || !before.IsSampled() {
		return ctx, Span{}
	}
	return begin(api.ContextWithRemoteSpanContext(ctx, before), t.spans, name, kind)
}

// Begin begins a span within the one of ctx. Where there is none, or it is not kept, nothing begins.
func Begin(ctx context.Context, name string, kind Kind) (context.Context, Span) {
	s := api.SpanFromContext(ctx)
	if !s.IsRecording() {
		return ctx, Span{}
	}
	return begin(ctx, s.TracerProvider().Tracer(scope), name, kind)
}

func begin(ctx context.Context, by api.Tracer, name string, kind Kind) (context.Context, Span) {
	ctx, s := by.Start(ctx, name, api.WithSpanKind(api.SpanKind(kind)))
	return ctx, Span{s}
}

// Span is something that takes time. The zero Span is none: its methods do nothing.
type Span struct{ span api.Span }

// Kept reports whether the span is sent: what is said of others is lost.
func (s Span) Kept() bool { return s.span != nil && s.span.IsRecording() }

// Text says something of the span. No secrets, and nothing that holds one, such as a URL.
func (s Span) Text(key, value string) {
	if s.Kept() {
		s.span.SetAttributes(attribute.String(key, value))
	}
}

// Number says a number of the span.
func (s Span) Number(key string, value int64) {
	if s.Kept() {
		s.span.SetAttributes(attribute.Int64(key, value))
	}
}

// Seconds says how long something took.
func (s Span) Seconds(key string, value float64) {
	if s.Kept() {
		s.span.SetAttributes(attribute.Float64(key, value))
	}
}

// Failed marks the span as failed; kind is a word of few, such as an error's kind or a status.
func (s Span) Failed(kind string) {
	if s.Kept() {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	}
}

// End ends the span, as failed where there is an error.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.Failed(kindOf(err))
	}
	s.span.End()
}

// kindOf is an error's kind in a word. Its text may name a URL, and with that a secret.
func kindOf(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return kinds[fault.KindOf(err)]
}

//nolint:gochecknoglobals // a table
var kinds = map[fault.Kind]string{
	fault.Internal: "internal", fault.Invalid: "invalid", fault.NotFound: "not_found", fault.Conflict: "conflict",
	fault.Unauthorized: "unauthorized", fault.Denied: "denied", fault.TooLarge: "too_large",
	fault.NotReady: "not_ready", fault.Unavailable: "unavailable", fault.TooMany: "too_many",
}
