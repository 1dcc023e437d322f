package db_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/internal/control/asset"
	"millrace/internal/control/live"
	"millrace/internal/control/webhook"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/masterkey"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/storage/rows"
)

// TestBeforeMigration is called once, when there are rows of an older schema, which stay as they are if it fails.
func TestBeforeMigration(t *testing.T) {
	t.Parallel()
	newest, err := db.SchemaVersion()
	must(t, err)
	const older = 37
	dbtest.Each(t, func(t *testing.T, url string) {
		var called []string
		var refuse error
		open := func() (*db.DB, error) {
			return db.Open(t.Context(), db.Options{
				URL: url, MasterKey: masterkey.Of(masterkey.Key{}),
				BeforeMigration: func(ctx context.Context, from, to int64) error {
					dump, err := db.OpenDump(ctx, url)
					if err != nil {
						return err
					}
					called = append(called, fmt.Sprint(from, to, dump.Schema))
					return errors.Join(dump.Close(), refuse)
				},
			})
		}
		d, err := open()
		must(t, err)
		must(t, d.MigrateTo(t.Context(), older))
		must(t, d.Close())
		if len(called) > 0 {
			t.Errorf("for a new database it is called with %q", called)
		}
		refuse = errors.New("the disk is full")
		if _, err = open(); !errors.Is(err, refuse) {
			t.Fatalf("when it fails: %v", err)
		}
		dump, err := db.OpenDump(t.Context(), url)
		must(t, err)
		if dump.Schema != older {
			t.Errorf("when it fails, the schema is %d", dump.Schema)
		}
		must(t, dump.Close())
		refuse = nil
		for range 2 {
			d, err = open()
			must(t, err)
			must(t, d.Close())
		}
		if once := fmt.Sprint(older, newest, older); !slices.Equal(called, []string{once, once}) {
			t.Errorf("it is called with %q, and %q is wanted, when it failed and after that", called, once)
		}
	})
}

// later is the newest migration of a later program: additive, with a column more in each table.
func later(t *testing.T) (number int64, migrations map[string]string) {
	t.Helper()
	newest, err := db.SchemaVersion()
	must(t, err)
	var up strings.Builder
	for _, table := range db.Tables() {
		fmt.Fprintf(&up, "ALTER TABLE %s ADD COLUMN later text NOT NULL DEFAULT 'l';\n", table)
	}
	up.WriteString("CREATE TABLE laters (id varchar(255) PRIMARY KEY);\nCREATE INDEX later_names ON assets (later);\n")
	return newest + 1, map[string]string{
		fmt.Sprintf("%05d_later.sql", newest+1): "-- +since same\n\n-- +goose Up\n" + up.String() +
			"\n-- +goose Down\nDROP TABLE laters;\n",
	}
}

// raising is a migration that programs which know less than it can't go on with.
func raising(number int64) map[string]string {
	return map[string]string{
		fmt.Sprintf("%05d_raising.sql", number): fmt.Sprintf("-- +since %d\n\n-- +goose Up\nDROP TABLE laters;\n"+
			"UPDATE schema_compatibility SET since = %d WHERE since < %d;\n\n"+
			"-- +goose Down\nCREATE TABLE laters (id text);\n",
			number, number, number),
	}
}

func laterOptions(url string) db.Options {
	return db.Options{URL: url, MasterKey: masterkey.Of(masterkey.Key{})}
}

