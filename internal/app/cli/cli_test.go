package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/speech"
	"millrace/internal/storage/blob"
)

// fakeTokens keeps tokens in a slice.
type fakeTokens struct {
	all      []access.Token
	made     []access.TokenInput
	quality  []string // as set, one after the other
	rungs    []string
	captions []string
	calls    []string // the other calls
	entries  []audit.Entry
	drained  []bool
}

func (f *fakeTokens) SetCaptions(_ context.Context, _ id.Environment, rules string, _ time.Time) error {
	f.captions = append(f.captions, rules)
	return nil
}

func (f *fakeTokens) SetLiveRungs(_ context.Context, _ id.Environment, policy string, _ time.Time) error {
	f.rungs = append(f.rungs, policy)
	return nil
}

func (f *fakeTokens) SetQuality(_ context.Context, _ id.Environment, quality string, _ time.Time) error {
	f.quality = append(f.quality, quality)
	return nil
}

func (f *fakeTokens) SetFrameAncestors(ctx context.Context, e id.Environment, origins []string, _ time.Time) error {
	f.calls = append(f.calls, fmt.Sprint("frame ", e, origins))
	f.entries = append(f.entries, audit.Of(ctx).Entry)
	return nil
}

func (f *fakeTokens) CreateEnvironment(_ context.Context, name, kind string, _ time.Time) (access.Environment, error) {
	f.calls = append(f.calls, "create "+name+" "+kind)
	return access.Environment{ID: "env1"}, nil
}

func (f *fakeTokens) RenameEnvironment(
	_ context.Context, e id.Environment, name string, _ time.Time,
) (access.Environment, error) {
	f.calls = append(f.calls, "rename "+string(e)+" "+name)
	return access.Environment{}, nil
}

func (f *fakeTokens) Environments(_ context.Context, page, _ int) ([]access.Environment, error) {
	if page > 1 {
		return nil, nil
	}
	return slices.Repeat([]access.Environment{
		{ID: "env1", Name: "Shop", Kind: "production", FrameAncestors: "https://a.example https://b.example"},
	}, 100), nil
}

func (f *fakeTokens) CreateToken(_ context.Context, in access.TokenInput, now time.Time) (access.Token, string, error) {
	f.made = append(f.made, in)
	t := access.Token{ID: "id1", Name: in.Name, CreatedAt: now, Permissions: in.Permissions, ExpiresAt: in.ExpiresAt}
	f.all = append(f.all, t)
	return t, "s3cret", nil
}

// AuditLog gives a thousand entries at a time, as many as are asked for.
func (f *fakeTokens) AuditLog(_ context.Context, q audit.Query) ([]audit.Entry, error) {
	f.calls = append(f.calls,
		fmt.Sprintf("audit %s %s %s %s %d", q.Environment, q.Actor, q.Operation, q.Resource, q.Limit))
	return slices.Repeat([]audit.Entry{{
		ID: "entry1", Actor: audit.Actor{Type: audit.AccessToken, ID: "id1", Name: "ci"}, Operation: "delete-asset",
		Resource: audit.Resource{Type: "asset", ID: "a1"},
	}}, q.Limit), nil
}

func (f *fakeTokens) Tokens(context.Context) ([]access.Token, error) { return f.all, nil }

func (f *fakeTokens) RevokeToken(_ context.Context, t id.Token, now time.Time) error {
	for i := range f.all {
		if f.all[i].ID == t {
			f.all[i].RevokedAt = now
			return nil
		}
	}
	return fault.New(fault.NotFound, "there is no token %s", t)
}

type outcome struct {
	code        int
	out, err    string
	served      bool
	closedTimes int
}

