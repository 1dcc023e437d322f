package config

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Traces say where traces are sent, which ones, and whose they are.
type Traces struct {
	Endpoint      string // of ours
	OTLP          string // OTEL_EXPORTER_OTLP_ENDPOINT
	OTLPTraces    string // likewise, with the path
	Headers       Secret // name=value,…
	TracesHeaders Secret // likewise, for traces alone
	Sampler       string // empty: parentbased_always_on
	SamplerArg    float64
	Service       string // name
	Resource      map[string]string
}

// URL is where traces are posted; empty: nowhere.
func (t Traces) URL() string {
	if base := cmp.Or(t.Endpoint, t.OTLP); base != "" && (t.Endpoint != "" || t.OTLPTraces == "") {
		return base + "/v1/traces"
	}
	return t.OTLPTraces
}

// HeaderValues are what is sent with each request. Those for traces alone replace the others.
func (t Traces) HeaderValues() map[string]string {
	all, _ := parsePairs(cmp.Or(t.TracesHeaders, t.Headers).Reveal()) // as they were checked
	return all
}

// Attributes are what the operator says of the service: a name of its own wins over the one among the others.
func (t Traces) Attributes() map[string]string {
	all := maps.Clone(t.Resource)
	if t.Service != "" {
		if all == nil {
			all = map[string]string{}
		}
		all["service.name"] = t.Service
	}
	return all
}

var errPairs = errors.New("must be pairs such as name=value, with commas between them and values percent-encoded")

// parsePairs reads what OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS hold.
func parsePairs(text string) (map[string]string, error) {
	var all map[string]string
	for part := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if name = strings.TrimSpace(name); !ok || name == "" || err != nil {
			return nil, errPairs
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
	}
	return all, nil
}

// parseHeaders checks the form of headers.
func parseHeaders(text string) (Secret, error) {
	all, err := parsePairs(text)
	for name, value := range all {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return "", errPairs
		}
	}
	return Secret(text), err
}

func parseRatio(text string) (float64, error) {
	if text == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(ratio) || ratio < 0 || ratio > 1 {
		return 0, errors.New("is not a number from 0 to 1")
	}
	return ratio, nil
}

func samplers() []string {
	return []string{
		"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off",
		"parentbased_traceidratio",
	}
}

// traceSettings are those of traces: one of ours, and the standard names of OpenTelemetry.
//
//nolint:gochecknoglobals // a table
var traceSettings = []Setting{
	{
		Name: "otlp-endpoint", Kind: KindURL, Absent: "no traces, unless OTEL_EXPORTER_OTLP_ENDPOINT is set",
		Help: "URL of an OpenTelemetry collector, Jaeger or Tempo to which traces are sent by OTLP over HTTP, for " +
			"example http://localhost:4318.",
		apply: into(parseEndpoint, func(c *Config) *string { return &c.Traces.Endpoint }),
	},
	{
		Name: "otel-exporter-otlp-endpoint", Foreign: "OTEL_EXPORTER_OTLP_ENDPOINT", Kind: KindURL,
		Absent: "no traces",
		Help:   "The same as otlp-endpoint, under its standard name.",
		apply:  into(parseEndpoint, func(c *Config) *string { return &c.Traces.OTLP }),
	},
	{
		Name: "otel-exporter-otlp-traces-endpoint", Foreign: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", Kind: KindURL,
		Absent: "/v1/traces at that URL",
		Help:   "The whole URL that traces are posted to.",
		apply:  into(parseEndpoint, func(c *Config) *string { return &c.Traces.OTLPTraces }),
	},
	{
		Name: "otel-exporter-otlp-headers", Foreign: "OTEL_EXPORTER_OTLP_HEADERS", Kind: KindText, Absent: "none",
		Secret: true,
		Help:   "Headers to send with traces, as name=value separated by commas, for example with an API key.",
		apply:  into(parseHeaders, func(c *Config) *Secret { return &c.Traces.Headers }),
	},
	{
		Name: "otel-exporter-otlp-traces-headers", Foreign: "OTEL_EXPORTER_OTLP_TRACES_HEADERS", Kind: KindText,
		Absent: "the same headers", Secret: true,
		Help:  "Headers that replace those of OTEL_EXPORTER_OTLP_HEADERS.",
		apply: into(parseHeaders, func(c *Config) *Secret { return &c.Traces.TracesHeaders }),
	},
	{
		Name: "otel-service-name", Foreign: "OTEL_SERVICE_NAME", Kind: KindText, Absent: "millrace",
		Help:  "The name of this service in traces.",
		apply: into(parseText, func(c *Config) *string { return &c.Traces.Service }),
	},
	{
		Name: "otel-resource-attributes", Foreign: "OTEL_RESOURCE_ATTRIBUTES", Kind: KindText, Absent: "none",
		Help: "Further attributes of this service in traces, as name=value separated by commas.",
		apply: into(parsePairs, func(c *Config) *map[string]string {
			return &c.Traces.Resource
		}),
	},
	{
		Name: "otel-traces-sampler", Foreign: "OTEL_TRACES_SAMPLER", Kind: KindChoice,
		Default: "parentbased_always_on", Words: samplers(),
		Help: "Which traces are made. With parentbased_…, a caller of the API that sends a traceparent decides for " +
			"its request.",
		apply: into(OneOf(samplers()...), func(c *Config) *string { return &c.Traces.Sampler }),
	},
	{
		Name: "otel-traces-sampler-arg", Foreign: "OTEL_TRACES_SAMPLER_ARG", Kind: KindText, Absent: "1: all",
		Help:  "The share of traces that traceidratio and parentbased_traceidratio make, from 0 to 1.",
		apply: into(parseRatio, func(c *Config) *float64 { return &c.Traces.SamplerArg }),
	},
}
