package backup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"millrace/internal/backup"
	"millrace/internal/fault"
	"millrace/internal/leaktest"
	"millrace/internal/storage/blob"
	"millrace/internal/storage/rows"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// service has rows and a storage.
type service struct {
	store blob.Store
	dir   string

	mu     sync.Mutex
	assets map[string][]string // objects of each asset
	before func()              // is called before a snapshot of the rows
	after  func()              // and behind it
	runs   bool                // somebody has it
	held   bool                // a migration has it
	unused bool                // nobody has used it
	now    func() time.Time
}

func newService(t *testing.T) *service {
	t.Helper()
	dir := t.TempDir()
	return &service{store: folder(t, dir), dir: dir, assets: map[string][]string{}, now: time.Now}
}

func folder(t *testing.T, dir string) blob.Store {
	t.Helper()
	s, err := blob.Open(t.Context(), blob.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func put(t *testing.T, s blob.Store, key, content string) {
	t.Helper()
	if err := s.Put(t.Context(), key, strings.NewReader(content)); err != nil {
		t.Fatal(err)
	}
}

// add makes an asset of segments, with an index.
func (s *service) add(t *testing.T, name string, segments int) {
	t.Helper()
	index, keys := "", []string{"media/" + name + "/timeline.jsonl"}
	for i := range segments {
		key := fmt.Sprintf("media/%s/v/%d-1.m4s", name, i)
		put(t, s.store, key, strings.Repeat(key, 10))
		index += fmt.Sprintf(`{"segment":{"msn":%d,"chunks":[{"r":"v","o":%q}]}}`+"\n", i, key)
		keys = append(keys, key)
	}
	put(t, s.store, keys[0], index)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.assets[name] = keys
}

// remove deletes the row of an asset, and then its objects.
func (s *service) remove(t *testing.T, name string) {
	t.Helper()
	s.mu.Lock()
	keys := s.assets[name]
	delete(s.assets, name)
	s.mu.Unlock()
	if err := s.store.Delete(t.Context(), keys...); err != nil {
		t.Fatal(err)
	}
}

// Snapshot implements backup.Database.
func (s *service) Snapshot(_ context.Context, w io.Writer) (backup.Rows, error) {
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	names := slices.Sorted(maps.Keys(s.assets))
	s.mu.Unlock()
	if s.after != nil {
		s.after()
	}
	out, err := rows.NewWriter(w, 41)
	if err != nil {
		return backup.Rows{}, err
	}
	columns := []rows.Column{}
	for _, c := range []string{"id", "status", "index_key", "media_id", "document"} {
		columns = append(columns, rows.Column{Name: c, Kind: rows.Text})
	}
	err = out.Table(rows.Table{Name: "assets", Columns: columns})
	for _, n := range names {
		err = errors.Join(err, out.Row([]any{n, "ready", "media/" + n + "/timeline.jsonl", n, "{}"}))
	}
	err = errors.Join(err, out.Table(rows.Table{Name: "master_key", Columns: []rows.Column{{
		Name: "data_key",
		Kind: rows.Bytes,
	}}}),
		out.Row([]any{[]byte("key")}))
	counts, closed := out.Close()
	return backup.Rows{Schema: 41, MasterKey: "finger", Identity: keyText, Counts: counts}, errors.Join(err, closed)
}

func (s *service) backUp(ctx context.Context, target blob.Store, keep int) (backup.Made, error) {
	return backup.Make(ctx, backup.Options{Storage: s.store, Target: target, Database: s, Keep: keep, Now: s.now})
}

func (s *service) mustBackUp(t *testing.T, target blob.Store, keep int) backup.Made {
	t.Helper()
	made, err := s.backUp(t.Context(), target, keep)
	if err != nil || made.Missing > 0 {
		t.Fatalf("backup: %v, lacks %v", err, made.Lacks)
	}
	return made
}

func verify(t *testing.T, target blob.Store, snapshot string) []string {
	t.Helper()
	_, found, err := backup.Verify(t.Context(), backup.VerifyOptions{Target: target, Snapshot: snapshot})
	if err != nil {
		t.Fatal(err)
	}
	return found.All
}

// content is what a folder has, by path.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir+"/")] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// database is one that rows are put into.
type database struct {
	identity string
	loaded   int
	rows     string // digest
	fail     error
	late     error // when the rows are written
	newer    error // its schema is newer than that of the rows
}

func (d *database) Fits() error { return d.newer }

func (d *database) Empty(context.Context) (bool, string, error) {
	return d.identity == "", d.identity, nil
}

func (d *database) Load(_ context.Context, from *rows.Reader) error {
	if d.fail != nil {
		return d.fail
	}
	for {
		if _, err := from.Next(); errors.Is(err, io.EOF) {
			d.identity = keyText
			d.loaded++
			return nil
		} else if err != nil {
			return err
		}
		for {
			if _, err := from.Row(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return err
			}
		}
	}
}

// keyText is the identity of a service's database.
var keyText = fmt.Sprintf("%x", "key")

func (*database) Close() error { return nil }

func restore(ctx context.Context, target, store blob.Store, d *database, overwrite bool) (*backup.Restored, error) {
	return backup.Restore(ctx, backup.RestoreOptions{
		Target: target, Storage: store, Overwrite: overwrite,
		Open: func(context.Context, int64) (backup.Loader, error) { return d, nil },
	})
}

// TestBackupAndRestore: what is restored is what was there; a second backup sends what is new alone.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	s, dir := newService(t), t.TempDir()
	target := folder(t, dir)
	s.add(t, "one", 20)
	put(t, s.store, "databases/mine", "a mark")
	if made := s.mustBackUp(t, target, 7); made.Sent != 21 || made.Objects != 21 {
		t.Errorf("sent %d of %d objects", made.Sent, made.Objects)
	}
	s.add(t, "two", 3)
	made := s.mustBackUp(t, target, 7)
	if made.Sent != 4 || made.Objects != 25 || made.Counts["assets"] != 2 {
		t.Errorf("then %d of %d objects, rows %v", made.Sent, made.Objects, made.Counts)
	}
	if found := verify(t, target, ""); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
	counted := &counting{Store: s.store}
	s.store = counted
	if s.mustBackUp(t, target, 7); counted.reads.Load() != 2 { // the indexes, for what they name
		t.Errorf("%d objects are read when there is nothing new", counted.reads.Load())
	}
	other, d := t.TempDir(), &database{}
	if done, err := restore(t.Context(), target, folder(t, other), d, false); err != nil || done.Lost.Count > 0 ||
		done.Sent != 25 {
		t.Fatalf("restore: %+v, %v", done, err)
	}
	want := content(t, s.dir)
	delete(want, "databases/mine")
	if got := content(t, other); !maps.Equal(got, want) || d.loaded != 1 {
		t.Errorf("restored %v, rows %d times", slices.Sorted(maps.Keys(got)), d.loaded)
	}
}

// counting is a store that counts the objects that are read.
type counting struct {
	blob.Store

	reads atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string, off, n int64) (*blob.Reader, error) {
	c.reads.Add(1)
	return c.Store.Get(ctx, key, off, n)
}

// TestSnapshotsAreKept: the newest stay, each whole, and what none of them names goes.
func TestSnapshotsAreKept(t *testing.T) {
	t.Parallel()
	s, dir := newService(t), t.TempDir()
	target := folder(t, dir)
	var names []string
	for i := range 5 {
		s.add(t, fmt.Sprint("asset", i), 2)
		if i > 0 {
			s.remove(t, fmt.Sprint("asset", i-1))
		}
		names = append(names, s.mustBackUp(t, target, 2).Name)
	}
	all := content(t, dir)
	for i, name := range names {
		_, there := all["snapshots/"+name+"/manifest.json"]
		_, object := all[fmt.Sprintf("objects/media/asset%d/v/0-1.m4s", i)]
		if want := i >= 3; there != want || object != want {
			t.Errorf("snapshot %d: %v, its objects: %v", i, there, object)
		}
		if i >= 3 && len(verify(t, target, name)) > 0 {
			t.Errorf("snapshot %d: %v", i, verify(t, target, name))
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "pending/") || name == "lock" {
			t.Errorf("%s is left", name)
		}
	}
}

// TestDeletedMeanwhile: assets that are deleted at any moment of a backup leave none that is not whole.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	for _, moment := range []string{"before", "after"} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			s, target := newService(t), folder(t, t.TempDir())
			s.add(t, "stays", 3)
			s.add(t, "old", 3) // is copied before the snapshot
			n := 0
			meddle := func() {
				if n++; n > 2 {
					return
				}
				s.remove(t, "old")
				s.add(t, "old", 3)
				s.remove(t, fmt.Sprint("new", n-1)) // has come since the first pass, and goes before the second
				s.add(t, fmt.Sprint("new", n), 3)
				if moment == "after" && n == 1 {
					s.remove(t, "old")
				}
			}
			s.add(t, "new0", 3)
			if moment == "before" {
				s.before = func() {
					s.add(t, "late", 3)
					s.after = func() { s.remove(t, "late"); s.after = nil }
					meddle()
					s.before = nil
				}
			} else {
				s.after = meddle
			}
			made := s.mustBackUp(t, target, 1)
			if found := verify(t, target, made.Name); len(found) > 0 {
				t.Errorf("verify: %q", found)
			}
		})
	}
}

