package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the settings table into README.md")

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

func mustLoad(t *testing.T, args, env []string, file string) Config {
	t.Helper()
	_, cfg, err := Load(args, env, files(map[string]string{"m.yaml": file}))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{"serve"}, nil, "")
	if cfg.HTTPAddr != ":8080" || cfg.RTMPAddr != ":1935" || cfg.LogLevel != slog.LevelInfo || cfg.ShutdownTimeout != 30*time.Second {
		t.Errorf("got %+v", cfg)
	}
	if cfg.Database != (Database{Engine: SQLite, Path: "millrace-data/millrace.db"}) {
		t.Errorf("database %+v", cfg.Database)
	}
	if cfg.Storage.Kind != Folder || cfg.Storage.Path != "millrace-data/storage" {
		t.Errorf("storage %+v", cfg.Storage)
	}
	if cfg.MaxUploadBytes != 50<<30 || cfg.TLS() || cfg.Given("http-addr") || len(cfg.Warnings) > 0 {
		t.Errorf("got %+v", cfg)
	}
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	const file = "http-addr: :1\nrtmp-addr: :2\nlog-level: debug\n"
	env := []string{"MILLRACE_CONFIG=m.yaml", "MILLRACE_HTTP_ADDR=:3", "MILLRACE_RTMP_ADDR=:4", "MILLRACE_LOG_FORMAT="}
	cfg := mustLoad(t, []string{"serve", "--http-addr", ":5"}, env, file)
	if cfg.HTTPAddr != ":5" || cfg.RTMPAddr != ":4" || cfg.LogLevel != slog.LevelDebug || cfg.LogFormat != "text" {
		t.Errorf("got %+v", cfg)
	}
	var b bytes.Buffer
	if err := cfg.Print(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--http-addr", "env MILLRACE_RTMP_ADDR", "file m.yaml:3", "default"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if cfg := mustLoad(t, []string{"serve", "--config=m.yaml"}, nil, "fetch-allow: [10.0.0.0/8, fd00::/8]"); len(cfg.FetchAllow) != 2 {
		t.Errorf("list in file: %v", cfg.FetchAllow)
	}
	if cfg := mustLoad(t, []string{"serve", "--config=m.yaml"}, nil, "# nothing\n"); cfg.HTTPAddr != ":8080" {
		t.Errorf("empty file: %v", cfg.HTTPAddr)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{
		"serve", "--fetch-allow", "127.0.0.0/8", "--fetch-allow=::1, 10.0.0.0/8", "--public-url", "https://v.example.org/", "--max-upload-bytes", "1.5GB",
		"--database-url=postgres://u:p@db/millrace?sslmode=disable", "--storage-url", "s3://media?region=eu-central-1&prefix=live",
	}, []string{"MILLRACE_TOKEN_ID=abc", "MILLRACE_TOKEN_SECRET=0123456789abcdef", "AWS_ACCESS_KEY_ID=AK", "AWS_SECRET_ACCESS_KEY=sk"}, "")
	want := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8")}
	if !slices.Equal(cfg.FetchAllow, want) {
		t.Errorf("fetch-allow %v", cfg.FetchAllow)
	}
	if cfg.PublicURL.String() != "https://v.example.org" || cfg.MaxUploadBytes != 1_500_000_000 {
		t.Errorf("got %v %d", cfg.PublicURL, cfg.MaxUploadBytes)
	}
	if cfg.Database.Engine != Postgres || cfg.Storage.Kind != S3 || cfg.Storage.URL.Reveal() != "s3://media?access_key_id=AK&prefix=live&region=eu-central-1&secret_access_key=sk" || cfg.AWS.AccessKeyID != "AK" {
		t.Errorf("got %+v", cfg)
	}
	if cfg.TokenSecret.Reveal() != "0123456789abcdef" {
		t.Error("secret lost")
	}
	secure := mustLoad(t, []string{"serve", "--acme-domain", "Video.Example.org", "--acme-domain=bücher.example, video.example.org", "--acme-email", "me@example.org"}, nil, "")
	if !slices.Equal(secure.ACMEDomains, []string{"video.example.org", "xn--bcher-kva.example"}) || !secure.TLS() || secure.RTMPSAddr != ":1936" || secure.ACMEEmail != "me@example.org" {
		t.Errorf("got %+v", secure)
	}
}

