package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the settings table into docs/settings.md")

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
	cfg, err := Parse(args, env, files(map[string]string{"m.yaml": file}))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, nil, nil, "")
	if cfg.HTTPAddr != ":8080" || cfg.RTMPAddr != ":1935" || cfg.LogLevel != slog.LevelInfo ||
		cfg.ShutdownTimeout != 30*time.Second {
		t.Errorf("got %+v", cfg)
	}
	if cfg.Database != (Database{Engine: SQLite, Path: "millrace-data/millrace.db", UpgradeBackup: true}) {
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
	cfg := mustLoad(t, []string{"--http-addr", ":5"}, env, file)
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
	if cfg := mustLoad(t, []string{"--config=m.yaml"}, nil,
		"fetch-allow: [10.0.0.0/8, fd00::/8]"); len(cfg.FetchAllow) != 2 {
		t.Errorf("list in file: %v", cfg.FetchAllow)
	}
	if cfg := mustLoad(t, []string{"--config=m.yaml"}, nil, "# nothing\n"); cfg.HTTPAddr != ":8080" {
		t.Errorf("empty file: %v", cfg.HTTPAddr)
	}
}

func TestValues(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{
		"--fetch-allow", "127.0.0.0/8", "--fetch-allow=::1, 10.0.0.0/8", "--public-url", "https://v.example.org/",
		"--max-upload-bytes", "1.5GB",
		"--database-url=postgres://u:p@db/millrace?sslmode=disable", "--storage-url",
		"s3://media?region=eu-central-1&prefix=live",
	},
		[]string{
			"MILLRACE_TOKEN_ID=abc", "MILLRACE_TOKEN_SECRET=0123456789abcdef", "AWS_ACCESS_KEY_ID=AK",
			"AWS_SECRET_ACCESS_KEY=sk",
		}, "")
	want := []netip.Prefix{
		netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"), netip.MustParsePrefix("10.0.0.0/8"),
	}
	if !slices.Equal(cfg.FetchAllow, want) {
		t.Errorf("fetch-allow %v", cfg.FetchAllow)
	}
	if cfg.PublicURL.String() != "https://v.example.org" || cfg.MaxUploadBytes != 1_500_000_000 {
		t.Errorf("got %v %d", cfg.PublicURL, cfg.MaxUploadBytes)
	}
	if cfg.Database.Engine != Postgres || cfg.Storage.Kind != S3 ||
		cfg.Storage.URL.Reveal() !=
			"s3://media?access_key_id=AK&prefix=live&region=eu-central-1&secret_access_key=sk" ||
		cfg.AWS.AccessKeyID != "AK" {
		t.Errorf("got %+v", cfg)
	}
	if cfg.TokenSecret.Reveal() != "0123456789abcdef" {
		t.Error("secret lost")
	}
	secure := mustLoad(t, []string{
		"--acme-domain", "Video.Example.org", "--acme-domain=bücher.example, video.example.org", "--acme-email",
		"me@example.org",
	}, nil, "")
	if !slices.Equal(secure.ACMEDomains, []string{"video.example.org", "xn--bcher-kva.example"}) || !secure.TLS() ||
		secure.RTMPSAddr != ":1936" || secure.ACMEEmail != "me@example.org" {
		t.Errorf("got %+v", secure)
	}
}

