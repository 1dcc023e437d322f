package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
)

// files is a readFile over a map.
func files(m map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		text, ok := m[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, env []string
		file      string
		want      []string
	}{
		"none":       {args: nil, want: []string{"no command given"}},
		"command":    {args: []string{"sevre"}, want: []string{`unknown command "sevre"; did you mean serve?`}},
		"subcommand": {args: []string{"token"}, want: []string{"token needs one of: create, list, revoke, sign"}},
		"subcommand typo": {
			args: []string{"token", "creat"},
			want: []string{`unknown command "token creat"; did you mean token create?`},
		},
		"operand": {args: []string{"token", "revoke"}, want: []string{"token revoke needs TOKEN-ID"}},
		"extra":   {args: []string{"serve", "now"}, want: []string{`serve does not know what to do with "now"`}},
		"flag": {
			args: []string{"serve", "--htp-addr", ":1"},
			want: []string{"unknown flag --htp-addr; did you mean --http-addr?"},
		},
		"underscore": {
			args: []string{"serve", "--http_addr=:1"},
			want: []string{"unknown flag --http_addr; did you mean --http-addr?"},
		},
		"one dash": {
			args: []string{"serve", "-http-addr", ":1"},
			want: []string{"flags start with two dashes: write --http-addr"},
		},
		"secret flag": {
			args: []string{"serve", "--token-secret=x"},
			want: []string{
				"--token-secret is not a flag, because process lists show flags: set MILLRACE_TOKEN_SECRET in the " +
					"environment",
			},
		},
		"no value": {args: []string{"serve", "--http-addr"}, want: []string{"--http-addr needs a value after it"}},
		"wrong command": {
			args: []string{"serve", "--json"},
			want: []string{"--json belongs to doctor, audit, nodes, size, events tail, not to serve"},
		},
		"quality": {
			args: []string{"environment", "video-quality", "gold"},
			want: []string{`"gold" is none of basic, plus, premium, default`},
		},
		"address": {
			args: []string{"serve", "--http-addr", "8080"},
			want: []string{`--http-addr "8080" is not an address to listen on`},
		},
		"port": {
			args: []string{"serve", "--http-addr", ":80800"}, want: []string{"has no port between 0 and 65535"},
		},
		"cidr": {
			args: []string{"serve", "--fetch-allow", "10.0.0.1/8"}, want: []string{"did you mean 10.0.0.0/8?"},
		},
		"public IP": {
			args: []string{"serve", "--webrtc-public-ip", "video.example.org"},
			want: []string{"is not an address that can be reached"},
		},
		"public IP any": {
			args: []string{"serve", "--webrtc-public-ip", "0.0.0.0"},
			want: []string{"is not an address that can be reached"},
		},
		"socket": {args: []string{"serve", "--webrtc-udp-addr", "no"}, want: []string{"or off"}},
		"one UDP port": {
			args: []string{"serve", "--webrtc-udp-addr", ":6001"},
			want: []string{"srt-addr and webrtc-udp-addr are both :6001"},
		},
		"one TCP port": {
			args: []string{"serve", "--webrtc-tcp-addr", ":8080"},
			want: []string{"http-addr and webrtc-tcp-addr are both :8080"},
		},
		"cidr text": {
			args: []string{"serve", "--fetch-allow", "lan"},
			want: []string{`has the part "lan", which is not an address range`},
		},
		"url": {
			env: []string{"MILLRACE_PUBLIC_URL=video.example.org"}, args: []string{"serve"},
			want: []string{`MILLRACE_PUBLIC_URL "video.example.org" is not a URL that starts with http:// or https://`},
		},
		"database": {
			args: []string{"serve", "--database-url", "mysql://h/d"}, want: []string{"is not a database URL"},
		},
		"database name": {
			args: []string{"serve", "--database-url", "postgres://h"}, want: []string{"names no database"},
		},
		"storage": {args: []string{"serve", "--storage-url", "gs://b"}, want: []string{"is not a storage URL"}},
		"storage keys": {
			args: []string{"serve", "--storage-url", "s3://k:s@b"}, want: []string{"has credentials in it"},
		},
		"storage path": {
			args: []string{"serve", "--storage-url", "s3://b/p"}, want: []string{"write it as s3://bucket?prefix=path"},
		},
		"storage half": {
			args: []string{"serve", "--storage-url", "s3://b"}, env: []string{"AWS_ACCESS_KEY_ID=AK"},
			want: []string{"one half is missing"},
		},
		"level": {
			args: []string{"serve", "--log-level", "loud"}, want: []string{"is none of debug, info, warn, error"},
		},
		"size":     {args: []string{"serve", "--max-upload-bytes", "lots"}, want: []string{"is not a size"}},
		"duration": {args: []string{"serve", "--shutdown-timeout", "30"}, want: []string{"is not a duration"}},
		"duration range": {
			args: []string{"serve", "--shutdown-timeout", "2h"}, want: []string{"is not between 1s and 1h"},
		},
		"event retention": {
			args: []string{"serve", "--event-retention", "47h"},
			want: []string{"--event-retention \"47h\" is not between 48h and 87600h"},
		},
		"audit retention": {
			args: []string{"serve", "--audit-retention", "59m"},
			want: []string{"--audit-retention \"59m\" is not between 1h and 87600h"},
		},
		"session range": {
			args: []string{"serve", "--playback-session-max", "10s"},
			want: []string{"is not between 1m and 720h, or off"},
		},
		"number": {
			args: []string{"serve", "--max-connections-per-address", "0"},
			want: []string{"is not a whole number from 1 to"},
		},
		"demo duration": {args: []string{"demo", "--duration", "1s"}, want: []string{"is not between 10s and 1h"}},
		"pair": {
			args: []string{"serve"}, env: []string{"MILLRACE_TOKEN_ID=a"},
			want: []string{"token-id and token-secret belong together"},
		},
		"no host": {
			args: []string{"serve", "--internal-addr", ":1"}, want: []string{"names no host", "PostgreSQL"},
		},
		"advertised path": {args: []string{"serve", "--advertise-url", "http://a/b"}, want: []string{"has a path"}},
		"alone": {
			args: []string{"serve", "--advertise-url", "http://a"}, want: []string{"set internal-addr"},
		},
		"tls pair": {
			args: []string{"serve", "--tls-cert", "c.pem"}, want: []string{"tls-cert and tls-key belong together"},
		},
		"two ways": {
			args: []string{"serve", "--tls-cert", "c.pem", "--tls-key", "k.pem", "--acme-domain", "a.example.org"},
			want: []string{"two ways to have a certificate"},
		},
		"no certificate": {
			args: []string{"serve", "--rtmps-addr", ":1936"}, want: []string{"rtmps-addr needs a certificate"},
		},
		"secure ports": {
			args: []string{"serve", "--acme-domain", "a.example.org", "--https-addr", ":1936"},
			want: []string{"https-addr and rtmps-addr are both :1936"},
		},
		"domain": {
			args: []string{"serve", "--acme-domain", "*.example.org"},
			want: []string{`has the part "*.example.org", which is not a whole domain name`},
		},
		"domain address": {
			args: []string{"serve", "--acme-domain", "192.0.2.1"}, want: []string{"certificates are for names"},
		},
		"email": {args: []string{"serve", "--acme-email", "me"}, want: []string{"is not an e-mail address"}},
		"directory": {
			args: []string{"serve", "--acme-directory", "http://ca.example.org/dir"},
			want: []string{"starts with https://"},
		},
		"ports": {
			args: []string{"serve", "--rtmp-addr", ":8080"}, want: []string{"http-addr and rtmp-addr are both :8080"},
		},
		"several": {
			args: []string{"serve", "--http-addr", "x", "--log-level", "y"},
			want: []string{"--http-addr", "--log-level"},
		},
		"no file": {
			args: []string{"serve", "--config", "none.yaml"}, want: []string{"read configuration file: open none.yaml"},
		},
		"file key": {
			args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: :1\nhttp-adr: :2",
			want: []string{`m.yaml:2: unknown setting "http-adr"; did you mean http-addr?`},
		},
		"file twice": {
			args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: :1\n\nhttp-addr: :2",
			want: []string{"m.yaml:3: http-addr is there already, at line 1"},
		},
		"file value": {
			args: []string{"serve", "--config", "m.yaml"}, file: "\nhttp-addr: 8080",
			want: []string{`m.yaml:2: http-addr "8080" is not an address`},
		},
		"file nested": {
			args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: {port: 1}",
			want: []string{"m.yaml:1: http-addr must be one value"},
		},
		"file list": {
			args: []string{"serve", "--config", "m.yaml"}, file: "- a",
			want: []string{"m.yaml: must be lines of the form name: value"},
		},
		"file syntax": {
			args: []string{"serve", "--config", "m.yaml"}, file: "a: [", want: []string{"m.yaml: is not YAML"},
		},
		"file aws": {
			args: []string{"serve", "--config", "m.yaml"}, file: "aws-region: x",
			want: []string{"aws-region is read from AWS_REGION in the environment only"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := load(tt.args, tt.env, files(map[string]string{"m.yaml": tt.file}))
			ce, ok := errors.AsType[*config.Error](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if len(ce.Problems) != len(tt.want) {
				t.Fatalf("got %d problems: %v", len(ce.Problems), err)
			}
			for i, w := range tt.want {
				if !strings.Contains(ce.Problems[i], w) {
					t.Errorf("got %q, want %q in it", ce.Problems[i], w)
				}
			}
		})
	}
}

// TestCommands: the command, its operands, the settings to hand on, and the flags of its own.
func TestCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args            []string
		command         string
		words, settings []string
		flags           action // nil: none of its own
	}{
		"flags first": {
			args: []string{"--http-addr", ":1", "serve"}, command: "serve", settings: []string{"--http-addr=:1"},
		},
		"switch first": {args: []string{"--json", "doctor"}, command: "doctor", flags: &doctorRun{json: true}},
		"token create": {
			args: []string{"token", "create", "--name", "ci"}, command: "token create", flags: &tokenCreate{name: "ci"},
		},
		"twice": {
			args:    []string{"token", "create", "--permission=video:read", "--permission", "data:read"},
			command: "token create",
			flags:   &tokenCreate{permissions: []string{"video:read", "data:read"}},
		},
		"token revoke": {args: []string{"token", "revoke", "abc"}, command: "token revoke", words: []string{"abc"}},
		"dashes": {
			args: []string{"token", "revoke", "--", "-abc"}, command: "token revoke", words: []string{"-abc"},
		},
		"flags behind": {
			args: []string{"upload", "a", "--title", "-b", "--config=c"}, command: "upload", words: []string{"a"},
			settings: []string{"--config=c"}, flags: &upload{policy: "public", title: "-b"},
		},
		"doctor":    {args: []string{"doctor", "--json"}, command: "doctor", flags: &doctorRun{json: true}},
		"demo":      {args: []string{"demo"}, command: "demo", flags: &demoRun{45 * time.Second}},
		"demo long": {args: []string{"demo", "--duration=60s"}, command: "demo", flags: &demoRun{time.Minute}},
		"version":   {args: []string{"version"}, command: "version"},
		"check":     {args: []string{"config", "check"}, command: "config check"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, problems := parse(tt.args)
			if problems != nil {
				t.Fatal(problems)
			}
			if l.name != tt.command || !slices.Equal(l.words, tt.words) ||
				!slices.Equal(l.settings.Args(), tt.settings) {
				t.Errorf("got %s %q %q, want %+v", l.name, l.words, l.settings.Args(), tt)
			}
			if got, want := fmt.Sprintf("%+v", l.action), fmt.Sprintf("%+v", tt.flags); tt.flags != nil && got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// TestMustExist: only what serves, and --create, may make a database.
func TestMustExist(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]bool{
		"serve": false, "demo": false, "token create": true, "token create --create": false, "environment list": true,
		"webhook create https://example.com --create": false, "dashboard link --create": false,
		"master-key fingerprint": true,
	} {
		_, cfg, err := load(strings.Fields(args), nil, files(nil))
		if err != nil || cfg.Database.MustExist != want {
			t.Errorf("%s: %v, %v", args, cfg.Database.MustExist, err)
		}
	}
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"help"},
		{"--help"},
		{"-h"},
		{"help", "serve"},
		{"serve", "--help"},
		{"serve", "--http-addr=wrong", "-h"},
		{"serve", "--unknown", "-h"},
		{"help", "token", "create"},
		{"help", "help"},
		{"help", "--help"},
		{"help", "serve", "--help"},
		{"token", "revoke", "--help"},
	} {
		text := helpOf(t, args...)
		if !strings.HasPrefix(text, "Usage: millrace ") && !strings.HasPrefix(text, "Millrace is ") {
			t.Errorf("%q: got %s", args, text)
		}
	}
	text := helpOf(t, "serve", "--help")
	for _, s := range config.Settings() {
		if !strings.Contains(text, s.Help) || !strings.Contains(text, s.DefaultText()) || s.DefaultText() == "" {
			t.Errorf("%s is not explained", s.Name)
		}
		if shown := strings.Contains(text, "--"+s.Name+" "); shown != s.Flag() {
			t.Errorf("%s: flag shown %v", s.Name, shown)
		}
	}
	for _, cmd := range commands() {
		text := helpOf(t, append(strings.Fields(cmd.name), "--help")...)
		if !strings.Contains(text, cmd.text) && cmd.name != helpCommand {
			t.Errorf("%s --help: %q", cmd.name, text)
		}
	}
}

