package db

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/masterkey"
)

// shortened is how many pages a long log has here: many bytes are much work for the race detector.
const shortened = 4096

// logged is an SQLite database whose log is filled, and what is said of it.
type logged struct {
	*DB
	*sqliteLog

	path string
	said bytes.Buffer
}

func openLogged(t *testing.T) *logged {
	t.Helper()
	l := &logged{path: filepath.Join(t.TempDir(), "db")}
	d, err := Open(t.Context(), Options{
		URL: l.path, MasterKey: masterkey.Of(masterkey.Key{}), Logger: slog.New(slog.NewTextHandler(&l.said, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	l.DB, l.sqliteLog = d, d.engine.(audited).engine.(*sqliteEngine).log
	if n := l.number(t, "PRAGMA journal_size_limit"); n != longLog*4096 {
		t.Errorf("the file of a log that begins again is cut to %d bytes", n)
	}
	l.long = shortened
	for _, statement := range []string{
		"CREATE TABLE large (data BLOB)", fmt.Sprintf("PRAGMA journal_size_limit = %d", shortened*4096),
	} {
		if err = l.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// fill writes 64 pages.
func (l *logged) fill(ctx context.Context) error {
	return l.engine.begin(ctx, func(ctx context.Context, t tx) error {
		_, err := t.NewRaw("INSERT INTO large VALUES (zeroblob(262144))").Exec(ctx)
		return err
	})
}

// grow writes until the log has so many pages more.
func (l *logged) grow(t *testing.T, pages int) {
	t.Helper()
	for range pages / 64 {
		if err := l.fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// pages is how many pages the log has.
func (l *logged) pages(t *testing.T) int {
	t.Helper()
	at, err := l.writeBack(t.Context(), "PASSIVE")
	if err != nil {
		t.Fatal(err)
	}
	return at.size
}

// number is what the writer's connection answers.
func (l *logged) number(t *testing.T, query string) (n int) {
	t.Helper()
	if err := l.sqliteLog.write.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// endless begins to read and does not end before the returned function is called.
func (l *logged) endless(t *testing.T, pool *sql.DB) (end func()) {
	t.Helper()
	rows, err := pool.QueryContext(t.Context(), "SELECT 1 FROM large UNION ALL SELECT 2 FROM large")
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatalf("reads nothing: %v", rows.Err())
	}
	return func() {
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLogBeginsAgain although it is written to and read from without a pause.
func TestLogBeginsAgain(t *testing.T) {
	t.Parallel()
	l := openLogged(t)
	defer l.Close()
	l.hold = time.Minute // it waits for the last of four short statements, on a machine that may be busy
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for range readers {
		wg.Go(func() { // the next statement begins when the last one ends: at any time some are under way
			for ctx.Err() == nil {
				var n int
				err := l.read.NewRaw("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "+
					"SELECT COUNT(*) + (SELECT COUNT(*) FROM large) FROM n").Scan(ctx, &n)
				if err != nil && ctx.Err() == nil {
					t.Errorf("read: %v", err)
				}
			}
		})
	}
	written := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := l.fill(ctx); err != nil && ctx.Err() == nil {
					t.Errorf("write: %v", err)
				}
				select {
				case written <- struct{}{}:
				case <-ctx.Done():
				}
			}
		})
	}
	for range shortened / 64 {
		<-written
	}
	type result struct {
		whole bool
		err   error
	}
	done := make(chan result)
	go func() {
		whole, err := l.checkpoint(ctx)
		done <- result{whole, err}
	}()
	for checked := false; !checked; { // they write meanwhile
		select {
		case r := <-done:
			if checked = true; r.err != nil || !r.whole {
				t.Fatalf("the log is written back: %t, %v", r.whole, r.err)
			}
		case <-written:
		}
	}
	for range 8 { // what was about to be written
		<-written
	}
	if n := l.pages(t); n >= shortened {
		t.Errorf("the log has %d pages", n)
	}
}

// TestReaderWithoutEnd: writers go on, other readers are held back for half a second and then seldom, and once the
// reader ends, the log is short and so is its file. Somebody is told, once.
func TestReaderWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, foreigner := range map[string]bool{"of this process": false, "of another process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := openLogged(t)
				defer l.Close()
				l.large = shortened
				l.grow(t, 64)
				pool, by := l.read.DB, ours
				if foreigner {
					other, err := sql.Open("sqlite", l.path)
					if err != nil {
						t.Fatal(err)
					}
					defer other.Close()
					pool, by = other, foreign
				}
				end := l.endless(t, pool)
				l.grow(t, shortened+shortened/2)
				l.holdsInVain(t, foreigner)
				for range 3 { // it is not tried again at once, so that nobody waits
					began := time.Now()
					if whole, err := l.checkpoint(t.Context()); err != nil || whole || time.Since(began) != 0 {
						t.Errorf("another attempt after %v: %t, %v", time.Since(began), whole, err)
					}
				}
				time.Sleep(firstPause)
				l.holdsInVain(t, foreigner)
				if n := l.pages(t); n < shortened+shortened/2 {
					t.Errorf("the log has %d pages while somebody reads from it", n)
				}
				if own := l.number(t, "PRAGMA wal_autocheckpoint"); own != 0 {
					t.Errorf("the writer makes checkpoints from %d pages on", own)
				}
				end()
				if whole, err := l.checkpoint(t.Context()); err != nil || !whole {
					t.Errorf("with the reader gone: %t, %v", whole, err)
				}
				l.grow(t, 64)
				if n := l.pages(t); n > 2*64 {
					t.Errorf("the log has %d pages", n)
				}
				if n := l.LogBytes()(); n == 0 || n > shortened*4096 {
					t.Errorf("its file has %d bytes", n)
				}
				if whole, err := l.checkpoint(t.Context()); err != nil || !whole {
					t.Error(whole, err)
				}
				for text, want := range map[string]int{
					"log grows": 1, `reader="` + string(by) + `"`: 1, "log begins again": 1,
				} {
					if n := strings.Count(l.said.String(), text); n != want {
						t.Errorf("says %q %d times, want %d", text, n, want)
					}
				}
			})
		})
	}
}

// holdsInVain has a checkpoint hold readers back, and others read and write meanwhile.
func (l *logged) holdsInVain(t *testing.T, foreigner bool) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if whole, err := l.checkpoint(t.Context()); err != nil || whole {
			t.Errorf("the log is written back whole: %t, %v", whole, err)
		}
	}()
	synctest.Wait() // it waits for the reader of this process, or has seen that there is another one
	began := time.Now()
	gone, leave := context.WithCancel(t.Context())
	leave()
	if err := l.Ping(gone); !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
		t.Errorf("a reader that has gone waits for %v: %v", time.Since(began), err)
	}
	most := holdMost
	if foreigner {
		most = 0 // nobody waits for what won't end sooner for that
	}
	if err := l.Ping(t.Context()); err != nil || time.Since(began) > most {
		t.Errorf("a reader was held back for %v: %v", time.Since(began), err)
	}
	<-done
	if err := l.fill(t.Context()); err != nil || time.Since(began) > most {
		t.Errorf("a writer waited for %v: %v", time.Since(began), err)
	}
}

