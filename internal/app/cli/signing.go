package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"millrace/internal/control/signing"
	"millrace/internal/id"
)

// SigningKeys are the signing keys of an environment.
type SigningKeys interface {
	Create(ctx context.Context) (signing.Key, string, error)
	List(ctx context.Context, page, limit int) ([]signing.Key, error)
	Delete(ctx context.Context, k id.SigningKey) error
}

func signingKeyCommands() []command {
	return []command{
		of("signing-key create", "create a key for signing viewers' tokens and print it once",
			"Creates a key for signing the tokens of playback IDs with the policy signed. The private key is "+
				"printed once and can't be shown again.", &signingKey{do: signingKeyCreate, creates: true}),
		of("signing-key list", "list the signing keys",
			"Lists the signing keys, newest first.", &signingKey{do: signingKeyList}),
		of("signing-key delete KEY-ID", "delete a signing key",
			"Deletes a signing key. What it has signed is refused from then on, at once on every node; on SQLite, "+
				"by a service that runs, within two seconds.", &signingKey{do: signingKeyDelete}),
		of("token sign", "sign a token for a viewer",
			"Signs a token for a playback ID with the policy signed and prints it; players send it as ?token=. "+
				"Needs no running service and no settings.", &tokenSign{readFile: os.ReadFile}, alone),
	}
}

// signingKey is a command about the signing keys of an environment.
type signingKey struct {
	inEnvironment

	creates bool
	do      func(ctx context.Context, keys SigningKeys, r *request) error
}

func (s *signingKey) flags(f *flags) {
	if s.creates {
		f.mayCreate()
	}
	s.inEnvironment.flags(f)
}

func (s *signingKey) run(ctx context.Context, r *request) error {
	keys, closeDB, err := r.SigningKeys(ctx, r.cfg, s.environment)
	return closing(closeDB, err, func() error { return s.do(ctx, keys, r) })
}

func signingKeyCreate(ctx context.Context, keys SigningKeys, r *request) error {
	k, private, err := keys.Create(ctx)
	return r.done(err, "SIGNING_KEY_ID=%s\nSIGNING_PRIVATE_KEY=%s", k.ID, private)
}

func signingKeyDelete(ctx context.Context, keys SigningKeys, r *request) error {
	return r.done(keys.Delete(ctx, id.SigningKey(r.words[0])), "Signing key %s is deleted.", r.words[0])
}

func signingKeyList(ctx context.Context, keys SigningKeys, r *request) error {
	found, err := keys.List(ctx, 1, signing.MaxKeys) // all that there can be
	if err != nil {
		return err
	}
	tab := newTable(r.out)
	tab.row("ID", "CREATED")
	for _, k := range found {
		tab.row(k.ID, timeOrNone(k.CreatedAt))
	}
	return tab.end()
}

// audiences are the claims aud of the types of tokens, in the order of the help.
var audiences = []struct{ kind, claim string }{ //nolint:gochecknoglobals // a table
	{"video", "v"},
	{"thumbnail", "t"},
	{"gif", "g"},
	{"storyboard", "s"},
	{"stats", "playback_id"},
	{"drm_license", "d"},
}

// tokenSign prints a token.
type tokenSign struct {
	key, keyFile, playback, kind string
	expiry                       time.Duration  // from now on
	claims                       map[string]any // further ones

	readFile func(string) ([]byte, error)
}

func (t *tokenSign) flags(f *flags) {
	var kinds []string
	for _, a := range audiences {
		kinds = append(kinds, a.kind)
	}
	t.claims = map[string]any{}
	add(f, &t.key, anything, "key-id", "id", "", "ID of the signing key. Required.")
	add(f, &t.keyFile, anything, "private-key-file", "path", "",
		"File with the signing key's private key: PEM, or base64 of it as printed by the service. Required.")
	add(f, &t.playback, anything, "playback-id", "id", "", "Playback ID that the token is for. Required.")
	f.oneOf(&t.kind, kinds, "type", "type", "video", "What it is for: "+strings.Join(kinds, ", ")+".")
	add(f, &t.expiry, days, "expiry", "duration", "7d", "How long the token is valid, such as 90m, 12h or 7d.")
	f.each(func(text string) error {
		name, v, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return errors.New("is not of the form name=value")
		}
		if slices.Contains([]string{"sub", "aud", "exp", "kid"}, name) {
			return errors.New("is a claim with a flag of its own")
		}
		t.claims[name] = v
		return nil
	}, "param", "name=value", "",
		"An additional claim, such as width=640 or playback_restriction_id=…; may be repeated.")
}

func (t *tokenSign) run(_ context.Context, r *request) error {
	for _, needed := range []struct{ flag, text string }{
		{"key-id", t.key}, {"private-key-file", t.keyFile}, {"playback-id", t.playback},
	} {
		if needed.text == "" {
			return fmt.Errorf("token sign needs --%s", needed.flag)
		}
	}
	data, err := t.readFile(t.keyFile)
	if err != nil {
		return fmt.Errorf("read private key: %w", err)
	}
	key, err := signing.ReadPrivate(string(data))
	if err != nil {
		return fmt.Errorf("read private key %s: %w", t.keyFile, err)
	}
	t.claims["sub"], t.claims["exp"] = t.playback, r.now.Add(t.expiry).Unix()
	for _, a := range audiences {
		if a.kind == t.kind {
			t.claims["aud"] = a.claim
		}
	}
	token, err := signing.Sign(id.SigningKey(t.key), key, t.claims)
	return r.done(err, "%s", token)
}