// TestLostByTheService: what the storage has lost is told, and the rest is backed up.
func TestLostByTheService(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "one", 3)
	s.add(t, "two", 3)
	if err := s.store.Delete(t.Context(), "media/one/v/1-1.m4s"); err != nil {
		t.Fatal(err)
	}
	made, err := s.backUp(t.Context(), target, 1)
	if err != nil || made.Missing != 1 || len(made.Lacks.All) != 1 || !strings.Contains(made.Lacks.All[0],
		"media/one/v/1-1.m4s") {
		t.Errorf("missing %d, %v, %v", made.Missing, made.Lacks, err)
	}
	if found := verify(t, target, ""); len(found) != 1 || !strings.Contains(found[0],
		"media/one/v/1-1.m4s, of asset one") {
		t.Errorf("verify: %q", found)
	}
}

// breaking is a store that fails after so many objects.
type breaking struct {
	blob.Store

	mu    sync.Mutex
	left  int
	err   error
	stops func() // instead of an error
	notes bool   // can be written even then
}

func (b *breaking) Put(ctx context.Context, key string, r io.Reader) error {
	if b.notes && strings.HasPrefix(key, "pending/") {
		return b.Store.Put(ctx, key, r)
	}
	b.mu.Lock()
	b.left--
	over := b.left < 0
	b.mu.Unlock()
	if over && b.stops != nil {
		b.stops()
		return context.Cause(ctx)
	}
	if over {
		return b.err
	}
	return b.Store.Put(ctx, key, r)
}

