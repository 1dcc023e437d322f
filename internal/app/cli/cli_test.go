package cli

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/blob"
)

// fakeTokens keeps tokens in a slice.
type fakeTokens struct {
	all     []access.Token
	quality []string // as set, one after the other
	rungs   []string
}

func (f *fakeTokens) SetLiveRungs(_ context.Context, policy string, _ time.Time) error {
	f.rungs = append(f.rungs, policy)
	return nil
}

func (f *fakeTokens) SetQuality(_ context.Context, quality string, _ time.Time) error {
	f.quality = append(f.quality, quality)
	return nil
}

func (f *fakeTokens) CreateToken(_ context.Context, name string, now time.Time) (access.Token, string, error) {
	t := access.Token{ID: "id1", Name: name, CreatedAt: now}
	f.all = append(f.all, t)
	return t, "s3cret", nil
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
		"nothing":  {nil, 2, "", "millrace: no command given\nRun millrace help"},
		"help":     {[]string{"--help"}, 0, "Usage: millrace COMMAND", ""},
		"usage":    {[]string{"serve", "--http-addr=x"}, 2, "", `millrace: --http-addr "x" is not an address`},
		"version":  {[]string{"version"}, 0, "millrace ", ""},
		"check":    {[]string{"config", "check"}, 0, "warning: MILLRACE_HTP_ADDR", ""},
		"serve":    {[]string{"serve"}, 0, "", "millrace: warning: MILLRACE_HTP_ADDR"},
		"fails":    {[]string{"serve", "--http-addr=:1"}, 1, "", "millrace: listen on :1: permission denied"},
		"away":     {[]string{"serve", "--http-addr=:2"}, 1, "", "the database can't be reached\nmillrace: millrace doctor with the same settings says"},
		"unknown":  {[]string{"token", "revoke", "nobody"}, 1, "", "millrace: there is no token nobody"},
		"doctor":   {[]string{"doctor", data, "--http-addr=127.0.0.1:0", "--rtmp-addr=192.0.2.1:1", "--srt-addr=127.0.0.1:0"}, 1, "✗ rtmp-addr", ""},
		"doc json": {[]string{"doctor", "--json", data, "--http-addr=127.0.0.1:0", "--rtmp-addr=192.0.2.1:1", "--srt-addr=127.0.0.1:0"}, 1, `"healthy": false`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := try(t, &fakeTokens{}, tt.args...)
			if o.code != tt.code || !strings.Contains(o.out, tt.out) || !strings.Contains(o.err, tt.err) || tt.err == "" && o.err != "" {
				t.Errorf("got %+v, want %+v", o, tt)
			}
		})
	}
}

func TestTokenCommands(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	if o := try(t, f, "token", "create", "--name", "ci"); o.code != 0 || o.out != "MILLRACE_TOKEN_ID=id1\nMILLRACE_TOKEN_SECRET=s3cret\n" || o.closedTimes != 1 {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "list"); !strings.Contains(o.out, "id1  ci    ") || strings.Contains(o.out, "s3cret") || !strings.HasSuffix(o.out, "  -\n") {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "revoke", "id1"); o.code != 0 || o.out != "" {
		t.Errorf("got %+v", o)
	}
	if o := try(t, f, "token", "list"); strings.HasSuffix(o.out, "  -\n") {
		t.Errorf("got %+v", o)
	}
}

func TestEnvironmentCommands(t *testing.T) {
	t.Parallel()
	f := &fakeTokens{}
	for _, words := range [][]string{{"video-quality", "premium"}, {"video-quality", "default"}, {"live-rungs", "always"}, {"live-rungs", "default"}} {
		if o := try(t, f, "environment", words[0], words[1]); o.code != 0 || o.out != "" || o.closedTimes != 1 {
			t.Errorf("got %+v", o)
		}
	}
	if want := []string{"premium", ""}; !slices.Equal(f.quality, want) {
		t.Errorf("set %q", f.quality)
	}
	if want := []string{"always", ""}; !slices.Equal(f.rungs, want) {
		t.Errorf("set %q", f.rungs)
	}
	for _, command := range []string{"video-quality", "live-rungs"} {
		if o := try(t, f, "environment", command); o.code != 2 {
			t.Errorf("got %+v", o)
		}
	}
}

func TestDemoNeedsFFmpeg(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if o := try(t, &fakeTokens{}, "demo"); o.code != 1 || !strings.Contains(o.err, "ffmpeg is not in the PATH: install it") {
		t.Errorf("got %+v", o)
	}
}
