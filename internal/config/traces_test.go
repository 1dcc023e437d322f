package config

import (
	"maps"
	"strings"
	"testing"
)

// TestTraces: our own setting wins over the standard names, and of those the one for traces alone.
func TestTraces(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args, env []string
		want      string
	}{
		{nil, nil, ""},
		{[]string{"--otlp-endpoint=http://a:4318/"}, nil, "http://a:4318/v1/traces"},
		{nil, []string{"MILLRACE_OTLP_ENDPOINT=http://a:4318"}, "http://a:4318/v1/traces"},
		{nil, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://b/otlp/"}, "https://b/otlp/v1/traces"},
		{nil, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/in"}, "https://c/in"},
		{
			nil,
			[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://b", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/in"},
			"http://c/in",
		},
		{
			[]string{"--otlp-endpoint=http://a"},
			[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c/in"},
			"http://a/v1/traces",
		},
	} {
		cfg, err := Parse(tt.args, tt.env, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.Traces.URL(); got != tt.want {
			t.Errorf("%v, %v: %q, want %q", tt.args, tt.env, got, tt.want)
		}
	}
	cfg, err := Parse(nil, []string{
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, x = y", "OTEL_SERVICE_NAME=video",
		"OTEL_RESOURCE_ATTRIBUTES=service.name=other,team=a%2Cb",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Traces.HeaderValues(); !maps.Equal(got, map[string]string{"api-key": "a b", "x": "y"}) {
		t.Errorf("headers %v", got)
	}
	want := map[string]string{"service.name": "video", "team": "a,b"}
	if got := cfg.Traces.Attributes(); !maps.Equal(got, want) {
		t.Errorf("attributes %v", got)
	}
	for _, wrong := range []string{
		"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4317", "OTEL_EXPORTER_OTLP_HEADERS=hunter2",
		"OTEL_EXPORTER_OTLP_HEADERS=a=hunter2%0d%0ab", "OTEL_EXPORTER_OTLP_HEADERS=a b=hunter2",
		"OTEL_TRACES_SAMPLER=some", "OTEL_TRACES_SAMPLER_ARG=2", "OTEL_TRACES_SAMPLER_ARG=NaN",
		"OTEL_RESOURCE_ATTRIBUTES=a",
	} {
		name, _, _ := strings.Cut(wrong, "=")
		_, err := Parse(nil, []string{wrong}, nil)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