// TestRunsOnALaterSchema: a later program migrates the database under an open store, which goes on reading and writing
// everything, as does one that is opened afterwards. Once a migration has taken something away, it is refused.
func TestRunsOnALaterSchema(t *testing.T) {
	t.Parallel()
	number, migrations := later(t)
	own := number - 1
	dbtest.Each(t, func(t *testing.T, url string) {
		older := dbtest.Open(t, url)
		insertStreams(t, older, idleStream("env", "before", at(0)))
		if _, err := older.LiveStreams().Find(t.Context(), "s-before"); err != nil { // what is prepared once is
			t.Fatal(err)
		}
		newer, err := db.OpenLater(t.Context(), laterOptions(url), migrations)
		must(t, err)
		t.Cleanup(func() { must(t, newer.Close()) })
		fillEveryKind(t, older)
		readEveryKind(t, older)
		_, err = older.Deliveries(t.Context(), "hook", webhook.DeliveryQuery{Limit: 9})
		must(t, err)
		a, err := older.Assets().Find(t.Context(), "a-kept")
		must(t, err)
		must(t, older.Assets().Save(t.Context(), asset.Change{From: a.Status, Asset: a, Tracks: a.Tracks}))
		l, err := older.LiveStreams().Find(t.Context(), "s-before")
		must(t, err)
		must(t, older.LiveStreams().Save(t.Context(), live.Change{From: l.State, Stream: l}))
		readEveryKind(t, newer)
		for _, d := range []*db.DB{older, newer} {
			if s, failed := d.Nodes().Schema(t.Context()); failed != nil || s.Newest != number || s.Since > own ||
				s.Admits(own) != nil {
				t.Errorf("the schema is %+v, %v", s, failed)
			}
		}
		again, err := db.Open(t.Context(), laterOptions(url))
		must(t, err)
		readEveryKind(t, again)
		insertStreams(t, again, idleStream("env", "again", at(0)))
		must(t, again.Close())

		newest, err := db.OpenLater(t.Context(), laterOptions(url), mergedMaps(migrations, raising(number+1)))
		must(t, err)
		t.Cleanup(func() { must(t, newest.Close()) })
		s, err := older.Nodes().Schema(t.Context())
		must(t, err)
		if s.Newest != number+1 || s.Since != number+1 || !fault.Is(s.Admits(own), fault.Conflict) ||
			s.Admits(number+1) != nil {
			t.Errorf("the schema is %+v, and admits %v", s, s.Admits(own))
		}
		for range 2 { // it changes nothing
			d, failed := db.Open(t.Context(), laterOptions(url))
			if failed == nil || !strings.Contains(failed.Error(), "run the version of Millrace that migrated it") {
				t.Fatalf("a program that knows less is not refused: %v, %v", d, failed)
			}
		}
		if now, failed := db.SchemaAt(t.Context(), url); failed != nil || now != s {
			t.Errorf("the schema is %+v, %v", now, failed)
		}
		if _, err = db.OpenLater(t.Context(), laterOptions(url), migrations); err == nil {
			t.Error("a program that knows less than the migration is not refused")
		}
	})
}

// TestStatementsListColumns: a later version may have added columns, which no row of this one has a place for.
func TestStatementsListColumns(t *testing.T) {
	t.Parallel()
	everything := regexp.MustCompile(`(?i)"[^"]*(?:\b(?:SELECT|RETURNING) \*|\b[a-z]+\.\*)|` +
		`(?:Returning|ColumnExpr)\("\*`)
	files, err := filepath.Glob("*.go")
	must(t, err)
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		must(t, err)
		seen++
		for line := range strings.Lines(string(text)) {
			if everything.MatchString(line) {
				t.Errorf("%s reads columns that it does not know: %s", file, line)
			}
		}
	}
	if seen == 0 {
		t.Error("there are no files")
	}
}

