package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/backup"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

// Head implements backup.Source.
func (s *service) Head(context.Context) (backup.Rows, error) {
	return backup.Rows{Schema: 41, MasterKey: "finger", Identity: s.identity()}, nil
}

func (s *service) identity() string {
	if s.unused {
		return ""
	}
	return keyText
}

// Hold implements backup.Source.
func (s *service) Hold(context.Context) (func() error, error) {
	if s.runs {
		return nil, fmt.Errorf("%w: node a", backup.ErrRuns)
	}
	s.held = true
	return func() error { s.held = false; return nil }, nil
}

// LoadSame keeps the rows; committed, it may be that nobody is told.
func (d *database) LoadSame(_ context.Context, from *rows.Reader, expected *rows.Digest) error {
	if d.fail != nil {
		return d.fail
	}
	got := rows.NewDigest()
	for {
		t, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = got.Table(t)
		}
		for err == nil {
			var row []any
			if row, err = from.Row(); err == nil {
				err = got.Row(row)
			}
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	if err := expected.Compare(got); err != nil {
		return err
	}
	d.identity, d.rows = keyText, got.String()
	d.loaded++
	return d.late
}

func (s *service) migrate(ctx context.Context, target blob.Store, d *database) (backup.Migrated, error) {
	return backup.Migrate(ctx, backup.MigrateOptions{
		Storage: s.store, Database: s, Target: target, Now: time.Now,
		Open: func(context.Context, int64) (backup.Loader, error) { return d, nil },
	})
}

// sameMedia says when two folders differ.
func sameMedia(t *testing.T, from, to string) {
	t.Helper()
	want, got := content(t, from), content(t, to)
	maps.DeleteFunc(want, func(key, _ string) bool { return strings.HasPrefix(key, "databases/") })
	if !maps.Equal(got, want) {
		t.Errorf("the new storage has %v, and the old one %v", slices.Sorted(maps.Keys(got)),
			slices.Sorted(maps.Keys(want)))
	}
}

// TestMigrate: while the service runs the media is copied alone; when it is stopped, what has come meanwhile, and the
// rows. What was deleted meanwhile is not there. Done once, it is refused.
func TestMigrate(t *testing.T) {
	t.Parallel()
	s, dir, d := newService(t), t.TempDir(), &database{}
	target := folder(t, dir)
	s.add(t, "one", 20)
	s.add(t, "gone", 5)
	put(t, s.store, "databases/mine", "a mark")
	s.runs = true
	done, err := s.migrate(t.Context(), target, d)
	if !errors.Is(err, backup.ErrMediaOnly) || done.Sent != 27 || done.Objects != 27 || d.loaded != 0 {
		t.Fatalf("while it runs: %+v, %v", done, err)
	}
	s.remove(t, "gone")
	s.add(t, "two", 3)
	s.runs = false
	s.before = func() {
		if !s.held {
			t.Error("the rows are read while a service may run")
		}
	}
	done, err = s.migrate(t.Context(), target, d)
	if err != nil || done.Sent != 4 || done.Objects != 25 || done.Counts["assets"] != 2 || d.loaded != 1 ||
		done.Lacks.Count != 0 || s.held {
		t.Fatalf("when it is stopped: %+v, %v", done, err)
	}
	sameMedia(t, s.dir, dir)
	if _, err = s.migrate(t.Context(), target, d); err == nil || !strings.Contains(err.Error(), "already") {
		t.Errorf("a second time: %v", err)
	}
}

// TestMigrateGoesOn wherever it ended: before each object, each note and the lock, and while rows are written, whether
// they are then there or not.
func TestMigrateGoesOn(t *testing.T) {
	t.Parallel()
	s, dir, d := newService(t), t.TempDir(), &database{}
	target := folder(t, dir)
	s.add(t, "one", 30)
	killed := errors.New("killed")
	for n := 0; ; n++ {
		b := &breaking{Store: target, left: n, err: killed}
		d.fail, d.late = nil, nil
		if d.loaded == 0 && n%3 == 1 {
			d.fail = killed // and nothing is written
		} else if d.loaded == 0 {
			d.late = killed // and all is
		}
		ctx := t.Context()
		if n%2 == 0 {
			stopped, stop := context.WithCancel(ctx)
			ctx, b.stops = stopped, stop
		}
		done, err := s.migrate(ctx, b, d)
		if err == nil {
			if done.Objects != 31 || done.Counts["assets"] != 1 {
				t.Errorf("it came to %+v", done)
			}
			break
		}
		if n%2 == 1 && !errors.Is(err, killed) || n > 80 {
			t.Fatalf("after %d objects: %v", n, err)
		}
	}
	if d.loaded != 1 {
		t.Errorf("rows were written %d times", d.loaded)
	}
	sameMedia(t, s.dir, dir)
}

// TestMigrateChanged: rows that an earlier run has written are not taken for those of a service that went on.
func TestMigrateChanged(t *testing.T) {
	t.Parallel()
	s, dir, d := newService(t), t.TempDir(), &database{}
	target := folder(t, dir)
	s.add(t, "one", 2)
	d.late = errors.New("killed")
	if _, err := s.migrate(t.Context(), target, d); err == nil || d.loaded != 1 {
		t.Fatalf("it was not killed: %v", err)
	}
	s.add(t, "two", 2)
	if _, err := s.migrate(t.Context(), target, d); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Fatalf("with other rows: %v", err)
	}
	d = &database{} // emptied
	done, err := s.migrate(t.Context(), target, d)
	if err != nil || done.Sent != 0 || done.Counts["assets"] != 2 || d.loaded != 1 {
		t.Fatalf("with an empty database: %+v, %v", done, err)
	}
	sameMedia(t, s.dir, dir)
}

