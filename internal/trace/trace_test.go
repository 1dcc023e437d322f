package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"
	commonpb "go.opentelemetry.io/proto/slim/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"millrace/internal/fault"
)

// collector keeps what it is sent, decoded by the messages of OpenTelemetry's own: of a request they have the form.
type collector struct {
	mu     sync.Mutex
	spans  []*tracepb.ResourceSpans
	asked  int
	header http.Header
	says   func(asked int, w http.ResponseWriter)
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	c.header = r.Header.Clone()
	if c.says != nil {
		c.says(c.asked, w)
	}
	if w.Code == http.StatusOK {
		var data tracepb.TracesData
		if err = proto.Unmarshal(body, &data); err != nil {
			return nil, err
		}
		c.spans = append(c.spans, data.GetResourceSpans()...)
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

func (c *collector) names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all() {
		names = append(names, s.GetName())
	}
	return names
}

func (c *collector) all() (all []*tracepb.Span) {
	for _, r := range c.spans {
		for _, s := range r.GetScopeSpans() {
			all = append(all, s.GetSpans()...)
		}
	}
	return all
}

// exporting is an Exporter that sends to c until the test ends.
func exporting(c *collector, log io.Writer) *Exporter {
	e := NewExporter(ExporterOptions{
		URL: "http://collector.test/v1/traces", Headers: map[string]string{"Api-Key": "hush"},
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	e.client.Transport = c
	return e
}

func said(all []*commonpb.KeyValue, key string) *commonpb.AnyValue {
	for _, a := range all {
		if a.GetKey() == key {
			return a.GetValue()
		}
	}
	return nil
}

// TestWire: what is sent is what the messages of OpenTelemetry read.
func TestWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var c collector
		e := exporting(&c, io.Discard)
		tracer, err := New(Options{
			Version: "1.2.3", Node: "a", Resource: map[string]string{"service.name": "video", "team": "b"},
		}, e)
		if err != nil {
			t.Fatal(err)
		}
		const caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		ctx, request := tracer.Continue(t.Context(), caller, "POST /assets", Server)
		inner, put := Begin(ctx, "storage put", Client)
		put.Number(BytesKey, -7)
		put.Seconds(CPUKey, 1.5)
		put.Text(RouteKey, strings.Repeat("x", 1000))
		put.End(fault.New(fault.TooLarge, "https://host/secret"))
		request.End(nil)
		_, last := tracer.Continue(t.Context(), Parent(inner), "process a", Consumer)
		last.End(nil)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err = e.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if c.header.Get("Api-Key") != "hush" || c.header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("headers %v", c.header)
		}
		if len(c.spans) != 1 {
			t.Fatalf("%d resources", len(c.spans))
		}
		about := c.spans[0].GetResource().GetAttributes()
		for key, want := range map[string]string{
			"service.name": "video", "service.version": "1.2.3", "service.instance.id": "a", "team": "b",
		} {
			if got := said(about, key).GetStringValue(); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		all := c.all()
		if len(all) != 3 {
			t.Fatalf("got %v", c.names())
		}
		stored, asked, job := all[0], all[1], all[2]
		for _, s := range all {
			if got := hex.EncodeToString(s.GetTraceId()); got != caller[3:35] {
				t.Errorf("%s is in trace %s", s.GetName(), got)
			}
			if s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() || s.GetStartTimeUnixNano() == 0 {
				t.Errorf("%s is from %d to %d", s.GetName(), s.GetStartTimeUnixNano(), s.GetEndTimeUnixNano())
			}
		}
		if string(asked.GetParentSpanId()) != "\xb7\xad\x6b\x71\x69\x20\x33\x31" || asked.GetFlags() != 0x301 ||
			asked.GetKind() != tracepb.Span_SPAN_KIND_SERVER || asked.GetStatus() != nil {
			t.Errorf("request %v", asked)
		}
		if !bytes.Equal(stored.GetParentSpanId(), asked.GetSpanId()) || stored.GetFlags() != 0x101 ||
			stored.GetKind() != tracepb.Span_SPAN_KIND_CLIENT ||
			stored.GetStatus().GetCode() != tracepb.Status_STATUS_CODE_ERROR || stored.GetStatus().GetMessage() != "" {
			t.Errorf("storage %v", stored)
		}
		if !bytes.Equal(job.GetParentSpanId(), stored.GetSpanId()) ||
			job.GetKind() != tracepb.Span_SPAN_KIND_CONSUMER {
			t.Errorf("job %v", job)
		}
		attrs := stored.GetAttributes()
		if said(attrs, BytesKey).GetIntValue() != -7 || said(attrs, CPUKey).GetDoubleValue() != 1.5 ||
			said(attrs, "error.type").GetStringValue() != "too_large" ||
			len(said(attrs, RouteKey).GetStringValue()) != mostValue {
			t.Errorf("attributes %v", attrs)
		}
	})
}

