package db_test

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/leaktest"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func wantKind(t *testing.T, err error, want fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != want {
		t.Errorf("error %v is of kind %d, want kind %d", err, fault.KindOf(err), want)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventTypes gives the types of the events of the environment env in order.
func eventTypes(t *testing.T, d *db.DB) []string {
	t.Helper()
	events, err := d.Events(t.Context(), "env", time.Time{}, 1000)
	must(t, err)
	types := []string{}
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types
}

func happened(typ string) []event.Event {
	return []event.Event{event.New("env", typ, "thing", "x", start, map[string]string{"a": "b"})}
}

// wish is a job that nobody works in these tests.
func wish(key string) []job.Insert {
	return []job.Insert{job.New("test.kind", key, map[string]int{"n": 1})}
}

// pending counts the unfinished jobs of a key, and ends them.
func pending(t *testing.T, d *db.DB, key string) int {
	t.Helper()
	n, err := d.CancelJobs(t.Context(), "test.kind", key)
	must(t, err)
	return n
}

// together runs f n times at once and gives the errors.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

func count(errs []error, is func(error) bool) int {
	n := 0
	for _, err := range errs {
		if is(err) {
			n++
		}
	}
	return n
}

func isNil(err error) bool      { return err == nil }
func isConflict(err error) bool { return fault.Is(err, fault.Conflict) }

func TestOpen(t *testing.T) {
	t.Parallel()
	t.Run("the forms of an SQLite URL", func(t *testing.T) {
		t.Parallel()
		folder := t.TempDir()
		for _, url := range []string{
			filepath.Join(folder, "new", "folder", "a.db"), "sqlite://" + filepath.Join(folder, "b.db"),
			"sqlite:" + filepath.Join(folder, "c.db"),
		} {
			d, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
			must(t, err)
			must(t, d.Ping(t.Context()))
			must(t, d.Close())
		}
		for _, name := range []string{"new/folder/a.db", "b.db", "c.db"} {
			info, err := os.Stat(filepath.Join(folder, name))
			must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s has mode %v, want 0600: it holds stream keys", name, info.Mode().Perm())
			}
		}
	})
	t.Run("River's news are details", func(t *testing.T) {
		t.Parallel()
		for level, want := range map[slog.Level]bool{slog.LevelInfo: false, slog.LevelDebug: true} {
			var log bytes.Buffer
			d, err := db.Open(t.Context(), db.Options{
				URL: dbtest.SQLite(t), Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level})),
				MasterKey: masterkey.Of(masterkey.Key{}),
			})
			must(t, err)
			must(t, d.Close())
			if strings.Contains(log.String(), "level=DEBUG") != want || strings.Contains(log.String(), "level=INFO") {
				t.Errorf("log at level %v:\n%s", level, &log)
			}
		}
	})
	t.Run("what is refused", func(t *testing.T) {
		t.Parallel()
		for _, url := range []string{
			"", "mysql://u:geheim@h/x", "sqlite://", "postgres://u:geheim@h:x/y", filepath.Join(t.TempDir(), "a\x00b"),
		} {
			_, err := db.Open(t.Context(), db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})})
			if err == nil || strings.Contains(err.Error(), "geheim") {
				t.Errorf("open %q: %v", url, err)
			}
		}
	})
	t.Run("a file that is no database", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "x.db")
		must(t, os.WriteFile(path, bytes.Repeat([]byte("nonsense"), 1000), 0o600))
		if _, err := db.Open(t.Context(), db.Options{URL: path, MasterKey: masterkey.Of(masterkey.Key{})}); err == nil {
			t.Error("opened")
		}
	})
}

func TestOpenTwiceAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		var mu sync.Mutex
		var opened []*db.DB
		errs := together(4, func(int) error {
			d, err := db.Open(t.Context(), db.Options{
				URL: url, Logger: slog.New(slog.DiscardHandler), MasterKey: masterkey.Of(masterkey.Key{}),
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				opened = append(opened, d)
			}
			return err
		})
		for _, d := range opened {
			must(t, d.Close())
		}
		must(t, errors.Join(errs...))
		d := dbtest.Open(t, url) // and once more on what is there
		must(t, d.Ping(t.Context()))
	})
}

func TestEnqueue(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		errs := together(16, func(int) error { return d.Enqueue(t.Context(), wish("same")...) })
		must(t, errors.Join(errs...))
		if n := pending(t, d, "same"); n != 1 {
			t.Errorf("%d unfinished jobs of one key, want 1", n)
		}
		must(t, d.Enqueue(t.Context(), wish("same")...)) // the first one has ended
		if n := pending(t, d, "same"); n != 1 {
			t.Errorf("%d unfinished jobs after the first has ended, want 1", n)
		}
		must(t, d.Enqueue(t.Context(), append(wish(""), wish("")...)...)) // no key: no limit
		must(t, d.Enqueue(t.Context(), job.New("other.kind", "same", nil)))
		if n := pending(t, d, "same"); n != 0 {
			t.Errorf("%d jobs of another kind were counted", n)
		}
	})
}

func TestNodes(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		must(t, d.SeeNode(t.Context(), "a"))
		must(t, d.SeeNode(t.Context(), "a"))
		must(t, d.SeeNode(t.Context(), "b"))
		lost, err := d.LostNodes(t.Context(), time.Minute)
		must(t, err)
		if len(lost) != 0 {
			t.Errorf("lost %v, want none", lost)
		}
		lost, err = d.LostNodes(t.Context(), -time.Minute) // seen before a minute from now: all
		must(t, err)
		slices.Sort(lost)
		if !slices.Equal(lost, []id.Node{"a", "b"}) {
			t.Errorf("lost %v, want a and b", lost)
		}
		_, err = d.ReleaseJobs(t.Context(), "a")
		must(t, err)
		lost, err = d.LostNodes(t.Context(), -time.Minute)
		must(t, err)
		if !slices.Equal(lost, []id.Node{"b"}) {
			t.Errorf("lost %v after a was let go, want b", lost)
		}
	})
}
