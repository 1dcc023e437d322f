package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"millrace/internal/control/drm"
	"millrace/internal/control/playbackid"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
)

const drmNoun = "DRM configuration"

type drmRow struct {
	bun.BaseModel `bun:"table:drm_configurations,alias:dc"`
	ID            string `bun:"id,pk"`
	Environment   string `bun:"environment_id"`
	Name          string `bun:"name"`
	Settings      []byte `bun:"settings"`
	CreatedAt     int64  `bun:"created_at"`
}

func (d drmRow) value(v *masterkey.Vault) (drm.Configuration, error) {
	c := drm.Configuration{
		ID:          id.DRMConfiguration(d.ID),
		Environment: id.Environment(d.Environment),
		Name:        d.Name,
		CreatedAt:   moment(d.CreatedAt),
	}
	if err := openDocument(v, d.Settings, "drm_configurations/"+d.ID, &c.Settings); err != nil {
		return c, fmt.Errorf("read DRM configuration %s: %w", d.ID, err)
	}
	return c, nil
}

type drmStore struct{ *DB }

// DRM is the store of DRM configurations and content keys.
func (d *DB) DRM() drm.Store { return drmStore{d} }

// InsertConfiguration implements drm.Store.
func (d drmStore) InsertConfiguration(ctx context.Context, c drm.Configuration, most int) error {
	row := drmRow{ID: string(c.ID), Environment: string(c.Environment), Name: c.Name, CreatedAt: millis(c.CreatedAt)}
	var err error
	if row.Settings, err = sealDocument(d.vault, c.Settings, "drm_configurations/"+row.ID); err != nil {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(c.Environment, drmNoun, row.ID)
		if err := t.checkLimit(ctx, (*drmRow)(nil), row.Environment, drmNoun, most); err != nil {
			return err
		}
		if _, err := t.NewInsert().Model(&row).Exec(ctx); isUnique(err) {
			return exists(err, drmNoun)
		} else if err != nil {
			return fmt.Errorf("insert DRM configuration: %w", err)
		}
		return nil
	})
}

// Configuration implements drm.Store.
func (d drmStore) Configuration(ctx context.Context, c id.DRMConfiguration) (drm.Configuration, error) {
	if !possible(string(c)) {
		return drm.Configuration{}, noSuch(drmNoun)
	}
	var row drmRow
	err := d.read.NewSelect().Model(&row).Where("id = ?", string(c)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return drm.Configuration{}, noSuch(drmNoun)
	}
	if err != nil {
		return drm.Configuration{}, fmt.Errorf("read DRM configuration: %w", err)
	}
	return row.value(d.vault)
}

// Configurations implements drm.Store.
func (d drmStore) Configurations(
	ctx context.Context, env id.Environment, page, limit int,
) ([]drm.Configuration, error) {
	var rows []drmRow
	err := d.read.NewSelect().Model(&rows).Where("environment_id = ?", string(env)).
		Order("created_at DESC", "id DESC").Offset(int64(page-1) * int64(limit)).Limit(int64(limit)).Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read DRM configurations: %w", err)
	}
	return values(ctx, d.DB, rows, func(r drmRow) (drm.Configuration, error) { return r.value(d.vault) }), nil
}

// SaveSettings implements drm.Store.
func (d drmStore) SaveSettings(ctx context.Context, env id.Environment, c id.DRMConfiguration, s drm.Settings) error {
	if !possible(string(c)) {
		return noSuch(drmNoun)
	}
	sealed, err := sealDocument(d.vault, s, "drm_configurations/"+string(c))
	if err != nil {
		return err
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, drmNoun, string(c))
		res, err := t.NewUpdate().Model((*drmRow)(nil)).Set("settings = ?", sealed).
			Where("id = ?", string(c)).Where("environment_id = ?", string(env)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("write DRM configuration: %w", err)
		}
		if n, failed := res.RowsAffected(); failed != nil || n == 0 {
			return errors.Join(noSuch(drmNoun), failed)
		}
		return nil
	})
}

