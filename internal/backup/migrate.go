package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// Source is a database that is migrated.
type Source interface {
	Database
	// Head says what the database is, without its counts.
	Head(ctx context.Context) (Rows, error)
	// Hold keeps services away from it until release. One that runs on it is an error, which may say ErrRuns.
	Hold(ctx context.Context) (release func() error, err error)
}

// MigrateOptions is what Migrate needs.
type MigrateOptions struct {
	Storage  blob.Store // of the service
	Database Source
	Target   blob.Store // its storage from then on
	// Open opens its database from then on, for rows of a version of the schema.
	Open     func(ctx context.Context, schema int64) (Loader, error)
	Progress Progress // nil: nobody looks
	Looked   bool     // somebody looks at the progress: see Options
	Now      func() time.Time
}

// Migrated is what a migration came to.
type Migrated struct {
	MasterKey       string           // fingerprint
	Counts          map[string]int64 // rows of each table that were compared
	Objects, Bytes  int64            // that were compared
	Sent, SentBytes int64            // that were not there yet
	Lacks           Findings         // objects that rows name and the old storage has not got
}

// ErrRuns is that a service runs on the database that is migrated.
var ErrRuns = errors.New("the service runs")

// ErrMediaOnly is that a migration has copied the media, and the service runs still.
var ErrMediaOnly = errors.New("the media is copied, and the database is not, as the service runs")

// Where a migration has its notes in the new storage until it is done; see restoringKey.
const (
	movingKey  = "restoring/migration"
	movingRoot = "restoring/migration-copied/"
	movingLock = "restoring/migration-lock"
)

// moving is what is noted.
type moving struct {
	From string `json:"from"`           // identity of the old database
	Rows string `json:"rows,omitempty"` // digest of the rows that were about to be written
}

// mover migrates.
type mover struct {
	*maker

	opt  MigrateOptions
	head Rows
	list *scratch // of all objects
}

// Migrate copies all objects and rows of a service to another storage and database, and changes nothing in the old
// ones. What was sent is read again and compared before it counts as copied; the rows are compared before they are
// committed. One that ended early goes on when it is called again.
//
// The first pass copies the objects while the service may run; if it runs still at the end of that, the error is
// ErrMediaOnly. Else it is kept away, a second pass copies what has come meanwhile, and the rows follow, in one
// transaction: no row names what is not there, and nothing is written that would stay behind.
func Migrate(ctx context.Context, o MigrateOptions) (done Migrated, err error) {
	if o.Progress == nil {
		o.Progress = silent{}
	}
	m := &mover{opt: o, maker: &maker{
		common: common{o.Target, layout{"", movingRoot, movingLock}, o.Progress, o.Now},
		opt:    Options{Looked: o.Looked}, storage: o.Storage, run: newName(o.Now()), readBack: true,
	}}
	if m.head, err = o.Database.Head(ctx); err != nil {
		return done, err
	}
	if m.head.Identity == "" {
		return done, errors.New("no service has used the database yet: there is nothing to migrate")
	}
	db, err := o.Open(ctx, m.head.Schema)
	if err != nil {
		return done, fmt.Errorf("open the new database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, _, err = m.looked(ctx, db); err != nil { // before anything is written there, be it a lock
		return done, err
	}
	err = m.locked(ctx, m.run, func(ctx context.Context) error { return m.migrate(ctx, db, &done) })
	done.Sent, done.SentBytes = m.sent.Load(), m.sentBytes.Load()
	return done, err
}

func (m *mover) migrate(ctx context.Context, db Loader, done *Migrated) (err error) {
	note, rowsThere, err := m.looked(ctx, db)
	if err == nil {
		err = m.note(ctx, note)
	}
	if err != nil {
		return err
	}
	defer func() {
		if m.list != nil {
			_ = m.list.Close()
		}
	}()
	if err = m.media(ctx); err != nil {
		return err
	}
	release, err := m.opt.Database.Hold(ctx)
	if errors.Is(err, ErrRuns) {
		done.Objects, done.Bytes = m.list.objects, m.list.total
		return ErrMediaOnly
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	m.progress.Begin(StepCatchUp, -1, -1)
	first := m.list
	if m.list, err = m.pass(ctx, first.list()); err != nil {
		m.list = first
		return err
	}
	_ = first.Close()
	if err = m.rows(ctx, db, note, rowsThere, done); err != nil {
		return err
	}
	m.progress.Begin(StepCheck, -1, -1)
	if err = m.compare(ctx, done); err != nil {
		return err
	}
	return m.tidy(ctx)
}

// media is the first pass.
func (m *mover) media(ctx context.Context) error {
	runs, err := m.runs(ctx)
	if err != nil {
		return err
	}
	known := func() iter.Seq2[entry, error] {
		return merged(func(err error) { // what can't be read is copied again
			m.progress.Say(fmt.Sprintf("of what was copied before a part is unknown: %v", err))
		}, runs...)
	}
	if m.opt.Looked {
		m.progress.Begin(StepLook, -1, -1)
		objects, bytes, failed := m.plan(ctx, known())
		if failed != nil {
			return failed
		}
		m.progress.Begin(StepCopy, objects, bytes)
	}
	m.list, err = m.pass(ctx, known())
	return err
}

// looked looks whether the new database and storage may be migrated to. rowsThere says that an earlier run has written
// rows.
func (m *mover) looked(ctx context.Context, db Loader) (note moving, rowsThere bool, err error) {
	empty, identity, err := db.Empty(ctx)
	if err != nil {
		return note, false, err
	}
	text, err := readSmall(ctx, m.target, movingKey, maxBegunBytes)
	switch {
	case fault.Is(err, fault.NotFound):
		switch {
		case !empty && identity == m.head.Identity: // a run that was killed may not have said so any more
			return note, false, errors.New("the service has been moved there already: an earlier migration came " +
				"to its end")
		case !empty:
			return note, false, errors.New("the new database is not empty: name one that does not exist yet, " +
				"or is empty")
		}
		return moving{From: m.head.Identity}, false, m.unused(ctx)
	case err != nil:
		return note, false, err
	}
	if err = json.Unmarshal(text, &note); err != nil {
		return note, false, fmt.Errorf("read note of the migration that was begun: %w", err)
	}
	switch {
	case note.From != m.head.Identity:
		err = errors.New("the migration of another database to this storage was begun: end that, or name " +
			"another storage")
	case !empty && (identity != m.head.Identity || note.Rows == ""):
		err = errors.New("the new database is not empty, though the migration has not written to it: name another one")
	}
	return note, !empty, err
}

// unused says when the storage has anything.
func (m *mover) unused(ctx context.Context) error {
	for key, err := range m.target.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("look at the new storage: %w", err)
		}
		if stored(key) || key == restoringKey {
			return fmt.Errorf("the new storage is not empty, it has %s: name another folder, bucket or prefix", key)
		}
	}
	return nil
}