func TestWebRTC(t *testing.T) {
	t.Parallel()
	plain := mustLoad(t, []string{"serve"}, nil, "")
	if !plain.WebRTC() || plain.WebRTCUDPAddr != ":8189" || plain.WebRTCTCPAddr != ":8189" || plain.WebRTCPublicIPs != nil {
		t.Errorf("got %+v", plain)
	}
	if off := mustLoad(t, []string{"serve", "--webrtc-udp-addr", "off", "--webrtc-tcp-addr=off"}, nil, ""); off.WebRTC() {
		t.Errorf("off is %+v", off)
	}
	cfg := mustLoad(t, []string{"serve", "--webrtc-tcp-addr=off", "--webrtc-public-ip", "203.0.113.7", "--webrtc-public-ip=2001:db8::7"},
		[]string{"MILLRACE_WEBRTC_ICE_SERVERS=stun:stun.example.org:3478, turns:me:p@ss:word@[2001:db8::1]:5349?transport=tcp"}, "")
	if !cfg.WebRTC() || !slices.Equal(cfg.WebRTCPublicIPs, []netip.Addr{netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7")}) {
		t.Errorf("got %+v", cfg)
	}
	want := []ICEServer{{URL: "stun:stun.example.org:3478"}, {"turns:[2001:db8::1]:5349?transport=tcp", "me", "p@ss:word"}}
	if !slices.Equal(cfg.WebRTCICEServers, want) {
		t.Errorf("got %#v", cfg.WebRTCICEServers)
	}
	for _, bad := range []string{"stun.example.org", "http://h", "turn:h", "turn:user@h", "turn::hunter2@h", "stun:u:hunter2@h", "stun:h?transport=tcp", "turn:u:hunter2@h?transport=x", "turn:u:hunter2@", "turn:u:hunter2@h/x"} {
		_, _, err := Load([]string{"serve"}, []string{"MILLRACE_WEBRTC_ICE_SERVERS=" + bad}, nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "STUN or TURN") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	env := []string{"MILLRACE_TOKEN_ID=abc", "MILLRACE_TOKEN_SECRET=hunter2hunter2hunter2", "AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SESSION_TOKEN=hunter2"}
	cfg := mustLoad(t, []string{"config", "check", "--database-url", "postgres://u:hunter2@db/m?sslpassword=hunter2", "--storage-url", "s3://b?access_key_id=a&secret_access_key=hunter2"}, env, "")
	var b bytes.Buffer
	if err := cfg.Print(&b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{cfg.TokenSecret, cfg.Database.URL, cfg.Storage.URL, cfg.AWS.SecretAccessKey, cfg.AWS.SessionToken})
	if err != nil {
		t.Fatal(err)
	}
	cfg.values = nil // unexported: printed below by %v, but only ever read through Shown
	all := b.String() + string(text) + fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg)
	if strings.Contains(all, "hunter2") {
		t.Errorf("a secret shows in\n%s", all)
	}
	_, _, err = Load([]string{"serve"}, []string{"MILLRACE_TOKEN_SECRET=hunter2", "MILLRACE_DATABASE_URL=postgre://u:hunter2@h/d"}, nil)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

func TestRedact(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		":8080":                              ":8080",
		"http://h/p":                         "http://h/p",
		"postgres://u@h/d":                   "postgres://u@h/d",
		"postgres://u:p@h/d":                 "postgres://u:********@h/d",
		"postgres://u:a%40b@h/d?x=1":         "postgres://u:********@h/d?x=1",
		"postgres://u:a@b@h/d":               "postgres://u:********@h/d",
		"postgres://u:1/2@h/d":               mask,
		"postgres://u:%zz@h/d":               mask,
		"s3://b?region=x&secretKey=y&z=1":    "s3://b?region=x&secretKey=********&z=1",
		"postgres://h/d?user=u&password=abc": "postgres://h/d?user=u&password=********",
	} {
		if got := redact(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args, env []string
		file      string
		want      []string
	}{
		"none":            {args: nil, want: []string{"no command given"}},
		"command":         {args: []string{"sevre"}, want: []string{`unknown command "sevre"; did you mean serve?`}},
		"subcommand":      {args: []string{"token"}, want: []string{"token needs one of: create, list, revoke, sign"}},
		"subcommand typo": {args: []string{"token", "creat"}, want: []string{`unknown command "token creat"; did you mean token create?`}},
		"operand":         {args: []string{"token", "revoke"}, want: []string{"token revoke needs TOKEN-ID"}},
		"extra":           {args: []string{"serve", "now"}, want: []string{`serve does not know what to do with "now"`}},
		"flag":            {args: []string{"serve", "--htp-addr", ":1"}, want: []string{"unknown flag --htp-addr; did you mean --http-addr?"}},
		"underscore":      {args: []string{"serve", "--http_addr=:1"}, want: []string{"unknown flag --http_addr; did you mean --http-addr?"}},
		"one dash":        {args: []string{"serve", "-http-addr", ":1"}, want: []string{"flags start with two dashes: write --http-addr"}},
		"secret flag":     {args: []string{"serve", "--token-secret=x"}, want: []string{"--token-secret is not a flag, because process lists show flags: set MILLRACE_TOKEN_SECRET in the environment"}},
		"no value":        {args: []string{"serve", "--http-addr"}, want: []string{"--http-addr needs a value after it"}},
		"wrong command":   {args: []string{"serve", "--json"}, want: []string{"--json belongs to doctor, events tail, audit, not to serve"}},
		"quality": {
			args: []string{"environment", "video-quality", "gold"},
			want: []string{`"gold" is none of basic, plus, premium, default`},
		},
		"address":         {args: []string{"serve", "--http-addr", "8080"}, want: []string{`--http-addr "8080" is not an address to listen on`}},
		"port":            {args: []string{"serve", "--http-addr", ":80800"}, want: []string{"has no port between 0 and 65535"}},
		"cidr":            {args: []string{"serve", "--fetch-allow", "10.0.0.1/8"}, want: []string{"did you mean 10.0.0.0/8?"}},
		"public IP":       {args: []string{"serve", "--webrtc-public-ip", "video.example.org"}, want: []string{"is not an address that can be reached"}},
		"public IP any":   {args: []string{"serve", "--webrtc-public-ip", "0.0.0.0"}, want: []string{"is not an address that can be reached"}},
		"socket":          {args: []string{"serve", "--webrtc-udp-addr", "no"}, want: []string{"or off"}},
		"one UDP port":    {args: []string{"serve", "--webrtc-udp-addr", ":6001"}, want: []string{"srt-addr and webrtc-udp-addr are both :6001"}},
		"one TCP port":    {args: []string{"serve", "--webrtc-tcp-addr", ":8080"}, want: []string{"http-addr and webrtc-tcp-addr are both :8080"}},
		"cidr text":       {args: []string{"serve", "--fetch-allow", "lan"}, want: []string{`has the part "lan", which is not an address range`}},
		"url":             {env: []string{"MILLRACE_PUBLIC_URL=video.example.org"}, args: []string{"serve"}, want: []string{`MILLRACE_PUBLIC_URL "video.example.org" is not a URL that starts with http:// or https://`}},
		"database":        {args: []string{"serve", "--database-url", "mysql://h/d"}, want: []string{"is not a database URL"}},
		"database name":   {args: []string{"serve", "--database-url", "postgres://h"}, want: []string{"names no database"}},
		"storage":         {args: []string{"serve", "--storage-url", "gs://b"}, want: []string{"is not a storage URL"}},
		"storage keys":    {args: []string{"serve", "--storage-url", "s3://k:s@b"}, want: []string{"has credentials in it"}},
		"storage path":    {args: []string{"serve", "--storage-url", "s3://b/p"}, want: []string{"write it as s3://bucket?prefix=path"}},
		"storage half":    {args: []string{"serve", "--storage-url", "s3://b"}, env: []string{"AWS_ACCESS_KEY_ID=AK"}, want: []string{"one half is missing"}},
		"level":           {args: []string{"serve", "--log-level", "loud"}, want: []string{"is none of debug, info, warn, error"}},
		"size":            {args: []string{"serve", "--max-upload-bytes", "lots"}, want: []string{"is not a size"}},
		"duration":        {args: []string{"serve", "--shutdown-timeout", "30"}, want: []string{"is not a duration"}},
		"duration range":  {args: []string{"serve", "--shutdown-timeout", "2h"}, want: []string{"is not between 1s and 1h"}},
		"event retention": {args: []string{"serve", "--event-retention", "47h"}, want: []string{"--event-retention \"47h\" is not between 48h and 87600h"}},
		"audit retention": {args: []string{"serve", "--audit-retention", "59m"}, want: []string{"--audit-retention \"59m\" is not between 1h and 87600h"}},
		"session range":   {args: []string{"serve", "--playback-session-max", "10s"}, want: []string{"is not between 1m and 720h, or off"}},
		"number":          {args: []string{"serve", "--max-connections-per-address", "0"}, want: []string{"is not a whole number from 1 to"}},
		"demo duration":   {args: []string{"demo", "--duration", "1s"}, want: []string{"is not between 10s and 1h"}},
		"pair":            {args: []string{"serve"}, env: []string{"MILLRACE_TOKEN_ID=a"}, want: []string{"token-id and token-secret belong together"}},
		"no host":         {args: []string{"serve", "--internal-addr", ":1"}, want: []string{"names no host", "PostgreSQL"}},
		"advertised path": {args: []string{"serve", "--advertise-url", "http://a/b"}, want: []string{"has a path"}},
		"alone":           {args: []string{"serve", "--advertise-url", "http://a"}, want: []string{"set internal-addr"}},
		"tls pair":        {args: []string{"serve", "--tls-cert", "c.pem"}, want: []string{"tls-cert and tls-key belong together"}},
		"two ways":        {args: []string{"serve", "--tls-cert", "c.pem", "--tls-key", "k.pem", "--acme-domain", "a.example.org"}, want: []string{"two ways to have a certificate"}},
		"no certificate":  {args: []string{"serve", "--rtmps-addr", ":1936"}, want: []string{"rtmps-addr needs a certificate"}},
		"secure ports":    {args: []string{"serve", "--acme-domain", "a.example.org", "--https-addr", ":1936"}, want: []string{"https-addr and rtmps-addr are both :1936"}},
		"domain":          {args: []string{"serve", "--acme-domain", "*.example.org"}, want: []string{`has the part "*.example.org", which is not a whole domain name`}},
		"domain address":  {args: []string{"serve", "--acme-domain", "192.0.2.1"}, want: []string{"certificates are for names"}},
		"email":           {args: []string{"serve", "--acme-email", "me"}, want: []string{"is not an e-mail address"}},
		"directory":       {args: []string{"serve", "--acme-directory", "http://ca.example.org/dir"}, want: []string{"starts with https://"}},
		"ports":           {args: []string{"serve", "--rtmp-addr", ":8080"}, want: []string{"http-addr and rtmp-addr are both :8080"}},
		"several":         {args: []string{"serve", "--http-addr", "x", "--log-level", "y"}, want: []string{"--http-addr", "--log-level"}},
		"no file":         {args: []string{"serve", "--config", "none.yaml"}, want: []string{"read configuration file: open none.yaml"}},
		"file key":        {args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: :1\nhttp-adr: :2", want: []string{`m.yaml:2: unknown setting "http-adr"; did you mean http-addr?`}},
		"file twice":      {args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: :1\n\nhttp-addr: :2", want: []string{"m.yaml:3: http-addr is there already, at line 1"}},
		"file value":      {args: []string{"serve", "--config", "m.yaml"}, file: "\nhttp-addr: 8080", want: []string{`m.yaml:2: http-addr "8080" is not an address`}},
		"file nested":     {args: []string{"serve", "--config", "m.yaml"}, file: "http-addr: {port: 1}", want: []string{"m.yaml:1: http-addr must be one value"}},
		"file list":       {args: []string{"serve", "--config", "m.yaml"}, file: "- a", want: []string{"m.yaml: must be lines of the form name: value"}},
		"file syntax":     {args: []string{"serve", "--config", "m.yaml"}, file: "a: [", want: []string{"m.yaml: is not YAML"}},
		"file aws":        {args: []string{"serve", "--config", "m.yaml"}, file: "aws-region: x", want: []string{"aws-region is read from AWS_REGION in the environment only"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(tt.args, tt.env, files(map[string]string{"m.yaml": tt.file}))
			ce, ok := errors.AsType[*Error](err)
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

func TestStrangersInEnvironment(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{"serve"}, []string{"MILLRACE_HTP_ADDR=:1", "MILLRACE_PORT=tcp://10.0.0.1:80", "MILLRACE_SERVICE_HOST=10.0.0.1", "MILLRACE_ZZZZZZZZ=1"}, "")
	want := []string{
		"MILLRACE_HTP_ADDR is set in the environment, but no setting has that name; did you mean MILLRACE_HTTP_ADDR?",
		"MILLRACE_ZZZZZZZZ is set in the environment, but no setting has that name",
	}
	if !slices.Equal(cfg.Warnings, want) {
		t.Errorf("got %q", cfg.Warnings)
	}
}

// TestSecretsInFlags: what is in the list of processes is no secret, and who puts one there is told so.
func TestSecretsInFlags(t *testing.T) {
	t.Parallel()
	const database, key = "postgres://u:hunter2@db/m", "s3://b?access_key_id=a&secret_access_key=hunter2"
	for name, tt := range map[string]struct {
		args, env, want []string
	}{
		"flags": {
			[]string{"--database-url=" + database, "--storage-url=" + key}, nil, []string{"--database-url", "--storage-url"},
		},
		"environment":     {nil, []string{"MILLRACE_DATABASE_URL=" + database, "MILLRACE_STORAGE_URL=" + key}, nil},
		"without secrets": {[]string{"--database-url=postgres://u@db/m", "--storage-url=s3://b?region=r"}, nil, nil},
	} {
		cfg := mustLoad(t, append([]string{"serve"}, tt.args...), tt.env, "")
		if len(cfg.Warnings) != len(tt.want) {
			t.Errorf("%s: %q", name, cfg.Warnings)
			continue
		}
		for i, flag := range tt.want {
			w := cfg.Warnings[i]
			if !strings.HasPrefix(w, flag+" has a secret") || strings.Contains(w, "hunter2") {
				t.Errorf("%s: %q", name, w)
			}
		}
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		want Command
	}{
		"flags first":  {[]string{"--http-addr", ":1", "serve"}, Command{Name: Serve, SettingFlags: []string{"--http-addr=:1"}}},
		"token create": {[]string{"token", "create", "--name", "ci"}, Command{Name: TokenCreate, Label: "ci"}},
		"and database": {[]string{"token", "create", "--create"}, Command{Name: TokenCreate, Access: Access{Create: true}}},
		"token revoke": {[]string{"token", "revoke", "abc"}, Command{Name: TokenRevoke, Words: []string{"abc"}}},
		"dashes":       {[]string{"token", "revoke", "--", "-abc"}, Command{Name: TokenRevoke, Words: []string{"-abc"}}},
		"doctor":       {[]string{"doctor", "--json"}, Command{Name: Doctor, JSON: true}},
		"demo":         {[]string{"demo"}, Command{Name: Demo, Duration: 45 * time.Second}},
		"demo long":    {[]string{"demo", "--duration=60s"}, Command{Name: Demo, Duration: time.Minute}},
		"version":      {[]string{"version"}, Command{Name: Version}},
		"check":        {[]string{"config", "check"}, Command{Name: Check}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, err := Load(tt.args, nil, files(nil))
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", tt.want) {
				t.Errorf("got %+v, want %+v", got, tt.want)
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
		_, cfg, err := Load(strings.Fields(args), nil, files(nil))
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
		{"help", "token", "create"},
		{"help", "help"},
		{"help", "--help"},
		{"help", "serve", "--help"},
		{"token", "revoke", "--help"},
	} {
		c, _, err := Load(args, nil, nil)
		if err != nil || c.Name != Help || !strings.HasPrefix(c.Text, "Usage: millrace ") && !strings.HasPrefix(c.Text, "Millrace is ") {
			t.Errorf("%q: got %+v, %v", args, c, err)
		}
	}
	c, _, _ := Load([]string{"serve", "--help"}, nil, nil)
	for _, s := range Settings() {
		if !strings.Contains(c.Text, s.Help) || !strings.Contains(c.Text, s.DefaultText()) || s.DefaultText() == "" {
			t.Errorf("%s is not explained", s.Name)
		}
		if shown := strings.Contains(c.Text, "--"+s.Name+" "); shown != s.Flag() {
			t.Errorf("%s: flag shown %v", s.Name, shown)
		}
	}
	for _, cmd := range commands {
		if c, _, err := Load(append(strings.Fields(cmd.name), "--help"), nil, nil); err != nil || !strings.Contains(c.Text, cmd.text) && cmd.name != Help {
			t.Errorf("%s --help: %v %q", cmd.name, err, c.Text)
		}
	}
}

func TestVersionAsFlag(t *testing.T) {
	t.Parallel()
	if c, _, err := Load([]string{"--version"}, nil, nil); err != nil || c.Name != Version {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, _, err := Load([]string{"serve", "--version"}, nil, nil); err == nil {
		t.Error("it counts beside a command")
	}
}

// TestStorageWithoutKeys leaves it to the storage to find credentials, as of a machine's role.
func TestStorageWithoutKeys(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{"serve", "--storage-url", "s3://b?region=eu-west-3"}, nil, "")
	if cfg.Storage.Kind != S3 || cfg.Storage.URL.Reveal() != "s3://b?region=eu-west-3" {
		t.Errorf("got %+v", cfg.Storage.URL.Reveal())
	}
}

// TestHelpOfGroup explains the commands that begin with the same word, also while one of them is still to be chosen.
func TestHelpOfGroup(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"token", "environment", "config"} {
		for _, args := range [][]string{{group, "--help"}, {group, "-h"}, {"--help", group}, {"help", group}} {
			c, _, err := Load(args, nil, nil)
			if err != nil || c.Name != Help || !strings.HasPrefix(c.Text, "Usage: millrace "+group+" COMMAND [flags]\n") {
				t.Fatalf("%q: got %+v, %v", args, c, err)
			}
			for _, cmd := range commands {
				if shown := strings.Contains(c.Text, "  "+cmd.name+" "); shown != strings.HasPrefix(cmd.name, group+" ") {
					t.Errorf("%q: %s shown %v", args, cmd.name, shown)
				}
			}
		}
	}
	if c, _, err := Load([]string{"environment", "nothing", "--help"}, nil, nil); err == nil {
		t.Errorf("help of a command that is not there: %+v", c)
	}
	c, _, _ := Load([]string{"help"}, nil, nil)
	column := -1
	for _, cmd := range commands {
		line, _, _ := strings.Cut(c.Text[strings.Index(c.Text, "  "+cmd.name+"  "):], "\n")
		if at := strings.Index(line, cmd.summary); at < 0 || column >= 0 && at != column {
			t.Errorf("summaries do not stand below one another: %q", line)
		} else {
			column = at
		}
	}
}

func TestPublicBases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args       []string
		http, rtmp string
	}{
		"derived":   {nil, "http://localhost:41", "rtmp://localhost/app"},
		"public":    {[]string{"--public-url=https://v.example.org"}, "https://v.example.org", "rtmp://v.example.org/app"},
		"both":      {[]string{"--public-url=https://v.example.org", "--rtmp-public-url=rtmps://in.example.org/live"}, "https://v.example.org", "rtmps://in.example.org/live"},
		"with path": {[]string{"--public-url=https://example.org/video/"}, "https://example.org/video", "rtmp://example.org/app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, append([]string{"serve"}, tt.args...), nil, "")
			if got := cfg.PublicBase("[::]:41").String(); got != tt.http {
				t.Errorf("http %s, want %s", got, tt.http)
			}
			if got := cfg.RTMPBase("0.0.0.0:1935").String(); got != tt.rtmp {
				t.Errorf("rtmp %s, want %s", got, tt.rtmp)
			}
		})
	}
	if got := (Config{}).RTMPBase("127.0.0.1:19350").String(); got != "rtmp://127.0.0.1:19350/app" {
		t.Errorf("got %s", got)
	}
}

func TestREADME(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../README.md", "<!-- settings: written by go test ./internal/config -update -->\n", "<!-- settings end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has no %q … %q", begin, end)
	}
	if table == Markdown() {
		return
	}
	if !*update {
		t.Fatal("the table of settings in README.md differs from the code; run go test ./internal/config -update")
	}
	if err := os.WriteFile(path, []byte(head+begin+Markdown()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestREADMECommands holds the README's table of commands against the commands: a row has a command or several of one word.
func TestREADMECommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../README.md")
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
	for _, c := range commands {
		want = append(want, c.name)
		if !slices.Contains(listed, c.name) {
			t.Errorf("README.md does not list millrace %s", c.name)
		}
	}
	for _, name := range listed[1:] { // the first row is the table's line
		if !slices.Contains(want, name) {
			t.Errorf("README.md lists millrace %s, which is no command", name)
		}
	}
}

// FuzzLoad looks for panics and for secrets in error texts.
func FuzzLoad(f *testing.F) {
	f.Add("serve\x00--http-addr\x00:1", "MILLRACE_LOG_LEVEL=x", "http-addr: :1")
	f.Add("token\x00revoke\x00--\x00-a", "MILLRACE_CONFIG=m.yaml", "a: &a [*a]")
	f.Add("-\x00--\x00--=\x00-h", "=", "fetch-allow:\n- 10.0.0.0/8\n? x\n")
	f.Fuzz(func(t *testing.T, args, env, file string) {
		c, cfg, err := Load(strings.Split(args, "\x00"), append(strings.Split(env, "\x00"), "MILLRACE_CONFIG=m.yaml"), files(map[string]string{"m.yaml": file}))
		if err == nil && c.Name == "" {
			t.Error("neither a command nor an error")
		}
		if err == nil && c.Name == Serve {
			if err := cfg.Print(&bytes.Buffer{}); err != nil {
				t.Error(err)
			}
		}
	})
}
