package db

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/pressly/goose/v3"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/id"
	"millrace/internal/masterkey"
)

// encryptFrom is the migration that encrypts the secrets of rows that are there already.
const encryptFrom = 20

// batch is how many rows of a table are in memory at a time.
const batch = 500

// encryption is that migration. It does not go back: what it would write then is what the installation was to be freed
// of.
func encryption(vault **masterkey.Vault) *goose.Migration {
	up := func(ctx context.Context, t *sql.Tx) error {
		e := encrypter{t, *vault}
		err := errors.Join(e.liveStreams(ctx), e.webhooks(ctx), e.pathSecrets(ctx),
			e.events(ctx, "'live_stream', 'simulcast_target', 'asset'"))
		if err != nil {
			return fmt.Errorf("encrypt secrets: %w", err)
		}
		_, err = t.ExecContext(ctx, "ALTER TABLE live_streams DROP COLUMN srt_passphrase")
		return err
	}
	down := func(ctx context.Context, t *sql.Tx) error {
		var n int
		err := t.QueryRowContext(ctx,
			"SELECT (SELECT COUNT(*) FROM live_streams) + (SELECT COUNT(*) FROM webhooks) + (SELECT COUNT(*) FROM "+
				"path_secrets)").Scan(&n)
		if err != nil || n > 0 {
			return errors.Join(fmt.Errorf("%d secrets are encrypted, and stay so", n), err)
		}
		_, err = t.ExecContext(ctx,
			"ALTER TABLE live_streams ADD COLUMN srt_passphrase varchar(255) NOT NULL DEFAULT ''")
		return err
	}
	return goose.NewGoMigration(encryptFrom, &goose.GoFunc{RunTx: up}, &goose.GoFunc{RunTx: down})
}

type encrypter struct {
	*sql.Tx

	vault *masterkey.Vault
}

// each calls fn with the columns of every row of a query, which has the row's ID first and conditions before its end.
func (e encrypter) each(ctx context.Context, query string, columns int, fn func(row []string) error) error {
	last := ""
	for {
		rows, err := e.batch(ctx, query+" AND id > $1 ORDER BY id LIMIT $2", columns, last, batch)
		if err != nil {
			return err
		}
		for _, row := range rows {
			last = row[0]
			if err = fn(row); err != nil {
				return err
			}
		}
		if len(rows) < batch {
			return nil
		}
	}
}

// batch reads all rows before any is written: a connection of PostgreSQL does one thing at a time.
func (e encrypter) batch(ctx context.Context, query string, columns int, args ...any) (all [][]string, err error) {
	rows, err := e.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		row, into := make([]string, columns), make([]any, columns)
		for i := range row {
			into[i] = &row[i]
		}
		if err = rows.Scan(into...); err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

func (e encrypter) liveStreams(ctx context.Context) error {
	const query = "SELECT id, stream_key_hash, srt_passphrase, settings FROM live_streams WHERE 1 = 1"
	return e.each(ctx, query, 4, func(row []string) error {
		s := live.Stream{ID: id.LiveStream(row[0]), StreamKey: row[1], SRTPassphrase: row[2]}
		if err := read(row[3], &s.Settings); err != nil {
			return fmt.Errorf("read live stream %s: %w", row[0], err)
		}
		without, sealed, err := sealLive(e.vault, s)
		if err != nil {
			return err
		}
		settings, err := document(without.Settings)
		if err != nil {
			return err
		}
		_, err = e.ExecContext(ctx,
			"UPDATE live_streams SET stream_key_hash = $1, secrets = $2, settings = $3 WHERE id = $4",
			keyHash(e.vault, s.StreamKey), sealed, settings, row[0])
		return err
	})
}

func (e encrypter) webhooks(ctx context.Context) error {
	return e.each(ctx, "SELECT id, secret, old_secret FROM webhooks WHERE 1 = 1", 3, func(row []string) error {
		place := webhookPlace(row[0])
		_, err := e.ExecContext(ctx, "UPDATE webhooks SET secret = $1, old_secret = $2 WHERE id = $3",
			sealText(e.vault, row[1], place), sealText(e.vault, row[2], place), row[0])
		return err
	})
}

func (e encrypter) pathSecrets(ctx context.Context) error {
	var numbers []int64
	rows, err := e.batch(ctx, "SELECT number FROM path_secrets", 1)
	if err != nil {
		return err
	}
	for _, row := range rows {
		var n int64
		if _, err = fmt.Sscan(row[0], &n); err != nil {
			return err
		}
		numbers = append(numbers, n)
	}
	for _, n := range numbers {
		var secret []byte
		if err = e.QueryRowContext(ctx, "SELECT secret FROM path_secrets WHERE number = $1",
			n).Scan(&secret); err != nil {
			return err
		}
		_, err = e.ExecContext(ctx, "UPDATE path_secrets SET secret = $1 WHERE number = $2",
			e.vault.Seal(secret, pathSecretPlace(n)), n)
		if err != nil {
			return err
		}
	}
	return nil
}

// events takes out of events of some kinds what early versions stored in them.
func (e encrypter) events(ctx context.Context, kinds string) error {
	query := "SELECT id, object_kind, type, data FROM events WHERE object_kind IN (" + kinds + ")"
	return e.each(ctx, query, 4, func(row []string) error {
		clean, err := scrubbed(row[1], row[2], row[3])
		if err != nil {
			return fmt.Errorf("read event %s: %w", row[0], err)
		}
		if clean == row[3] {
			return nil
		}
		_, err = e.ExecContext(ctx, "UPDATE events SET data = $1 WHERE id = $2", clean, row[0])
		return err
	})
}

// scrubbed is the data of an event without secrets.
func scrubbed(kind, typ, data string) (string, error) {
	switch {
	case typ == live.EventWarning || typ == asset.EventWarning: // they have none
		return data, nil
	case kind == live.EventObject:
		return without(data, live.Stream.WithoutSecrets)
	case kind == live.EventTargetObject:
		return without(data, live.SimulcastTarget.WithoutSecrets)
	case kind == asset.EventObject:
		return without(data, asset.Asset.WithoutSecrets)
	}
	return data, nil
}

func without[T any](data string, strip func(T) T) (string, error) {
	var v T
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	before, err := document(v)
	if err != nil {
		return "", err
	}
	after, err := document(strip(v))
	if err != nil || after == before { // what has no secret stays as it was written
		return data, err
	}
	return after, nil
}