// TestStrangeText: a host that is no text, as a URL may have one, costs no other span.
func TestStrangeText(t *testing.T) {
	t.Parallel()
	var c collector
	e := exporting(&c, io.Discard)
	tracer, err := New(Options{}, e)
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Begin(t.Context(), "POST webhook", Client)
	span.Text(ServerKey, "\xff.example.com")
	span.End(nil)
	if err = e.sendAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := c.all()
	if len(all) != 1 || said(all[0].GetAttributes(), ServerKey).GetStringValue() != "\uFFFD.example.com" {
		t.Errorf("got %v", all)
	}
}

// TestParents: what is no traceparent begins a trace of its own.
func TestParents(t *testing.T) {
	t.Parallel()
	const id, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for text, want := range map[string]bool{
		"00-" + id + "-" + span + "-01":                      true,
		"00-" + id + "-" + span + "-00":                      true,
		"00-" + id + "-" + span + "-ff":                      true,
		"cc-" + id + "-" + span + "-01-what-comes":           true,
		"cc-" + id + "-" + span + "-01.what":                 false,
		"00-" + id + "-" + span + "-01-what":                 false,
		"ff-" + id + "-" + span + "-01":                      false,
		"00-" + strings.ToUpper(id) + "-" + span + "-01":     false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01": false,
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":   false,
		"00-" + id + "-" + span + "-0":                       false,
		"00-" + id + "-" + strings.Repeat("g", 16) + "-01":   false,
		"":                        false,
		strings.Repeat("-", 1000): false,
	} {
		if c, got := parse(text); got != want || got && (c.TraceID().String() != id || c.TraceFlags() > 1) {
			t.Errorf("%q: %v, want %v (%v)", text, got, want, c)
		}
	}
}

