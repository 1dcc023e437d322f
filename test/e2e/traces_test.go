package e2e

import (
	"bytes"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"millrace/test/rig"
)

// collector keeps the traces that it is sent.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	said  bytes.Buffer // all of it, as it came
	spans []*tracepb.Span
	wrong []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData // an ExportTraceServiceRequest has the same form
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Api-Key") != "for the collector" {
			c.wrong = append(c.wrong, r.URL.Path)
		}
		c.said.Write(body)
		for _, resource := range data.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				c.spans = append(c.spans, scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// below are the names of the spans of a trace, each behind those that it is within.
func (c *collector) below(trace string) (paths []string) {
	byID := map[string]*tracepb.Span{}
	for _, s := range c.spans {
		byID[string(s.GetSpanId())] = s
	}
	for _, s := range c.spans {
		if hex.EncodeToString(s.GetTraceId()) != trace {
			continue
		}
		path := s.GetName()
		for up := byID[string(s.GetParentSpanId())]; up != nil; up = byID[string(up.GetParentSpanId())] {
			path = up.GetName() + " > " + path
		}
		paths = append(paths, path)
	}
	return paths
}

// ask sends a request that says that it is in a trace, and gives the response's body.
func ask(t *testing.T, trace, method, url, authorization, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Traceparent", "00-"+trace+"-b7ad6b7169203331-01")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTraces: a request to the API, the job that it causes and what that does are one trace, which is the caller's.
// Strangers and viewers make none, and no secret is in what is sent.
func TestTraces(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Scaled, func(t *testing.T, p rig.Pair) {
		c := newCollector(t)
		s := rig.Start(t, rig.Options{Pair: p, Env: []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_HEADERS=api-key=for%20the%20collector",
			"OTEL_SERVICE_NAME=video",
		}})
		clip := small()
		clip.Seconds, clip.Video, clip.Audio = 3, "mpeg4", "libmp3lame"
		film, err := os.ReadFile(rig.File(t, "a.avi", clip))
		if err != nil {
			t.Fatal(err)
		}
		origin := rig.Files(t, map[string]string{"a.avi": string(film)})

		const ours, strangers, viewers = "0af7651916cd43dd8448eb211c80319c", "0af7651916cd43dd8448eb211c80319d",
			"0af7651916cd43dd8448eb211c80319e"
		const signature = "dontlogthissignature"
		input := `{"inputs":[{"url":"` + origin + `/a.avi?signature=` + signature +
			`"}],"playback_policies":["public"]}`
		made := ask(t, ours, http.MethodPost, s.HTTP+"/video/v1/assets", s.Authorization(), input)
		_, id, found := strings.Cut(made, `"id":"`)
		if !found {
			t.Fatal(made)
		}
		id, _, _ = strings.Cut(id, `"`)
		asset := s.AwaitAsset(t, id, "ready", patience, rig.Ready)
		ask(t, strangers, http.MethodPost, s.HTTP+"/video/v1/assets", "Basic YTpi", input)
		const token = "dontlogthistoken"
		ask(t, viewers, http.MethodGet, s.PlayURL(asset.Text("playback_ids.0.id"))+"?token="+token, "", "")
		live := s.CreateLive(t, "low", nil)
		_, upload := s.Do(t, http.MethodPost, "/video/v1/uploads", rig.Object{"cors_origin": "*"})
		ask(t, strangers, http.MethodPut, upload.Text("data.url"), "", string(film))
		s.Stop(t)

		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.wrong) > 0 {
			t.Errorf("wrong requests to %v", c.wrong)
		}
		paths := c.below(ours)
		const job = "POST /video/v1/assets > process asset.ingest"
		for _, want := range []string{
			"POST /video/v1/assets", job, job + " > GET", job + " > ffprobe probe", job + " > ffmpeg rewrite",
			job + " > ffmpeg rewrite > storage put", job + " > storage put",
		} {
			if !slices.Contains(paths, want) {
				t.Errorf("there is no span\n%s in\n%s", want, strings.Join(paths, "\n"))
			}
		}
		for _, trace := range []string{strangers, viewers} {
			if paths := c.below(trace); len(paths) > 0 {
				t.Errorf("trace %s has %v", trace, paths)
			}
		}
		secret := upload.Text("data.url")[strings.LastIndex(upload.Text("data.url"), "/")+1:]
		for name, hidden := range map[string]string{
			"signature": signature, "token": token, "stream key": live.Text("stream_key"), "upload": secret,
			"access token": s.Secrets()[0],
		} {
			if hidden == "" || bytes.Contains(c.said.Bytes(), []byte(hidden)) {
				t.Errorf("the %s %q is in what was sent", name, hidden)
			}
		}
		if !bytes.Contains(c.said.Bytes(), []byte("PUT /uploads/{secret}")) {
			t.Error("the upload is in no trace")
		}
	})
}
