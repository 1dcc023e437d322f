package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The commands.
const (
	Serve        = "serve"
	TokenCreate  = "token create"
	TokenList    = "token list"
	TokenRevoke  = "token revoke"
	SetQuality   = "environment video-quality"
	SetLiveRungs = "environment live-rungs"
	Doctor       = "doctor"
	Demo         = "demo"
	Check        = "config check"
	Version      = "version"
	Help         = "help"
)

// Exit codes of every command.
const (
	ExitOK     = 0 // done
	ExitFailed = 1 // understood, but it did not work; doctor: something is wrong
	ExitUsage  = 2 // the command line, the environment or the configuration file cannot be understood
)

// Command is what was asked for on the command line.
type Command struct {
	Name     string        // one of the constants
	Text     string        // Help: what to print, without a last line feed
	Words    []string      // operands, as many as the command takes
	Label    string        // token create: --name
	JSON     bool          // doctor: --json
	Duration time.Duration // demo: how long the encoder streams

	// SettingFlags are the settings given on the command line as --name=value, --config included, to hand on to another process.
	SettingFlags []string
}

// option is a flag that belongs to some commands and is no setting.
type option struct {
	name, word, def, help string // word is empty for a switch
	commands              []string
	apply                 func(c *Command, text string) error
}

//nolint:gochecknoglobals // a table
var options = []option{
	{
		name: "name", word: "text", help: "What the token is for; it is shown in lists.", commands: []string{TokenCreate},
		apply: func(c *Command, s string) error {
			if len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
				return errors.New("is not a name: use at most 255 bytes without control characters")
			}
			c.Label = s
			return nil
		},
	},
	{
		name: "json", help: "Print the findings as JSON.", commands: []string{Doctor},
		apply: func(c *Command, s string) error {
			if s != "true" && s != "false" {
				return errors.New("is a switch: write it without a value")
			}
			c.JSON = s == "true"
			return nil
		},
	},
	{
		name: "duration", word: "duration", def: "45s", help: "How long the demo's encoder streams, 10s to 1h.", commands: []string{Demo},
		apply: func(c *Command, s string) error {
			d, err := parseDuration(s)
			if err == nil && (d < 10*time.Second || d > time.Hour) {
				err = errors.New("is not between 10s and 1h")
			}
			c.Duration = d
			return err
		},
	},
}

// command describes one command for the parser and the help text.
type command struct {
	name, summary, text string
	operands            []string // all of them must be given
	noSettings          bool     // reads no setting
}

//nolint:gochecknoglobals // a table
var commands = []command{
	{name: Serve, summary: "run the service", text: "Runs API, ingest, playback and workers in one process until Ctrl-C or SIGTERM. A second Ctrl-C ends it at once."},
	{name: Demo, summary: "run the service with a test encoder and print what to look at", text: "Starts the service, streams a generated picture into it with ffmpeg, turns the stream into a recording with subtitles and a second audio track, and keeps serving until Ctrl-C.\nWithout --data-dir everything is kept in a temporary folder and removed at the end. Taken ports are replaced by free ones."},
	{name: Doctor, summary: "check ffmpeg, ports, database, storage, clock and disk", text: "Checks what the service needs with the settings it would run with, and says how to mend what is wrong. Exit code 1 when something is."},
	{name: TokenCreate, summary: "make an access token and print its secret once", text: "Makes an access token for the API. The secret is printed once and cannot be shown again."},
	{name: TokenList, summary: "list the access tokens", text: "Lists the access tokens, without their secrets."},
	{name: TokenRevoke, summary: "revoke an access token", text: "Revokes an access token. Requests that carry it are refused from then on, within seconds.", operands: []string{"TOKEN-ID"}},
	{name: SetQuality, summary: "set the video quality that is used when none is asked for", text: "Sets the video_quality of assets and live streams that are made without one: basic, plus or premium (basic counts as plus live), or default for the service's own: basic on demand, plus live. It holds within seconds, for what is made from then on.", operands: []string{"QUALITY"}},
	{name: SetLiveRungs, summary: "set when live streams are encoded in lower sizes", text: "Sets when the environment's live streams are encoded in lower sizes: on_demand while somebody watches those, always, or off; or default for the service's own (--live-rungs). It holds for broadcasts that begin from then on.", operands: []string{"POLICY"}},
	{name: Check, summary: "check the settings and say where each value comes from", text: "Reads flags, environment and file as serve would, and prints each value with its origin. Secrets are masked."},
	{name: Version, summary: "print the version", text: "Prints the version.", noSettings: true},
	{name: Help, summary: "explain a command", text: "Explains a command: millrace help serve.", noSettings: true},
}

func commandNamed(name string) (command, bool) {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return commands[i], true
}

// commandsOf are those whose name begins with the word group, such as token.
func commandsOf(group string) (in []command) {
	for _, c := range commands {
		if first, _, nested := strings.Cut(c.name, " "); nested && first == group {
			in = append(in, c)
		}
	}
	return in
}

