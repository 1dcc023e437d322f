package cli

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"millrace/internal/config"
)

var update = flag.Bool("update", false, "write the manual page")

// manual is the manual page, in the language of man(7).
func manual() string {
	var p page
	p.macro("TH", "MILLRACE", "1", "", "millrace")
	p.macro("SH", "NAME")
	p.text(`millrace - self-hosted live and on-demand video service`)
	p.macro("SH", "SYNOPSIS")
	p.text("millrace COMMAND [flags]")
	p.macro("SH", "COMMANDS")
	for _, c := range commands() {
		p.entry(strings.TrimPrefix(c.usage(), "millrace "), c.text)
		f, _ := c.newFlags()
		if len(f.own) == 0 {
			continue
		}
		p.macro("RS")
		for _, own := range f.own {
			help := own.Usage
			if own.DefValue != "" {
				help += " Default: " + own.DefValue + "."
			}
			p.entry(strings.TrimSpace("--"+own.Name+" "+own.Value.Type()), help)
		}
		p.macro("RE")
	}
	p.macro("SH", "SETTINGS")
	p.text("Flags override the environment, which overrides the YAML file that --config or MILLRACE_CONFIG names. " +
		"Each flag is a key in that file as well, without its dashes. What is secret is no flag, because process " +
		"lists show flags.")
	for _, s := range config.Settings() {
		names := s.Env()
		if s.Flag() {
			names = "--" + s.Name + " " + string(s.Kind) + ", " + names
		}
		p.entry(names, s.Help+" Default: "+s.DefaultText()+".")
	}
	p.macro("SH", "EXIT STATUS")
	p.text(exitCodes)
	return p.String()
}

// page is a manual page that grows.
type page struct{ strings.Builder }

// macro writes a request with its arguments.
func (p *page) macro(name string, args ...string) {
	p.WriteString("." + name)
	for _, a := range args {
		p.WriteString(` "` + roff(a) + `"`)
	}
	p.WriteString("\n")
}

// text writes a paragraph, line by line.
func (p *page) text(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		p.WriteString(roff(line) + "\n")
	}
}

// entry writes a word, and behind it what it means.
func (p *page) entry(word, meaning string) {
	p.macro("TP")
	p.macro("B", word)
	p.text(meaning)
}

// roff is a text on one line as troff shows it.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "…", `\&...`, "’", "'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}

// TestManual: the page explains every command, flag and setting, and no text is taken for a request.
func TestManual(t *testing.T) {
	t.Parallel()
	const path = "../../../deploy/millrace.1"
	text := manual()
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != text {
		t.Errorf("deploy/millrace.1 is not of this program (%v): run go test ./internal/app/cli -update", err)
	}
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") &&
			!slices.Contains([]string{".TH", ".SH", ".TP", ".B", ".RS", ".RE"}, name) {
			t.Errorf("is taken for a request: %s", line)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(text, `.B "`+roff(strings.TrimPrefix(c.usage(), "millrace "))+`"`) {
			t.Errorf("%s is missing", c.name)
		}
		f, _ := c.newFlags()
		for _, own := range f.own {
			if !strings.Contains(text, roff(own.Usage)) {
				t.Errorf("--%s of %s is missing", own.Name, c.name)
			}
		}
	}
	for _, s := range config.Settings() {
		if !strings.Contains(text, roff(s.Env())) || !strings.Contains(text, roff(s.Help)) {
			t.Errorf("%s is missing", s.Name)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		return // the page was checked as far as it goes without one
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-Kutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(text)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.Len() > 0 {
		t.Errorf("groff: %v\n%s", err, &complaints)
	}
}
