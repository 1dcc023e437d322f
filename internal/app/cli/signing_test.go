package cli

import (
	"bytes"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/signing"
	"millrace/internal/fault"
	"millrace/internal/id"
)

// oneKey is an environment with one signing key.
type oneKey struct {
	signing.Store

	public  *rsa.PublicKey
	deleted bool
}

func (o *oneKey) InsertKey(_ context.Context, made signing.Key, _ int) error {
	o.public = made.Public
	return nil
}

func (o *oneKey) Key(context.Context, id.SigningKey) (signing.Key, error) {
	if o.public == nil || o.deleted {
		return signing.Key{}, fault.New(fault.NotFound, "there is none")
	}
	return signing.Key{ID: "key1", Environment: "env", Public: o.public, CreatedAt: time.Unix(1e9, 0)}, nil
}

func (o *oneKey) Keys(ctx context.Context, _ id.Environment, _, _ int) ([]signing.Key, error) {
	found, err := o.Key(ctx, "key1")
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return []signing.Key{found}, err
}

func (o *oneKey) DeleteKey(context.Context, id.Environment, id.SigningKey) error {
	o.deleted = true
	return nil
}

type keysOf struct{ *signing.Service }

func (k keysOf) Create(ctx context.Context) (signing.Key, string, error) {
	made, private, err := k.Service.Create(ctx, "env", time.Now())
	made.ID = "key1"
	return made, private, err
}

func (k keysOf) List(ctx context.Context, page, limit int) ([]signing.Key, error) {
	return k.Service.List(ctx, "env", page, limit)
}

func (k keysOf) Delete(ctx context.Context, key id.SigningKey) error {
	return k.Service.Delete(ctx, "env", key)
}

// TestSigningKeyCommands: what the commands make and sign is what the service verifies.
func TestSigningKeyCommands(t *testing.T) {
	t.Parallel()
	service := signing.New(signing.Options{Store: &oneKey{}})
	run := func(args ...string) (int, string, string) {
		var stdout, stderr bytes.Buffer
		code := Run(t.Context(), args, nil, &stdout, &stderr, Actions{
			SigningKeys: func(context.Context, config.Config, id.Environment) (SigningKeys, func() error, error) {
				return keysOf{service}, func() error { return nil }, nil
			},
		})
		return code, stdout.String(), stderr.String()
	}
	code, out, _ := run("signing-key", "create")
	private, ok := strings.CutPrefix(out, "SIGNING_KEY_ID=key1\nSIGNING_PRIVATE_KEY=")
	if code != 0 || !ok {
		t.Fatalf("create: %d, %s", code, out)
	}
	private = strings.TrimSpace(private)
	plain, err := base64.StdEncoding.DecodeString(private)
	if err != nil {
		t.Fatal(err)
	}
	if code, out, _ = run("signing-key", "list"); code != 0 || out != "ID    CREATED\nkey1  2001-09-09T01:46:40Z\n" {
		t.Errorf("list: %d, %s", code, out)
	}
	folder := t.TempDir()
	for name, data := range map[string]string{"base64": private + "\n", "pem": string(plain), "junk": "junk!"} {
		if err = os.WriteFile(filepath.Join(folder, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sign := func(file string, args ...string) (int, string, string) {
		return run(append([]string{
			"token", "sign", "--key-id", "key1", "--private-key-file", filepath.Join(folder, file), "--playback-id",
			"pb1",
		}, args...)...)
	}
	const week, short = 7 * 24 * time.Hour, 90 * time.Minute
	picture := []string{"--type", "thumbnail", "--expiry", "90m", "--param", "width=640", "--param", "time=3"}
	for name, tt := range map[string]struct {
		file  string
		args  []string
		use   string
		left  time.Duration
		query string
	}{
		"thumbnail": {"base64", picture, "t", short, "time=3&width=640"},
		"video":     {"pem", nil, "v", week, ""},
		"gif":       {"pem", []string{"--type", "gif", "--param", "fps=5"}, "g", week, "fps=5"},
	} {
		code, out, problem := sign(tt.file, tt.args...)
		got, err := service.Verify(t.Context(), strings.TrimSpace(out), "env", time.Now())
		if code != 0 || err != nil || got.Subject != "pb1" {
			t.Errorf("%s: %d %s, %+v, %v", name, code, problem, got, err)
		}
		left := time.Until(got.Expires).Round(time.Hour / 2)
		if !got.For(tt.use) || left != tt.left || got.Modifiers.Encode() != tt.query {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for want, args := range map[string][]string{
		"neither a PEM nor the base64": nil, "is none of video": {"--type", "x"},
		"not a number of days":       {"--expiry", "0d"},
		"not of the form name=value": {"--param", "width"}, "a flag of its own": {"--param", "aud=v"},
		"no settings": {"--http-addr", ":1"},
	} {
		if code, _, problem := sign("junk", args...); code == 0 || !strings.Contains(problem, want) {
			t.Errorf("%q: %d %s, want %s", args, code, problem, want)
		}
	}
	if code, _, problem := run("token", "sign", "--key-id", "key1", "--playback-id", "x"); code != 1 ||
		!strings.Contains(problem, "needs --private-key-file") {
		t.Errorf("without a file: %d %s", code, problem)
	}
	const deleted = "Signing key key1 is deleted.\n"
	if code, out, problem := run("signing-key", "delete", "key1"); code != 0 || out != deleted {
		t.Errorf("delete: %d %s %s", code, out, problem)
	}
	_, token, _ := sign("pem")
	if _, err := service.Verify(t.Context(), strings.TrimSpace(token), "env", time.Now()); !fault.Is(err,
		fault.Denied) {
		t.Errorf("a token of a deleted key: %v", err)
	}
}