// helpOf is the help that a command line asks for.
func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	l, _, err := load(args, nil, nil)
	if err != nil || l.help == "" {
		t.Fatalf("%q: got %q, %v", args, l.help, err)
	}
	return l.help
}

func TestVersionAsFlag(t *testing.T) {
	t.Parallel()
	if l, _, err := load([]string{"--version"}, nil, nil); err != nil || l.name != versionCommand {
		t.Errorf("got %+v, %v", l, err)
	}
	if _, _, err := load([]string{"serve", "--version"}, nil, nil); err == nil {
		t.Error("it counts beside a command")
	}
}

// TestHelpOfGroup explains the commands that begin with the same word, also while one of them is still to be chosen.
func TestHelpOfGroup(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"token", "environment", "config"} {
		for _, args := range [][]string{{group, "--help"}, {group, "-h"}, {"--help", group}, {"help", group}} {
			text := helpOf(t, args...)
			if !strings.HasPrefix(text, "Usage: millrace "+group+" COMMAND [flags]\n") {
				t.Fatalf("%q: got %s", args, text)
			}
			for _, cmd := range commands() {
				if shown := strings.Contains(text, "  "+cmd.name+" "); shown != strings.HasPrefix(cmd.name, group+" ") {
					t.Errorf("%q: %s shown %v", args, cmd.name, shown)
				}
			}
		}
	}
	if l, _, err := load([]string{"environment", "nothing", "--help"}, nil, nil); err == nil {
		t.Errorf("help of a command that is not there: %+v", l)
	}
	text := helpOf(t, "help")
	column := -1
	for _, cmd := range commands() {
		line, _, _ := strings.Cut(text[strings.Index(text, "  "+cmd.name+"  "):], "\n")
		if at := strings.Index(line, cmd.summary); at < 0 || column >= 0 && at != column {
			t.Errorf("summaries do not stand below one another: %q", line)
		} else {
			column = at
		}
	}
}