func mergedMaps(all ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// TestWritesWhileALaterOneMigrates: nobody's statement fails while tables are changed under it.
func TestWritesWhileALaterOneMigrates(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	_, migrations := later(t)
	older := dbtest.Open(t, url)
	ctx, stop := context.WithCancel(t.Context())
	begun := make(chan struct{}, 8)
	var writers sync.WaitGroup
	var errs [4]error
	for w := range errs {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil && errs[w] == nil; n++ {
				name := fmt.Sprintf("%d-%d", w, n)
				a := plainAsset("env", name, at(n))
				errs[w] = errors.Join(
					older.LiveStreams().Insert(t.Context(), live.Change{
						Stream: idleStream("env", name, at(n)), Events: happened("made"),
					}),
					older.Assets().Insert(t.Context(), asset.Change{Asset: a, Events: happened("made")}),
				)
				if n == 1 {
					begun <- struct{}{}
				}
			}
		})
	}
	for range errs {
		<-begun
	}
	newer, err := db.OpenLater(t.Context(), laterOptions(url), migrations)
	stop()
	writers.Wait()
	must(t, errors.Join(err, errors.Join(errs[:]...)))
	must(t, newer.Close())
}

// TestMigrationGivesWay: a migration waits for a transaction that reads a table, such as a backup's, and whoever uses
// the table meanwhile is not kept waiting behind it.
func TestMigrationGivesWay(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	number, migrations := later(t)
	older := dbtest.Open(t, url)
	dump, err := db.OpenDump(t.Context(), url)
	must(t, err)
	w, err := rows.NewWriter(io.Discard, dump.Schema)
	must(t, err)
	must(t, dump.Rows(t.Context(), w)) // its transaction holds all tables until it is closed
	log := &heard{line: make(chan struct{})}
	o := laterOptions(url)
	o.Logger = slog.New(slog.NewTextHandler(log, nil))
	opened := make(chan error, 1)
	go func() {
		d, failed := db.OpenLater(t.Context(), o, migrations)
		if failed == nil {
			failed = d.Close()
		}
		opened <- failed
	}()
	select {
	case <-log.line: // it has given way once
	case failed := <-opened:
		t.Fatalf("it does not wait for the backup: %v", failed)
	}
	if !strings.Contains(log.text, "a transaction holds a table") {
		t.Errorf("it says %q", log.text)
	}
	insertStreams(t, older, idleStream("env", "meanwhile", at(0)))
	if s, failed := older.Nodes().Schema(t.Context()); failed != nil || s.Newest != number-1 {
		t.Errorf("the schema is %+v, %v, while a backup reads", s, failed)
	}
	must(t, dump.Close())
	must(t, <-opened)
	if s, failed := older.Nodes().Schema(t.Context()); failed != nil || s.Newest != number {
		t.Errorf("the schema is %+v, %v", s, failed)
	}
}

// heard is a log whose first line is waited for.
type heard struct {
	once sync.Once
	line chan struct{}
	text string
}

func (h *heard) Write(p []byte) (int, error) {
	h.once.Do(func() { h.text = string(p); close(h.line) })
	return len(p), nil
}

// TestSparesNodes: a migration that running nodes could not go on with is refused, with their names, as long as they
// run.
func TestSparesNodes(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	number, migrations := later(t)
	older := dbtest.Open(t, url)
	for name, valid := range map[id.Node]time.Duration{"runs": time.Hour, "gone": -time.Hour} {
		n := aNode(string(name), "run-"+string(name))
		n.Name, n.Schema, n.Version = name, number-1, "1.2.3"
		_, _, err := older.Nodes().Register(t.Context(), n, valid)
		must(t, err)
	}
	all := mergedMaps(migrations, raising(number+1))
	d, err := db.OpenLater(t.Context(), laterOptions(url), all)
	if err == nil || !strings.Contains(err.Error(), ": runs (1.2.3); first upgrade them") {
		t.Fatalf("it is not refused under a node: %v, %v", d, err)
	}
	if s, failed := older.Nodes().Schema(t.Context()); failed != nil || s.Newest != number-1 {
		t.Errorf("the schema is %+v, %v", s, failed)
	}
	n := aNode("runs", "run-runs")
	n.Name, n.Schema = "runs", number+1
	_, _, err = older.Nodes().Register(t.Context(), n, time.Hour) // the node is upgraded
	must(t, err)
	d, err = db.OpenLater(t.Context(), laterOptions(url), all)
	must(t, err)
	must(t, d.Close())
}
