package trace

import (
	"context"
	"encoding/hex"
	"strings"

	api "go.opentelemetry.io/otel/trace"
)

// Header is where W3C's Trace Context has the parent of a request.
const Header = "Traceparent"

// parentLength is that of a traceparent: version 00, trace, span and flags.
const parentLength = 2 + 1 + 32 + 1 + 16 + 1 + 2

// Parent names the span of ctx in the form of a traceparent, for Continue; empty: there is none.
func Parent(ctx context.Context) string {
	c := api.SpanContextFromContext(ctx)
	if !c.IsValid() {
		return ""
	}
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + (c.TraceFlags() & api.FlagsSampled).String()
}

// parse reads a traceparent, which may be anybody's. What versions after 00 add at its end is not read. There is no
// tracestate: it would be a stranger's text in everything that is sent.
func parse(s string) (api.SpanContext, bool) {
	if len(s) < parentLength || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return api.SpanContext{}, false
	}
	if len(s) > parentLength && (s[:2] == "00" || s[parentLength] != '-') {
		return api.SpanContext{}, false
	}
	var config api.SpanContextConfig
	var version, flags [1]byte
	for _, part := range []struct {
		into []byte
		text string
	}{{version[:], s[:2]}, {config.TraceID[:], s[3:35]}, {config.SpanID[:], s[36:52]}, {flags[:], s[53:55]}} {
		if strings.ToLower(part.text) != part.text {
			return api.SpanContext{}, false
		}
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return api.SpanContext{}, false
		}
	}
	config.TraceFlags, config.Remote = api.TraceFlags(flags[0])&api.FlagsSampled, true
	c := api.NewSpanContext(config)
	return c, c.IsValid() && version[0] != 0xFF
}
