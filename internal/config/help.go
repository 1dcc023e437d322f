package config

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// overview is the text of millrace help.
func overview() string {
	var b strings.Builder
	b.WriteString("Millrace is a self-hosted live and on-demand video service.\n\nUsage: millrace COMMAND [flags]\n\nCommands:\n")
	list(&b, commands)
	b.WriteString("\nmillrace COMMAND --help explains a command; millrace serve --help lists every setting.\n")
	b.WriteString("Exit codes: 0 success, 1 failure, 2 invalid command line or configuration, 130 interrupted.")
	return b.String()
}

// groupHelp is the text of the commands that begin with the same word: millrace token --help.
func groupHelp(group string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: millrace %s COMMAND [flags]\n\nCommands:\n", group)
	list(&b, commandsOf(group))
	fmt.Fprintf(&b, "\nmillrace %s COMMAND --help explains one.", group)
	return b.String()
}

// list writes commands, one to a line, with their summaries below one another.
func list(b *strings.Builder, commands []command) {
	width := 0
	for _, c := range commands {
		width = max(width, len(c.name))
	}
	for _, c := range commands {
		fmt.Fprintf(b, "  %-*s  %s\n", width, c.name, c.summary)
	}
}

// commandHelp is the text of millrace COMMAND --help.
func commandHelp(c command) string {
	if c.name == Help {
		return overview()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Usage: millrace %s", c.name)
	for _, o := range c.operands {
		b.WriteString(" " + o)
	}
	if !c.noSettings {
		b.WriteString(" [flags]")
	}
	fmt.Fprintf(&b, "\n\n%s\n", c.text)
	for i, o := range optionsOf(c.name) {
		if i == 0 {
			b.WriteString("\nFlags:\n")
		}
		def := ""
		if o.def != "" {
			def = " (default " + o.def + ")"
		}
		fmt.Fprintf(&b, "  %s\n        %s%s\n", strings.TrimSpace("--"+o.name+" "+o.word), o.help, def)
	}
	switch {
	case c.noSettings:
	case c.name == Serve:
		b.WriteString(settingsHelp())
	default:
		b.WriteString("\nAlso takes the settings of serve, from flags, environment and file: millrace serve --help.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func optionsOf(command string) []option {
	return slices.DeleteFunc(slices.Clone(options), func(o option) bool { return !slices.Contains(o.commands, command) })
}

func settingsHelp() string {
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
	return "\nSettings:\n  --config path\n        YAML file with settings, one name: value pair per line. Also " + envFile + ".\n        Default: none\n" + flags.String() +
		"\nEnvironment or file only, because process lists show flags:\n" + others.String() +
		"\nEach flag is also an environment variable (--http-addr is MILLRACE_HTTP_ADDR) and a key in the\n" +
		"YAML file (http-addr: \":8080\"). Flags override the environment, which overrides the file.\n"
}

// Markdown is the table of settings as it stands in the README.
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

// redact masks the password in a URL; other texts stay as they are. What cannot be parsed but has an @ is masked as a whole.
func redact(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	text = passwordParameter.ReplaceAllString(text, "${1}"+mask)
	u, err := url.Parse(text)
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