// TestBrokenOff: wherever a backup ends, it has the snapshots that it had, each whole, and the next run goes on.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	errFull := errors.New("no space left on device")
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "first", 2)
	first := s.mustBackUp(t, target, 3).Name
	s.add(t, "one", 30)
	for n := 0; ; n++ {
		b := &breaking{Store: target, left: n, err: errFull}
		ctx := t.Context()
		if n%2 == 0 {
			stopped, stop := context.WithCancel(ctx)
			ctx, b.stops = stopped, stop
		}
		_, err := s.backUp(ctx, b, 3)
		if found := verify(t, target, first); len(found) > 0 {
			t.Fatalf("after %d objects: %q", n, found)
		}
		if found := verify(t, target, ""); len(found) > 0 {
			t.Fatalf("after %d objects: %q", n, found)
		}
		if err == nil {
			break
		}
		if n%2 == 1 && !errors.Is(err, errFull) || n > 40 {
			t.Fatalf("after %d objects: %v", n, err)
		}
	}
}

// TestInterrupted: a run that ends early, but not at once, notes what it has copied.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "one", 99)
	ctx, stop := context.WithCancel(t.Context())
	b := &breaking{Store: target, left: 60, stops: stop, notes: true}
	if _, err := s.backUp(ctx, b, 3); !errors.Is(err, context.Canceled) {
		t.Fatalf("it ended with %v", err)
	}
	if made := s.mustBackUp(t, target, 3); made.Sent > 65 { // those that were just under way were not noted
		t.Errorf("%d objects were sent again, of 100 of which 60 were there", made.Sent)
	}
}

// TestKilled: what a killed process has noted is not sent again, and what it has not noted is.
func TestKilled(t *testing.T) {
	t.Parallel()
	s, dir := newService(t), t.TempDir()
	target := folder(t, dir)
	s.add(t, "one", 1200)
	began := time.Now()
	s.now = func() time.Time { return began } // nothing is noted because some time has passed
	// The store stops to exist for the process when it is killed: nothing that comes later is written.
	b := &breaking{Store: target, left: 1100, err: errors.New("killed")}
	if _, err := s.backUp(t.Context(), b, 1); err == nil {
		t.Fatal("it was not killed")
	}
	put(t, target, "lock", `{"run":"dead","host":"another","pid":1,"until":"2020-01-01T00:00:00Z"}`)
	s.now = time.Now
	made := s.mustBackUp(t, target, 1)
	if made.Sent < 100 || made.Sent > 201 {
		t.Errorf("%d of 1201 objects were sent again, of which 1000 were noted", made.Sent)
	}
	if found := verify(t, target, ""); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
}