// TestReadersGoOn although who holds them back does not come to an end, as on a disk that does not respond.
func TestReadersGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := openLogged(t)
		defer l.Close()
		began := time.Now()
		goOn, err := l.reading.hold(t.Context(), holdMost)
		if err != nil {
			t.Fatal(err)
		}
		if err = l.Ping(t.Context()); err != nil || time.Since(began) != holdMost {
			t.Errorf("a reader goes on after %v: %v", time.Since(began), err)
		}
		if goOn() {
			t.Error("says that the reader was held back until now")
		}
		if goOn, err = l.reading.hold(t.Context(), holdMost); err != nil { // each place was given back once
			t.Fatal(err)
		}
		if !goOn() {
			t.Error("says that nobody was held back")
		}
		if err = l.Ping(t.Context()); err != nil || time.Since(began) != holdMost {
			t.Errorf("a reader goes on after %v: %v", time.Since(began), err)
		}
	})
}

// TestReadersAndTheTurn: a transaction may read with another connection, and who reads may wait for the turn, while the
// log is to begin again.
func TestReadersAndTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := openLogged(t)
		defer l.Close()
		l.grow(t, shortened+64)
		var wg sync.WaitGroup
		defer wg.Wait()
		check := func(want bool) {
			wg.Go(func() {
				if whole, err := l.checkpoint(t.Context()); err != nil || whole != want {
					t.Errorf("the log is written back whole: %t, %v", whole, err)
				}
			})
			synctest.Wait()
		}
		end := l.endless(t, l.read.DB)
		check(false)
		began := time.Now()
		if err := l.fill(t.Context()); err != nil || time.Since(began) > holdMost { // the reader writes
			t.Errorf("a reader waited for the turn for %v: %v", time.Since(began), err)
		}
		end()
		wg.Wait()
		time.Sleep(firstPause)
		if err := l.engine.begin(t.Context(), func(ctx context.Context, _ tx) error {
			check(true)
			began := time.Now()
			if err := l.Ping(ctx); err != nil || time.Since(began) != 0 {
				t.Errorf("a transaction waited to read for %v: %v", time.Since(began), err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestBeginAgainEnds with its context, whatever it waits for.
func TestBeginAgainEnds(t *testing.T) {
	t.Parallel()
	wait := func(block func(t *testing.T, l *logged) (end func())) {
		synctest.Test(t, func(t *testing.T) {
			l := openLogged(t)
			defer l.Close()
			l.grow(t, shortened+64)
			defer block(t, l)()
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() {
				_, err := l.checkpoint(ctx)
				done <- err
			}()
			synctest.Wait()
			began := time.Now()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
				t.Errorf("ended after %v with %v", time.Since(began), err)
			}
		})
	}
	wait(func(_ *testing.T, l *logged) func() {
		l.turn <- struct{}{}
		return func() { <-l.turn }
	})
	wait(func(t *testing.T, l *logged) func() {
		conn, err := l.sqliteLog.write.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return func() { _ = conn.Close() }
	})
	wait(func(t *testing.T, l *logged) func() { return l.endless(t, l.read.DB) })
}

// TestLogFailureIsToldOnce for as long as it lasts.
func TestLogFailureIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := openLogged(t)
		defer l.Close()
		if err := l.side.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*checkpointEvery)
		defer stop()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		if n := strings.Count(l.said.String(), "can't be written back"); n != 1 {
			t.Errorf("told %d times: %s", n, &l.said)
		}
	})
}

// TestReadersAreSingleStatements: what else reads would not be held back.
func TestReadersAreSingleStatements(t *testing.T) {
	t.Parallel()
	l := openLogged(t)
	defer l.Close()
	if _, err := l.read.DB.BeginTx(t.Context(), nil); !errors.Is(err, errSingleStatements) {
		t.Errorf("a transaction: %v", err)
	}
	_, err := l.read.DB.PrepareContext(t.Context(), "SELECT 1") //nolint:sqlclosecheck // there is none
	if !errors.Is(err, errSingleStatements) {
		t.Errorf("a prepared statement: %v", err)
	}
	for range 2 * readers { // a statement that fails gives its place back
		var n int
		if err := l.read.NewRaw("SELECT n FROM none").Scan(t.Context(), &n); err == nil {
			t.Error("reads what is not there")
		}
	}
	if err := l.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}
