package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// The commands.
const (
	Serve        = "serve"
	TokenCreate  = "token create"
	TokenList    = "token list"
	TokenRevoke  = "token revoke"
	TokenSign    = "token sign"
	KeyCreate    = "signing-key create"
	KeyList      = "signing-key list"
	KeyDelete    = "signing-key delete"
	SetQuality   = "environment video-quality"
	SetLiveRungs = "environment live-rungs"
	SetCaptions  = "environment captions"
	EventsTail   = "events tail"
	Upload       = "upload"

	EnvironmentCreate = "environment create"
	EnvironmentList   = "environment list"
	EnvironmentRename = "environment rename"
	SetFrameAncestors = "environment frame-ancestors"
	Audit             = "audit"
	Nodes             = "nodes"
	DashboardLink     = "dashboard link"

	WebhookCreate     = "webhook create"
	WebhookList       = "webhook list"
	WebhookEnable     = "webhook enable"
	WebhookDisable    = "webhook disable"
	WebhookDelete     = "webhook delete"
	WebhookRotate     = "webhook rotate-secret"
	WebhookTest       = "webhook test"
	WebhookDeliveries = "webhook deliveries"
	WebhookReplay     = "webhook replay"
	WebhookRetry      = "webhook retry"
	WebhookSkip       = "webhook skip"

	DRMCreate  = "drm-configuration create"
	DRMList    = "drm-configuration list"
	DRMVendors = "drm-configuration set-vendors"
	DRMDelete  = "drm-configuration delete"

	MasterKeyFingerprint = "master-key fingerprint"
	MasterKeyRotate      = "master-key rotate"

	Doctor  = "doctor"
	Demo    = "demo"
	Check   = "config check"
	Version = "version"
	Help    = "help"
)

// Exit codes of every command.
const (
	ExitOK     = 0 // done
	ExitFailed = 1 // understood, but it did not work; doctor: something is wrong
	ExitUsage  = 2 // the command line, the environment or the configuration file cannot be understood

	ExitInterrupted = 130 // upload: by Ctrl-C; the same command goes on
)

// Command is what was asked for on the command line.
type Command struct {
	Name     string        // one of the constants
	Text     string        // Help: what to print, without a last line feed
	Words    []string      // operands, as many as the command takes
	Label    string        // token create, drm-configuration create: --name
	JSON     bool          // doctor, events tail, audit, nodes: --json
	Duration time.Duration // demo: how long the encoder streams
	Types    []string      // events tail, webhook create: --type
	Replay   Replay        // webhook replay; Since of audit too, Status of webhook deliveries
	Tail     Tail          // events tail
	Asset    NewAsset      // upload

	Sign Sign // token sign
	DRM  DRM  // drm-configuration create

	NewKeyFile string // master-key rotate: --new-key-file

	Access Access // commands that work on the database

	// SettingFlags are the settings given on the command line as --name=value, --config included, to hand on to another process.
	SettingFlags []string
}

// NewAsset is what is made of a file.
type NewAsset struct {
	Policy string // --policy
	Title  string // --title; empty: the name of the file
}

// Tail says which events are printed.
type Tail struct {
	Object string // --object
	After  int64  // --after; -1: not given
}

// Replay selects events from before, or their deliveries.
type Replay struct {
	Since  time.Time // --since; zero: not given
	Event  string    // --event
	Failed bool      // --failed
	Status string    // --status; empty: any
}

// Sign is what token sign is to write.
type Sign struct {
	Key      string // signing key ID
	KeyFile  string // of the private half
	Playback string
	Type     string
	Expiry   time.Duration     // from now on
	Params   map[string]string // further claims
}

// maxTitle bounds the title of an asset, in characters.
const maxTitle = 512

// option is a flag that belongs to some commands and is no setting.
type option struct {
	name, word, def, help string // word is empty for a switch
	commands              []string
	apply                 func(c *Command, text string) error
}

//nolint:gochecknoglobals // a table
var options = slices.Concat(commonOptions, eventOptions, signOptions, accessOptions, drmOptions)

