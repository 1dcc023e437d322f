package backups

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"millrace/internal/backup"
	"millrace/internal/config"
	"millrace/internal/storage/blob"
)

// upgradeKeep is how many backups before upgrades stay.
const upgradeKeep = 3

// UpgradePlace is the folder of the backups that are made before the schema is migrated.
func UpgradePlace(cfg config.Config) string { return filepath.Join(cfg.DataDir, "before-upgrade") }

// BeforeUpgrade makes a backup of the rows of the configured database, without media, which an upgrade does not change.
func BeforeUpgrade(
	ctx context.Context, cfg config.Config, version string, now func() time.Time,
) (made backup.Made, err error) {
	target, err := blob.Open(ctx, blob.Options{Dir: UpgradePlace(cfg)})
	if err != nil {
		return made, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return backup.Make(ctx, backup.Options{
		Target: target, Database: rowsOf(cfg.Database.Server()), Version: version, Keep: upgradeKeep, Now: now,
	})
}
