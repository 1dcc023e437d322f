package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"millrace/internal/config"
	"millrace/internal/control/access"
	"millrace/internal/id"
)

// firstToken seeds the configured token, or makes the first one and shows it this once.
func firstToken(ctx context.Context, service access.API, cfg config.Config, log *slog.Logger, show io.Writer) error {
	if cfg.TokenID != "" {
		revoked, err := service.SeedToken(ctx, id.Token(cfg.TokenID), cfg.TokenSecret.Reveal(), clock())
		if revoked {
			log.WarnContext(ctx, "the token of the settings was revoked and stays so: take token-id and token-secret out, or name another one", "token_id", cfg.TokenID)
		}
		return err
	}
	all, err := service.Tokens(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	t, secret, err := service.CreateToken(ctx, "first", clock())
	if err != nil {
		return err
	}
	log.InfoContext(ctx, "made the first access token", "token_id", t.ID)
	fmt.Fprintf(show, "\nAccess token for the API (the secret is shown this once):\n  MILLRACE_TOKEN_ID=%s\n  MILLRACE_TOKEN_SECRET=%s\n\n", t.ID, secret)
	return nil
}