func (m *mover) note(ctx context.Context, n moving) error {
	text, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode note: %w", err)
	}
	return m.target.Put(ctx, movingKey, bytes.NewReader(text))
}

// rows writes the rows, unless an earlier run has, and looks for the objects that they name.
func (m *mover) rows(ctx context.Context, db Loader, note moving, there bool, done *Migrated) (err error) {
	m.progress.Begin(StepRows, -1, -1)
	s := &snapshot{}
	defer s.close()
	if err = s.read(ctx, m.opt.Database); err != nil {
		return err
	}
	expected := rows.NewDigest()
	if err = s.each(func(r *rows.Reader) error { return sumUp(r, expected) }); err != nil {
		return err
	}
	done.Counts, done.MasterKey = expected.Counts(), s.of.MasterKey
	switch {
	case there && note.Rows != expected.String():
		return errors.New("the rows were copied by an earlier run, and the old service has changed some since: " +
			"empty the new database (not the storage), and do this again")
	case !there:
		note.Rows = expected.String()
		if err = m.note(ctx, note); err != nil {
			return err
		}
		if err = s.each(func(r *rows.Reader) error { return db.LoadSame(ctx, r, expected) }); err != nil {
			return fmt.Errorf("write rows: %w", err)
		}
	}
	have, err := newKeySet(m.list.list())
	if err != nil {
		return err
	}
	return s.each(func(r *rows.Reader) error {
		lacks, count, failed := missing(ctx, r, have, m.index)
		for _, n := range lacks {
			done.Lacks.add(n.String())
		}
		done.Lacks.Count = count
		return failed
	})
}

// compare looks whether the new storage has what the old one has, and nothing else: what was deleted in the old one
// between two runs goes.
func (m *mover) compare(ctx context.Context, done *Migrated) error {
	want := pull(m.list.list())
	defer want.stop()
	var gone []string
	for o, err := range blob.Objects(ctx, m.target, "") {
		switch {
		case err != nil:
			return fmt.Errorf("list objects: %w", err)
		case !stored(o.Key):
			continue
		case want.ok && want.head.Key < o.Key:
			return fmt.Errorf("compare objects: %s is missing in the new storage", want.head.Key)
		case !want.ok || want.head.Key > o.Key:
			gone = append(gone, o.Key)
			if len(gone) == pieceObjects {
				err = m.target.Delete(ctx, gone...)
				gone = gone[:0]
			}
		case want.head.Size != o.Size:
			return fmt.Errorf("compare objects: %s has %d bytes in the new storage, and %d in the old one", o.Key,
				o.Size, want.head.Size)
		default:
			done.Objects, done.Bytes = done.Objects+1, done.Bytes+o.Size
			want.advance()
		}
		if err != nil {
			return err
		}
	}
	switch {
	case want.err != nil:
		return want.err
	case want.ok:
		return fmt.Errorf("compare objects: %s is missing in the new storage", want.head.Key)
	}
	return m.target.Delete(ctx, gone...)
}

// tidy removes what runs that were killed have left, and the notes.
func (m *mover) tidy(ctx context.Context) error {
	for u, err := range m.target.Unfinished(ctx, "") {
		if err == nil {
			err = m.target.Drop(ctx, u.Key)
		}
		if err != nil {
			return fmt.Errorf("remove what was sent in part: %w", err)
		}
	}
	if err := m.removeAll(ctx, movingRoot); err != nil {
		return err
	}
	return m.target.Delete(ctx, movingKey)
}

// sumUp adds all rows to a digest.
func sumUp(r *rows.Reader, d *rows.Digest) error {
	for {
		t, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = d.Table(t)
		}
		if err == nil {
			err = eachRow(r, t, func(r row) error { return d.Row(r.values) })
		}
		if err != nil {
			return err
		}
	}
}
