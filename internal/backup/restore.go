package backup

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// RestoreOptions is what Restore needs.
type RestoreOptions struct {
	Target  blob.Store // the backup
	Storage blob.Store // of the service
	// Open opens the service's database for rows of a version of the schema. It is an error when a service runs on it.
	Open func(ctx context.Context, schema int64) (Loader, error)
	// Check looks at the manifest before anything is changed; nil: nobody does.
	Check    func(m *Manifest) error
	Snapshot string // name; empty: the newest
	// Overwrite puts the backup into the place of a database and a storage that are in use.
	Overwrite bool
	Progress  Progress // nil: nobody looks
}

// Restored is what was restored.
type Restored struct {
	Manifest

	Sent, SentBytes int64    // objects that the storage had not got
	Lost            Findings // objects that are missing from the backup, or damaged in it
	MasterKey       string   // its text, if the backup has it
}

// restoring is noted in the storage until all of a restore is done.
const restoringKey = "restoring/backup"

// begun is what is noted.
type begun struct {
	Snapshot string `json:"snapshot"`
	// Fresh says that it began with an empty database: then rows that are there are those of the backup.
	Fresh bool `json:"fresh"`
}

const maxBegunBytes = 4096

// NotEmptyError is that there is something where a backup is to be put.
type NotEmptyError struct{ What string }

func (n *NotEmptyError) Error() string {
	return n.What + ": restore into an empty one, or say --overwrite to put the backup into its place"
}

// restorer restores a snapshot.
type restorer struct {
	common

	opt             RestoreOptions
	manifest        *Manifest
	again           bool // an earlier run has begun with the same
	sent, sentBytes atomic.Int64
}

// Restore puts a snapshot into a database and a storage: first the objects, then the rows, in one transaction, so that
// no row names what is not there. One that ended early goes on when it is called again. An object that is missing or
// damaged is told at the end and keeps nothing else back.
func Restore(ctx context.Context, o RestoreOptions) (*Restored, error) {
	if o.Progress == nil {
		o.Progress = silent{}
	}
	r := &restorer{common: common{o.Target, ofBackup(), o.Progress, time.Now}, opt: o}
	m, err := r.chosen(ctx, o.Snapshot)
	if err != nil {
		return nil, err
	}
	r.manifest = m
	if o.Check != nil {
		if err = o.Check(m); err != nil {
			return nil, err
		}
	}
	done := &Restored{Manifest: *m}
	var f Findings
	if err = r.checkFiles(ctx, m, &f); err != nil {
		return nil, err
	}
	if f.Count > 0 {
		return nil, fmt.Errorf("snapshot %s can't be restored: %s", m.Name, strings.Join(f.All, "; "))
	}
	db, err := o.Open(ctx, m.Schema)
	if err != nil {
		return nil, err
	}
	err = r.restore(ctx, db, done)
	return done, errors.Join(err, db.Close())
}

func (r *restorer) restore(ctx context.Context, db Loader, done *Restored) (err error) {
	rowsThere, err := r.begin(ctx, db)
	if err != nil {
		return err
	}
	if r.manifest.MasterKeyIncluded {
		text, failed := readSmall(ctx, r.target, snapshotKey(r.manifest.Name, masterKeyFile), maxBegunBytes)
		if failed != nil {
			return failed
		}
		done.MasterKey = strings.TrimSpace(string(text))
	}
	r.progress.Begin(StepRestore, r.manifest.Objects, r.manifest.Bytes)
	err = inOrder(ctx, r.list(ctx, r.manifest), r.put, func(lost string) error {
		if lost != "" {
			done.Lost.add(lost)
		}
		return nil
	})
	done.Sent, done.SentBytes = r.sent.Load(), r.sentBytes.Load()
	if err != nil {
		return err
	}
	if !rowsThere {
		r.progress.Begin(StepRows, -1, -1)
		if err = r.rows(ctx, r.manifest, func(from *rows.Reader) error { return db.Load(ctx, from) }); err != nil {
			return err
		}
	}
	return r.opt.Storage.Delete(ctx, restoringKey)
}

