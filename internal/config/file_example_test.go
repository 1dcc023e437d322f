package config

import (
	"os"
	"strings"
	"testing"
)

// dataOfService is where the service of a machine keeps its data.
const dataOfService = "/var/lib/millrace"

// example is the settings file of a new installation: each setting with what it means, and its default behind a #.
func example() string {
	var b strings.Builder
	b.WriteString(`# Settings of Millrace, read at startup: systemctl restart millrace.
# Take away the # before a setting to change it. The environment (MILLRACE_HTTP_ADDR) overrides this file.
# millrace config check --config /etc/millrace.yaml checks it and shows where each value comes from.
`)
	for _, s := range settings {
		if s.Foreign != "" {
			continue
		}
		help := s.Help
		if s.Default == "" {
			help += " Default: " + s.Absent + "."
		}
		b.WriteString("\n")
		comment(&b, help)
		if s.Name == "data-dir" {
			b.WriteString("data-dir: " + dataOfService + "\n")
			continue
		}
		value := s.Default
		if strings.Contains(value, ":") {
			value = `"` + value + `"`
		}
		b.WriteString(strings.TrimSpace("#"+s.Name+": "+value) + "\n")
	}
	return b.String()
}

// comment writes a text as comments, in lines that fit a narrow window.
func comment(b *strings.Builder, text string) {
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > 100 {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
}

// TestExample: the file has every setting, with its default behind a #, and sets nothing but the data folder.
func TestExample(t *testing.T) {
	t.Parallel()
	const path = "../../deploy/millrace.yaml"
	text := example()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
		t.Errorf("deploy/millrace.yaml has other settings (%v): run go test ./internal/config -update", err)
	}
	for _, v := range mustLoad(t, []string{"--config=m.yaml"}, nil, text).values {
		want, from := v.Setting.Default, FromDefault
		if v.Setting.Name == "data-dir" {
			want, from = dataOfService, FromFile
		}
		if v.Text != want || v.Source != from {
			t.Errorf("%s is %q, by %s; want %q, by %s", v.Setting.Name, v.Text, v.Source, want, from)
		}
	}
	var all strings.Builder
	for line := range strings.Lines(text) {
		if len(line) > 1 && line[0] == '#' && line[1] != ' ' {
			line = line[1:]
		}
		all.WriteString(line)
	}
	values, problems := parseFile([]byte(all.String()))
	if len(problems) > 0 {
		t.Fatalf("without the #: %q", problems)
	}
	for _, s := range settings {
		v, ok := values[s.Name]
		if ok != (s.Foreign == "") || ok && v.Text != s.Default && s.Name != "data-dir" {
			t.Errorf("without the #, %s is %q (%v), want %q", s.Name, v.Text, ok, s.Default)
		}
	}
}
