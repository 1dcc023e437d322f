package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/vocabulary"
	"millrace/internal/id"
)

const vocabularyNoun = "transcription vocabulary"

type vocabularyRow struct {
	bun.BaseModel `bun:"table:transcription_vocabularies,alias:tv"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Name          string `bun:"name"`
	Phrases       string `bun:"phrases"`
	Passthrough   string `bun:"passthrough"`
	CreatedAt     int64  `bun:"created_at"`
	UpdatedAt     int64  `bun:"updated_at"`
}

func (vr vocabularyRow) value() (vocabulary.Vocabulary, error) {
	v := vocabulary.Vocabulary{
		ID:          id.TranscriptionVocabulary(vr.ID),
		Environment: id.Environment(vr.Environment),
		Name:        vr.Name,
		Passthrough: vr.Passthrough,
		CreatedAt:   moment(vr.CreatedAt),
		UpdatedAt:   moment(vr.UpdatedAt),
	}
	if err := read(vr.Phrases, &v.Phrases); err != nil {
		return v, fmt.Errorf("read transcription vocabulary %s: %w", vr.ID, err)
	}
	return v, nil
}

func vocabularyRowOf(v vocabulary.Vocabulary) (vocabularyRow, error) {
	phrases, err := document(v.Phrases)
	return vocabularyRow{
		ID:          string(v.ID),
		Environment: string(v.Environment),
		Name:        v.Name,
		Phrases:     phrases,
		Passthrough: v.Passthrough,
		CreatedAt:   millis(v.CreatedAt),
		UpdatedAt:   millis(v.UpdatedAt),
	}, err
}

type vocabularyStore struct{ *DB }

// Vocabularies is the store of transcription vocabularies.
func (d *DB) Vocabularies() vocabulary.Store { return vocabularyStore{d} }

// Insert implements vocabulary.Store. Of several that come at the same time, each counts the others.
func (vs vocabularyStore) Insert(ctx context.Context, v vocabulary.Vocabulary, most int) error {
	row, err := vocabularyRowOf(v)
	if err != nil {
		return err
	}
	return vs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(v.Environment, vocabularyNoun, row.ID)
		if err := t.checkLimit(ctx, (*vocabularyRow)(nil), row.Environment, vocabularyNoun, most); err != nil {
			return err
		}
		if _, err := t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, vocabularyNoun)
		} else if err != nil {
			return fmt.Errorf("insert transcription vocabulary: %w", err)
		}
		return nil
	})
}

// Get implements vocabulary.Store.
func (vs vocabularyStore) Get(
	ctx context.Context, env id.Environment, v id.TranscriptionVocabulary,
) (vocabulary.Vocabulary, error) {
	return vs.one(ctx, vs.read.NewSelect(), env, v)
}

func (vs vocabularyStore) one(
	ctx context.Context, q *bun.SelectQuery, env id.Environment, v id.TranscriptionVocabulary,
) (vocabulary.Vocabulary, error) {
	if !possible(string(v)) {
		return vocabulary.Vocabulary{}, noSuch(vocabularyNoun)
	}
	var row vocabularyRow
	err := q.Model(&row).Where("id = ?", string(v)).Where("environment_id = ?", string(env)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return vocabulary.Vocabulary{}, noSuch(vocabularyNoun)
	}
	if err != nil {
		return vocabulary.Vocabulary{}, fmt.Errorf("read transcription vocabulary: %w", err)
	}
	return row.value()
}

// List implements vocabulary.Store.
func (vs vocabularyStore) List(
	ctx context.Context, env id.Environment, page, limit int,
) ([]vocabulary.Vocabulary, error) {
	var rows []vocabularyRow
	err := vs.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).
		Order("created_at DESC", "id DESC").Offset(int64(page-1) * int64(limit)).Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read transcription vocabularies: %w", err)
	}
	return values(ctx, vs.DB, rows, vocabularyRow.value), nil
}

// Save implements vocabulary.Store.
func (vs vocabularyStore) Save(
	ctx context.Context, env id.Environment, v id.TranscriptionVocabulary, change func(*vocabulary.Vocabulary),
) (out vocabulary.Vocabulary, err error) {
	err = vs.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, vocabularyNoun, string(v))
		if out, err = vs.one(ctx, t.NewSelect(), env, v); err != nil {
			return err
		}
		change(&out)
		row, bad := vocabularyRowOf(out)
		if bad != nil {
			return bad
		}
		res, bad := t.NewUpdate().Model(&row).WherePK().Where("environment_id = ?", string(env)).Exec(ctx)
		if bad != nil {
			return fmt.Errorf("update transcription vocabulary: %w", bad)
		}
		if n, bad := res.RowsAffected(); bad == nil && n == 0 {
			return noSuch(vocabularyNoun) // deleted meanwhile
		}
		return nil
	})
	return out, err
}

// Delete implements vocabulary.Store.
func (vs vocabularyStore) Delete(ctx context.Context, env id.Environment, v id.TranscriptionVocabulary) error {
	return vs.remove(ctx, (*vocabularyRow)(nil), env, string(v), vocabularyNoun)
}
