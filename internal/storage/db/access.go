package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"millrace/internal/control/access"
	"millrace/internal/control/audit"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const (
	environmentNoun = "environment"
	tokenNoun       = "access token"
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
	Captions      string `bun:"captions"`
	Ancestors     string `bun:"frame_ancestors"`
}

func (r environmentRow) value() access.Environment {
	return access.Environment{
		ID: id.Environment(r.ID), Name: r.Name, Kind: r.Kind, CreatedAt: moment(r.CreatedAt), VideoQuality: r.VideoQuality, LiveRungs: r.LiveRungs, Captions: r.Captions,
		FrameAncestors: r.Ancestors,
	}
}

type tokenRow struct {
	bun.BaseModel `bun:"table:tokens,alias:t"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Name          string `bun:"name"`
	Permissions   string `bun:"permissions"`
	Hash          []byte `bun:"hash"`
	Digest        []byte `bun:"digest"` // nil: none
	CreatedAt     int64  `bun:"created_at"`
	ExpiresAt     int64  `bun:"expires_at"`
	LastUsedAt    int64  `bun:"last_used_at"`
	RevokedAt     int64  `bun:"revoked_at"`
}

func (r tokenRow) value() (access.Token, error) {
	t := access.Token{
		ID: id.Token(r.ID), Environment: id.Environment(r.Environment), Name: r.Name, Hash: r.Hash, Digest: r.Digest,
		CreatedAt: moment(r.CreatedAt), ExpiresAt: moment(r.ExpiresAt), LastUsedAt: moment(r.LastUsedAt), RevokedAt: moment(r.RevokedAt),
	}
	if err := read(r.Permissions, &t.Permissions); err != nil {
		t.Permissions = nil
		return t, fmt.Errorf("read token %s: %w", r.ID, err)
	}
	return t, nil
}

func (d accessStore) Environment(ctx context.Context, e id.Environment) (access.Environment, error) {
	var row environmentRow
	err := d.first(ctx, d.read.NewSelect().Model(&row).Where("id = ?", string(e)), string(e), environmentNoun)
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

func (d accessStore) SetName(ctx context.Context, e id.Environment, name string) error {
	return d.change(ctx, e, "name = ?", name)
}

func (d accessStore) SetVideoQuality(ctx context.Context, e id.Environment, quality string) error {
	return d.change(ctx, e, "video_quality = ?", quality)
}

func (d accessStore) SetCaptions(ctx context.Context, e id.Environment, rules string) error {
	return d.change(ctx, e, "captions = ?", rules)
}

func (d accessStore) SetLiveRungs(ctx context.Context, e id.Environment, policy string) error {
	return d.change(ctx, e, "live_rungs = ?", policy)
}

func (d accessStore) SetFrameAncestors(ctx context.Context, e id.Environment, sources string) error {
	return d.change(ctx, e, "frame_ancestors = ?", sources)
}

// change sets a column of an environment.
func (d accessStore) change(ctx context.Context, e id.Environment, set, value string) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(e, environmentNoun, string(e))
		res, err := t.NewUpdate().Model((*environmentRow)(nil)).Set(set, value).Where("id = ?", string(e)).Exec(ctx)
		return found(res, err, "update", environmentNoun)
	})
}

// found checks that a statement has changed a row.
func found(res sql.Result, err error, verb, noun string) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, noun, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, noun, err)
	}
	if n == 0 {
		return noSuch(noun)
	}
	return nil
}

// EnsureDefault implements access.Store. That the environment is made is not somebody's change: it is always there.
func (d accessStore) EnsureDefault(ctx context.Context, fresh access.Environment) (access.Environment, error) {
	var row environmentRow
	if err := d.read.NewSelect().Model(&row).Where("is_default").Scan(ctx); err == nil {
		return row.value(), nil
	} else if !errors.Is(err, sql.ErrNoRows) {
		return access.Environment{}, fmt.Errorf("read default environment: %w", err)
	}
	row = environmentRowOf(fresh)
	row.Default = true
	err := d.engine.begin(audit.Without(ctx), func(ctx context.Context, t tx) error {
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

func environmentRowOf(e access.Environment) environmentRow {
	return environmentRow{
		ID: string(e.ID), Name: e.Name, Kind: e.Kind, CreatedAt: millis(e.CreatedAt), VideoQuality: e.VideoQuality, LiveRungs: e.LiveRungs, Captions: e.Captions,
		Ancestors: e.FrameAncestors,
	}
}

// InsertEnvironment implements access.Store. Of two that come at the same moment on PostgreSQL both may find room for
// one.
func (d accessStore) InsertEnvironment(ctx context.Context, e access.Environment, most int) error {
	row := environmentRowOf(e)
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about("", environmentNoun, row.ID)
		n, err := t.NewSelect().Model((*environmentRow)(nil)).Count(ctx)
		if err != nil {
			return fmt.Errorf("count environments: %w", err)
		}
		if n >= int64(most) {
			return fault.New(fault.Conflict, "there may be at most %d environments", most)
		}
		if _, err = t.NewInsert().Model(&row).Exec(ctx); err != nil {
			return fmt.Errorf("insert environment: %w", err)
		}
		return nil
	})
}

func (d accessStore) Environments(ctx context.Context, page, limit int) ([]access.Environment, error) {
	var rows []environmentRow
	err := d.read.NewSelect().Model(&rows).Order("created_at", "id").Offset(int64(page-1) * int64(limit)).Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read environments: %w", err)
	}
	out := make([]access.Environment, 0, len(rows))
	for _, r := range rows {
		out = append(out, r.value())
	}
	return out, nil
}

// InsertToken implements access.Store. Of several that come at the same time, each counts the others.
func (d accessStore) InsertToken(ctx context.Context, t access.Token, most int) error {
	permissions, err := document(t.Permissions)
	if err != nil {
		return err
	}
	row := tokenRow{
		ID: string(t.ID), Environment: string(t.Environment), Name: t.Name, Permissions: permissions, Hash: t.Hash,
		Digest:    t.Digest,
		CreatedAt: millis(t.CreatedAt), ExpiresAt: millis(t.ExpiresAt), LastUsedAt: millis(t.LastUsedAt), RevokedAt: millis(t.RevokedAt),
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(id.Environment(row.Environment), tokenNoun, row.ID)
		if err := t.holdEnvironment(ctx, row.Environment); err != nil {
			return err
		}
		n, err := t.NewSelect().Model((*tokenRow)(nil)).Where("environment_id = ?", row.Environment).Where("revoked_at = 0").Count(ctx)
		if err != nil {
			return fmt.Errorf("count tokens: %w", err)
		}
		if n >= int64(most) {
			return tooMany(tokenNoun, most)
		}
		if _, err := t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, tokenNoun)
		} else if err != nil {
			return fmt.Errorf("insert token: %w", err)
		}
		return nil
	})
}

func (d accessStore) Token(ctx context.Context, t id.Token) (access.Token, error) {
	var row tokenRow
	if err := d.first(ctx, d.read.NewSelect().Model(&row).Where("id = ?", string(t)), string(t), tokenNoun); err != nil {
		return access.Token{}, err
	}
	return row.value()
}

func (d accessStore) Tokens(ctx context.Context) ([]access.Token, error) {
	return d.tokens(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("created_at", "id") })
}

func (d accessStore) TokensOf(ctx context.Context, e id.Environment, page, limit int) ([]access.Token, error) {
	return d.tokens(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("environment_id = ?", string(e)).Where("revoked_at = 0").Order("created_at DESC", "id DESC").
			Offset(int64(page-1) * int64(limit)).Limit(int64(limit))
	})
}

func (d accessStore) tokens(ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery) ([]access.Token, error) {
	var rows []tokenRow
	if err := which(d.read.NewSelect().Model(&rows)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return values(ctx, d.DB, rows, tokenRow.value), nil
}

func (d accessStore) RevokeToken(ctx context.Context, e id.Environment, token id.Token, at time.Time) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		var row tokenRow
		q := t.NewSelect().Model(&row).Where("id = ?", string(token))
		if e != "" {
			q = q.Where("environment_id = ?", string(e))
		}
		if err := d.first(ctx, q, string(token), tokenNoun); err != nil {
			return err
		}
		t.about(id.Environment(row.Environment), tokenNoun, row.ID)
		_, err := t.NewUpdate().Model((*tokenRow)(nil)).Set("revoked_at = ?", millis(at)).
			Where("id = ?", string(token)).Where("revoked_at = 0").Exec(ctx)
		if err != nil {
			return fmt.Errorf("revoke access token: %w", err)
		}
		return nil
	})
}

func (d accessStore) TokensUsed(ctx context.Context, used map[id.Token]time.Time) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		for _, token := range slices.Sorted(maps.Keys(used)) { // in one order, so that no two nodes wait for each other
			at := millis(used[token])
			_, err := t.NewUpdate().Model((*tokenRow)(nil)).Set("last_used_at = ?", at).
				Where("id = ?", string(token)).Where("last_used_at < ?", at).Exec(ctx)
			if err != nil {
				return fmt.Errorf("note use of token: %w", err)
			}
		}
		return nil
	})
}

func (d accessStore) SetTokenDigests(ctx context.Context, digests map[id.Token][]byte) error {
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		for _, token := range slices.Sorted(maps.Keys(digests)) { // as in TokensUsed
			_, err := t.NewUpdate().Model((*tokenRow)(nil)).Set("digest = ?", digests[token]).
				Where("id = ?", string(token)).Exec(ctx)
			if err != nil {
				return fmt.Errorf("note digest of token: %w", err)
			}
		}
		return nil
	})
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