func TestWebRTC(t *testing.T) {
	t.Parallel()
	plain := mustLoad(t, nil, nil, "")
	if !plain.WebRTC() || plain.WebRTCUDPAddr != ":8189" || plain.WebRTCTCPAddr != ":8189" ||
		plain.WebRTCPublicIPs != nil {
		t.Errorf("got %+v", plain)
	}
	if off := mustLoad(t, []string{"--webrtc-udp-addr", "off", "--webrtc-tcp-addr=off"}, nil, ""); off.WebRTC() {
		t.Errorf("off is %+v", off)
	}
	cfg := mustLoad(t,
		[]string{"--webrtc-tcp-addr=off", "--webrtc-public-ip", "203.0.113.7", "--webrtc-public-ip=2001:db8::7"},
		[]string{
			"MILLRACE_WEBRTC_ICE_SERVERS=stun:stun.example.org:3478, " +
				"turns:me:p@ss:word@[2001:db8::1]:5349?transport=tcp",
		}, "")
	if !cfg.WebRTC() ||
		!slices.Equal(cfg.WebRTCPublicIPs, []netip.Addr{
			netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("2001:db8::7"),
		}) {
		t.Errorf("got %+v", cfg)
	}
	want := []ICEServer{
		{URL: "stun:stun.example.org:3478"}, {"turns:[2001:db8::1]:5349?transport=tcp", "me", "p@ss:word"},
	}
	if !slices.Equal(cfg.WebRTCICEServers, want) {
		t.Errorf("got %#v", cfg.WebRTCICEServers)
	}
	for _, bad := range []string{
		"stun.example.org", "http://h", "turn:h", "turn:user@h", "turn::hunter2@h", "stun:u:hunter2@h",
		"stun:h?transport=tcp", "turn:u:hunter2@h?transport=x", "turn:u:hunter2@", "turn:u:hunter2@h/x",
	} {
		_, err := Parse(nil, []string{"MILLRACE_WEBRTC_ICE_SERVERS=" + bad}, nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "STUN or TURN") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func TestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	env := []string{
		"MILLRACE_TOKEN_ID=abc", "MILLRACE_TOKEN_SECRET=hunter2hunter2hunter2", "AWS_SECRET_ACCESS_KEY=hunter2",
		"AWS_SESSION_TOKEN=hunter2",
	}
	cfg := mustLoad(t, []string{
		"--database-url", "postgres://u:hunter2@db/m?sslpassword=hunter2", "--storage-url",
		"s3://b?access_key_id=a&secret_access_key=hunter2",
	}, env, "")
	var b bytes.Buffer
	if err := cfg.Print(&b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{
		cfg.TokenSecret, cfg.Database.URL, cfg.Storage.URL, cfg.AWS.SecretAccessKey, cfg.AWS.SessionToken,
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.values = nil // unexported: printed below by %v, but only ever read through Shown
	all := b.String() + string(text) + fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg)
	if strings.Contains(all, "hunter2") {
		t.Errorf("a secret shows in\n%s", all)
	}
	_, err = Parse(nil, []string{"MILLRACE_TOKEN_SECRET=hunter2", "MILLRACE_DATABASE_URL=postgre://u:hunter2@h/d"}, nil)
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
		"postgres://u:p@[::1]:1,[::2]/d":     "postgres://u:********@[::1]:1,[::2]/d",
		"postgres://u:a@b@h,[::2]:1/d?x=1":   "postgres://u:********@h,[::2]:1/d?x=1",
		"postgres://u:p,[/@[::1],[::2]/d":    mask,
		"postgres://u:p@[::1]:x,[::2]/d":     mask,
		"postgres://u:%zz@h/d":               mask,
		"s3://b?region=x&secretKey=y&z=1":    "s3://b?region=x&secretKey=********&z=1",
		"postgres://h/d?user=u&password=abc": "postgres://h/d?user=u&password=********",
	} {
		if got := redact(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

func TestStrangersInEnvironment(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, nil, []string{
		"MILLRACE_HTP_ADDR=:1", "MILLRACE_PORT=tcp://10.0.0.1:80", "MILLRACE_SERVICE_HOST=10.0.0.1",
		"MILLRACE_ZZZZZZZZ=1",
	}, "")
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
			[]string{"--database-url=" + database, "--storage-url=" + key},
			nil,
			[]string{"--database-url", "--storage-url"},
		},
		"environment":     {nil, []string{"MILLRACE_DATABASE_URL=" + database, "MILLRACE_STORAGE_URL=" + key}, nil},
		"without secrets": {[]string{"--database-url=postgres://u@db/m", "--storage-url=s3://b?region=r"}, nil, nil},
	} {
		cfg := mustLoad(t, tt.args, tt.env, "")
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

// TestStorageWithoutKeys leaves it to the storage to find credentials, as of a machine's role.
func TestStorageWithoutKeys(t *testing.T) {
	t.Parallel()
	cfg := mustLoad(t, []string{"--storage-url", "s3://b?region=eu-west-3"}, nil, "")
	if cfg.Storage.Kind != S3 || cfg.Storage.URL.Reveal() != "s3://b?region=eu-west-3" {
		t.Errorf("got %+v", cfg.Storage.URL.Reveal())
	}
}

func TestPublicBases(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args       []string
		http, rtmp string
	}{
		"derived": {nil, "http://localhost:41", "rtmp://localhost/app"},
		"public": {
			[]string{"--public-url=https://v.example.org"}, "https://v.example.org", "rtmp://v.example.org/app",
		},
		"both": {
			[]string{"--public-url=https://v.example.org", "--rtmp-public-url=rtmps://in.example.org/live"},
			"https://v.example.org", "rtmps://in.example.org/live",
		},
		"with path": {
			[]string{"--public-url=https://example.org/video/"}, "https://example.org/video", "rtmp://example.org/app",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mustLoad(t, tt.args, nil, "")
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

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	const path, begin = "../../docs/settings.md", "<!-- settings: written by go test ./internal/config -update -->\n"
	const end = "<!-- settings end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/settings.md has no %q … %q", begin, end)
	}
	if table == Markdown() {
		return
	}
	if !*update {
		t.Fatal("docs/settings.md differs from the code; run go test ./internal/config -update")
	}
	if err := os.WriteFile(path, []byte(head+begin+Markdown()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFilesOfPages: each settings file that a page of the documentation shows is one.
func TestFilesOfPages(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```[a-z]*\n(# (?:/etc/)?millrace\\.yaml\n.*?)^```")
	found := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.FindAllSubmatch(text, -1) {
			found++
			file := files(map[string]string{"m.yaml": string(m[1])})
			if _, err = Parse([]string{"--config=m.yaml"}, nil, file); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("%d settings files are in pages", found)
	}
}
