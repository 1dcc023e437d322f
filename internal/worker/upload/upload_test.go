package upload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/job"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

const env = id.Environment("env")

// world is the worker with a real database and a real folder.
type world struct {
	t       *testing.T
	db      *db.DB
	store   blob.Store
	uploads *upload.Service
	assets  struct {
		*asset.Service
		*asset.Work
	}
	files *receive.Files
	jobs  map[string]job.Handler
	now   time.Time // near the real one, by which a writer stops at the end of the upload's time
}

func newWorld(t *testing.T, url string) *world {
	t.Helper()
	w := &world{t: t, db: dbtest.Open(t, url), jobs: map[string]job.Handler{}}
	w.now = time.Now().UTC().Truncate(time.Millisecond)
	var err error
	w.store, err = blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	w.must(err)
	t.Cleanup(func() { _ = w.store.Close() })
	w.uploads = upload.New(upload.Options{Store: w.db.Uploads()})
	o := asset.Options{Store: w.db.Assets()}
	w.assets.Service, w.assets.Work = asset.New(o), asset.NewWork(o)
	clock := func() time.Time { return w.now }
	w.files = receive.New(receive.Options{
		Uploads: w.uploads, Assets: w.assets, Complete: w.db.CompleteUpload, Store: w.store,
		MaxSize: 1 << 30, Now: clock,
	})
	for _, h := range (&Worker{Uploads: w.uploads, Assets: w.assets, Files: w.files, Now: clock}).Handlers() {
		w.jobs[h.Kind] = h
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// create makes an upload of which some bytes have come.
func (w *world) create(bytes string) upload.Upload {
	w.t.Helper()
	u, err := w.uploads.Create(w.t.Context(), env, upload.CreateInput{CORSOrigin: "*", Timeout: new(60)}, w.now)
	w.must(err)
	if bytes != "" {
		f := w.open(u)
		_, err = f.Receive(w.t.Context(), strings.NewReader(bytes))
		w.must(errors.Join(err, f.Close()))
	}
	return u
}

func (w *world) open(u upload.Upload) *receive.Writer {
	w.t.Helper()
	f, err := w.files.Open(w.t.Context(), u.ID, func() {})
	w.must(err)
	return f
}

// do does what is asked for, and gives the error of the job.
func (w *world) do(i job.Insert) error {
	w.t.Helper()
	return w.jobs[i.Kind].Work(w.t.Context(), job.Job{Kind: i.Kind, Args: i.Args})
}

// sweep does the jobs of all uploads that are late, until none is, and gives their kinds.
func (w *world) sweep() (kinds []string) {
	w.t.Helper()
	for {
		late, err := w.uploads.Overdue(w.t.Context(), w.now.Add(time.Millisecond), upload.Overdue{}, 1)
		w.must(err)
		if len(late) == 0 {
			return kinds
		}
		if kinds = append(kinds, late[0].Job().Kind); len(kinds) > 10 {
			w.t.Fatalf("it is never done: %v", kinds)
		}
		w.must(w.do(late[0].Job()))
	}
}

// kept reports what the store has of an upload's file, whole or not.
func (w *world) kept(u upload.Upload) bool {
	w.t.Helper()
	_, whole := w.store.Stat(w.t.Context(), objectkey.SourceFile(u.Media))
	_, part := w.store.Kept(w.t.Context(), objectkey.SourceFile(u.Media))
	for _, err := range []error{whole, part} {
		if err != nil && !fault.Is(err, fault.NotFound) {
			w.t.Fatal(err)
		}
	}
	return whole == nil || part == nil
}

// TestLostJobs: jobs that were lost are asked for again, and then nothing is left of an upload, neither bytes nor, in
// the end, its row.
func TestLostJobs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end   func(w *world, u upload.Upload)
		kinds string
	}{
		"its time passes": {func(w *world, _ upload.Upload) {
			w.now = w.now.Add(time.Minute)
		}, "upload.expire upload.clear"},
		"cancelled": {func(w *world, u upload.Upload) {
			w.must(w.uploads.Quit(w.t.Context(), u.ID, w.now))
		}, "upload.clear"},
		"cancelled, between the last byte and the asset": {func(w *world, u upload.Upload) {
			g, err := w.store.Grow(w.t.Context(), objectkey.SourceFile(u.Media))
			w.must(err)
			w.must(errors.Join(g.Finish(w.t.Context()), w.uploads.Quit(w.t.Context(), u.ID, w.now)))
		}, "upload.clear"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, url string) {
				w := newWorld(t, url)
				u := w.create("bytes")
				tt.end(w, u)
				if !w.kept(u) {
					t.Fatal("nothing is kept before the sweep")
				}
				if got := strings.Join(w.sweep(), " "); got != tt.kinds {
					t.Errorf("did %s, want %s", got, tt.kinds)
				}
				if w.kept(u) {
					t.Error("bytes are left")
				}
				n, err := w.db.PruneUploads(t.Context(), w.now.Add(time.Millisecond), 10)
				_, failed := w.uploads.Find(t.Context(), u.ID)
				if err != nil || n != 1 || !fault.Is(failed, fault.NotFound) {
					t.Errorf("%d rows removed, %v; the row: %v", n, err, failed)
				}
			})
		})
	}
}