// changing is a store that has other bytes than it was given.
type changing struct{ blob.Store }

func (c *changing) Put(ctx context.Context, key string, r io.Reader) error {
	if strings.HasSuffix(key, "/3-1.m4s") {
		r = io.MultiReader(r, strings.NewReader("x"))
	}
	return c.Store.Put(ctx, key, r)
}

func TestMigrateRefuses(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.add(t, "one", 4)
	unused := newService(t)
	unused.unused = true
	full, used, begun, noted := folder(t, t.TempDir()), &database{identity: "another"}, folder(t, t.TempDir()),
		folder(t, t.TempDir())
	put(t, full, "media/x", "x")
	put(t, begun, "restoring/migration", `{"from":"another"}`)
	put(t, noted, "restoring/migration", fmt.Sprintf(`{"from":%q}`, keyText))
	for name, c := range map[string]struct {
		service *service
		target  blob.Store
		d       *database
		says    string
	}{
		"a storage that is not empty":    {s, full, &database{}, "it has media/x"},
		"a database that is not empty":   {s, folder(t, t.TempDir()), used, "database is not empty"},
		"another migration":              {s, begun, &database{}, "another database"},
		"a database used since":          {s, noted, used, "has not written to it"},
		"its own rows, never written":    {s, noted, &database{identity: keyText}, "has not written to it"},
		"a service that was never used":  {unused, folder(t, t.TempDir()), &database{}, "nothing to migrate"},
		"a storage that damages objects": {s, &changing{folder(t, t.TempDir())}, &database{}, "media/one/v/3-1.m4s"},
	} {
		before := len(content(t, s.dir))
		_, err := c.service.migrate(t.Context(), c.target, c.d)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if c.d.loaded > 0 || len(content(t, s.dir)) != before {
			t.Errorf("%s: something was changed", name)
		}
	}
}

// TestMigrateLost: what the service itself has lost is told, and keeps nothing else back.
func TestMigrateLost(t *testing.T) {
	t.Parallel()
	s, d := newService(t), &database{}
	s.add(t, "one", 4)
	if err := s.store.Delete(t.Context(), "media/one/v/1-1.m4s"); err != nil {
		t.Fatal(err)
	}
	done, err := s.migrate(t.Context(), folder(t, t.TempDir()), d)
	if err != nil || done.Lacks.Count != 1 || d.loaded != 1 || !strings.Contains(done.Lacks.All[0], "v/1-1.m4s") {
		t.Errorf("%+v, %v", done, err)
	}
}
