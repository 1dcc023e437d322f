package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"millrace/internal/masterkey"
)

// encryptUploadsFrom is the migration that encrypts the secrets of uploads, and takes the credentials in URLs out of
// the events of live streams.
const encryptUploadsFrom = 32

// uploadEncryption is that migration. It does not go back, as encryption does not.
func uploadEncryption(vault **masterkey.Vault) *goose.Migration {
	up := func(ctx context.Context, t *sql.Tx) error {
		e := encrypter{t, *vault}
		for _, change := range []string{
			"ALTER TABLE uploads RENAME COLUMN secret TO secret_hash",
			"ALTER TABLE uploads ADD COLUMN secret varchar(255) NOT NULL DEFAULT ''",
		} {
			if _, err := t.ExecContext(ctx, change); err != nil {
				return fmt.Errorf("encrypt secrets of uploads: %w", err)
			}
		}
		if err := errors.Join(e.uploads(ctx), e.events(ctx, "'live_stream'")); err != nil {
			return fmt.Errorf("encrypt secrets of uploads: %w", err)
		}
		return nil
	}
	down := func(ctx context.Context, t *sql.Tx) error {
		var n int
		if err := t.QueryRowContext(ctx, "SELECT COUNT(*) FROM uploads").Scan(&n); err != nil || n > 0 {
			return errors.Join(fmt.Errorf("the secrets of %d uploads are encrypted, and stay so", n), err)
		}
		_, err := t.ExecContext(ctx, "ALTER TABLE uploads DROP COLUMN secret")
		if err == nil {
			_, err = t.ExecContext(ctx, "ALTER TABLE uploads RENAME COLUMN secret_hash TO secret")
		}
		return err
	}
	return goose.NewGoMigration(encryptUploadsFrom, &goose.GoFunc{RunTx: up}, &goose.GoFunc{RunTx: down})
}

func (e encrypter) uploads(ctx context.Context) error {
	return e.each(ctx, "SELECT id, secret_hash FROM uploads WHERE 1 = 1", 2, func(row []string) error {
		_, err := e.ExecContext(ctx, "UPDATE uploads SET secret_hash = $1, secret = $2 WHERE id = $3",
			uploadHash(e.vault, row[1]), sealText(e.vault, row[1], uploadPlace(row[0])), row[0])
		return err
	})
}
