package fetch

import (
	"context"
	"net/http"
	"net/url"

	"millrace/internal/trace"
)

// begin begins what a trace shows of a fetch: of the URL the host alone. Servers are not told of the trace.
func begin(ctx context.Context, u *url.URL) (context.Context, trace.Span) {
	ctx, span := trace.Begin(ctx, http.MethodGet, trace.Client)
	span.Text(trace.MethodKey, http.MethodGet)
	span.Text(trace.ServerKey, u.Hostname())
	return ctx, span
}

// end ends it, with how much has come.
func end(span trace.Span, info Info, err error) {
	if err == nil {
		span.Number(trace.BytesKey, info.Size)
	}
	span.End(err)
}
