package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"millrace/internal/config"
)

// command is one command. Its own flags and what it does are a type of their own.
type command struct {
	name, summary, text string
	operands            []string // all of them must be given; the last may be several when it ends with …
	action              action
	traits              []trait
}

// trait is what sets a command apart.
type trait int

const (
	alone   trait = iota // reads no setting
	serving              // runs the service, which makes its database and says itself what it changes
	warning              // shows the warnings of the settings in its own way
	finding              // shows likewise what the roles lack
)

// of is the command with a usage: its name, in small letters and without a |, and its operands.
func of(usage, summary, text string, a action, traits ...trait) command {
	words := strings.Fields(usage)
	n := slices.IndexFunc(words, func(w string) bool { return w != strings.ToLower(w) || strings.Contains(w, "|") })
	if n < 0 {
		n = len(words)
	}
	return command{strings.Join(words[:n], " "), summary, text, words[n:], a, traits}
}

func (c command) is(t trait) bool { return slices.Contains(c.traits, t) }

// action is what a command does. Its fields are its flags.
type action interface {
	flags(f *flags)
	run(ctx context.Context, r *request) error
}

// simply is an action without flags of its own.
type simply func(ctx context.Context, r *request) error

func (simply) flags(*flags) {}

func (s simply) run(ctx context.Context, r *request) error { return s(ctx, r) }

// request is a command that was given, with everything that it needs.
type request struct {
	Actions

	command  string
	cfg      config.Config
	settings []string // those of the command line, as --name=value
	words    []string // operands
	now      time.Time
	environ  []string
	out, err io.Writer
}

// say prints a line.
func (r *request) say(format string, args ...any) error {
	_, err := fmt.Fprintf(r.out, format+"\n", args...)
	return err
}

// done prints a line about what was done, unless it failed.
func (r *request) done(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return r.say(format, args...)
}

// commands are all commands, in the order of the help.
func commands() []command {
	return slices.Concat(
		serviceCommands(), healthCommands(), tokenCommands(), signingKeyCommands(), environmentCommands(),
		retentionCommands(), auditCommands(), nodeCommands(), sizeCommands(), dashboardCommands(), backupCommands(),
		uploadCommands(),
		eventCommands(), webhookCommands(), drmCommands(), masterKeyCommands(), otherCommands(), completionCommands(),
	)
}

// find is the command that the first two words name, or the first, and the words behind it.
func find(all []command, words []string) (cmd command, rest []string, found bool) {
	for n := min(2, len(words)); n > 0; n-- {
		name := strings.Join(words[:n], " ")
		for i := range all {
			if all[i].name == name {
				return all[i], words[n:], true
			}
		}
	}
	return command{}, words, false
}

// group are the commands whose name begins with a word, such as token.
func group(all []command, word string) (in []command) {
	for i := range all {
		if strings.HasPrefix(all[i].name, word+" ") {
			in = append(in, all[i])
		}
	}
	return in
}

// names are the names of commands, without the word in front of them.
func names(of []command, word string) (names []string) {
	for _, c := range of {
		names = append(names, strings.TrimPrefix(c.name, word+" "))
	}
	return names
}

// newFlags are the flags of the command itself, and those of settings.
func (c command) newFlags() (f *flags, settings []*pflag.Flag) {
	f = &flags{}
	c.action.flags(f)
	if !c.is(alone) {
		settings = f.List()
	}
	return f, settings
}

// check says what is wrong with the operands.
func (c command) check(words []string) (problems []string) {
	got, want := len(words), len(c.operands)
	several := want > 0 && strings.HasSuffix(c.operands[want-1], "…")
	switch {
	case got < want:
		problems = append(problems, c.name+" needs "+strings.Join(c.operands[got:], " "))
	case got > want && !several:
		problems = append(problems, fmt.Sprintf("%s does not know what to do with %q", c.name, words[want]))
	case want > 0 && strings.Contains(c.operands[0], "|") &&
		!slices.Contains(strings.Split(c.operands[0], "|"), words[0]):
		allowed := strings.ReplaceAll(c.operands[0], "|", ", ")
		problems = append(problems, fmt.Sprintf("%s: %q is none of %s", c.name, words[0], allowed))
	}
	return problems
}