func try(t *testing.T, f *fakeTokens, args ...string) (o outcome) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	o.code = Run(t.Context(), args, []string{"MILLRACE_HTP_ADDR=x"}, &stdout, &stderr, Actions{
		Serve: func(_ context.Context, cfg config.Config) error {
			o.served = true
			if cfg.HTTPAddr == ":2" {
				return fault.Wrap(fault.Unavailable, errors.New("dial"), "the database can't be reached")
			}
			if cfg.HTTPAddr == ":1" {
				return errors.New("listen on :1: permission denied")
			}
			return nil
		},
		Access: func(context.Context, config.Config) (Tokens, func() error, error) {
			return f, func() error { o.closedTimes++; return nil }, nil
		},
		Audit: func(context.Context, config.Config) (audit.Log, func() error, error) {
			return f, func() error { o.closedTimes++; return nil }, nil
		},
		Nodes: func(context.Context, config.Config) (Nodes, func() error, error) {
			return f, func() error { o.closedTimes++; return nil }, nil
		},
		SpeechEngines: func(config.Config) ([]speech.Engine, error) { return nil, nil },
		OpenStorage: func(ctx context.Context, _ config.Config, url config.Secret) (blob.Store, error) {
			return blob.OpenURL(ctx, url.Reveal())
		},
	})
	o.out, o.err = stdout.String(), stderr.String()
	return o
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	data := "--data-dir=" + filepath.Join(t.TempDir(), "data")
	for name, tt := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"nothing": {nil, 2, "", "millrace: no command given\nRun millrace help"},
		"help":    {[]string{"--help"}, 0, "Usage: millrace COMMAND", ""},
		"usage":   {[]string{"serve", "--http-addr=x"}, 2, "", `millrace: --http-addr "x" is not an address`},
		"version": {[]string{"version"}, 0, "millrace ", ""},
		"check":   {[]string{"config", "check"}, 0, "warning: MILLRACE_HTP_ADDR", ""},
		"serve":   {[]string{"serve"}, 0, "", "millrace: warning: MILLRACE_HTP_ADDR"},
		"fails":   {[]string{"serve", "--http-addr=:1"}, 1, "", "millrace: listen on :1: permission denied"},
		"away": {
			[]string{"serve", "--http-addr=:2"},
			1, "",
			"the database can't be reached\nmillrace: millrace doctor with the same settings says",
		},
		"unknown": {[]string{"token", "revoke", "nobody"}, 1, "", "millrace: there is no token nobody"},
		"doctor": {
			[]string{"doctor", data, "--http-addr=127.0.0.1:0", "--rtmp-addr=192.0.2.1:1", "--srt-addr=127.0.0.1:0"},
			1,
			"✗ rtmp-addr", "",
		},
		"doctor, roles": {
			[]string{
				"doctor", data, "--http-addr=127.0.0.1:0", "--rtmp-addr=127.0.0.1:0", "--srt-addr=127.0.0.1:0",
				"--roles=ingest",
			},
			1, "need PostgreSQL", "",
		},
		"serve, roles": {[]string{"serve", "--roles=ingest"}, 2, "", "need PostgreSQL"},
		"doc json": {
			[]string{
				"doctor", "--json", data, "--http-addr=127.0.0.1:0", "--rtmp-addr=192.0.2.1:1",
				"--srt-addr=127.0.0.1:0",
			}, 1, `"healthy": false`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := try(t, &fakeTokens{}, tt.args...)
			if o.code != tt.code || !strings.Contains(o.out, tt.out) || !strings.Contains(o.err, tt.err) ||
				tt.err == "" && o.err != "" {
				t.Errorf("got %+v, want %+v", o, tt)
			}
		})
	}
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	if o := try(t, f, "token", "create", "--name", "ci"); o.code != 0 ||
		o.out != "MILLRACE_TOKEN_ID=id1\nMILLRACE_TOKEN_SECRET=s3cret\n" || o.closedTimes != 1 {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "list"); !strings.Contains(o.out, "id1  ci    ") || strings.Contains(o.out, "s3cret") ||
		!strings.HasSuffix(o.out, "  -\n") {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "revoke", "id1"); o.code != 0 || o.out != "Access token id1 is revoked.\n" {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "list"); strings.HasSuffix(o.out, "  -\n") {
		t.Errorf("got %+v", o)
	}
	before := time.Now()
	for _, args := range [][]string{
		{
			"--permission", "video:read,video:write", "--permission=system:read", "--environment", "env1", "--expires",
			"90d",
		},
		{"--expires=2099-01-01T00:00:00Z"},
		{"--installation"},
	} {
		if o := try(t, f, append([]string{"token", "create"}, args...)...); o.code != 0 {
			t.Errorf("%q: %+v", args, o)
		}
	}
	if got := f.made[1]; !slices.Equal(got.Permissions, []string{"video:read", "video:write", "system:read"}) ||
		got.Environment != "env1" ||
		got.ExpiresAt.Sub(before) < 90*24*time.Hour || got.ExpiresAt.Sub(before) > 91*24*time.Hour {
		t.Errorf("made %+v", got)
	}
	if got := f.made[2]; len(got.Permissions) > 0 || !got.ExpiresAt.Equal(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("made %+v", got)
	}
	if got := f.made[3]; !slices.Equal(got.Permissions, access.InstallationPermissions()) {
		t.Errorf("made %+v", got)
	}
	if o := try(t, f, "token", "list"); !strings.Contains(o.out, "video:read,video:write,system:read") ||
		!strings.Contains(o.out, "installation") {
		t.Errorf("got %+v", o)
	}
	for _, args := range [][]string{
		{"--permission=video"}, {"--expires=soon"}, {"--installation=x"}, {"--installation", "--permission=video:read"},
	} {
		if o := try(t, f, append([]string{"token", "create"}, args...)...); o.code == 0 || o.err == "" {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

func TestAuditCommand(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	o := try(t, f, "audit", "--limit=1500", "--actor=ci", "--operation=delete-asset", "--resource=a1",
		"--environment=env1", "--since=2026-01-01T00:00:00Z")
	if o.code != 0 || strings.Count(o.out, "ci (id1)  -        delete-asset  asset a1") != 1500 || o.closedTimes != 1 {
		t.Errorf("code %d, %d lines, %s", o.code, strings.Count(o.out, "\n"), o.err)
	}
	if want := []string{
		"audit env1 ci delete-asset a1 1000", "audit env1 ci delete-asset a1 500",
	}; !slices.Equal(f.calls, want) {
		t.Errorf("calls %q", f.calls)
	}
	if o = try(t, f, "audit", "--json", "--limit=1"); !strings.HasPrefix(o.out, `{"actor_id":"id1","actor_name":"ci"`) {
		t.Errorf("got %+v", o)
	}
	if o = try(t, f, "audit", "--limit=0"); o.code != 2 {
		t.Errorf("got %+v", o)
	}
}

func TestEnvironmentCommands(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	for _, tt := range []struct{ command, word, want string }{
		{"video-quality", "premium", "video-quality of environment env1: premium\n"},
		{"video-quality", "default", "video-quality of environment env1: default, the service's own\n"},
		{"live-rungs", "always", "live-rungs of environment env1: always\n"},
		{"live-rungs", "default", "live-rungs of environment env1: default, the service's own\n"},
		{"captions", "en=pocketsphinx,*=openai", "captions of environment env1: en=pocketsphinx,*=openai\n"},
		{"captions", "default", "captions of environment env1: default, the service's own\n"},
	} {
		o := try(t, f, "environment", tt.command, tt.word, "--environment=env1")
		if o.code != 0 || o.out != tt.want || o.closedTimes != 1 {
			t.Errorf("got %+v", o)
		}
	}
	if want := []string{"premium", ""}; !slices.Equal(f.quality, want) {
		t.Errorf("set %q", f.quality)
	}
	if want := []string{"always", ""}; !slices.Equal(f.rungs, want) {
		t.Errorf("set %q", f.rungs)
	}
	if want := []string{"en=pocketsphinx,*=openai", ""}; !slices.Equal(f.captions, want) {
		t.Errorf("set %q", f.captions)
	}
	for _, command := range []string{"video-quality", "live-rungs", "captions"} {
		if o := try(t, f, "environment", command); o.code != 2 {
			t.Errorf("got %+v", o)
		}
	}
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	for _, args := range [][]string{
		{"create", "Shop"},
		{"create", "Lab", "--type=development"},
		{"rename", "env1", "Other shop"},
		{"frame-ancestors", "https://a.example,https://b.example", "--environment=env1"},
	} {
		if o := try(t, f, append([]string{"environment"}, args...)...); o.code != 0 || strings.Count(o.out, "\n") != 1 {
			t.Errorf("%q: %+v", args, o)
		}
	}
	want := []string{
		"create Shop production", "create Lab development", "rename env1 Other shop",
		"frame env1[https://a.example https://b.example]",
	}
	if !slices.Equal(f.calls, want) {
		t.Errorf("calls %q", f.calls)
	}
	if e := f.entries[0]; e.Operation != "environment frame-ancestors" || e.Actor.Type != audit.CommandLine ||
		e.Actor.Name == "" || e.At.IsZero() {
		t.Errorf("the audit log would say %+v", e)
	}
	if o := try(t, f, "environment", "list"); strings.Count(o.out, "https://a.example,https://b.example") != 100 {
		t.Errorf("got %+v", o)
	}
}

func TestDemoNeedsFFmpeg(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if o := try(t, &fakeTokens{}, "demo"); o.code != 1 ||
		!strings.Contains(o.err, "ffmpeg is not in the PATH: install it") {
		t.Errorf("got %+v", o)
	}
}

// TestDashboardLink: the command prints the link and nothing else, unless the dashboard is off.
func TestDashboardLink(t *testing.T) {
	t.Parallel()
	const link = "http://localhost:8080/dashboard/link/secret"
	a := Actions{DashboardLink: func(context.Context, config.Config) (string, error) { return link, nil }}
	for name, tt := range map[string]struct {
		args     []string
		code     int
		out, err string
	}{
		"on":  {[]string{"dashboard", "link"}, ExitOK, link + "\n", ""},
		"off": {[]string{"dashboard", "link", "--dashboard=off"}, ExitFailed, "", "the dashboard is off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := Run(t.Context(), tt.args, nil, &out, &errs, a)
			if code != tt.code || out.String() != tt.out || !strings.Contains(errs.String(), tt.err) {
				t.Errorf("exit code %d, %q, %q", code, out.String(), errs.String())
			}
		})
	}
}
