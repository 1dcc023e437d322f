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

func (e environmentRow) value() access.Environment {
	return access.Environment{
		ID:             id.Environment(e.ID),
		Name:           e.Name,
		Kind:           e.Kind,
		CreatedAt:      moment(e.CreatedAt),
		VideoQuality:   e.VideoQuality,
		LiveRungs:      e.LiveRungs,
		Captions:       e.Captions,
		FrameAncestors: e.Ancestors,
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

func (tr tokenRow) value() (access.Token, error) {
	t := access.Token{
		ID:          id.Token(tr.ID),
		Environment: id.Environment(tr.Environment),
		Name:        tr.Name,
		Hash:        tr.Hash,
		Digest:      tr.Digest,
		CreatedAt:   moment(tr.CreatedAt),
		ExpiresAt:   moment(tr.ExpiresAt),
		LastUsedAt:  moment(tr.LastUsedAt),
		RevokedAt:   moment(tr.RevokedAt),
	}
	if err := read(tr.Permissions, &t.Permissions); err != nil {
		t.Permissions = nil
		return t, fmt.Errorf("read token %s: %w", tr.ID, err)
	}
	return t, nil
}

func (a accessStore) Environment(ctx context.Context, e id.Environment) (access.Environment, error) {
	var row environmentRow
	err := a.first(ctx, a.read.NewSelect().Model(&row).Where("id = ?", string(e)), string(e), environmentNoun)
	return row.value(), err
}

// first reads one row; key is what a caller named it by.
func (a accessStore) first(ctx context.Context, q *bun.SelectQuery, key, what string) error {
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

func (a accessStore) SetName(ctx context.Context, e id.Environment, name string) error {
	return a.change(ctx, e, "name = ?", name)
}

func (a accessStore) SetVideoQuality(ctx context.Context, e id.Environment, quality string) error {
	return a.change(ctx, e, "video_quality = ?", quality)
}

func (a accessStore) SetCaptions(ctx context.Context, e id.Environment, rules string) error {
	return a.change(ctx, e, "captions = ?", rules)
}

func (a accessStore) SetLiveRungs(ctx context.Context, e id.Environment, policy string) error {
	return a.change(ctx, e, "live_rungs = ?", policy)
}

func (a accessStore) SetFrameAncestors(ctx context.Context, e id.Environment, sources string) error {
	return a.change(ctx, e, "frame_ancestors = ?", sources)
}

// change sets a column of an environment.
func (a accessStore) change(ctx context.Context, e id.Environment, set, value string) error {
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
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
func (a accessStore) EnsureDefault(ctx context.Context, fresh access.Environment) (access.Environment, error) {
	var row environmentRow
	if err := a.read.NewSelect().Model(&row).Where("is_default").Scan(ctx); err == nil {
		return row.value(), nil
	} else if !errors.Is(err, sql.ErrNoRows) {
		return access.Environment{}, fmt.Errorf("read default environment: %w", err)
	}
	row = environmentRowOf(fresh)
	row.Default = true
	err := a.engine.begin(audit.Without(ctx), func(ctx context.Context, t tx) error {
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
		ID:           string(e.ID),
		Name:         e.Name,
		Kind:         e.Kind,
		CreatedAt:    millis(e.CreatedAt),
		VideoQuality: e.VideoQuality,
		LiveRungs:    e.LiveRungs,
		Captions:     e.Captions,
		Ancestors:    e.FrameAncestors,
	}
}

// InsertEnvironment implements access.Store. Of two that come at the same moment on PostgreSQL both may find room for
// one.
func (a accessStore) InsertEnvironment(ctx context.Context, e access.Environment, most int) error {
	row := environmentRowOf(e)
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
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

func (a accessStore) Environments(ctx context.Context, page, limit int) ([]access.Environment, error) {
	var rows []environmentRow
	err := a.read.NewSelect().Model(&rows).Order("created_at", "id").Offset(int64(page-1) * int64(limit)).
		Limit(int64(limit)).Scan(ctx)
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
func (a accessStore) InsertToken(ctx context.Context, t access.Token, most int) error {
	permissions, err := document(t.Permissions)
	if err != nil {
		return err
	}
	row := tokenRow{
		ID:          string(t.ID),
		Environment: string(t.Environment),
		Name:        t.Name,
		Permissions: permissions,
		Hash:        t.Hash,
		Digest:      t.Digest,
		CreatedAt:   millis(t.CreatedAt),
		ExpiresAt:   millis(t.ExpiresAt),
		LastUsedAt:  millis(t.LastUsedAt),
		RevokedAt:   millis(t.RevokedAt),
	}
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(id.Environment(row.Environment), tokenNoun, row.ID)
		if err := t.holdEnvironment(ctx, row.Environment); err != nil {
			return err
		}
		n, err := t.NewSelect().Model((*tokenRow)(nil)).Where("environment_id = ?", row.Environment).
			Where("revoked_at = 0").Count(ctx)
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

func (a accessStore) Token(ctx context.Context, t id.Token) (access.Token, error) {
	var row tokenRow
	if err := a.first(ctx, a.read.NewSelect().Model(&row).Where("id = ?", string(t)), string(t),
		tokenNoun); err != nil {
		return access.Token{}, err
	}
	return row.value()
}

func (a accessStore) Tokens(ctx context.Context) ([]access.Token, error) {
	return a.tokens(ctx, func(q *bun.SelectQuery) *bun.SelectQuery { return q.Order("created_at", "id") })
}

func (a accessStore) TokensOf(ctx context.Context, e id.Environment, page, limit int) ([]access.Token, error) {
	return a.tokens(ctx, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("environment_id = ?", string(e)).Where("revoked_at = 0").Order("created_at DESC", "id DESC").
			Offset(int64(page-1) * int64(limit)).Limit(int64(limit))
	})
}

func (a accessStore) tokens(
	ctx context.Context, which func(*bun.SelectQuery) *bun.SelectQuery,
) ([]access.Token, error) {
	var rows []tokenRow
	if err := which(a.read.NewSelect().Model(&rows)).Scan(ctx); err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	return values(ctx, a.DB, rows, tokenRow.value), nil
}

func (a accessStore) RevokeToken(ctx context.Context, e id.Environment, token id.Token, at time.Time) error {
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
		var row tokenRow
		q := t.NewSelect().Model(&row).Where("id = ?", string(token))
		if e != "" {
			q = q.Where("environment_id = ?", string(e))
		}
		if err := a.first(ctx, q, string(token), tokenNoun); err != nil {
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

func (a accessStore) TokensUsed(ctx context.Context, used map[id.Token]time.Time) error {
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
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

func (a accessStore) SetTokenDigests(ctx context.Context, digests map[id.Token][]byte) error {
	return a.engine.begin(ctx, func(ctx context.Context, t tx) error {
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

func (a accessStore) PlaybackID(ctx context.Context, p id.Playback) (playbackid.Object, error) {
	var row playbackRow
	if err := a.first(ctx, a.read.NewSelect().Model(&row).Where("id = ?", string(p)), string(p),
		"playback ID"); err != nil {
		return playbackid.Object{}, err
	}
	return playbackid.Object{
		ID:          row.value(),
		Environment: id.Environment(row.Environment),
		Kind:        playbackid.ObjectKind(row.ObjectKind),
		ObjectID:    row.ObjectID,
	}, nil
}