// use is one flag as it stands on the command line.
type use struct{ name, value string }

// line is the command line taken apart.
type line struct {
	words []string
	uses  []use
	help  bool
}

// split takes args apart into words and flags. A flag's value is after = or in the next argument.
func split(args []string) (l line, problems []string) {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "--":
			l.words = append(l.words, args...)
			return l, problems
		case arg == "-h" || arg == "--help":
			l.help = true
		case arg == "--version":
			l.words = append(l.words, Version)
		case !strings.HasPrefix(arg, "-") || arg == "-":
			l.words = append(l.words, arg)
		default:
			name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			takes, why := flagShape(arg, name)
			if why != "" {
				problems = append(problems, why)
				if !joined && len(args) > 0 && !strings.HasPrefix(args[0], "-") && !isCommandWord(args[0]) {
					args = args[1:] // most likely the unknown flag's value
				}
				continue
			}
			if !joined {
				value = "true"
				if takes {
					if len(args) == 0 {
						problems = append(problems, "--"+name+" needs a value after it")
						continue
					}
					value, args = args[0], args[1:]
				}
			}
			l.uses = append(l.uses, use{name, value})
		}
	}
	return l, problems
}

func isCommandWord(s string) bool {
	return slices.ContainsFunc(commands, func(c command) bool { return c.name == s || strings.HasPrefix(c.name, s+" ") })
}

// flagShape says whether the flag takes a value, or why it is none.
func flagShape(arg, name string) (takesValue bool, why string) {
	known := []string{"config", "help"}
	for _, o := range options {
		known = append(known, o.name)
		if o.name == name {
			return o.word != "", doubleDash(arg, name)
		}
	}
	for _, s := range settings {
		if s.Flag() {
			known = append(known, s.Name)
		} else if s.Name == name {
			return true, fmt.Sprintf("--%s is not a flag, because process lists show flags: set %s in the environment", name, s.Env())
		}
	}
	if slices.Contains(known, name) {
		return true, doubleDash(arg, name)
	}
	return true, "unknown flag --" + name + suggest(name, known, "--")
}

func doubleDash(arg, name string) string {
	if strings.HasPrefix(arg, "--") {
		return ""
	}
	return "flags start with two dashes: write --" + name
}

// command finds the command in the words and checks operands and flags against it.
func (l line) command() (c Command, cmd command, problems []string) {
	if len(l.words) == 0 {
		return c, cmd, []string{"no command given"}
	}
	n := 1
	cmd, ok := commandNamed(l.words[0])
	if !ok && len(l.words) > 1 {
		n = 2
		cmd, ok = commandNamed(l.words[0] + " " + l.words[1])
	}
	if !ok {
		return c, cmd, []string{unknownCommand(l.words)}
	}
	c = Command{Name: cmd.name, Words: l.words[n:]}
	if cmd.name == Help {
		return c, cmd, nil
	}
	if got, want := len(c.Words), len(cmd.operands); got < want {
		problems = append(problems, cmd.name+" needs "+strings.Join(cmd.operands[got:], " "))
	} else if got > want {
		problems = append(problems, fmt.Sprintf("%s does not know what to do with %q", cmd.name, c.Words[want]))
	}
	for _, o := range options {
		if o.def != "" && slices.Contains(o.commands, cmd.name) {
			problems = append(problems, o.run(&c, o.def)...)
		}
	}
	for _, u := range l.uses {
		i := slices.IndexFunc(options, func(o option) bool { return o.name == u.name })
		switch {
		case i >= 0 && !slices.Contains(options[i].commands, cmd.name):
			problems = append(problems, fmt.Sprintf("--%s belongs to %s, not to %s", u.name, strings.Join(options[i].commands, ", "), cmd.name))
		case i >= 0:
			problems = append(problems, options[i].run(&c, u.value)...)
		case cmd.noSettings:
			problems = append(problems, fmt.Sprintf("%s takes no settings, so --%s has no meaning", cmd.name, u.name))
		default:
			c.SettingFlags = append(c.SettingFlags, "--"+u.name+"="+u.value)
		}
	}
	return c, cmd, problems
}

func (o option) run(c *Command, text string) []string {
	if err := o.apply(c, text); err != nil {
		return []string{fmt.Sprintf("--%s %q %v", o.name, text, err)}
	}
	return nil
}

func unknownCommand(words []string) string {
	var names, firsts []string
	for _, c := range commands {
		firsts = append(firsts, c.name)
	}
	for _, c := range commandsOf(words[0]) {
		names = append(names, strings.TrimPrefix(c.name, words[0]+" "))
	}
	if len(names) == 0 {
		return fmt.Sprintf("unknown command %q", words[0]) + suggest(words[0], firsts, "")
	}
	if len(words) == 1 {
		return words[0] + " needs one of: " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("unknown command %q", words[0]+" "+words[1]) + suggest(words[1], names, words[0]+" ")
}
