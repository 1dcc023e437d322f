package cli

import (
	"context"

	"millrace/internal/app/backups"
	"millrace/internal/config"
)

// MasterKey is what can be done with the master key of the configured database.
type MasterKey struct {
	// Fingerprints gives that of the database and that of the key in the settings.
	Fingerprints func(ctx context.Context, cfg config.Config) (database, own string, err error)
	// Rotate has the database know another key, that of a file, or a new one if the file is not there; "" stands for
	// the file of the old one. It returns where the key is.
	Rotate func(ctx context.Context, cfg config.Config, file string) (path, fingerprint string, err error)
	// Keys are those of the settings.
	backups.Keys
}

func masterKeyCommands() []command {
	return []command{
		of("master-key fingerprint", "compare the master keys of the database and of this machine",
			"Shows the fingerprint of the master key that encrypts the database's secrets, and of the one in the "+
				"settings. Exit code 1 if they differ.", simply(masterKeyFingerprint)),
		of("master-key rotate", "rotate the master key",
			"Creates a new master key, or takes the one in --new-key-file, and makes it the only one that opens the "+
				"database. Encrypted data stays as it is. Running processes continue; give each of them the new key "+
				"before it is restarted.", &masterKeyRotate{}),
	}
}

func masterKeyFingerprint(ctx context.Context, r *request) error {
	database, own, err := r.MasterKey.Fingerprints(ctx, r.cfg)
	if err = r.done(err, "database  %s\nsettings  %s", database, own); err == nil && database != own {
		err = errFound
	}
	return err
}

// masterKeyRotate has the database know another master key.
type masterKeyRotate struct{ file string } // of the new key

func (m *masterKeyRotate) flags(f *flags) {
	add(f, &m.file, anything, "new-key-file", "path", "",
		"File with the new master key, which is made if it is not there. Not given: the old key's file gets the new "+
			"one.")
}

func (m *masterKeyRotate) run(ctx context.Context, r *request) error {
	path, fingerprint, err := r.MasterKey.Rotate(ctx, r.cfg, m.file)
	return r.done(err, "The master key is now the one in %s, with the fingerprint %s.\n"+
		"Back it up, and give it to every process on this database before that is started again.", path, fingerprint)
}
