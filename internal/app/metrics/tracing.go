package metrics

import (
	"context"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"millrace/internal/config"
	webhooks "millrace/internal/delivery"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/lifecycle"
	"millrace/internal/storage/blob"
	"millrace/internal/trace"
)

// Tracing makes and sends traces. A nil one does nothing, and wraps nothing.
type Tracing struct {
	tracer *trace.Tracer
	spans  *trace.Exporter
}

// NewTracing begins to make traces where there is somebody to send them to; nil: there is nobody.
func NewTracing(to config.Traces, node id.Node, version string, log *slog.Logger) (*Tracing, error) {
	if to.URL() == "" {
		return nil, nil //nolint:nilnil // nil is the documented value of "nobody"
	}
	spans := trace.NewExporter(trace.ExporterOptions{URL: to.URL(), Headers: to.HeaderValues(), Logger: log})
	tracer, err := trace.New(trace.Options{
		Version: version, Node: string(node), Resource: to.Attributes(),
		Sampler: trace.Sampler{Name: to.Sampler, Ratio: to.SamplerArg},
	}, spans)
	return &Tracing{tracer, spans}, err
}

// LogsOf has lines that are logged within a trace say so, where traces are made.
func LogsOf(to config.Traces, h slog.Handler) slog.Handler {
	if to.URL() == "" {
		return h
	}
	return trace.Logs(h)
}

// Tracer is for those that begin traces.
func (t *Tracing) Tracer() *trace.Tracer {
	if t == nil {
		return nil
	}
	return t.tracer
}

// Send adds what sends traces; it has to be the first to be added, and is the last to stop.
func (t *Tracing) Send(g *lifecycle.Group) {
	if t != nil {
		g.Add(t.spans)
	}
}

// Request makes a span of a request to the API that was let in, within the trace that its caller says it belongs to.
// The route is that of the operation: the path itself is not said, and nothing of query and headers.
func (t *Tracing) Request(
	ctx context.Context, header http.Header, method, route, request string,
) (_ context.Context, end func(status int)) {
	if t == nil {
		return ctx, func(int) {}
	}
	ctx, span := t.tracer.Continue(ctx, header.Get(trace.Header), method+" "+route, trace.Server)
	span.Text(trace.MethodKey, method)
	span.Text(trace.RouteKey, route)
	span.Text(trace.RequestKey, request)
	return ctx, func(status int) {
		span.Number(trace.StatusKey, int64(status))
		if status >= http.StatusInternalServerError {
			span.Failed(strconv.Itoa(status))
		}
		span.End(nil)
	}
}

// Store has what is done to the storage within a trace be seen there.
func (t *Tracing) Store(s blob.Store) blob.Store {
	if t == nil {
		return s
	}
	traced := tracedStore{s}
	if local, ok := s.(blob.Local); ok {
		return struct {
			tracedStore
			blob.Local
		}{traced, local}
	}
	if limited, ok := s.(blob.Limited); ok {
		return struct {
			tracedStore
			blob.Limited
		}{traced, limited}
	}
	return traced
}

// tracedStore makes a span of each operation. Its key is not said: some are secrets.
type tracedStore struct{ blob.Store }

// storageSpan begins a span with the name of an operation. The name is a constant: one that is put together here would
// cost memory for viewers' requests too, which are in no trace.
func storageSpan(ctx context.Context, name string) (context.Context, trace.Span) {
	ctx, span := trace.Begin(ctx, name, trace.Client)
	span.Text(trace.StorageOpKey, strings.TrimPrefix(name, "storage "))
	return ctx, span
}

// endStorage ends a span. That an object is absent is an answer, not a failure.
func endStorage(span trace.Span, err error) {
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	span.End(err)
}

// Objects implements blob.Sized: a bucket that is asked for the size of each object is asked a thousand times as often.
func (t tracedStore) Objects(ctx context.Context, prefix string) iter.Seq2[blob.Object, error] {
	return blob.Objects(ctx, t.Store, prefix)
}

// Put implements blob.Store.
func (t tracedStore) Put(ctx context.Context, key string, r io.Reader) error {
	ctx, span := storageSpan(ctx, "storage put")
	if size, ok := sizeOf(r); ok && span.Kept() {
		span.Number(trace.BytesKey, size)
	}
	err := t.Store.Put(ctx, key, r)
	endStorage(span, err)
	return err
}

// PutNew implements blob.Store.
func (t tracedStore) PutNew(ctx context.Context, key string, data []byte) (bool, error) {
	ctx, span := storageSpan(ctx, "storage put")
	span.Number(trace.BytesKey, int64(len(data)))
	created, err := t.Store.PutNew(ctx, key, data)
	endStorage(span, err)
	return created, err
}

// Get implements blob.Store. The span ends when the object is open: how fast it is read is up to the reader.
func (t tracedStore) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	_, span := storageSpan(ctx, "storage get")
	r, err := t.Store.Get(ctx, key, off, n)
	if err == nil {
		span.Number(trace.BytesKey, r.Size)
	}
	endStorage(span, err)
	return r, err
}

// Stat implements blob.Store.
func (t tracedStore) Stat(ctx context.Context, key string) (blob.Info, error) {
	ctx, span := storageSpan(ctx, "storage stat")
	info, err := t.Store.Stat(ctx, key)
	endStorage(span, err)
	return info, err
}

// Delete implements blob.Store.
func (t tracedStore) Delete(ctx context.Context, keys ...string) error {
	ctx, span := storageSpan(ctx, "storage delete")
	err := t.Store.Delete(ctx, keys...)
	endStorage(span, err)
	return err
}

// Link implements blob.Store.
func (t tracedStore) Link(ctx context.Context, key string, f *os.File) error {
	ctx, span := storageSpan(ctx, "storage link")
	if size, ok := sizeOf(f); ok && span.Kept() {
		span.Number(trace.BytesKey, size)
	}
	err := t.Store.Link(ctx, key, f)
	endStorage(span, err)
	return err
}

// Adopt implements blob.Store.
func (t tracedStore) Adopt(ctx context.Context, key, path string) error {
	ctx, span := storageSpan(ctx, "storage adopt")
	err := t.Store.Adopt(ctx, key, path)
	endStorage(span, err)
	return err
}

// sizeOf is how much there is to read, where that is known before.
func sizeOf(r io.Reader) (int64, bool) {
	switch r := r.(type) {
	case interface{ Len() int }:
		return int64(r.Len()), true
	case *os.File:
		info, err := r.Stat()
		if err == nil && info.Mode().IsRegular() {
			return info.Size(), true
		}
	}
	return 0, false
}

// PostFunc sends a delivery to an endpoint.
type PostFunc = func(
	ctx context.Context, to string, headers map[string]string, body []byte,
) (webhooks.Response, error)

// Post makes a trace of each attempt to deliver an event. Endpoints are not told of it: they are others'.
func (t *Tracing) Post(post PostFunc) PostFunc {
	if t == nil {
		return post
	}
	return func(ctx context.Context, to string, headers map[string]string, body []byte) (webhooks.Response, error) {
		ctx, span := t.tracer.Begin(ctx, http.MethodPost+" webhook", trace.Client)
		span.Text(trace.MethodKey, http.MethodPost)
		if u, err := url.Parse(to); err == nil {
			span.Text(trace.ServerKey, u.Hostname())
		}
		a, err := post(ctx, to, headers, body)
		if err == nil {
			span.Number(trace.StatusKey, int64(a.Status))
			if a.Status < 200 || a.Status > 299 {
				span.Failed(strconv.Itoa(a.Status))
			}
		}
		span.End(err)
		return a, err
	}
}