// DeleteConfiguration implements drm.Store.
func (d drmStore) DeleteConfiguration(ctx context.Context, env id.Environment, c id.DRMConfiguration) error {
	if !possible(string(c)) {
		return noSuch(drmNoun)
	}
	return d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		t.about(env, drmNoun, string(c))
		used, err := t.NewSelect().Model((*playbackRow)(nil)).Where("environment_id = ?", string(env)).
			Where("drm_configuration_id = ?", string(c)).Exists(ctx)
		if err != nil {
			return fmt.Errorf("read playback IDs: %w", err)
		}
		if used {
			return fault.New(fault.Conflict, "the DRM configuration has playback IDs; delete those first")
		}
		res, err := t.NewDelete().Model((*drmRow)(nil)).Where("id = ?", string(c)).
			Where("environment_id = ?", string(env)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete DRM configuration: %w", err)
		}
		if n, failed := res.RowsAffected(); failed != nil || n == 0 {
			return errors.Join(noSuch(drmNoun), failed)
		}
		_, err = t.NewDelete().Model((*contentKeysRow)(nil)).Where("configuration_id = ?", string(c)).Exec(ctx)
		if err != nil {
			return fmt.Errorf("delete content keys: %w", err)
		}
		return nil
	})
}

type contentKeysRow struct {
	bun.BaseModel `bun:"table:content_keys,alias:ck"`
	Resource      string `bun:"resource_id,pk"`
	Configuration string `bun:"configuration_id,pk"`
	Environment   string `bun:"environment_id"`
	Kind          string `bun:"resource_kind"`
	Keys          []byte `bun:"keys"`
	Revision      int64  `bun:"revision"`
}

func (c contentKeysRow) place() string { return "content_keys/" + c.Resource + "/" + c.Configuration }

func (c contentKeysRow) value(v *masterkey.Vault) (drm.Stored, error) {
	s := drm.Stored{
		Environment:   id.Environment(c.Environment),
		Resource:      drm.Resource{Kind: playbackid.ObjectKind(c.Kind), ID: c.Resource},
		Configuration: id.DRMConfiguration(c.Configuration),
		Revision:      c.Revision,
	}
	return s, openDocument(v, c.Keys, c.place(), &s.StoredKeys)
}

// Keys implements drm.Store.
func (d drmStore) Keys(ctx context.Context, r drm.Resource, c id.DRMConfiguration) (drm.Stored, error) {
	return d.keys(ctx, d.read, r, c)
}

func (d drmStore) keys(ctx context.Context, q bun.IDB, r drm.Resource, c id.DRMConfiguration) (drm.Stored, error) {
	var row contentKeysRow
	err := q.NewSelect().Model(&row).Where("resource_id = ?", r.ID).Where("configuration_id = ?", string(c)).Scan(ctx)
	if errors.Is(err, sql.ErrNoRows) {
		return drm.Stored{}, noSuch("content key")
	}
	if err != nil {
		return drm.Stored{}, fmt.Errorf("read content keys: %w", err)
	}
	return row.value(d.vault)
}

// SaveKeys implements drm.Store. Of several nodes that come at the same time all get what the first one has written.
func (d drmStore) SaveKeys(ctx context.Context, s drm.Stored) (found drm.Stored, err error) {
	row := contentKeysRow{
		Resource:      s.Resource.ID,
		Configuration: string(s.Configuration),
		Environment:   string(s.Environment),
		Kind:          string(s.Resource.Kind),
		Revision:      s.Revision + 1,
	}
	if row.Keys, err = sealDocument(d.vault, s.StoredKeys, row.place()); err != nil {
		return found, err
	}
	err = d.engine.begin(ctx, func(ctx context.Context, t tx) error {
		if s.Revision == 0 {
			_, err = t.NewInsert().Model(&row).On("CONFLICT DO NOTHING").Exec(ctx)
		} else {
			_, err = t.NewUpdate().Model(&row).Column("keys", "revision").WherePK().Where("revision = ?", s.Revision).
				Exec(ctx)
		}
		if err != nil {
			return fmt.Errorf("write content keys: %w", err)
		}
		found, err = d.keys(ctx, t, s.Resource, s.Configuration)
		return err
	})
	return found, err
}
