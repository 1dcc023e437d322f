package config

import (
	"fmt"
	"slices"
	"strings"
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

// Load reads the command line (without the program's name), the environment ("NAME=value" lines, as os.Environ gives) and the
// file named by --config or MILLRACE_CONFIG. A flag wins over the environment, that over the file, that over the default; an
// empty environment variable counts as not set. The error is an *Error with every problem found, and its exit code is ExitUsage.
// For Help and Version nothing is read and the Config is empty.
func Load(args, environ []string, readFile func(string) ([]byte, error)) (Command, Config, error) {
	l, problems := split(args)
	c, cmd, more := l.command()
	problems = append(problems, more...)
	switch {
	case l.help && cmd.name == "":
		return helpFor(l.words)
	case l.help && cmd.name != Help:
		return helpFor(strings.Fields(cmd.name))
	case cmd.name == Help && (l.help || len(problems) == 0):
		return helpFor(c.Words)
	}
	if len(problems) > 0 || cmd.noSettings {
		return c, Config{}, asError(problems)
	}
	cfg, problems := resolve(l.uses, environ, readFile)
	cfg.Database.MustExist = c.Name != Serve && c.Name != Demo && !c.Access.Create
	return c, cfg, asError(problems)
}

// Report is the text for standard error, without a last line feed: each problem on a line of its own, and where to read on.
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

// helpFor explains what the words name: a command, the commands that begin with one word, or without words all of them.
func helpFor(words []string) (Command, Config, error) {
	if len(words) == 0 {
		return Command{Name: Help, Text: overview()}, Config{}, nil
	}
	if len(words) == 1 && len(commandsOf(words[0])) > 0 {
		return Command{Name: Help, Text: groupHelp(words[0])}, Config{}, nil
	}
	cmd, ok := commandNamed(strings.Join(words, " "))
	if !ok {
		return Command{}, Config{}, &Error{Problems: []string{unknownCommand(words)}}
	}
	return Command{Name: Help, Text: commandHelp(cmd)}, Config{}, nil
}

// resolve finds each setting's value and fills the Config.
func resolve(uses []use, environ []string, readFile func(string) ([]byte, error)) (cfg Config, problems []string) {
	env := environment(environ)
	cfg.Warnings = strangers(env)
	for _, u := range uses {
		if u.name == "config" {
			cfg.File = u.value
		}
	}
	if cfg.File == "" {
		cfg.File = env[envFile]
	}
	file, problems := readSettings(cfg.File, readFile)
	for _, s := range settings {
		v := find(s, uses, env, file)
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
	return cfg, cfg.conflicts()
}

// subject names the value as the person who set it knows it.
func (v Value) subject() string {
	if v.Source == FromFile {
		return v.Where + ": " + v.Setting.Name
	}
	return v.Where
}

func find(s Setting, uses []use, env map[string]string, file map[string]Value) Value {
	v := Value{Setting: s, Text: s.Default, Source: FromDefault}
	if s.Flag() {
		var given []string
		for _, u := range uses {
			if u.name == s.Name {
				given = append(given, u.value)
			}
		}
		if len(given) > 0 {
			v.Text, v.Source, v.Where = given[len(given)-1], FromFlag, "--"+s.Name
			if s.Kind == KindPrefixes || s.Kind == KindNames || s.Kind == KindIPs { // a list may be given piece by piece
				v.Text = strings.Join(given, ",")
			}
			return v
		}
	}
	if text := env[s.Env()]; text != "" {
		v.Text, v.Source, v.Where = text, FromEnv, s.Env()
		return v
	}
	if f, ok := file[s.Name]; ok {
		f.Setting = s
		return f
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

// strangers warns of names in the environment that look like settings and are none.
// Left alone are those that Kubernetes sets for a service called millrace (MILLRACE_PORT…, MILLRACE_SERVICE_…) and those of
// the project's own test runs (MILLRACE_TEST_…).
func strangers(env map[string]string) (warnings []string) {
	known := []string{envFile}
	for _, s := range settings {
		if s.Foreign == "" {
			known = append(known, s.Env())
		}
	}
	for name := range env {
		rest, ours := strings.CutPrefix(name, envPrefix)
		others := rest == "PORT" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "TEST_")
		if !ours || others || slices.Contains(known, name) {
			continue
		}
		warnings = append(warnings, name+" is set in the environment, but no setting has that name"+suggest(name, known, ""))
	}
	slices.Sort(warnings)
	return warnings
}
