package cli

import (
	"context"
	"errors"
	"fmt"

	"millrace/internal/app/backups"
	"millrace/internal/backup"
)

// migrate copies a service to another database and storage.
type migrate struct {
	quiet

	to, storage string
}

func (m *migrate) flags(f *flags) {
	add(f, &m.to, anything, "to", "url", "", "URL of the new database, as database-url is written. Flags are visible "+
		"in the process list: leave the password of PostgreSQL to PGPASSWORD or ~/.pgpass.")
	add(f, &m.storage, anything, "storage", "url", "", "URL of the new storage, as storage-url is written; "+
		"credentials for S3 come from AWS_* in the environment.")
	m.quiet.flags(f)
}

func (m *migrate) run(ctx context.Context, r *request) error {
	if m.to == "" || m.storage == "" {
		return errors.New("migrate needs --to and --storage, the new database and the new storage")
	}
	o, show := m.options(r)
	o.To, o.ToStorage = m.to, m.storage
	done, err := backups.Migrate(ctx, o)
	show.end()
	if errors.Is(err, backup.ErrMediaOnly) {
		fmt.Fprintf(r.err, "millrace: the media is copied, %d objects of %s, and the service runs still: stop it "+
			"(every node of it) and give the same command again, which copies what has come meanwhile "+
			"and then the database\n",
			done.Objects, bytesText(float64(done.Bytes)))
		return errFound
	}
	if err != nil {
		return stopped(ctx, r, err)
	}
	report(r.err, done.Lacks)
	if err = r.say("Copied and compared: %d rows of %d tables, and %d objects of %s; %d objects of %s were sent "+
		"by this run.", total(done.Counts), len(done.Counts), done.Objects, bytesText(float64(done.Bytes)), done.Sent,
		bytesText(float64(done.SentBytes))); err != nil {
		return err
	}
	if done.Lacks.Count > 0 {
		fmt.Fprintf(r.err, "millrace: the old storage has not got %d objects that the database names\n",
			done.Lacks.Count)
	}
	err = r.say("Next:\n  1. Set database-url and storage-url to the new ones. The master key, with the fingerprint "+
		"%s, stays the same.\n  2. Run millrace doctor, and start the service.\n  3. Remove the old database and "+
		"storage when you no longer want to go back.", done.MasterKey)
	if err == nil && done.Lacks.Count > 0 {
		err = errFound
	}
	return err
}