// TestNobodyAsks: where there is no trace, nothing is made and nothing costs memory.
func TestNobodyAsks(t *testing.T) { //nolint:paralleltest // counts allocations of the whole process
	var none *Tracer
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		inner, span := Begin(ctx, "storage get", Client)
		span.Text(MethodKey, "GET")
		span.Number(BytesKey, 1)
		span.End(nil)
		if inner != ctx || Parent(inner) != "" || span.Kept() {
			t.Error("there is a span")
		}
		if _, span = none.Begin(ctx, "a", Server); span.Kept() {
			t.Error("there is a span of nobody")
		}
		if _, span = none.Continue(ctx, "", "a", Server); span.Kept() {
			t.Error("there is a span of nobody")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSampling: a trace that is not made has no parts, in other processes either.
func TestSampling(t *testing.T) {
	t.Parallel()
	const kept, left = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
	for _, tt := range []struct {
		sampler, parent string
		ratio           float64
		want            bool
	}{
		{"", "", 0, true},
		{"", left, 0, false},
		{"", kept, 0, true},
		{"always_off", kept, 1, false},
		{"always_on", left, 0, true},
		{"parentbased_always_off", "", 0, false},
		{"parentbased_always_off", kept, 0, true},
		{"traceidratio", kept, 0, false},
		{"parentbased_traceidratio", "", 0, false},
		{"parentbased_traceidratio", "", 1, true},
	} {
		tracer, err := New(Options{Sampler: Sampler{tt.sampler, tt.ratio}}, NewExporter(ExporterOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, span := tracer.Continue(t.Context(), tt.parent, "a", Server)
		_, inner := Begin(ctx, "b", Client)
		_, next := tracer.Follow(t.Context(), Parent(ctx), "c", Server)
		if span.Kept() != tt.want || inner.Kept() != tt.want || next.Kept() != (tt.want && tt.sampler != "always_off") {
			t.Errorf("%+v: %v, %v, %v", tt, span.Kept(), inner.Kept(), next.Kept())
		}
		if _, none := tracer.Follow(t.Context(), left, "d", Server); none.Kept() {
			t.Errorf("%+v: what another process does not keep is kept", tt)
		}
	}
	if _, err := New(Options{Sampler: Sampler{Name: "some"}}, nil); err == nil {
		t.Error("there is a sampler that is none")
	}
}

// ended are spans that have ended.
func ended(e *Exporter, name string, n int) {
	for range n {
		e.OnEnd(tracetest.SpanStub{Name: name, SpanContext: mustParse()}.Snapshot())
	}
}

func mustParse() (c api.SpanContext) {
	c, _ = parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	return c
}

// TestCollectorIsAway: spans wait for a collector that is away, the oldest are lost, and the log tells once a minute.
func TestCollectorIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := true
		c := collector{says: func(_ int, w http.ResponseWriter) {
			if away {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}}
		var log bytes.Buffer
		e := exporting(&c, &log)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		ended(e, "old", 100)
		ended(e, "new", mostWaiting)
		wait(t, 4*logEvery)
		c.mu.Lock()
		asked := c.asked
		away = false
		c.mu.Unlock()
		if asked < 4 || asked > 12 {
			t.Errorf("it was asked %d times in 4 minutes", asked)
		}
		if n := strings.Count(log.String(), "traces can't be sent"); n < 2 || n > 4 {
			t.Errorf("the log tells %d times in 4 minutes:\n%s", n, log.String())
		}
		if !strings.Contains(log.String(), "spans_lost=100") || strings.Contains(log.String(), "collector.test") {
			t.Errorf("the log says\n%s", log.String())
		}
		wait(t, 2*longestWait)
		if got := c.names(); len(got) != mostWaiting || got[0] != "new" {
			t.Errorf("%d spans have come, the first one %.10q", len(got), got)
		}
		stop()
		<-done
	})
}

// TestCollectorRefuses: what is refused for good is not sent again, and one that is hostile keeps nobody.
func TestCollectorRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		says func(int, http.ResponseWriter)
		lost string
	}{
		"status": {func(_ int, w http.ResponseWriter) { w.WriteHeader(http.StatusBadRequest) }, "spans_lost=3"},
		"redirect": {func(_ int, w http.ResponseWriter) {
			w.Header().Set("Location", "http://elsewhere.test/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "spans_lost=3"},
		"partial": {func(_ int, w http.ResponseWriter) {
			partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 2)
			_, _ = w.Write(appendBytes(appendBytes(nil, 9, []byte("later")), 1, partial))
		}, "spans_lost=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := collector{says: tt.says}
				var log bytes.Buffer
				e := exporting(&c, &log)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- e.Run(ctx) }()
				ended(e, "a", 3)
				wait(t, 2*logEvery)
				stop()
				<-done
				if c.asked != 1 {
					t.Errorf("it was asked %d times", c.asked)
				}
				if !strings.Contains(log.String(), tt.lost) {
					t.Errorf("the log says\n%s", log.String())
				}
			})
		})
	}
	for _, junk := range []string{
		"", "\x0a", "\x0a\xff\xff\xff\xff\x0f", "\x0a\x02\x08\xff", "\xff\xff", "not protobuf",
	} {
		if n := rejected([]byte(junk)); n != 0 {
			t.Errorf("%q refuses %d", junk, n)
		}
	}
}

// hung is a collector that never responds.
type hung struct{}

func (hung) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestCollectorHangs: a service stops within seconds of one that does not respond.
func TestCollectorHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := exporting(&collector{}, &log)
		e.client.Transport = hung{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		ended(e, "a", mostAtOnce)
		synctest.Wait()
		began := time.Now()
		stop()
		<-done
		if took := time.Since(began); took != lastSend {
			t.Errorf("it took %v", took)
		}
		if s := log.String(); !strings.Contains(s, "traces can't be sent") || strings.Contains(s, "collector.test") {
			t.Errorf("the log says\n%s", s)
		}
	})
}

// TestLogs: lines within a span say which one, and others say nothing of it.
func TestLogs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(Logs(slog.NewTextHandler(&out, nil))).With("a", "b")
	tracer, err := New(Options{}, NewExporter(ExporterOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	log.InfoContext(t.Context(), "before")
	if strings.Contains(out.String(), TraceIDKey) {
		t.Error(out.String())
	}
	ctx, span := tracer.Begin(t.Context(), "a", Server)
	log.InfoContext(ctx, "within")
	span.End(nil)
	parts := strings.Split(Parent(ctx), "-")
	if want := " a=b trace_id=" + parts[1] + " span_id=" + parts[2] + "\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want it to end with %q", out.String(), want)
	}
}

var _ sdk.SpanProcessor = (*Exporter)(nil)

// wait lets time pass, which it does at once in a bubble of synctest.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	time.Sleep(d)
	synctest.Wait()
}
