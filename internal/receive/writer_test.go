package receive_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/upload"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/objectkey"
	"millrace/internal/receive"
	"millrace/internal/storage/blob"
)

// rows is the row of one upload.
type rows struct {
	upload.Work

	mu  sync.Mutex
	row upload.Upload
}

func (r *rows) Find(context.Context, id.Upload) (upload.Upload, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.row, nil
}

func (r *rows) Declare(_ context.Context, _ id.Upload, length upload.Length) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.row.Length = length
	return nil
}

func (r *rows) Completed(u upload.Upload, a id.Asset, _ time.Time) (upload.Change, error) {
	u.Status, u.Asset = upload.AssetCreated, a
	return upload.Change{From: upload.Waiting, Upload: u}, nil
}

func (r *rows) complete(_ context.Context, u upload.Change, _ asset.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	u.Upload.Length = r.row.Length
	r.row = u.Upload
	return nil
}

func (r *rows) Uploaded(u asset.NewUpload, _ time.Time) (asset.Change, error) {
	return asset.Change{Asset: asset.Asset{ID: id.Asset("of " + u.Upload)}}, nil
}

// newFiles has one upload, "u", that waits for a file of at most ten bytes.
func newFiles(t *testing.T) (*receive.Files, *rows, blob.Store) {
	t.Helper()
	folder, err := blob.Open(t.Context(), blob.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	r := &rows{row: upload.Upload{ID: "u", Media: "m", Status: upload.Waiting, Timeout: 3600, CreatedAt: time.Now()}}
	return receive.New(receive.Options{
		Uploads: r, Assets: r, Complete: r.complete, Store: folder, MaxSize: 10, Now: time.Now,
	}), r, folder
}

func open(t *testing.T, f *receive.Files) *receive.Writer {
	t.Helper()
	w, err := f.Open(t.Context(), "u", func() {})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func shut(t *testing.T, w *receive.Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDeclare: what is said of a file's length has to fit, what was said before, and what has come.
func TestDeclare(t *testing.T) {
	t.Parallel()
	most := func(n int64) upload.Length { return upload.Length{Size: n} }
	whole := func(n int64) upload.Length { return upload.Length{Size: n, Whole: true} }
	named := func(l upload.Length) upload.Length { l.Metadata = "filename eA=="; return l }
	for name, tt := range map[string]struct {
		before, now upload.Length
		kind        fault.Kind // of the error
		ok          bool
		want        upload.Length
	}{
		"the whole file":    {now: whole(10), ok: true, want: whole(10)},
		"as far as it goes": {now: most(5), ok: true, want: most(10)},
		"it grows":          {before: most(5), now: most(7), ok: true, want: most(7)},
		"less than before":  {before: most(7), now: most(5), ok: true, want: most(7)},
		"its name stays":    {before: named(most(5)), now: whole(6), ok: true, want: named(whole(6))},
		"empty":             {now: whole(0), kind: fault.Invalid},
		"too large":         {now: whole(11), kind: fault.TooLarge},
		"another":           {before: whole(7), now: whole(8), kind: fault.Invalid},
		"less has come":     {now: whole(3), kind: fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, r, _ := newFiles(t)
			w := open(t, f)
			defer shut(t, w)
			if tt.before != (upload.Length{}) {
				if err := w.Declare(t.Context(), tt.before); err != nil {
					t.Fatal(err)
				}
			}
			// Where nothing was said, the service says ten bytes by itself.
			if _, err := w.Receive(t.Context(), strings.NewReader("four")); err != nil {
				t.Fatal(err)
			}
			before := r.row.Length
			err := w.Declare(t.Context(), tt.now)
			switch {
			case !tt.ok && (!fault.Is(err, tt.kind) || r.row.Length != before):
				t.Errorf("%v; the row has %+v", err, r.row.Length)
			case tt.ok && (err != nil || r.row.Length != tt.want || w.Upload().Length != tt.want):
				t.Errorf("%v; the row has %+v, the writer %+v", err, r.row.Length, w.Upload().Length)
			}
		})
	}
}

// TestReceive: what has come stays when a request breaks off, the next one goes on behind it, and the last byte makes
// the asset, for who asks again too.
func TestReceive(t *testing.T) {
	t.Parallel()
	f, r, store := newFiles(t)
	w := open(t, f)
	if err := w.Declare(t.Context(), upload.Length{Size: 9, Whole: true}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the connection broke")
	n, err := w.Receive(t.Context(), io.MultiReader(strings.NewReader("abcd"), breaks{broken}))
	if n != 4 || !errors.Is(err, broken) || w.Size() != 4 || w.Missing() != 5 || w.Asset() != "" {
		t.Errorf("%d bytes, %v; %d are kept and %d missing, asset %q", n, err, w.Size(), w.Missing(), w.Asset())
	}
	shut(t, w)
	if kept, failed := f.Received(t.Context(), r.row); kept != 4 || failed != nil {
		t.Errorf("%d bytes have come, %v", kept, failed)
	}
	w = open(t, f)
	if n, err = w.Receive(t.Context(), strings.NewReader("efghi")); n != 5 || err != nil || w.Size() != 9 {
		t.Fatalf("%d bytes more, %v; %d are kept", n, err, w.Size())
	}
	if err = w.Finish(t.Context()); err != nil || w.Asset() != "of u" {
		t.Fatalf("asset %q, %v", w.Asset(), err)
	}
	shut(t, w)
	b, err := store.Get(t.Context(), objectkey.SourceFile("m"), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	if data, failed := io.ReadAll(b); string(data) != "abcdefghi" || failed != nil {
		t.Errorf("stored is %q, %v", data, failed)
	}
	w = open(t, f)
	defer shut(t, w)
	if w.Asset() != "of u" || r.row.Status != upload.AssetCreated {
		t.Errorf("later there is the asset %q, and the upload is %s", w.Asset(), r.row.Status)
	}
}

// TestReceiveTooMuch: no byte more is kept than the file has by what was said of it.
func TestReceiveTooMuch(t *testing.T) {
	t.Parallel()
	f, _, _ := newFiles(t)
	w := open(t, f)
	defer shut(t, w)
	if err := w.Declare(t.Context(), upload.Length{Size: 4, Whole: true}); err != nil {
		t.Fatal(err)
	}
	n, err := w.Receive(t.Context(), io.MultiReader(strings.NewReader("abc"), strings.NewReader("de")))
	if n != 3 || !fault.Is(err, fault.Invalid) || w.Size() != 3 {
		t.Errorf("%d bytes, %v; %d are kept", n, err, w.Size())
	}
}

// TestRestart: a client that sends the file again begins with nothing.
func TestRestart(t *testing.T) {
	t.Parallel()
	f, _, _ := newFiles(t)
	w := open(t, f)
	defer shut(t, w)
	for _, text := range []string{"abc", "defg"} {
		if err := w.Restart(t.Context()); err != nil || w.Size() != 0 {
			t.Fatalf("%d bytes are kept, %v", w.Size(), err)
		}
		if n, err := w.Receive(t.Context(), strings.NewReader(text)); int(n) != len(text) || err != nil {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if w.Size() != 4 {
		t.Errorf("%d bytes are kept", w.Size())
	}
}

// TestOneWriter: a second one waits until nothing has come from the first for a second, has it interrupted then, and
// gives up when that does not leave.
func TestOneWriter(t *testing.T) {
	t.Parallel()
	for name, leaves := range map[string]bool{"that leaves": true, "that stays": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, _, _ := newFiles(t)
				began, interrupted := time.Now(), time.Duration(0)
				leave := make(chan struct{})
				first, err := f.Open(t.Context(), "u", sync.OnceFunc(func() {
					interrupted = time.Since(began)
					close(leave)
				}))
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					if <-leave; leaves {
						_ = first.Close()
					}
				}()
				second, err := f.Open(t.Context(), "u", func() {})
				took := time.Since(began)
				if leaves != (err == nil) || took > 3*time.Second || interrupted != time.Second {
					t.Errorf("after %v: %v; the first one was interrupted after %v", took, err, interrupted)
				}
				if err == nil {
					shut(t, second)
					return
				}
				if !fault.Is(err, fault.TooMany) {
					t.Errorf("it is told %v", err)
				}
				shut(t, first)
			})
		})
	}
}

// breaks is a reader that fails.
type breaks struct{ err error }

func (b breaks) Read([]byte) (int, error) { return 0, b.err }
