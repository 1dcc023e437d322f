package cli

import (
	"fmt"
	"strings"

	"millrace/internal/config"
)

// explain explains what the words name: a command, the commands that begin with one word, or without words all.
func explain(all []command, words []string) (l line, problems []string) {
	switch cmd, rest, found := find(all, words); {
	case len(words) == 0 || found && cmd.name == helpCommand:
		l.help = overview(all)
	case found && len(rest) == 0:
		l.help = cmd.explained()
	case len(words) == 1 && len(group(all, words[0])) > 0:
		l.help = "Usage: millrace " + words[0] + " COMMAND [flags]\n\nCommands:\n" +
			summaries(group(all, words[0])) + "\nmillrace " + words[0] + " COMMAND --help explains one."
	default:
		problems = []string{unknownCommand(all, words)}
	}
	return l, problems
}

// overview is the text of millrace help.
func overview(all []command) string {
	return "Millrace is a self-hosted live and on-demand video service.\n\n" +
		"Usage: millrace COMMAND [flags]\n\nCommands:\n" + summaries(all) +
		"\nmillrace COMMAND --help explains a command; millrace serve --help lists every setting.\n" +
		"Exit codes: " + exitCodes
}

const exitCodes = "0 success, 1 failure, 2 invalid command line or configuration, 130 interrupted."

// summaries are commands, one to a line, with their summaries below one another.
func summaries(of []command) string {
	var b strings.Builder
	width := 0
	for _, c := range of {
		width = max(width, len(c.name))
	}
	for _, c := range of {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, c.name, c.summary)
	}
	return b.String()
}

// explained is the text of millrace COMMAND --help.
func (c command) explained() string {
	var b strings.Builder
	b.WriteString("Usage: " + c.usage() + "\n\n" + c.text + "\n")
	flags, _ := c.newFlags()
	for i, f := range flags.own {
		if i == 0 {
			b.WriteString("\nFlags:\n")
		}
		def := ""
		if f.DefValue != "" {
			def = " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(&b, "  %s\n        %s%s\n", strings.TrimSpace("--"+f.Name+" "+f.Value.Type()), f.Usage, def)
	}
	switch {
	case c.is(alone):
	case c.name == serveCommand:
		b.WriteString(config.Help())
	default:
		b.WriteString("\nAlso takes the settings of serve, from flags, environment and file: millrace serve --help.\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c command) usage() string {
	words := append([]string{"millrace", c.name}, c.operands...)
	if flags, _ := c.newFlags(); !c.is(alone) || len(flags.own) > 0 {
		words = append(words, "[flags]")
	}
	return strings.Join(words, " ")
}
