package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"millrace/internal/spelling"
)

// Source is where a value comes from.
type Source string

// The sources, the strongest first.
const (
	FromFlag    Source = "flag"
	FromEnv     Source = "env"
	FromFile    Source = "file"
	FromDefault Source = "default"
)

// Value is a setting as it was found.
type Value struct {
	Setting Setting
	Text    string // as it was written
	Source  Source
	Where   string // the flag, the environment name or file:line; empty for a default
}

// Shown is the text with secrets masked.
func (v Value) Shown() string {
	if v.Text == "" {
		return ""
	}
	if v.Setting.Secret {
		return mask
	}
	return redact(v.Text)
}

// Error is everything that is wrong with command line, environment and file, one sentence each.
type Error struct{ Problems []string }

func (e *Error) Error() string { return strings.Join(e.Problems, "\n") }

// Flags are the settings that a command line gives.
type Flags struct {
	given    []given
	file     string // --config
	examined bool
}

// Examined leaves it to the caller to look at Config.RoleConflicts: they are no error of Load.
func (f *Flags) Examined() { f.examined = true }

// given is a setting as it stands on the command line.
type given struct{ name, text string }

// setting is the flag of a setting, which only notes what is given: Load checks it.
type setting struct {
	of   *Flags
	name string
	kind Kind
}

func (s *setting) String() string { return "" }

// Type is the word behind the flag in help texts.
func (s *setting) Type() string { return string(s.kind) }

// Set notes a value. A list may be given piece by piece.
func (s *setting) Set(text string) error {
	s.of.given = append(s.of.given, given{s.name, text})
	if s.name == fileFlag {
		s.of.file = text
	}
	return nil
}

const fileFlag = "config"

// Words is the annotation of a flag with what its value can be, where that is a word of a list.
const Words = "words"

// List is --config and the settings that may be given on a command line, as flags.
func (f *Flags) List() []*pflag.Flag {
	flag := func(name string, kind Kind, help, def string, words []string) *pflag.Flag {
		return &pflag.Flag{
			Name: name, Usage: help, DefValue: def, Value: &setting{f, name, kind},
			Annotations: map[string][]string{Words: words},
		}
	}
	all := []*pflag.Flag{flag(fileFlag, KindPath, fileHelp, "none", nil)}
	for _, s := range settings {
		if s.Flag() {
			all = append(all, flag(s.Name, s.Kind, s.Help, s.DefaultText(), s.Words))
		}
	}
	return all
}

// Args are the same flags, --config included, to hand on to another process.
func (f *Flags) Args() (args []string) {
	for _, g := range f.given {
		args = append(args, "--"+g.name+"="+g.text)
	}
	return args
}

// Parse reads a command line of settings alone.
func Parse(args, environ []string, readFile func(string) ([]byte, error)) (Config, error) {
	var f Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, flag := range f.List() {
		set.AddFlag(flag)
	}
	if err := set.Parse(args); err != nil {
		return Config{}, asError([]string{err.Error()})
	}
	return f.Load(environ, readFile)
}

// Load finds the value of each setting: of the command line, the environment ("NAME=value" lines, as os.Environ gives)
// and the file named by --config or MILLRACE_CONFIG. A flag wins over the environment, that over the file, that over
// the default; an empty environment variable counts as not set. The error is an *Error with every problem found.
func (f *Flags) Load(environ []string, readFile func(string) ([]byte, error)) (Config, error) {
	cfg, problems := f.resolve(environ, readFile)
	return cfg, asError(problems)
}

// Report is the text for standard error, without a last line feed: each problem on a line of its own, and where to
// read on.
func (e *Error) Report() string {
	var b strings.Builder
	for _, p := range e.Problems {
		b.WriteString("millrace: " + p + "\n")
	}
	b.WriteString("Run millrace help for the commands, millrace serve --help for every setting.")
	return b.String()
}

func asError(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{Problems: problems}
}

// resolve finds each setting's value and fills the Config.
func (f *Flags) resolve(environ []string, readFile func(string) ([]byte, error)) (cfg Config, problems []string) {
	env := environment(environ)
	cfg.Warnings = strangers(env)
	cfg.File = cmp.Or(f.file, env[envFile])
	file, problems := readSettings(cfg.File, readFile)
	for _, s := range settings {
		v := f.find(s, env, file)
		cfg.values = append(cfg.values, v)
		if v.Source == FromFlag && v.Shown() != v.Text {
			cfg.Warnings = append(cfg.Warnings, "--"+s.Name+" has a secret in it, which everybody on this machine can "+
				"read in the list of processes: put it into the settings file or into "+s.Env())
		}
		if err := s.apply(&cfg, v.Text); err != nil {
			problems = append(problems, fmt.Sprintf("%s %q %v", v.subject(), v.Shown(), err))
		}
	}
	if len(problems) > 0 {
		return cfg, problems
	}
	cfg.derive()
	problems = cfg.conflicts()
	if !f.examined {
		problems = append(problems, cfg.RoleConflicts()...)
	}
	return cfg, problems
}

// subject names the value as the person who set it knows it.
func (v Value) subject() string {
	if v.Source == FromFile {
		return v.Where + ": " + v.Setting.Name
	}
	return v.Where
}

func (f *Flags) find(s Setting, env map[string]string, file map[string]Value) Value {
	v := Value{Setting: s, Text: s.Default, Source: FromDefault}
	var texts []string
	for _, g := range f.given {
		if g.name == s.Name {
			texts = append(texts, g.text)
		}
	}
	if len(texts) > 0 {
		v.Text, v.Source, v.Where = texts[len(texts)-1], FromFlag, "--"+s.Name
		if s.Kind == KindPrefixes || s.Kind == KindNames || s.Kind == KindIPs { // a list may be given piece by piece
			v.Text = strings.Join(texts, ",")
		}
		return v
	}
	if text := env[s.Env()]; text != "" {
		v.Text, v.Source, v.Where = text, FromEnv, s.Env()
		return v
	}
	if found, ok := file[s.Name]; ok {
		found.Setting = s
		return found
	}
	return v
}

func environment(environ []string) map[string]string {
	env := make(map[string]string, len(environ))
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok {
			env[name] = value
		}
	}
	return env
}

// strangers warns of names in the environment that look like settings and are none. Left alone are those that
// Kubernetes sets for a service called millrace (MILLRACE_PORT…, MILLRACE_SERVICE_…) and those of the project's own
// test runs (MILLRACE_TEST_…).
func strangers(env map[string]string) (warnings []string) {
	known := []string{envFile}
	for _, s := range settings {
		if s.Foreign == "" {
			known = append(known, s.Env())
		}
	}
	for name := range env {
		rest, ours := strings.CutPrefix(name, envPrefix)
		others := rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_") ||
			strings.HasPrefix(rest, "TEST_")
		if !ours || others || slices.Contains(known, name) {
			continue
		}
		warnings = append(warnings,
			name+" is set in the environment, but no setting has that name"+spelling.Suggest(name, known, ""))
	}
	slices.Sort(warnings)
	return warnings
}