// TestClearLeavesTheAsset: of an upload that has an asset only what lies beside its file is removed.
func TestClearLeavesTheAsset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t))
	u := w.create("")
	f := w.open(u)
	_, err := f.Receive(t.Context(), strings.NewReader("bytes"))
	w.must(err)
	w.must(errors.Join(f.Finish(t.Context()), f.Close()))
	if kinds := w.sweep(); len(kinds) > 0 {
		t.Errorf("after its asset is made: %v", kinds)
	}
	g, err := w.store.Grow(t.Context(), objectkey.SourceFile(u.Media)) // by a writer that had hung
	w.must(err)
	w.must(errors.Join(g.Append(t.Context(), []byte("late")), g.Sync(t.Context()), g.Close()))
	w.must(w.do(upload.Overdue{ID: u.ID, Status: upload.AssetCreated}.Job()))
	if _, err = w.store.Stat(t.Context(), objectkey.SourceFile(u.Media)); err != nil {
		t.Errorf("the asset's file: %v", err)
	}
	if _, err = w.store.Kept(t.Context(), objectkey.SourceFile(u.Media)); !fault.Is(err, fault.NotFound) {
		t.Errorf("what lay beside it: %v", err)
	}
}

// TestExpire: not before its time, and once.
func TestExpire(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t))
	u := w.create("bytes")
	expire := upload.Overdue{ID: u.ID, Status: upload.Waiting}.Job()
	w.now = w.now.Add(time.Minute - time.Millisecond)
	if _, later := errors.AsType[*job.SnoozeError](w.do(expire)); !later {
		t.Error("it was done before its time")
	}
	w.must(w.do(upload.Overdue{ID: u.ID, Status: upload.Cancelled}.Job())) // it waits: nothing is cleared
	if !w.kept(u) {
		t.Error("bytes of a waiting upload are gone")
	}
	w.now = w.now.Add(time.Millisecond)
	for range 2 {
		w.must(w.do(expire))
	}
	if n, err := w.db.Unfinished(t.Context(), upload.JobClear, string(u.ID)); err != nil || n != 1 {
		t.Errorf("%d jobs clear up, %v", n, err)
	}
	for _, kind := range []upload.Status{upload.Waiting, upload.Cancelled} {
		w.must(w.do(upload.Overdue{ID: "gone", Status: kind}.Job())) // its row is
	}
}

// away is files whose storage does not respond.
type away struct{}

func (away) Clear(context.Context, upload.Upload) error {
	return fault.New(fault.Unavailable, "the storage is away")
}

// TestStorageAway: an upload counts as cleared when it is.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, dbtest.SQLite(t))
	u := w.create("bytes")
	w.must(w.uploads.Quit(t.Context(), u.ID, w.now))
	broken := &Worker{Uploads: w.uploads, Files: away{}, Now: time.Now}
	j := upload.Overdue{ID: u.ID}.Job()
	if err := broken.clear(t.Context(), job.Job{Kind: j.Kind, Args: j.Args}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if got, err := w.uploads.Find(t.Context(), u.ID); err != nil || got.Cleared {
		t.Errorf("%+v, %v", got, err)
	}
	if got := strings.Join(w.sweep(), " "); got != "upload.clear" || w.kept(u) {
		t.Errorf("did %s", got)
	}
}
