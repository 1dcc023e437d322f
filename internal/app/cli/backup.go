package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"millrace/internal/app/backups"
	"millrace/internal/backup"
	"millrace/internal/config"
)

const (
	defaultKeep = 7
	maxKeep     = 10_000
)

func backupCommands() []command {
	const place = "PLACE is a folder, or s3://bucket/prefix with credentials and the parameters of storage-url."
	return []command{
		of("backup PLACE", "back up the database and the media while the service runs",
			"Adds a snapshot of the database to the backup, with all media that it names. Media that the backup has "+
				"already is not sent again. "+place+"\nThe service may run meanwhile. If the command is interrupted "+
				"in any "+
				"way, the backup keeps the snapshots that it had, and running it again goes on with what was copied. "+
				"The master key is not a part of it: back it up apart. Exit code 1 too if the service has lost media "+
				"that its database names; the backup is complete otherwise, and the list is printed.",
			&makeBackup{}),
		of("backup verify PLACE", "check a backup",
			"Reads a snapshot and all its media, compares the checksums, and lists what is missing or damaged. Exit "+
				"code "+
				"1 if anything is. Needs neither the database nor the master key. "+place, &verifyBackup{}),
		of("restore PLACE", "restore a backup into an empty service",
			"Puts a snapshot into the database and the storage that the settings name, on SQLite or PostgreSQL, in a "+
				"folder or a bucket, whatever it was made of. No service may run on them. Refuses a database or "+
				"storage "+
				"that is not empty, unless --overwrite is given. Media is checked before it is stored, and the rows "+
				"come "+
				"last, in one transaction. If the command is interrupted, running it again goes on. "+
				""+place, &restore{}),
		of("migrate", "copy the service to another database and storage",
			"Copies the database and the storage that the settings name to others, such as from SQLite and a folder "+
				"to PostgreSQL and S3, and changes nothing in the old ones. The new ones must be empty. Media is "+
				"copied while the service may run, and each object is read again and compared. Then the command asks "+
				"you to stop the service; given again, it copies what has come meanwhile and the rows, in one "+
				"transaction, and compares them. If it is interrupted in any way, running it again goes on.",
			&migrate{}),
	}
}

// BeforeMigration backs the rows of the configured database up, and is called before its schema is migrated.
func BeforeMigration(cfg config.Config, log *slog.Logger) func(ctx context.Context, from, to int64) error {
	return func(ctx context.Context, from, to int64) error {
		made, err := backups.BeforeUpgrade(ctx, cfg, Version(), time.Now)
		if err != nil {
			return fmt.Errorf("the schema of the database is not migrated from version %d to %d, as the backup before "+
				"that failed (mend that, or set --upgrade-backup=off): %w", from, to, err)
		}
		log.InfoContext(ctx, "the rows of the database are backed up before its schema is migrated",
			"place", backups.UpgradePlace(cfg), "snapshot", made.Name, "schema", from, "new_schema", to)
		return nil
	}
}

// quiet is the flag of commands that show how far they are.
type quiet struct{ quiet bool }

func (q *quiet) flags(f *flags) {
	f.on(&q.quiet, "quiet", "Don't show progress. Without a terminal none is shown anyway.")
}

// options are those of the flag, with the progress that is shown.
func (q *quiet) options(r *request) (backups.Options, *steps) {
	looked := !q.quiet && isTerminal(r.err)
	show := &steps{out: r.err, quiet: !looked}
	o := backups.Options{
		Config: r.cfg, OpenStorage: r.OpenStorage, Keys: r.MasterKey.Keys, Version: Version(),
		Now: time.Now, Progress: show, Looked: looked,
	}
	if len(r.words) > 0 {
		o.Place = r.words[0]
	}
	return o, show
}

// makeBackup adds a snapshot to a backup.
type makeBackup struct {
	quiet

	keep      int
	masterKey bool
}