// begin looks whether the backup may be put there, and notes that it is being put. rowsThere says that the rows are in
// the database since an earlier run.
func (r *restorer) begin(ctx context.Context, db Loader) (rowsThere bool, err error) {
	empty, identity, err := db.Empty(ctx)
	if err != nil {
		return false, err
	}
	note := begun{Snapshot: r.manifest.Name, Fresh: empty}
	text, err := readSmall(ctx, r.opt.Storage, restoringKey, maxBegunBytes)
	switch {
	case err == nil:
		var before begun
		if err = json.Unmarshal(text, &before); err != nil {
			return false, fmt.Errorf("read note of the restore that was begun: %w", err)
		}
		r.again = before.Snapshot == r.manifest.Name
		if !r.again && !r.opt.Overwrite {
			return false, &NotEmptyError{"the restore of snapshot " + before.Snapshot + " was begun here (--snapshot " +
				before.Snapshot + " goes on with it)"}
		}
		if r.again && !empty && before.Fresh && !r.opt.Overwrite {
			own, failed := r.identity(ctx)
			if failed != nil {
				return false, failed
			}
			rowsThere, note.Fresh = own != "" && own == identity, true
		}
	case !fault.Is(err, fault.NotFound):
		return false, err
	default:
		if err = r.unused(ctx); err != nil {
			return false, err
		}
	}
	if !empty && !rowsThere && !r.opt.Overwrite {
		return false, &NotEmptyError{"the database is not empty"}
	}
	// A run that was killed when it had brought the schema up to date needs to load nothing.
	if !rowsThere {
		if err = db.Fits(); err != nil {
			return false, err
		}
	}
	if text, err = json.Marshal(note); err != nil {
		return false, fmt.Errorf("encode note: %w", err)
	}
	return rowsThere, r.opt.Storage.Put(ctx, restoringKey, bytes.NewReader(text))
}

// unused says when the storage has objects.
func (r *restorer) unused(ctx context.Context) error {
	if r.opt.Overwrite {
		return nil
	}
	for key, err := range r.opt.Storage.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("look at the storage: %w", err)
		}
		if stored(key) {
			return &NotEmptyError{"the storage is not empty, it has " + key}
		}
	}
	return nil
}

// identity is whose rows the backup has.
func (r *restorer) identity(ctx context.Context) (identity string, err error) {
	err = r.rows(ctx, r.manifest, func(from *rows.Reader) error {
		for {
			t, failed := from.Next()
			if errors.Is(failed, io.EOF) {
				return nil
			}
			if failed == nil {
				failed = eachRow(from, t, func(r row) error {
					if t.Name == "master_key" {
						identity = hex.EncodeToString(r.bytes("data_key"))
					}
					return nil
				})
			}
			if failed != nil {
				return failed
			}
		}
	})
	return identity, err
}

// put makes the storage have an object as it is in the backup, and says when that has not got it.
func (r *restorer) put(ctx context.Context, e entry) (lost string, err error) {
	defer r.progress.Done(1)
	if r.again || r.opt.Overwrite {
		there, failed := r.there(ctx, e)
		if there || failed != nil {
			return "", failed
		}
	}
	_, _, err = transfer(ctx, r.target, objectsRoot+e.Key, r.opt.Storage, e.Key, &e, r.progress.Moved)
	switch {
	case errors.Is(err, errDamaged):
		return "damaged  " + objectsRoot + e.Key + ": its bytes are not those that were stored", nil
	case fault.Is(err, fault.NotFound):
		return "missing  " + objectsRoot + e.Key, nil
	case err != nil:
		return "", fmt.Errorf("restore object %s: %w", e.Key, err)
	}
	info, err := r.opt.Storage.Stat(ctx, e.Key)
	if err == nil && info.Size != e.Size {
		err = fmt.Errorf("restore object %s: the storage has %d of %d bytes", e.Key, info.Size, e.Size)
	}
	r.sent.Add(1)
	r.sentBytes.Add(e.Size)
	return "", err
}

// there reports whether the storage has the object. One of an earlier run was checked when it was stored; another one
// is read.
func (r *restorer) there(ctx context.Context, e entry) (bool, error) {
	info, err := r.opt.Storage.Stat(ctx, e.Key)
	if fault.Is(err, fault.NotFound) || err == nil && info.Size != e.Size {
		return false, nil
	}
	if err != nil || !r.opt.Overwrite {
		return err == nil, err
	}
	_, sum, err := look(ctx, r.opt.Storage, e.Key, func(int64) {})
	return sum == e.Sum, err
}
