package backup

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"millrace/internal/fault"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// VerifyOptions is what Verify needs.
type VerifyOptions struct {
	Target   blob.Store
	Snapshot string   // name; empty: the newest
	Progress Progress // nil: nobody looks
}

// Verify reads a snapshot of a backup and all its objects, and says what is missing or damaged. Findings are no error.
func Verify(ctx context.Context, o VerifyOptions) (*Manifest, Findings, error) {
	var f Findings
	if o.Progress == nil {
		o.Progress = silent{}
	}
	c := &common{o.Target, ofBackup(), o.Progress, time.Now}
	m, err := c.chosen(ctx, o.Snapshot)
	if err != nil {
		return nil, f, err
	}
	if err = c.checkFiles(ctx, m, &f); err != nil || f.Count > 0 {
		return m, f, err
	}
	o.Progress.Begin(StepCheck, m.Objects, m.Bytes)
	err = inOrder(ctx, c.list(ctx, m), func(ctx context.Context, e entry) (string, error) {
		defer o.Progress.Done(1)
		return c.wrong(ctx, e)
	}, func(wrong string) error {
		if wrong != "" {
			f.add(wrong)
		}
		return nil
	})
	if err != nil {
		return m, f, err
	}
	have, err := newKeySet(c.list(ctx, m))
	if err != nil {
		return m, f, err
	}
	lacks, count, err := c.lacks(ctx, m, have)
	for _, n := range lacks {
		f.add(n.String())
	}
	f.Count += count - int64(len(lacks))
	return m, f, err
}

// checkFiles looks whether the files of a snapshot are as the manifest says, and can be read to their end.
func (c *common) checkFiles(ctx context.Context, m *Manifest, f *Findings) error {
	for _, want := range []struct {
		name string
		File
	}{{rowsFile, m.Rows}, {listFile, m.List}} {
		wrong, err := c.wrongAt(ctx, snapshotKey(m.Name, want.name), want.Size, want.Checksum)
		if err != nil {
			return err
		}
		if wrong != "" {
			f.add(wrong)
		}
	}
	if f.Count > 0 {
		return nil
	}
	var objects, bytes int64
	for e, err := range c.list(ctx, m) {
		if err != nil {
			f.add(err.Error())
			return nil
		}
		objects, bytes = objects+1, bytes+e.Size
	}
	if objects != m.Objects || bytes != m.Bytes {
		f.add(fmt.Sprintf("damaged  %s: it has %d objects of %d", snapshotKey(m.Name, listFile), objects, m.Objects))
	}
	err := c.rows(ctx, m, func(r *rows.Reader) error {
		for {
			t, err := r.Next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err == nil {
				err = eachRow(r, t, func(row) error { return nil })
			}
			if err != nil {
				return err
			}
		}
	})
	if err != nil {
		if ctx.Err() != nil || fault.Is(err, fault.Unavailable) {
			return err
		}
		f.add(fmt.Sprintf("damaged  %s: %v", snapshotKey(m.Name, rowsFile), err))
	}
	return nil
}

// list are the objects of a snapshot.
func (c *common) list(ctx context.Context, m *Manifest) iter.Seq2[entry, error] {
	return listAt(ctx, c.target, snapshotKey(m.Name, listFile))
}

// rows reads the rows of a snapshot, once they are here and are what the manifest says.
func (c *common) rows(ctx context.Context, m *Manifest, read func(*rows.Reader) error) error {
	key := snapshotKey(m.Name, rowsFile)
	file, err := newScratch()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // only read from
	r, err := c.target.Get(ctx, key, 0, -1)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, &expecting{summing(r, func(int64) {}), m.Rows.Size, m.Rows.Checksum})
	if _ = r.Close(); err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	unzip, err := gzip.NewReader(file.reader())
	if err != nil {
		return fmt.Errorf("read %s: %w", key, err)
	}
	stream, err := rows.NewReader(unzip)
	if err != nil {
		return err
	}
	if stream.Schema() != m.Schema {
		return fmt.Errorf("read %s: it has version %d of the schema, and the manifest says %d", key, stream.Schema(),
			m.Schema)
	}
	return read(stream)
}

// wrong says what is wrong with an object of the backup; empty: nothing.
func (c *common) wrong(ctx context.Context, e entry) (string, error) {
	return c.wrongAt(ctx, objectsRoot+e.Key, e.Size, e.Sum)
}

func (c *common) wrongAt(ctx context.Context, key string, wantSize int64, wantSum string) (string, error) {
	size, sum, err := look(ctx, c.target, key, c.progress.Moved)
	switch {
	case fault.Is(err, fault.NotFound):
		return "missing  " + key, nil
	case err != nil && (ctx.Err() != nil || fault.Is(err, fault.Unavailable)):
		return "", err
	case err != nil:
		return fmt.Sprintf("damaged  %s: %v", key, err), nil
	case size != wantSize:
		return fmt.Sprintf("damaged  %s: %d bytes of %d", key, size, wantSize), nil
	case sum != wantSum:
		return fmt.Sprintf("damaged  %s: its bytes are not those that were stored", key), nil
	}
	return "", nil
}

// lacks are objects that rows name and the snapshot has not got.
func (c *common) lacks(ctx context.Context, m *Manifest, have *keySet) (lacks []named, count int64, err error) {
	err = c.rows(ctx, m, func(r *rows.Reader) error {
		lacks, count, err = missing(ctx, r, have, opening(c.target, objectsRoot))
		return err
	})
	return lacks, count, err
}