func (m *makeBackup) flags(f *flags) {
	add(f, &m.keep, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxKeep {
			return 0, fmt.Errorf("is not a number from 1 to %d", maxKeep)
		}
		return n, nil
	}, "keep", "number", strconv.Itoa(defaultKeep), "How many snapshots stay, with the new one. Media that none of "+
		"them names is removed from the backup.")
	f.on(&m.masterKey, "include-master-key", "Write the master key into the backup, too. Read access to the backup "+
		"then gives access to every secret in it.")
	m.quiet.flags(f)
}

func (m *makeBackup) run(ctx context.Context, r *request) error {
	o, show := m.options(r)
	o.Keep, o.IncludeMasterKey = m.keep, m.masterKey
	made, err := backups.Make(ctx, o)
	show.end()
	if err != nil {
		return stopped(ctx, r, err)
	}
	report(r.err, made.Lacks)
	err = r.say("Snapshot %s has %d rows and %d objects of %s; %d objects of %s were sent%s.",
		made.Name, total(made.Counts), made.Objects, bytesText(float64(made.Bytes)),
		made.Sent, bytesText(float64(made.SentBytes)), removed(made.Removed))
	if err == nil && made.MasterKeyIncluded {
		err = r.say("The master key is in it: read access to the backup gives access to every secret in it.")
	} else if err == nil && made.MasterKey != "" {
		err = r.say("The master key, with the fingerprint %s, is not in it: keep a copy of it apart from the backup.",
			made.MasterKey)
	}
	if err == nil && made.Missing > 0 {
		fmt.Fprintf(r.err, "millrace: the storage of the service has not got %d objects that the database names\n",
			made.Missing)
		return errFound
	}
	return err
}

func removed(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 older snapshot was removed"
	}
	return fmt.Sprintf("; %d older snapshots were removed", n)
}

