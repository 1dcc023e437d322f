// Package backup makes backups of a service while it runs, checks them, and puts them back: the rows of the database
// and the objects of the storage, in a folder or a bucket of its own. It copies them to another database and storage,
// too. It reads rows as package rows has them, whatever engine they are from, and must never know SQL, HTTP or the
// master key's text. Its goroutines copy objects and end with the call that needed them.
package backup

import (
	"context"
	"errors"
	"io"
	"time"

	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// Database gives the rows of a service's database as they are at one moment.
type Database interface {
	// Snapshot writes all rows to w.
	Snapshot(ctx context.Context, w io.Writer) (Rows, error)
}

// Rows says what a snapshot of a database is.
type Rows struct {
	Schema    int64            // version of the schema
	MasterKey string           // fingerprint of the master key that secrets are encrypted under
	Identity  string           // whose rows they are, as Loader has it
	Counts    map[string]int64 // rows of each table
}

// Loader is a database that rows are put into.
type Loader interface {
	// Empty says that nobody has used the database, and identity whose rows it has.
	Empty(ctx context.Context) (empty bool, identity string, err error)
	// Fits says why the rows can't be loaded: the schema is a newer one already.
	Fits() error
	// Load puts rows into the place of what is there, all of them or none, and brings the schema up to date.
	Load(ctx context.Context, from *rows.Reader) error
	// LoadSame is Load, but for the schema, which stays; none are there when they differ from what was expected.
	LoadSame(ctx context.Context, from *rows.Reader, expected *rows.Digest) error
	Close() error
}

// Progress is told how a backup goes on. Its methods may be called by several goroutines.
type Progress interface {
	// Begin turns to the next step, of which so many objects and bytes are known to be ahead; -1: not known.
	Begin(step string, objects, bytes int64)
	// Done adds an object, Moved bytes that were read or written.
	Done(objects int64)
	Moved(bytes int64)
	// Say tells something that is not as expected.
	Say(text string)
}

// The steps that a Progress is told of.
const (
	StepLook    = "looking at what is there"
	StepCopy    = "copying"
	StepRows    = "writing rows"
	StepCatchUp = "copying what has come meanwhile"
	StepCheck   = "checking"
	StepRestore = "restoring"
)

// silent is a Progress that nobody looks at.
type silent struct{}

func (silent) Begin(string, int64, int64) {}
func (silent) Done(int64)                 {}
func (silent) Moved(int64)                {}
func (silent) Say(string)                 {}

// Errors that callers tell apart.
var (
	// ErrFound is that a backup was checked or restored, and that something in it is missing or damaged; it was told.
	ErrFound = errors.New("the backup is not whole")
	// ErrNone is that there is no backup.
	ErrNone = errors.New("there is no complete backup here")
)

// parallel is how many objects are copied at a time.
const parallel = 8

// maxFindings is how many findings are held in memory; others are only counted.
const maxFindings = 1000

// Findings are sentences about objects that are missing or damaged.
type Findings struct {
	All   []string
	Count int64
}

func (f *Findings) add(text string) {
	f.Count++
	if len(f.All) < maxFindings {
		f.All = append(f.All, text)
	}
}

// common is what all that is done with backups needs.
type common struct {
	target   blob.Store
	at       layout
	progress Progress
	now      func() time.Time
}

// layout says where in the target things are.
type layout struct {
	objects string // in front of the keys of the storage
	pending string // in front of lists of what runs have copied that did not come to their end
	lock    string // key
}

// ofBackup is the layout of a backup.
func ofBackup() layout { return layout{objectsRoot, pendingRoot, lockKey} }