// TestCommandsPage holds the table of docs/commands.md against the commands: a row has a command, or several of one
// group.
func TestCommandsPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "| command | does |\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	var listed, want []string
	for row := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), " | ")
		group := ""
		for name := range strings.SplitSeq(strings.ReplaceAll(cell, "`", ""), ", ") {
			name = strings.TrimSpace(name)
			if full, ok := strings.CutPrefix(name, "millrace "); ok {
				group, _, _ = strings.Cut(full, " ")
				name = full
			} else {
				name = group + " " + name
			}
			listed = append(listed, name)
		}
	}
	for _, c := range commands() {
		want = append(want, c.name)
		if !slices.Contains(listed, c.name) {
			t.Errorf("docs/commands.md does not list millrace %s", c.name)
		}
	}
	for _, name := range listed[1:] { // the first row is the table's line
		if !slices.Contains(want, name) {
			t.Errorf("docs/commands.md lists millrace %s, which is no command", name)
		}
	}
}

// FuzzLoad looks for panics and for secrets in error texts.
func FuzzLoad(f *testing.F) {
	f.Add("serve\x00--http-addr\x00:1", "MILLRACE_LOG_LEVEL=x", "http-addr: :1")
	f.Add("token\x00revoke\x00--\x00-a", "MILLRACE_CONFIG=m.yaml", "a: &a [*a]")
	f.Add("-\x00--\x00--=\x00-h", "=", "fetch-allow:\n- 10.0.0.0/8\n? x\n")
	f.Fuzz(func(t *testing.T, args, env, file string) {
		l, cfg, err := load(strings.Split(args, "\x00"), append(strings.Split(env, "\x00"), "MILLRACE_CONFIG=m.yaml"),
			files(map[string]string{"m.yaml": file}))
		if err == nil && l.name == "" && l.help == "" {
			t.Error("neither a command nor an error")
		}
		if err == nil && l.name == serveCommand {
			if err := cfg.Print(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		}
	})
}