func total(counts map[string]int64) (n int64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// report lists what is missing or damaged.
func report(out io.Writer, f backup.Findings) {
	for _, text := range f.All {
		fmt.Fprintln(out, text)
	}
	if more := f.Count - int64(len(f.All)); more > 0 {
		fmt.Fprintf(out, "and %d more\n", more)
	}
}

// stopped is the end of a command that goes on when it is given again.
func stopped(ctx context.Context, r *request, err error) error {
	if ctx.Err() == nil {
		return err
	}
	fmt.Fprintln(r.err, "millrace: interrupted; the same command goes on with what is there")
	return errInterrupted
}

// verifyBackup checks a snapshot.
type verifyBackup struct {
	quiet

	snapshot string
}

func (v *verifyBackup) flags(f *flags) {
	ofSnapshot(f, &v.snapshot)
	v.quiet.flags(f)
}

func ofSnapshot(f *flags, field *string) {
	add(f, field, anything, "snapshot", "name", "", "The snapshot with this name. Default: the newest.")
}

func (v *verifyBackup) run(ctx context.Context, r *request) error {
	o, show := v.options(r)
	o.Snapshot = v.snapshot
	m, found, err := backups.Verify(ctx, o)
	show.end()
	if err != nil {
		return stopped(ctx, r, err)
	}
	report(r.out, found)
	if found.Count > 0 {
		fmt.Fprintf(r.err, "millrace: %d things are missing from snapshot %s or damaged\n", found.Count, m.Name)
		return errFound
	}
	return r.say("Snapshot %s of %s is whole: %d rows, %d objects of %s.", m.Name, m.Made.Format(time.RFC3339),
		total(m.Counts), m.Objects, bytesText(float64(m.Bytes)))
}

// restore puts a snapshot into a service.
type restore struct {
	quiet

	snapshot  string
	overwrite bool
}

func (re *restore) flags(f *flags) {
	ofSnapshot(f, &re.snapshot)
	f.on(&re.overwrite, "overwrite", "Replace the rows of a database that is not empty by those of the backup, and "+
		"media "+
		"that differs. Other media in the storage stays.")
	re.quiet.flags(f)
}

func (re *restore) run(ctx context.Context, r *request) error {
	o, show := re.options(r)
	o.Snapshot, o.Overwrite = re.snapshot, re.overwrite
	done, key, err := backups.Restore(ctx, o)
	show.end()
	if err != nil {
		return stopped(ctx, r, err)
	}
	report(r.err, done.Lost)
	if err = r.say("Restored snapshot %s of %s: %d rows and %d objects of %s, of which %d were sent.",
		done.Name, done.Made.Format(time.RFC3339), total(done.Counts), done.Objects, bytesText(float64(done.Bytes)),
		done.Sent); err != nil {
		return err
	}
	if err = r.say("%s", nextSteps(r.cfg, key)); err != nil {
		return err
	}
	if done.Lost.Count > 0 {
		fmt.Fprintf(r.err, "millrace: %d objects are missing from the backup or damaged in it, and were not restored\n",
			done.Lost.Count)
		return errFound
	}
	return nil
}

// nextSteps says what to do after a restore.
func nextSteps(cfg config.Config, key backups.KeyPlace) string {
	var b strings.Builder
	b.WriteString("Next:\n")
	n := 1
	step := func(format string, args ...any) {
		fmt.Fprintf(&b, "%d. "+format+"\n", append([]any{n}, args...)...)
		n++
	}
	switch {
	case key.Written:
		step("The master key of the backup is in %s: keep a copy somewhere else.", key.Path)
	case !key.There:
		step("Put the master key with the fingerprint %s into %s: without it the service does not start.",
			key.Fingerprint,
			key.Path)
	}
	step("Run millrace doctor with the same settings.")
	step("Start the service. Broadcasts that were live end as assets, up to what the backup has of them.")
	if cfg.Database.Engine == config.Postgres {
		step("Start other nodes only after the first one is ready.")
	}
	step("If this is a drill beside the original: webhooks and simulcast targets are the original's. Keep the copy " +
		"from " +
		"reaching them.")
	return strings.TrimSuffix(b.String(), "\n")
}

// steps shows on a terminal how far a backup is.
type steps struct {
	mu    sync.Mutex
	out   io.Writer
	quiet bool // only what is not as expected is said

	step           string
	objects, bytes int64 // ahead; -1: not known
	done, moved    int64
	begun, shown   time.Time
	unfinished     bool
}

// showEvery is how often the line on the terminal changes.
const showEvery = 200 * time.Millisecond

// Begin implements backup.Progress.
func (s *steps) Begin(step string, objects, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	s.step, s.objects, s.bytes, s.done, s.moved, s.begun = step, objects, bytes, 0, 0, time.Now()
	s.show()
}

// Done implements backup.Progress.
func (s *steps) Done(objects int64) { s.more(objects, 0) }

// Moved implements backup.Progress.
func (s *steps) Moved(bytes int64) { s.more(0, bytes) }

func (s *steps) more(objects, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done, s.moved = s.done+objects, s.moved+bytes
	if time.Since(s.shown) >= showEvery {
		s.show()
	}
}

// Say implements backup.Progress.
func (s *steps) Say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLine()
	fmt.Fprintln(s.out, text)
}

func (s *steps) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.step != "" {
		s.show()
	}
	s.endLine()
}

// endLine is called with the lock, like all below.
func (s *steps) endLine() {
	if s.unfinished {
		fmt.Fprintln(s.out)
		s.unfinished = false
	}
}

func (s *steps) show() {
	if s.quiet {
		return
	}
	s.shown, s.unfinished = time.Now(), true
	fmt.Fprintf(s.out, "\r%s%s\x1b[K", s.step, s.figures(time.Since(s.begun)))
}

// figures are how far the step is after some time, how fast, and for how long still.
func (s *steps) figures(took time.Duration) string {
	if s.done == 0 && s.moved == 0 && s.objects <= 0 {
		return ""
	}
	text := fmt.Sprintf("  %d objects", s.done)
	if s.objects >= 0 {
		text = fmt.Sprintf("  %d of %d objects", s.done, s.objects)
	}
	text += ", " + bytesText(float64(s.moved))
	if s.bytes >= 0 {
		text += " of " + bytesText(float64(s.bytes))
	}
	if took < time.Second || s.moved == 0 {
		return text
	}
	speed := float64(s.moved) / took.Seconds()
	text += ", " + bytesText(speed) + "/s"
	if rest := s.bytes - s.moved; rest > 0 {
		text += ", " + span(time.Duration(float64(rest)/speed*float64(time.Second))) + " left"
	}
	return text
}
