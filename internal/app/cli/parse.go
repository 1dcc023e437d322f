package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"millrace/internal/config"
	"millrace/internal/spelling"
)

// Names of commands that have a meaning before a command is found.
const (
	helpCommand    = "help"
	versionCommand = "version"
)

// line is a command line that was understood.
type line struct {
	command

	words    []string // operands
	settings *flags
	help     string // what is to be printed instead, without a last line feed
}

// load reads a command line (without the program's name) and the settings that it is to be run with. The error is a
// *config.Error with every problem that was found. Commands without settings have an empty Config.
func load(args, environ []string, readFile func(string) ([]byte, error)) (line, config.Config, error) {
	l, problems := parse(args)
	if len(problems) > 0 {
		return line{}, config.Config{}, &config.Error{Problems: problems}
	}
	if l.help != "" || l.is(alone) {
		return l, config.Config{}, nil
	}
	if l.is(finding) {
		l.settings.Examined()
	}
	cfg, err := l.settings.Load(environ, readFile)
	cfg.Database.MustExist = !l.is(serving) && !l.settings.creates
	return l, cfg, err
}

// parse finds the command of a command line, and reads its flags.
func parse(args []string) (l line, problems []string) {
	all := commands()
	every := everyFlag()
	help, version := every.BoolP(helpCommand, "h", false, ""), every.Bool(versionCommand, false, "")
	words, problems := split(every, args)
	if *version {
		words = append(words, versionCommand)
	}
	cmd, rest, found := find(all, words)
	switch {
	case *version && len(words) == 1:
		return line{command: cmd, settings: &flags{}}, nil
	case *help && !found:
		return explain(all, words)
	case *help && cmd.name != helpCommand:
		return explain(all, strings.Fields(cmd.name))
	case cmd.name == helpCommand && (*help || len(problems) == 0):
		return explain(all, rest)
	case len(problems) > 0:
		return l, problems
	case !found:
		return l, []string{unknownCommand(all, words)}
	}
	l = line{command: cmd, words: rest}
	l.settings, problems = cmd.parse(all, every, args)
	problems = append(cmd.check(rest), problems...)
	if c, ok := cmd.action.(interface{ check(words []string) []string }); ok && len(problems) == 0 {
		problems = c.check(rest)
	}
	return l, problems
}

// everyFlag are the flags of all commands, to tell operands from values before it is known which command it is.
func everyFlag() *pflag.FlagSet {
	var list []*pflag.Flag
	for _, c := range commands() {
		own, settings := c.newFlags()
		list = append(append(list, own.own...), settings...)
	}
	return setOf(list)
}

// setOf is a set of flags, of those with one name the first.
func setOf(flags []*pflag.Flag) *pflag.FlagSet {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, f := range flags {
		if set.Lookup(f.Name) == nil {
			set.AddFlag(f)
		}
	}
	return set
}

// split takes the flags out of args, and leaves the words.
func split(set *pflag.FlagSet, args []string) (words, problems []string) {
	for {
		err := set.Parse(args)
		if err == nil {
			return set.Args(), problems
		}
		unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
		if isUnknown && unknown.GetSpecifiedShortnames() == "" {
			name := unknown.GetSpecifiedName()
			problems = append(problems, strange(set, name))
			set.Func(name, "", func(string) error { return nil }) // to find what else is wrong
			set.Lookup(name).NoOptDefVal = "true"
			continue
		}
		needs, isNeeding := errors.AsType[*pflag.ValueRequiredError](err)
		switch {
		case isUnknown:
			problems = append(problems, withOneDash(set, args, unknown.GetSpecifiedShortnames()))
			_ = set.Set(helpCommand, "false") // -http-addr is no -h
		case isNeeding:
			problems = append(problems, "--"+needs.GetSpecifiedName()+" needs a value after it")
		default:
			problems = append(problems, err.Error())
		}
		return set.Args(), problems
	}
}

// strange says of a name that it is no flag.
func strange(set *pflag.FlagSet, name string) string {
	for _, s := range config.Settings() {
		if s.Name == name && !s.Flag() {
			return "--" + name + " is not a flag, because process lists show flags: " +
				"set " + s.Env() + " in the environment"
		}
	}
	var known []string
	set.VisitAll(func(k *pflag.Flag) { known = append(known, k.Name) })
	return "unknown flag --" + name + spelling.Suggest(name, known, "--")
}

// withOneDash says of the flag that ends so that it has one dash too few.
func withOneDash(set *pflag.FlagSet, args []string, end string) string {
	i := slices.IndexFunc(args, func(a string) bool {
		return strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && len(a) > 1 && strings.HasSuffix(a, end)
	})
	name, _, _ := strings.Cut(args[i][1:], "=")
	if set.Lookup(name) == nil {
		return strange(set, name)
	}
	return "flags start with two dashes: write --" + name
}

// parse reads the flags of a command, whose names are all known. Those of other commands are told.
func (c command) parse(all []command, every *pflag.FlagSet, args []string) (f *flags, problems []string) {
	f, settings := c.newFlags()
	set := setOf(append(slices.Clip(f.own), settings...))
	every.Visit(func(given *pflag.Flag) {
		if set.Lookup(given.Name) == nil {
			problems = append(problems, c.misplaced(all, given.Name))
			set.AddFlag(given)
		}
	})
	if err := set.Parse(args); err != nil {
		problems = append(problems, err.Error())
	}
	return f, append(problems, f.problems...)
}

// misplaced says of a flag that it is none of this command.
func (c command) misplaced(all []command, name string) string {
	var owners []string
	for _, other := range all {
		f, _ := other.newFlags()
		if slices.ContainsFunc(f.own, func(f *pflag.Flag) bool { return f.Name == name }) {
			owners = append(owners, other.name)
		}
	}
	if owners == nil {
		return fmt.Sprintf("%s takes no settings, so --%s has no meaning", c.name, name)
	}
	return fmt.Sprintf("--%s belongs to %s, not to %s", name, strings.Join(owners, ", "), c.name)
}

func unknownCommand(all []command, words []string) string {
	if len(words) == 0 {
		return "no command given"
	}
	in := group(all, words[0])
	if len(in) == 0 {
		return fmt.Sprintf("unknown command %q", words[0]) + spelling.Suggest(words[0], names(all, ""), "")
	}
	behind := names(in, words[0])
	if len(words) == 1 {
		return words[0] + " needs one of: " + strings.Join(behind, ", ")
	}
	return fmt.Sprintf("unknown command %q", words[0]+" "+words[1]) + spelling.Suggest(words[1], behind, words[0]+" ")
}
