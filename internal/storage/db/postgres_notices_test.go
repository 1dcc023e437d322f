package db_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"millrace/internal/control/job"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// running runs a database until the test ends, or until stop is called, which waits for its end.
func running(t *testing.T, d *db.DB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		must(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// listens runs a database on PostgreSQL, and returns when it listens.
func listens(t *testing.T, d *db.DB) (stop func()) {
	t.Helper()
	news := d.News()
	stop = running(t, d)
	<-news
	return stop
}

// connect gives a connection that is closed when the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// refuseNotifications has every connection that is made from now on call a pg_notify that fails.
func refuseNotifications(t *testing.T, url string) {
	t.Helper()
	conn := connect(t, url)
	for _, statement := range []string{
		"CREATE SCHEMA refusing",
		`CREATE FUNCTION refusing.pg_notify(text, text) RETURNS void LANGUAGE plpgsql
			AS $$ BEGIN RAISE EXCEPTION 'no notifications'; END $$`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, refusing, pg_catalog',
current_database());
			END $$`,
	} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
}

// wakes has n events committed one after the other, and fails if a reader of another process is not told of each of
// them, a minute for all of them.
func wakes(t *testing.T, url string, reads, writes *db.DB, n int) {
	t.Helper()
	late := time.NewTimer(time.Minute)
	defer late.Stop()
	conn := connect(t, url)
	numbered := func() (events int) {
		must(t, conn.QueryRow(t.Context(), "SELECT COUNT(*) FROM events WHERE sequence > 0").Scan(&events))
		return events
	}
	before := numbered()
	for i := range n {
		news := reads.News()
		must(t, writes.Tell(t.Context(), func() {}, about("x", i)))
		for told := false; !told; told = numbered() == before+i+1 {
			select {
			case <-news:
				news = reads.News()
			case <-late.C:
				t.Fatalf("it was told of %d of %d events", i, n)
			}
		}
	}
}

// TestNewsOfAnother: what one process commits wakes a reader of another one. What that looks for by itself, each
// second, would be too late.
func TestNewsOfAnother(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	writes, reads := dbtest.Open(t, url), dbtest.Open(t, url)
	listens(t, reads)
	listens(t, writes)
	wakes(t, url, reads, writes, 100)
}

// TestNewsOfSilence: a process that can't notify, or does not live to, is looked after each second. The log has one
// line of that.
func TestNewsOfSilence(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	reads := dbtest.Open(t, url)
	listens(t, reads)
	refuseNotifications(t, url)
	var log bytes.Buffer
	writes, err := db.Open(t.Context(), db.Options{
		URL: url, MasterKey: masterkey.Of(masterkey.Key{}),
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	must(t, err)
	stop := listens(t, writes)
	wakes(t, url, reads, writes, 15)
	must(t, writes.Enqueue(t.Context(), job.New("sing", "", struct{}{}))) // which notifies likewise
	stop()
	must(t, writes.Close())
	if n := strings.Count(log.String(), "\n"); n != 1 {
		t.Errorf("%d lines of log:\n%s", n, log.String())
	}
	dead := dbtest.Open(t, url) // it does not run
	wakes(t, url, reads, dead, 15)
}

// TestNewsBesideFullPool: a process whose connections are all taken numbers events, tells of them and notifies others.
func TestNewsBesideFullPool(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	writes, full := dbtest.Open(t, url), dbtest.Open(t, limited(t, url, "2"))
	listens(t, full)
	release, held, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	for range 2 {
		go func() {
			ended <- full.InTransaction(context.WithoutCancel(t.Context()), func(
				func(context.Context, string) error,
			) error {
				held <- struct{}{}
				<-release
				return nil
			})
		}()
		<-held
	}
	news := full.News()
	must(t, writes.Tell(t.Context(), func() {}, about("x", 1)))
	select {
	case <-news:
	case <-time.After(time.Minute):
		t.Error("nobody is told of an event")
	}
	close(release)
	for range 2 {
		must(t, <-ended)
	}
}

// TestNewsAfterReconnect: who loses the connection that listens has another one soon.
func TestNewsAfterReconnect(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	writes, reads := dbtest.Open(t, url), dbtest.Open(t, url)
	listens(t, reads)
	ended, err := connect(t, url).Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'millrace listener'`)
	must(t, err)
	if ended.RowsAffected() != 1 {
		t.Fatalf("%d connections listen", ended.RowsAffected())
	}
	wakes(t, url, reads, writes, 3)
}

// ear is a connection that listens for all that this service notifies of.
type ear struct {
	*pgx.Conn

	url   string
	heard map[string]int // by channel and text
}

const (
	ofEvents = "millrace_events "
	ofJobs   = `public.river_insert {"queue" : "default"}`
	theEnd   = "the_end "
)

func newEar(t *testing.T, url string) *ear {
	t.Helper()
	e := &ear{connect(t, url), url, map[string]int{}}
	for _, channel := range []string{"millrace_events", `"public.river_insert"`, "the_end"} {
		_, err := e.Exec(t.Context(), "LISTEN "+channel)
		must(t, err)
	}
	return e
}

// until hears until there is one.
func (e *ear) until(t *testing.T, one string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for e.heard[one] == 0 {
		n, err := e.WaitForNotification(ctx)
		must(t, err)
		e.heard[n.Channel+" "+n.Payload]++
	}
}

// all hears all that there have been.
func (e *ear) all(t *testing.T) map[string]int {
	t.Helper()
	_, err := connect(t, e.url).Exec(t.Context(), "NOTIFY the_end")
	must(t, err)
	e.until(t, theEnd)
	heard := e.heard
	e.heard = map[string]int{}
	delete(heard, theEnd)
	return heard
}

// TestNotificationsAreBehindTheCommit: no transaction with events or jobs notifies, what is not committed is not said,
// and a burst is said in few notifications.
func TestNotificationsAreBehindTheCommit(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d, other := dbtest.Open(t, url), newEar(t, url)
	burst := func(name string) {
		var writers sync.WaitGroup
		for w := range 10 {
			writers.Go(func() {
				for i := range 10 {
					one := fmt.Sprintf("%s%d-%d", name, w, i)
					if err := d.Tell(t.Context(), func() {}, about(one, i)); err != nil {
						t.Error(err)
					}
					if err := d.Enqueue(t.Context(), job.New("sing", one, struct{}{})); err != nil {
						t.Error(err)
					}
				}
			})
		}
		writers.Wait()
	}
	burst("one")
	if heard := other.all(t); len(heard) > 0 {
		t.Errorf("transactions notify: %v", heard)
	}
	begun := time.Now()
	stop := listens(t, d)
	burst("other")
	other.until(t, ofJobs)
	stop()
	most := int(time.Since(begun)/(50*time.Millisecond)) + 1 // each is so long behind the one before, or longer
	heard := other.all(t)
	for _, one := range []string{ofEvents, ofJobs} {
		if n := heard[one]; n < 1 || n > most {
			t.Errorf("%d notifications %q of 100, want 1 to %d", n, one, most)
		}
		delete(heard, one)
	}
	if len(heard) > 0 {
		t.Errorf("also heard: %v", heard)
	}
}

// TestNothingCommittedNothingSaid: a transaction that is rolled back notifies nobody.
func TestNothingCommittedNothingSaid(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	d, other := dbtest.Open(t, url), newEar(t, url)
	stop := listens(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.Tell(ctx, cancel, about("never", 1)); err == nil {
		t.Error("what was broken off is committed")
	}
	must(t, d.Enqueue(t.Context(), job.New("sing", "", struct{}{})))
	other.until(t, ofJobs) // with which any other notification would have been sent
	stop()
	if heard := other.all(t); heard[ofEvents] > 0 {
		t.Errorf("heard of it: %v", heard)
	}
}
