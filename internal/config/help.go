package config

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
)

const fileHelp = "YAML file with settings, one name: value pair per line. Also " + envFile + "."

// Help explains every setting, for people at a terminal.
func Help() string {
	var flags, others strings.Builder
	for _, s := range settings {
		if s.Flag() {
			fmt.Fprintf(&flags, "  --%s %s\n        %s\n        Default: %s\n", s.Name, s.Kind, s.Help, s.DefaultText())
			continue
		}
		name := s.Env()
		if s.Foreign == "" {
			name += " (in the file: " + s.Name + ")"
		}
		fmt.Fprintf(&others, "  %s\n        %s\n        Default: %s\n", name, s.Help, s.DefaultText())
	}
	return "\nSettings:\n  --config path\n        " + fileHelp + "\n        Default: none\n" + flags.String() +
		"\nEnvironment or file only, because process lists show flags:\n" + others.String() +
		"\nEach flag is also an environment variable (--http-addr is MILLRACE_HTTP_ADDR) and a key in the\n" +
		"YAML file (http-addr: \":8080\"). Flags override the environment, which overrides the file.\n"
}

// Markdown is the table of settings as it stands in docs/settings.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("| flag and YAML key | environment | default | meaning |\n|---|---|---|---|\n")
	for _, s := range settings {
		name := "`--" + s.Name + "`"
		switch {
		case s.Foreign != "":
			name = "–"
		case s.NoFlag:
			name = "`" + s.Name + "` (file only)"
		}
		def := s.Absent
		if s.Default != "" {
			def = "`" + s.Default + "`"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, s.Env(), def, s.Help)
	}
	return b.String()
}

// Print prints each value with its origin, secrets masked: the output of config check.
func (c Config) Print(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "SETTING\tVALUE\tFROM")
	for _, v := range c.values {
		text, from := v.Shown(), string(v.Source)
		if text == "" {
			text = "(" + v.Setting.DefaultText() + ")"
		}
		if v.Where != "" {
			from += " " + v.Where
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\n", v.Setting.Name, text, from)
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(tab, "\nwarning: %s\n", warning)
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print settings: %w", err)
	}
	return nil
}

var passwordParameter = regexp.MustCompile(`(?i)([?&][^=&]*(?:password|secret|token)[^=&]*=)[^&]*`)

// redact masks the password in a URL; other texts stay as they are. What cannot be parsed but has an @ is masked as a
// whole.
func redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = passwordParameter.ReplaceAllString(text, "${1}"+mask)
	u, err := databaseURL(text)
	switch {
	case (err != nil || u.User == nil) && strings.Contains(text, "@"):
		return mask
	case err != nil || u.User == nil:
		return text
	}
	if _, has := u.User.Password(); !has {
		return text
	}
	head, rest, _ := strings.Cut(text, "://")
	at := strings.LastIndex(rest[:authorityEnd(rest)], "@")
	return head + "://" + u.User.Username() + ":" + mask + rest[at:]
}

// authorityEnd is where user, host and port of a URL end, counted after ://.
func authorityEnd(rest string) int {
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		return i
	}
	return len(rest)
}
