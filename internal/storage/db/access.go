package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/access"
	"millrace/internal/control/playbackid"
	"millrace/internal/id"
)

type accessStore struct{ *DB }

type environmentRow struct {
	bun.BaseModel `bun:"table:environments,alias:e"`
	ID            string `bun:"id,pk"`
	Name          string `bun:"name"`
	Kind          string `bun:"kind"`
	Default       bool   `bun:"is_default"`
	CreatedAt     int64  `bun:"created_at"`
	VideoQuality  string `bun:"video_quality"`
	LiveRungs     string `bun:"live_rungs"`
}

func (r environmentRow) value() access.Environment {
	return access.Environment{
		ID: id.Environment(r.ID), Name: r.Name, Kind: r.Kind, CreatedAt: moment(r.CreatedAt), VideoQuality: r.VideoQuality, LiveRungs: r.LiveRungs,
	}
}

type tokenRow struct {
	bun.BaseModel `bun:"table:tokens,alias:t"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Name          string `bun:"name"`
	Permissions   string `bun:"permissions"`
	Hash          []byte `bun:"hash"`
	CreatedAt     int64  `bun:"created_at"`
	RevokedAt     int64  `bun:"revoked_at"`
}

func (r tokenRow) value() (access.Token, error) {
	t := access.Token{
		ID: id.Token(r.ID), Environment: id.Environment(r.Environment), Name: r.Name, Hash: r.Hash,
		CreatedAt: moment(r.CreatedAt), RevokedAt: moment(r.RevokedAt),
	}
	if err := read(r.Permissions, &t.Permissions); err != nil {
		return access.Token{}, fmt.Errorf("read token: %w", err)
	}
	return t, nil
}

func (d accessStore) Environment(ctx context.Context, e id.Environment) (access.Environment, error) {
	var row environmentRow
	err := d.first(ctx, d.read.NewSelect().Model(&row).Where("id = ?", string(e)), string(e), "environment")
	return row.value(), err
}

// first reads one row; key is what a caller named it by.
func (d accessStore) first(ctx context.Context, q *bun.SelectQuery, key, what string) error {
	if !possible(key) {
		return noSuch(what)
	}
	err := q.Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return noSuch(what)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	return nil
}

func (d accessStore) SetVideoQuality(ctx context.Context, e id.Environment, quality string) error {
	return d.change(ctx, e, "video_quality = ?", quality)
}

func (d accessStore) SetLiveRungs(ctx context.Context, e id.Environment, policy string) error {
	return d.change(ctx, e, "live_rungs = ?", policy)
}

// change sets a column of an environment.
func (d accessStore) change(ctx context.Context, e id.Environment, set, value string) error {
	_, err := d.write.NewUpdate().Model((*environmentRow)(nil)).Set(set, value).Where("id = ?", string(e)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("update environment: %w", err)
	}
	return nil
}

func (d accessStore) EnsureDefault(ctx context.Context, fresh access.Environment) (access.Environment, error) {
	row := environmentRow{ID: string(fresh.ID), Name: fresh.Name, Kind: fresh.Kind, Default: true, CreatedAt: millis(fresh.CreatedAt)}
	err := d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if _, err := t.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Exec(ctx); err != nil {
			return fmt.Errorf("insert environment: %w", err)
		}
		row = environmentRow{}
		if err := t.NewSelect().Model(&row).Where("is_default").Scan(ctx); err != nil {
			return fmt.Errorf("read default environment: %w", err)
		}
		return nil
	})
	return row.value(), err
}

func (d accessStore) InsertToken(ctx context.Context, t access.Token) error {
	permissions, err := document(t.Permissions)
	if err != nil {
		return err
	}
	row := tokenRow{
		ID: string(t.ID), Environment: string(t.Environment), Name: t.Name, Permissions: permissions, Hash: t.Hash,
		CreatedAt: millis(t.CreatedAt), RevokedAt: millis(t.RevokedAt),
	}
	if _, err := d.write.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
		return exists(err, "token")
	} else if err != nil {
		return fmt.Errorf("insert token: %w", err)
	}
	return nil
}

func (d accessStore) Token(ctx context.Context, t id.Token) (access.Token, error) {
	var row tokenRow
	if err := d.first(ctx, d.read.NewSelect().Model(&row).Where("id = ?", string(t)), string(t), "token"); err != nil {
		return access.Token{}, err
	}
	return row.value()
}

func (d accessStore) Tokens(ctx context.Context) ([]access.Token, error) {
	var rows []tokenRow
	if err := d.read.NewSelect().Model(&rows).Order("created_at", "id").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	out := make([]access.Token, 0, len(rows))
	for _, r := range rows {
		t, err := r.value()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func (d accessStore) RevokeToken(ctx context.Context, t id.Token, at time.Time) error {
	if !possible(string(t)) {
		return noSuch("token")
	}
	res, err := d.write.NewUpdate().Model((*tokenRow)(nil)).
		Set("revoked_at = CASE WHEN revoked_at = 0 THEN ? ELSE revoked_at END", millis(at)).Where("id = ?", string(t)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return noSuch("token")
	}
	return nil
}

func (d accessStore) PlaybackID(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	var row playbackRow
	if err := d.first(ctx, d.read.NewSelect().Model(&row).Where("id = ?", string(p)), string(p), "playback ID"); err != nil {
		return playbackid.Object{}, err
	}
	return playbackid.Object{
		ID: row.value(), Environment: id.Environment(row.Environment), Kind: playbackid.ObjectKind(row.ObjectKind), ObjectID: row.ObjectID,
	}, nil
}