// TestRemovedByHand: an object that somebody took out of the backup, or cut off, is sent again, and no manifest names
// what is not there.
func TestRemovedByHand(t *testing.T) {
	t.Parallel()
	s, dir := newService(t), t.TempDir()
	target := folder(t, dir)
	s.add(t, "one", 5)
	s.mustBackUp(t, target, 2)
	gone, short := dir+"/objects/media/one/v/1-1.m4s", dir+"/objects/media/one/v/3-1.m4s"
	if err := errors.Join(os.Remove(gone), os.Truncate(short, 3)); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, target, ""); len(found) != 2 || !strings.HasPrefix(found[0], "missing") ||
		!strings.HasPrefix(found[1], "damaged") {
		t.Errorf("verify: %q", found)
	}
	if made := s.mustBackUp(t, target, 2); made.Sent != 2 {
		t.Errorf("%d objects were sent", made.Sent)
	}
	if found := verify(t, target, ""); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
}

// TestTouched: an object with another time is read, and sent only if it is another one.
func TestTouched(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "one", 3)
	s.mustBackUp(t, target, 1)
	later := time.Now().Add(time.Hour)
	path := s.dir + "/media/one/v/0-1.m4s"
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if made := s.mustBackUp(t, target, 1); made.Sent != 0 {
		t.Errorf("%d objects were sent", made.Sent)
	}
	put(t, s.store, "media/one/v/1-1.m4s", strings.Repeat("media/one/v/X-1.m4s", 10)) // as long as it was
	if made := s.mustBackUp(t, target, 1); made.Sent != 1 {
		t.Errorf("%d objects were sent", made.Sent)
	}
	if found := verify(t, target, ""); len(found) > 0 {
		t.Errorf("verify: %q", found)
	}
}