//nolint:gochecknoglobals // a table
var commonOptions = []option{
	{
		name: "name", word: "text", help: "What it is for; shown in lists.", commands: []string{TokenCreate, DRMCreate},
		apply: func(c *Command, s string) error {
			if len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
				return errors.New("is not a name: use at most 255 bytes without control characters")
			}
			c.Label = s
			return nil
		},
	},
	{
		name: "json", help: "Print JSON.", commands: []string{Doctor, EventsTail, Audit, Nodes},
		apply: func(c *Command, s string) error {
			return isSwitch(s, &c.JSON)
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
	{
		name: "policy", word: "policy", def: "public", help: "Playback policy of the asset: public or signed.", commands: []string{Upload},
		apply: func(c *Command, s string) error {
			if s != "public" && s != "signed" {
				return errors.New("is neither public nor signed")
			}
			c.Asset.Policy = s
			return nil
		},
	},
	{
		name: "title", word: "text", help: "Title of the asset; only with a single file. Default: the file's name.",
		commands: []string{Upload},
		apply: func(c *Command, s string) error {
			if s == "" || utf8.RuneCountInString(s) > maxTitle || !utf8.ValidString(s) {
				return fmt.Errorf("is not a title: use 1 to %d characters", maxTitle)
			}
			c.Asset.Title = s
			return nil
		},
	},
	{
		name: "after", word: "sequence", def: "-1", help: "Begin behind the event with this sequence; 0 begins with the first that is kept, -1 with the next one.", commands: []string{EventsTail},
		apply: func(c *Command, s string) (err error) {
			if c.Tail.After, err = strconv.ParseInt(s, 10, 64); err != nil || c.Tail.After < -1 {
				return errors.New("is not a sequence")
			}
			return nil
		},
	},
}

// command describes one command for the parser and the help text.
type command struct {
	name, summary, text string
	operands            []string // all of them must be given; the last may be several when it ends with …
	choices             []string // what the first operand may be; none: anything
	noSettings          bool     // reads no setting
}

//nolint:gochecknoglobals // a table
var commands = []command{
	{name: Serve, summary: "run the service", text: "Runs the API, ingest, playback and workers in one process until Ctrl-C or SIGTERM. A second Ctrl-C stops it at once."},
	{name: Demo, summary: "run the service with a test encoder and print its URLs", text: "Starts the service, streams a generated picture into it with ffmpeg, turns the stream into a recording with subtitles and a second audio track, and keeps serving until Ctrl-C.\nWithout --data-dir everything is kept in a temporary folder and removed at the end. Ports in use are replaced by free ones."},
	{name: Doctor, summary: "check ffmpeg, ports, database, storage, clock and disk", text: "Checks everything the service needs, with the settings it would run with, and says how to fix what is wrong. Exit code 1 if anything is."},
	{name: TokenCreate, summary: "create an access token and print its secret once", text: "Creates an access token for the API. The secret is printed once and can't be shown again. Without --permission the token may do everything in its environment."},
	{name: TokenList, summary: "list the access tokens", text: "Lists the access tokens, without their secrets."},
	{name: TokenRevoke, summary: "revoke an access token", text: "Revokes an access token. Requests with it are refused within seconds.", operands: []string{"TOKEN-ID"}},
	{name: KeyCreate, summary: "create a key for signing viewers' tokens and print it once", text: "Creates a key for signing the tokens of playback IDs with the policy signed. The private key is printed once and can't be shown again."},
	{name: KeyList, summary: "list the signing keys", text: "Lists the signing keys, newest first."},
	{
		name: KeyDelete, summary: "delete a signing key", operands: []string{"KEY-ID"},
		text: "Deletes a signing key. What it has signed is refused from then on, at once on every node; on SQLite, by a service " +
			"that runs, within two seconds.",
	},
	{name: TokenSign, summary: "sign a token for a viewer", text: "Signs a token for a playback ID with the policy signed and prints it; players send it as ?token=. Needs no running service and no settings.", noSettings: true},
	{
		name: SetQuality, summary: "set the default video quality",
		operands: []string{"QUALITY"}, choices: []string{"basic", "plus", "premium", "default"},
		text: "Sets the video_quality of assets and live streams created without one: basic, plus or premium " +
			"(for live streams basic means plus), or default for the service's own: basic on demand, plus live. " +
			"Takes effect within seconds, for new assets and live streams.",
	},
	{name: SetCaptions, summary: "set the speech recognition engine of each language", text: "Sets the environment's speech recognition engines, as pairs of a language (* for all others) and an engine: en=pocketsphinx,*=openai. none turns a language off; default restores the service's own setting (--speech-engines). millrace doctor lists the engines. Takes effect for new broadcasts and tracks.", operands: []string{"RULES"}},
	{
		name: SetLiveRungs, summary: "set when lower renditions of live streams are encoded",
		operands: []string{"POLICY"}, choices: []string{"on_demand", "always", "off", "default"},
		text: "Sets when the lower renditions of the environment's live streams are encoded: on_demand (while " +
			"somebody watches them), always or off; default restores the service's own setting (--live-rungs). " +
			"Takes effect for new broadcasts.",
	},
	{name: EnvironmentCreate, summary: "create an environment", text: "Creates an environment and prints its ID. Only its own tokens can see what belongs to it.", operands: []string{"NAME"}},
	{name: EnvironmentList, summary: "list the environments", text: "Lists the environments, oldest first."},
	{name: EnvironmentRename, summary: "rename an environment", text: "Changes the name of an environment.", operands: []string{"ENVIRONMENT-ID", "NAME"}},
	{
		name: SetFrameAncestors, summary: "set which sites may embed players",
		text: "Sets which origins may embed the environment's /watch and /embed pages in a frame: all (the " +
			"default), none, or a list such as https://example.com,https://*.example.com. Takes effect within " +
			"seconds.",
		operands: []string{"ORIGINS"},
	},
	{name: Audit, summary: "list the audit log", text: "Lists changes made through the API and by commands, newest first: when, who, from where and what. Reads the database directly; the service need not run."},
	{
		name: Nodes, summary: "list the nodes and their load",
		text: "Lists the nodes that share the database, by name: status, version, roles, the URL where other " +
			"nodes reach them, live streams, viewers, load per processor, and when they were last seen. A node " +
			"that has gone is listed for another day. Reads the database directly; the service need not run.",
	},
	{
		name: DashboardLink, summary: "create a link for setting the dashboard's password",
		text: "Prints a link to the dashboard where its password can be set, for the first time or again; a new " +
			"password ends all sessions. The link works once, within an hour, and starts with --public-url. " +
			"Writes to the database directly; the service need not run.",
	},
	{
		name: Upload, summary: "upload files to a running service as assets", operands: []string{"FILE…"},
		text: "Creates a direct upload for each file, sends them one after the other, and prints each asset's ID " +
			"and playback ID. Lost connections are retried. If the command is interrupted in any way, running it " +
			"again within a day resumes where it stopped: unfinished uploads are remembered in " +
			"$XDG_STATE_HOME/millrace/uploads, or ~/.local/state/millrace/uploads. Needs an access token in " +
			"MILLRACE_TOKEN_ID and MILLRACE_TOKEN_SECRET, and reaches the service at --public-url. Exit code 130 " +
			"after Ctrl-C.",
	},
	{name: EventsTail, summary: "print events as they happen", text: "Prints one line per event, of live streams, assets and everything else, until Ctrl-C. With --json each line is the event as webhooks get it, without stream keys. Reads the database directly; the service need not run."},
	{name: WebhookCreate, summary: "create a webhook", text: "Creates a webhook, which sends events from now on to an http or https URL, and prints its signing secret, which can't be shown again.", operands: []string{"ADDRESS"}},
	{name: WebhookList, summary: "list the webhooks", text: "Lists the webhooks, without their secrets."},
	{name: WebhookEnable, summary: "redeliver events to a webhook", text: "Sends events from now on to a disabled webhook again. Events it missed can be replayed.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookDisable, summary: "disable a webhook", text: "Stops sending events to a webhook until it is enabled.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookDelete, summary: "delete a webhook", text: "Deletes a webhook.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookRotate, summary: "rotate the signing secret of a webhook", text: "Creates a new signing secret and prints it once. For 24 hours deliveries are signed with the old one as well.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookTest, summary: "send a test event to a webhook", text: "Sends the event system.webhook.test to a webhook; millrace webhook deliveries shows the result. The service must be running.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookDeliveries, summary: "list a webhook's deliveries", text: "Lists the last 100 events sent to a webhook, newest first, each with its last attempt and, if it is waiting, why.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookReplay, summary: "redeliver events to a webhook", text: "Sends one event, or all events since a time, to a webhook again, delivered before or not. With --failed only those that were given up.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookRetry, summary: "retry a webhook's waiting deliveries now", text: "Retries at once all deliveries that wait for their next attempt, at most 100,000. Events that wait for an earlier event of the same object still follow it. The service must be running.", operands: []string{"WEBHOOK-ID"}},
	{name: WebhookSkip, summary: "skip a webhook's waiting event", text: "Skips a waiting event, so that the next event of the same object is sent. It can be replayed later, and then arrives after those.", operands: []string{"WEBHOOK-ID", "EVENT-ID"}},
	{name: DRMCreate, summary: "create a DRM configuration for playback IDs with the policy drm", text: "Creates a DRM configuration and prints its ID, which playback IDs with the policy drm refer to as drm_configuration_id. Its encryption can't be changed later."},
	{name: DRMList, summary: "list the DRM configurations", text: "Lists the DRM configurations, newest first, without their secrets."},
	{name: DRMVendors, summary: "replace the licence servers and the key provider of a DRM configuration", text: "Replaces the licence servers and the key provider of a DRM configuration with those in a YAML file (format: docs/drm-vendors.md). Takes effect within seconds. Existing keys are kept.", operands: []string{"DRM-CONFIGURATION-ID", "FILE"}},
	{name: DRMDelete, summary: "delete a DRM configuration", text: "Deletes a DRM configuration that no playback ID refers to any more, and its content keys.", operands: []string{"DRM-CONFIGURATION-ID"}},
	{name: MasterKeyFingerprint, summary: "compare the master keys of the database and of this machine", text: "Shows the fingerprint of the master key that encrypts the database's secrets, and of the one in the settings. Exit code 1 if they differ."},
	{name: MasterKeyRotate, summary: "rotate the master key", text: "Creates a new master key, or takes the one in --new-key-file, and makes it the only one that opens the database. Encrypted data stays as it is. Running processes continue; give each of them the new key before it is restarted."},
	{name: Check, summary: "check the settings and show where each value comes from", text: "Reads flags, environment and file as serve does, and prints each value with its origin. Secrets are masked."},
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

// flagShape reports whether the flag takes a value, or why it is none.
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
	} else if got > want && !cmd.several() {
		problems = append(problems, fmt.Sprintf("%s does not know what to do with %q", cmd.name, c.Words[want]))
	} else if want > 0 && len(cmd.choices) > 0 && !slices.Contains(cmd.choices, c.Words[0]) {
		allowed := strings.Join(cmd.choices, ", ")
		problems = append(problems, fmt.Sprintf("%s: %q is none of %s", cmd.name, c.Words[0], allowed))
	}
	for _, o := range options {
		if o.def != "" && slices.Contains(o.commands, cmd.name) {
			problems = append(problems, o.run(&c, o.def)...)
		}
	}
	for _, u := range l.uses {
		i := optionIndex(u.name, cmd.name)
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
	if c.Asset.Title != "" && len(c.Words) > 1 {
		problems = append(problems, "--title is for one file: without it each asset has the name of its file")
	}
	return c, cmd, problems
}

// several reports whether the last operand may be given more than once.
func (c command) several() bool {
	return len(c.operands) > 0 && strings.HasSuffix(c.operands[len(c.operands)-1], "…")
}

// optionIndex finds the option with a name, of several that of the command; -1: there is none.
func optionIndex(name, command string) int {
	if i := slices.IndexFunc(options, func(o option) bool { return o.name == name && slices.Contains(o.commands, command) }); i >= 0 {
		return i
	}
	return slices.IndexFunc(options, func(o option) bool { return o.name == name })
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
