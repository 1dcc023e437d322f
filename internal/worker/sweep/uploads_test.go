package sweep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/storage/blob"
)

func openFolder(t *testing.T, dir string) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), blob.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// uploads has late ones in the order of their time, and media sets that uploads expect.
type uploads struct {
	late      []upload.Overdue
	expecting []id.Media
	err       error
	pages     int
}

func (u *uploads) Overdue(
	_ context.Context, before time.Time, behind upload.Overdue, limit int,
) (some []upload.Overdue, _ error) {
	u.pages++
	for _, o := range u.late {
		if o.Due.Before(before) && o.Due.After(behind.Due) && len(some) < limit {
			some = append(some, o)
		}
	}
	return some, u.err
}

func (u *uploads) Expecting(_ context.Context, all []id.Media) (some []id.Media, _ error) {
	for _, m := range all {
		if slices.Contains(u.expecting, m) {
			some = append(some, m)
		}
	}
	return some, u.err
}

func alone(context.Context) (bool, error) { return true, nil }

func TestOverdueUploads(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1e12)
	for _, n := range []int{0, 1, page, 2*page + 1} {
		u, q := &uploads{}, &queue{}
		var want []string
		for i := range n {
			due := now.Add(-time.Hour + time.Duration(i)*time.Millisecond)
			o := upload.Overdue{ID: id.Upload(fmt.Sprint(i)), Status: upload.Cancelled, Due: due}
			kind := upload.JobClear
			if i%2 == 0 {
				o.Status, kind = upload.Waiting, upload.JobExpire
			}
			u.late, want = append(u.late, o), append(want, kind+" "+string(o.ID))
		}
		u.late = append(u.late, upload.Overdue{ID: "just now", Due: now.Add(-minIdle)}) // its own job may be at it
		s := &Sweeper{Uploads: u, Queue: q, Now: func() time.Time { return now }}
		if err := s.overdue(t.Context()); err != nil || !slices.Equal(q.got, want) {
			t.Errorf("%d late: asked for %q, %v", n, q.got, err)
		}
		if u.pages != n/page+1 {
			t.Errorf("%d late were read in %d pages", n, u.pages)
		}
	}
	bad := errors.New("away")
	if err := (&Sweeper{Uploads: &uploads{err: bad}, Now: time.Now}).overdue(t.Context()); !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

// TestAbandonedUploads: bytes that nobody has added to for long go where no upload expects more of them; those of
// others stay, and so does what is whole.
func TestAbandonedUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := openFolder(t, dir)
	now := time.Now()
	begin := func(key string, age time.Duration) {
		t.Helper()
		g, err := store.Grow(t.Context(), key)
		if err == nil {
			err = errors.Join(g.Append(t.Context(), []byte("bytes")), g.Sync(t.Context()), g.Close())
		}
		if err == nil {
			err = os.Chtimes(filepath.Join(dir, ".growing", key), time.Time{}, now.Add(-age))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var stay []string
	for i := range page + 10 { // more than a page of each
		gone, expected := id.Media(fmt.Sprintf("gone%03d", i)), id.Media(fmt.Sprintf("here%03d", i))
		begin(objectkey.SourceFile(gone), Patience+time.Minute)
		begin(objectkey.SourceFile(expected), Patience+time.Minute)
		stay = append(stay, objectkey.SourceFile(expected))
	}
	u := &uploads{}
	for _, key := range stay {
		m, _ := objectkey.Owner(key)
		u.expecting = append(u.expecting, m)
	}
	begin(objectkey.SourceFile("young"), Patience-time.Minute)
	begin("other/source.mp4", Patience+time.Minute) // not of ours
	stay = append(stay, objectkey.SourceFile("young"), "other/source.mp4")
	if err := store.Put(t.Context(), objectkey.SourceFile("gone000"), bytes.NewReader([]byte("whole"))); err != nil {
		t.Fatal(err)
	}
	s := &Sweeper{
		Uploads: u, Store: store, Alone: func(context.Context) (bool, error) { return false, nil },
		Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler),
	}
	before := growing(t, store)
	if err := s.abandoned(t.Context()); err != nil || !slices.Equal(growing(t, store), before) {
		t.Errorf("beside another database: left %v, %v", growing(t, store), err)
	}
	s.Alone = alone
	if err := s.abandoned(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := growing(t, store); !slices.Equal(left, stay) {
		t.Errorf("left %v, want %v", left, stay)
	}
	if _, err := store.Stat(t.Context(), objectkey.SourceFile("gone000")); err != nil {
		t.Errorf("what was whole: %v", err)
	}
}

// growing are the keys of what has come in part.
func growing(t *testing.T, store blob.Store) (keys []string) {
	t.Helper()
	for f, err := range store.Unfinished(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, f.Key)
	}
	return keys
}

// failing can't remove one object.
type failing struct {
	blob.Store
	listed []string
	gone   []string
}

func (f *failing) Unfinished(context.Context, string) iter.Seq2[blob.Unfinished, error] {
	return func(yield func(blob.Unfinished, error) bool) {
		for _, key := range f.listed {
			if !yield(blob.Unfinished{Key: key}, nil) {
				return
			}
		}
		yield(blob.Unfinished{}, fault.New(fault.Unavailable, "the list broke"))
	}
}

func (f *failing) Drop(_ context.Context, key string) error {
	if key == f.listed[0] {
		return fault.New(fault.Unavailable, "no")
	}
	f.gone = append(f.gone, key)
	return nil
}

// TestAbandonedUploadsOnABadDay: an error keeps nothing else from its end, and where the database does not respond
// nothing is removed.
func TestAbandonedUploadsOnABadDay(t *testing.T) {
	t.Parallel()
	f := &failing{listed: []string{"media/a/source.mp4", "media/b/source.mp4"}}
	s := &Sweeper{Uploads: &uploads{}, Store: f, Alone: alone, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
	if err := s.abandoned(t.Context()); !fault.Is(err, fault.Unavailable) || !slices.Equal(f.gone, f.listed[1:]) {
		t.Errorf("removed %v, %v", f.gone, err)
	}
	f.gone, s.Uploads = nil, &uploads{err: fault.New(fault.Unavailable, "away")}
	if err := s.abandoned(t.Context()); err == nil || len(f.gone) > 0 {
		t.Errorf("removed %v, %v", f.gone, err)
	}
}