// TestDamage: each byte of each file of a backup that is changed is found, and what is not damaged can be restored.
func TestDamage(t *testing.T) {
	t.Parallel()
	s, dir := newService(t), t.TempDir()
	target := folder(t, dir)
	s.add(t, "one", 3)
	name := s.mustBackUp(t, target, 1).Name
	for path, text := range content(t, dir) {
		if strings.HasSuffix(path, "manifest.json") {
			continue
		}
		bad := []byte(text)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(dir+"/"+path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if found := verify(t, target, ""); len(found) == 0 || !strings.Contains(found[0], path) {
			t.Errorf("damage of %s: %q", path, found)
		}
		other, d := t.TempDir(), &database{}
		done, err := restore(t.Context(), target, folder(t, other), d, false)
		switch object := strings.HasPrefix(path, "objects/"); {
		case !object && (err == nil || d.loaded > 0 || len(content(t, other)) > 0):
			t.Errorf("with %s damaged something is restored: %v", path, err)
		case object && (err != nil || done.Lost.Count != 1 || d.loaded != 1 || len(content(t, other)) != 3):
			t.Errorf("with %s damaged: %v, %+v, %d objects", path, err, done, len(content(t, other)))
		}
		if err := os.WriteFile(dir+"/"+path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	manifest := dir + "/snapshots/" + name + "/manifest.json"
	for _, text := range []string{
		"", "{", `{"millrace_backup":2,"name":"` + name + `"}`,
		`{"millrace_backup":1,"name":"other"}`,
	} {
		if err := os.WriteFile(manifest, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := backup.Verify(t.Context(), backup.VerifyOptions{Target: target}); err == nil {
			t.Errorf("the manifest %q is taken", text)
		}
	}
}

// TestRestoreRefuses what would mix with something that is there.
func TestRestoreRefuses(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "one", 3)
	s.mustBackUp(t, target, 1)
	var notEmpty *backup.NotEmptyError
	full := folder(t, t.TempDir())
	put(t, full, "media/other/x", "x")
	put(t, full, "media/one/v/0-1.m4s", strings.Repeat("media/one/v/X-1.m4s", 10))
	if _, err := restore(t.Context(), target, full, &database{}, false); !errors.As(err, &notEmpty) {
		t.Errorf("into a storage that is not empty: %v", err)
	}
	used := &database{identity: "other"}
	if _, err := restore(t.Context(), target, folder(t, t.TempDir()), used, false); !errors.As(err, &notEmpty) ||
		used.loaded > 0 {
		t.Errorf("into a database that is not empty: %v", err)
	}
	done, err := restore(t.Context(), target, full, used, true)
	if err != nil || done.Sent != 4 || used.loaded != 1 {
		t.Errorf("over it: %+v, %v", done, err)
	}
	if _, err := full.Stat(t.Context(), "media/other/x"); err != nil {
		t.Errorf("what is not in the backup: %v", err)
	}
	if _, err := restore(t.Context(), folder(t, t.TempDir()), full, used, true); !errors.Is(err, backup.ErrNone) {
		t.Errorf("of nothing: %v", err)
	}
}

// TestRestoreGoesOn where an earlier one ended, and does not put rows into the place of those that a service has
// changed since.
func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	s.add(t, "one", 60)
	s.mustBackUp(t, target, 1)
	dir := t.TempDir()
	store, d := folder(t, dir), &database{}
	b := &breaking{Store: store, left: 40, err: errors.New("killed")}
	if _, err := restore(t.Context(), target, b, d, false); err == nil || d.loaded > 0 {
		t.Fatalf("it was not killed: %v", err)
	}
	d.fail = errors.New("killed")
	if done, err := restore(t.Context(), target, store, d, false); err == nil || done.Sent > 40 {
		t.Fatalf("sent %d objects again: %v", done.Sent, err)
	}
	d.fail = nil
	late := &undeleted{store}
	if done, err := restore(t.Context(), target, late, d, false); err == nil || done.Sent != 0 || d.loaded != 1 {
		t.Fatalf("sent %d objects, rows %d times, %v", done.Sent, d.loaded, err)
	}
	d.newer = errors.New("the schema is newer") // as a load leaves it
	if done, err := restore(t.Context(), target, store, d, false); err != nil || done.Sent != 0 || d.loaded != 1 {
		t.Errorf("at last: %+v, rows %d times, %v", done, d.loaded, err)
	}
	if got, want := content(t, dir), content(t, s.dir); !maps.Equal(got, want) {
		t.Errorf("restored %v", slices.Sorted(maps.Keys(got)))
	}
	// that the rows are there counts, and not the schema
	empty := t.TempDir()
	another := &database{newer: d.newer}
	if _, err := restore(t.Context(), target, folder(t, empty), another, false); !errors.Is(err, d.newer) {
		t.Errorf("into an empty database with a newer schema: %v", err)
	}
	if got := content(t, empty); len(got) > 0 {
		t.Errorf("it is refused, and stored are %d objects", len(got))
	}
}

// undeleted is a store that deletes nothing.
type undeleted struct{ blob.Store }

func (*undeleted) Delete(context.Context, ...string) error { return errors.New("killed") }

// TestOneAtATime: a second process waits, and is refused when the first one renews its lock; one that is dead is not
// waited for.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	s, target := newService(t), folder(t, t.TempDir())
	host, _ := os.Hostname()
	until := time.Now().Add(time.Hour).Format(time.RFC3339)
	put(t, target, "lock", fmt.Sprintf(`{"run":"dead","host":%q,"pid":%d,"until":%q}`, host, 1<<30, until))
	s.mustBackUp(t, target, 1)
	put(t, target, "lock", fmt.Sprintf(`{"run":"other","host":"elsewhere","pid":1,"until":%q}`, until))
	renewed := &says{say: func() {
		put(t, target, "lock", fmt.Sprintf(`{"run":"other","host":"elsewhere","pid":1,"until":%q}`,
			time.Now().Add(2*time.Hour).Format(time.RFC3339)))
	}}
	_, err := backup.Make(t.Context(), backup.Options{
		Storage: s.store, Target: target, Database: s, Progress: renewed, Now: time.Now,
	})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "1 on elsewhere") {
		t.Errorf("beside another: %v", err)
	}
	// Who loses the lock does not write a manifest.
	if err := target.Delete(t.Context(), "lock"); err != nil {
		t.Fatal(err)
	}
	s.after = func() { put(t, target, "lock", `{"run":"other"}`) }
	before := len(content(t, s.dir))
	if _, err := s.backUp(t.Context(), target, 1); err == nil || before != len(content(t, s.dir)) {
		t.Errorf("with the lock lost: %v", err)
	}
}

// says is a Progress that calls say when something is said.
type says struct{ say func() }

func (*says) Begin(string, int64, int64) {}
func (*says) Done(int64)                 {}
func (*says) Moved(int64)                {}
func (s *says) Say(string)               { s.say() }
