package cli

import (
	"context"
	"fmt"
	"io"

	"millrace/internal/config"
)

// MasterKey is what can be done with the master key of the configured database.
type MasterKey struct {
	// Fingerprints gives that of the database and that of the key in the settings.
	Fingerprints func(ctx context.Context, cfg config.Config) (database, own string, err error)
	// Rotate has the database know another key, that of a file, or a new one if the file is not there; "" stands for the file of the old one.
	// It returns where the key is.
	Rotate func(ctx context.Context, cfg config.Config, file string) (path, fingerprint string, err error)
}

func fingerprints(ctx context.Context, cfg config.Config, stdout io.Writer, m MasterKey) (same bool, err error) {
	database, own, err := m.Fingerprints(ctx, cfg)
	if err != nil {
		return false, err
	}
	_, err = fmt.Fprintf(stdout, "database  %s\nsettings  %s\n", database, own)
	return database == own, err
}

func rotateMasterKey(ctx context.Context, cfg config.Config, file string, stdout io.Writer, m MasterKey) error {
	path, fingerprint, err := m.Rotate(ctx, cfg, file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "The master key is now the one in %s, with the fingerprint %s.\n"+
		"Back it up, and give it to every process on this database before that is started again.\n", path, fingerprint)
	return err
}
