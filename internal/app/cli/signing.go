package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"millrace/internal/config"
	"millrace/internal/control/signing"
	"millrace/internal/id"
)

// SigningKeys are the signing keys of an environment.
type SigningKeys interface {
	Create(ctx context.Context) (signing.Key, string, error)
	List(ctx context.Context, page, limit int) ([]signing.Key, error)
	Delete(ctx context.Context, k id.SigningKey) error
}

// signingKeys runs a command about signing keys.
func signingKeys(ctx context.Context, c config.Command, cfg config.Config, stdout io.Writer, a Actions) (err error) {
	keys, closeDB, err := a.SigningKeys(ctx, cfg, id.Environment(c.Access.Environment))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	switch c.Name {
	case config.KeyCreate:
		k, private, createErr := keys.Create(ctx)
		if createErr != nil {
			return createErr
		}
		_, err = fmt.Fprintf(stdout, "SIGNING_KEY_ID=%s\nSIGNING_PRIVATE_KEY=%s\n", k.ID, private)
	case config.KeyDelete:
		return sayUnless(keys.Delete(ctx, id.SigningKey(c.Words[0])), stdout, "Signing key %s is deleted.", c.Words[0])
	default:
		err = listSigningKeys(ctx, keys, stdout)
	}
	return err
}

func listSigningKeys(ctx context.Context, keys SigningKeys, stdout io.Writer) error {
	found, err := keys.List(ctx, 1, signing.MaxKeys) // all that there can be
	if err != nil {
		return err
	}
	tab := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tCREATED")
	for _, k := range found {
		fmt.Fprintf(tab, "%s\t%s\n", k.ID, k.CreatedAt.UTC().Format(time.RFC3339))
	}
	if err := tab.Flush(); err != nil {
		return fmt.Errorf("print signing keys: %w", err)
	}
	return nil
}

// audiences are the claims aud of the types of tokens.
var audiences = map[string]string{ //nolint:gochecknoglobals // a table
	"video": "v", "thumbnail": "t", "gif": "g", "storyboard": "s", "stats": "playback_id", "drm_license": "d",
}

// signToken prints a token.
func signToken(s config.Sign, now time.Time, readFile func(string) ([]byte, error), stdout io.Writer) error {
	for flag, v := range map[string]string{"key-id": s.Key, "private-key-file": s.KeyFile, "playback-id": s.Playback} {
		if v == "" {
			return fmt.Errorf("token sign needs --%s", flag)
		}
	}
	data, err := readFile(s.KeyFile)
	if err != nil {
		return fmt.Errorf("read private key: %w", err)
	}
	key, err := signing.ReadPrivate(string(data))
	if err != nil {
		return fmt.Errorf("read private key %s: %w", s.KeyFile, err)
	}
	claims := map[string]any{}
	for name, v := range s.Params {
		claims[name] = v
	}
	claims["sub"], claims["aud"], claims["exp"] = s.Playback, audiences[s.Type], now.Add(s.Expiry).Unix()
	token, err := signing.Sign(id.SigningKey(s.Key), key, claims)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, token)
	return err
}
