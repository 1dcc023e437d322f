package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/asset"
	"millrace/internal/control/assetopt"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
)

const uploadNoun = "upload"

type uploadRow struct {
	bun.BaseModel `bun:"table:uploads,alias:up"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	SecretHash    string `bun:"secret_hash"`
	Secret        string `bun:"secret"` // encrypted
	Status        string `bun:"status"`
	Media         string `bun:"media_id"`
	Asset         string `bun:"asset_id"`
	Size          int64  `bun:"size"`
	Whole         bool   `bun:"whole"`
	Metadata      string `bun:"metadata"`
	Document      string `bun:"document"` // uploadDocument
	CreatedAt     int64  `bun:"created_at"`
	UpdatedAt     int64  `bun:"updated_at"`
	Revision      int64  `bun:"revision"`
	DueAt         int64  `bun:"due_at"`      // 0: it is cleared
	UnneededAt    int64  `bun:"unneeded_at"` // 0: it is needed
}

// uploadDocument is what is read and written as a whole and never searched.
type uploadDocument struct {
	Timeout    int              `json:"timeout"` // seconds
	CORSOrigin string           `json:"cors_origin"`
	Options    assetopt.Options `json:"new_asset_settings"`
	Test       bool             `json:"test,omitempty"`
	Error      *upload.Error    `json:"error,omitempty"`
}

// uploadRowOf is the row without the secret, which stays as it was inserted.
func uploadRowOf(u upload.Upload) (uploadRow, error) {
	doc, err := document(uploadDocument{
		Timeout:    u.Timeout,
		CORSOrigin: u.CORSOrigin,
		Options:    u.Options,
		Test:       u.Test,
		Error:      u.Error,
	})
	return uploadRow{
		ID:          string(u.ID),
		Environment: string(u.Environment),
		Status:      string(u.Status),
		Media:       string(u.Media),
		Asset:       string(u.Asset),
		Size:        u.Size,
		Whole:       u.Whole,
		Metadata:    u.Metadata,
		Document:    doc,
		CreatedAt:   millis(u.CreatedAt),
		UpdatedAt:   millis(u.UpdatedAt),
		Revision:    u.Revision,
		DueAt:       millis(u.Due()),
		UnneededAt:  millis(u.Unneeded),
	}, err
}

func (us uploadStore) value(r uploadRow) (upload.Upload, error) {
	var doc uploadDocument
	secret, err := openText(us.vault, r.Secret, uploadPlace(r.ID))
	if err = errors.Join(err, read(r.Document, &doc)); err != nil {
		err = fmt.Errorf("read upload %s: %w", r.ID, err)
	}
	return upload.Upload{
		ID:          id.Upload(r.ID),
		Environment: id.Environment(r.Environment),
		Status:      upload.Status(r.Status),
		Timeout:     doc.Timeout,
		CORSOrigin:  doc.CORSOrigin,
		Options:     doc.Options,
		Test:        doc.Test,
		Asset:       id.Asset(r.Asset),
		Error:       doc.Error,
		Secret:      secret,
		Media:       id.Media(r.Media),
		Length:      upload.Length{Size: r.Size, Whole: r.Whole, Metadata: r.Metadata},
		Cleared:     r.DueAt == 0,
		Unneeded:    moment(r.UnneededAt),
		CreatedAt:   moment(r.CreatedAt),
		UpdatedAt:   moment(r.UpdatedAt),
		Revision:    r.Revision,
	}, err
}

type uploadStore struct{ *DB }

func (us uploadStore) Insert(ctx context.Context, c upload.Change) error {
	row, err := uploadRowOf(c.Upload)
	if err != nil {
		return err
	}
	row.SecretHash, row.Secret = uploadHash(us.vault, c.Upload.Secret),
		sealText(us.vault, c.Upload.Secret, uploadPlace(row.ID))
	return us.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.insert(ctx, &row); isUnique(err) {
			return exists(err, uploadNoun)
		} else if err != nil {
			return fmt.Errorf("insert upload: %w", err)
		}
		return t.tell(ctx, c.Events, c.Jobs)
	})
}

func (us uploadStore) Save(ctx context.Context, c upload.Change) error {
	return us.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.saveUpload(ctx, c); err != nil {
			return err
		}
		if err := t.tell(ctx, c.Events, c.Jobs); err != nil {
			return err
		}
		return endUpload(ctx, t, c.Upload)
	})
}

// endUpload ends the numbers of an upload's events once it does not wait any more. That no asset could be made of its
// file is told long before the events in front of that are removed.
func endUpload(ctx context.Context, t tx, u upload.Upload) error {
	if u.Status == upload.Waiting {
		return nil
	}
	return endNumbers(ctx, t, string(u.ID))
}

// saveUpload writes the row alone, but for what Declare does.
func (t tx) saveUpload(ctx context.Context, c upload.Change) error {
	row, err := uploadRowOf(c.Upload)
	if err != nil {
		return err
	}
	row.Revision++
	res, err := t.NewUpdate().Model(&row).ExcludeColumn("secret_hash", "secret", "size", "whole", "metadata").WherePK().
		Where("revision = ?", c.Upload.Revision).Where("status = ?", string(c.From)).Exec(ctx)
	return t.touched(ctx, res, err, (*uploadRow)(nil), row.ID, uploadNoun)
}

// CompleteUpload makes the asset of an upload whose file is there: both changes or neither.
func (d *DB) CompleteUpload(ctx context.Context, u upload.Change, a asset.Change) error {
	row, err := assetRowOf(a.Asset)
	if err != nil {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if err := t.saveUpload(ctx, u); err != nil {
			return err
		}
		a.Events, a.Jobs = append(u.Events, a.Events...), append(u.Jobs, a.Jobs...) // in this order
		if _, err := t.NewInsert().Model(&row).Exec(ctx); err != nil {
			return fmt.Errorf("insert asset of upload: %w", err)
		}
		if err := t.putAsset(ctx, a); err != nil {
			return err
		}
		return endUpload(ctx, t, u.Upload)
	})
}

func (us uploadStore) Get(ctx context.Context, env id.Environment, u id.Upload) (upload.Upload, error) {
	return us.one(ctx, string(u), func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("id = ?", string(u)).Where("environment_id = ?", string(env))
	})
}

func (us uploadStore) Find(ctx context.Context, u id.Upload) (upload.Upload, error) {
	return us.one(ctx, string(u), func(q *bun.SelectQuery) *bun.SelectQuery { return q.Where("id = ?", string(u)) })
}

func (us uploadStore) FindSecret(ctx context.Context, secret string) (upload.Upload, error) {
	return us.one(ctx, secret, func(q *bun.SelectQuery) *bun.SelectQuery {
		return q.Where("secret_hash = ?", uploadHash(us.vault, secret))
	})
}

func (us uploadStore) one(
	ctx context.Context, key string, where func(*bun.SelectQuery) *bun.SelectQuery,
) (upload.Upload, error) {
	if key == "" || !possible(key) {
		return upload.Upload{}, noSuch(uploadNoun)
	}
	var row uploadRow
	err := where(us.read.NewSelect().Model(&row)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return upload.Upload{}, noSuch(uploadNoun)
	}
	if err != nil {
		return upload.Upload{}, fmt.Errorf("read upload: %w", err)
	}
	return us.value(row)
}

func (us uploadStore) List(ctx context.Context, env id.Environment, q upload.ListQuery) ([]upload.Upload, error) {
	var rows []uploadRow
	err := us.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).
		Order("created_at DESC", "id DESC").Offset(int64(q.Page-1) * int64(q.Limit)).Limit(int64(q.Limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read uploads: %w", err)
	}
	return values(ctx, us.DB, rows, us.value), nil
}

func (us uploadStore) Declare(ctx context.Context, u id.Upload, length upload.Length, quota int64) error {
	return us.engine.begin(ctx, func(ctx context.Context, t tx) error {
		var row uploadRow
		err := t.NewSelect().Model(&row).Where("id = ?", string(u)).Scan(ctx)
		if errors.Is(err, sql.ErrNoRows) {
			return noSuch(uploadNoun)
		}
		if err == nil && row.Status != string(upload.Waiting) {
			return moved(uploadNoun)
		}
		if err == nil && quota > 0 && length.Size > row.Size {
			err = t.withinQuota(ctx, row, length.Size, quota)
		}
		if err == nil {
			_, err = t.NewUpdate().Model((*uploadRow)(nil)).Set("size = ?", length.Size).Set("whole = ?", length.Whole).
				Set("metadata = ?", length.Metadata).Where("id = ?", string(u)).Exec(ctx)
		}
		if fault.Is(err, fault.Internal) {
			return fmt.Errorf("declare length of upload: %w", err)
		}
		return err
	})
}

func (us uploadStore) Expected(ctx context.Context) ([]upload.Expected, error) {
	var rows []uploadRow
	err := us.read.NewSelect().Model(&rows).Column("id", "environment_id", "media_id", "size").
		Where("status = 'waiting'").Where("size > 0").Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read uploads under way: %w", err)
	}
	all := make([]upload.Expected, 0, len(rows))
	for _, r := range rows {
		all = append(all, upload.Expected{
			ID: id.Upload(r.ID), Environment: id.Environment(r.Environment), Media: id.Media(r.Media), Size: r.Size,
		})
	}
	return all, nil
}

// withinQuota adds up what waits. Two that do so at the same moment on PostgreSQL may both find room for one of them.
func (t tx) withinQuota(ctx context.Context, row uploadRow, size, quota int64) error {
	if size > quota {
		return fault.New(fault.TooLarge,
			"the uploads of this environment that are under way may have %d bytes together", quota)
	}
	var others int64
	err := t.NewSelect().Model((*uploadRow)(nil)).ColumnExpr("COALESCE(SUM(size), 0)").
		Where("environment_id = ?", row.Environment).
		Where("status = 'waiting'").Where("id <> ?", row.ID).Scan(ctx, &others)
	if err == nil && others+size > quota {
		return fault.Wrap(fault.Unavailable, upload.ErrQuota,
			"the uploads of this environment that are under way may have "+
				"%d bytes together; the others have %d of them: finish or cancel some", quota, others)
	}
	return err
}
