package db_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/control/retention"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/storage/rows"
)

// dumped gives the rows of a database, sorted in each table, as a backup has them.
func dumped(t *testing.T, url string) (tables map[string][]string, stream []byte) {
	t.Helper()
	d, err := db.OpenDump(t.Context(), url)
	must(t, err)
	defer func() { must(t, d.Close()) }()
	var out bytes.Buffer
	w, err := rows.NewWriter(&out, d.Schema)
	must(t, err)
	must(t, d.Rows(t.Context(), w))
	_, err = w.Close()
	must(t, err)
	return tablesOf(t, out.Bytes()), out.Bytes()
}

func tablesOf(t *testing.T, stream []byte) map[string][]string {
	t.Helper()
	r, err := rows.NewReader(bytes.NewReader(stream))
	must(t, err)
	tables := map[string][]string{}
	for {
		table, err := r.Next()
		if errors.Is(err, io.EOF) {
			return tables
		}
		must(t, err)
		all := []string{}
		for {
			row, err := r.Row()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			fields := make([]string, len(row))
			for i, c := range table.Columns {
				fields[i] = fmt.Sprintf("%s=%v", c.Name, row[i])
				if text, is := row[i].(string); is && table.Name == "jobs" && c.Name == "args" {
					fields[i] = c.Name + "=" + plain(t, text) // engines set spaces of their own
				}
			}
			slices.Sort(fields)
			all = append(all, strings.Join(fields, " "))
		}
		slices.Sort(all)
		tables[table.Name] = all
	}
}

// plain is a document with its fields in order.
func plain(t *testing.T, document string) string {
	t.Helper()
	var v any
	must(t, json.Unmarshal([]byte(document), &v))
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// used is a database with something of much.
func used(t *testing.T, d *db.DB) {
	t.Helper()
	s := live.Stream{
		ID: "stream", Environment: "env", StreamKey: "secret key", State: live.Idle, CreatedAt: start, UpdatedAt: start,
	}
	must(t, d.LiveStreams().Insert(t.Context(), live.Change{
		Stream: s, Events: happened("created"), Jobs: []job.Insert{{
			Kind: "asset.finish", Key: "one", Queue: job.Clips, Owner: "env", At: at(3600),
			Args: []byte(`{"asset":"x"}`),
		}},
	}))
	for i := range 250 { // more than one statement inserts
		a := asset.Asset{
			ID: id.Asset(fmt.Sprintf("asset%03d",
				i)), Environment: "env", Status: asset.Ready, Media: "m", CreatedAt: at(i),
			UpdatedAt: at(i),
		}
		must(t, d.Assets().Insert(t.Context(), asset.Change{Asset: a, Events: happened("made")}))
	}
}

func loadInto(t *testing.T, url string, stream []byte) error {
	t.Helper()
	r, err := rows.NewReader(bytes.NewReader(stream))
	must(t, err)
	l, err := db.OpenLoad(t.Context(), url, r.Schema(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { must(t, l.Close()) }()
	if err = l.Rows(t.Context(), r, nil); err != nil {
		return err
	}
	return l.Migrate(t.Context())
}

// TestBackup: the rows of one engine are the same in any other, to which they are loaded, and so are the jobs. Then the
// database works: its secrets open with its own master key, and its events go on where they ended.
func TestBackup(t *testing.T) {
	t.Parallel()
	for from, source := range dbtest.Engines() {
		for to, target := range dbtest.Engines() {
			t.Run(from+" to "+to, func(t *testing.T) {
				t.Parallel()
				url := source(t)
				d := dbtest.Open(t, url)
				used(t, d)
				want, stream := dumped(t, url)
				if len(want["assets"]) != 250 || len(want["jobs"]) != 1 || len(want["events"]) != 251 {
					t.Fatalf("%d assets, %d jobs and %d events are dumped", len(want["assets"]), len(want["jobs"]),
						len(want["events"]))
				}
				sameRows(t, target(t), stream)
				other := target(t)
				must(t, loadInto(t, other, stream))
				got, _ := dumped(t, other)
				for table := range want {
					if table == "events" && from == "postgres" {
						continue // are numbered after their commit, or when they are loaded
					}
					if table == "event_cursor" && from == "postgres" {
						continue
					}
					if !reflect.DeepEqual(got[table], want[table]) {
						t.Errorf("%s: got\n%.2000s\nwant\n%.2000s", table, strings.Join(got[table], "\n"),
							strings.Join(want[table], "\n"))
					}
				}
				copied := dbtest.Open(t, other)
				s, err := copied.LiveStreams().Find(t.Context(), "stream")
				if err != nil || s.StreamKey != "secret key" {
					t.Errorf("stream %+v, %v", s, err)
				}
				numbered(t, copied)
			})
		}
	}
}

// sameRows loads a stream, and compares the rows before they are committed: a check that fails leaves nothing. The
// entry of the audit log comes with them.
func sameRows(t *testing.T, url string, stream []byte) {
	t.Helper()
	want := rows.NewDigest()
	must(t, newStream(t, stream).into(want))
	schema, err := db.SchemaVersion()
	must(t, err)
	l, err := db.OpenLoad(t.Context(), url, schema, slog.New(slog.DiscardHandler))
	must(t, err)
	defer func() { must(t, l.Close()) }()
	ctx := audit.With(t.Context(), audit.Entry{At: start, Operation: "migrate", Resource: audit.Resource{ID: "here"}})
	refused := errors.New("refused")
	same := func(read func(db.RowWriter) error) error {
		got := rows.NewDigest()
		return errors.Join(read(got), want.Compare(got))
	}
	if err = l.Rows(ctx, newStream(t, stream), func(read func(db.RowWriter) error) error {
		return errors.Join(same(read), refused)
	}); !errors.Is(err, refused) || err.Error() != refused.Error() {
		t.Fatalf("a check that refuses: %v", err)
	}
	if c, err := l.Content(ctx); err != nil || !c.Empty {
		t.Fatalf("what was refused is there: %+v, %v", c, err)
	}
	must(t, l.Rows(ctx, newStream(t, stream), same))
	tables, _ := dumped(t, url)
	if log := tables["audit_log"]; len(log) != 1 || !strings.Contains(log[0], "operation=migrate") {
		t.Errorf("the audit log has %q", log)
	}
}

// stream is one that is read.
type stream struct{ *rows.Reader }

func newStream(t *testing.T, text []byte) stream {
	t.Helper()
	r, err := rows.NewReader(bytes.NewReader(text))
	must(t, err)
	return stream{r}
}

// into writes it out.
func (s stream) into(to db.RowWriter) error {
	for {
		table, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = to.Table(table)
		}
		for err == nil {
			var row []any
			if row, err = s.Row(); err == nil {
				err = to.Row(row)
			}
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
}

// numbered checks that all events have a place, and that new ones come behind them.
func numbered(t *testing.T, d *db.DB) {
	t.Helper()
	sequences, err := d.Texts(t.Context(), "sequence", "events")
	must(t, err)
	slices.Sort(sequences)
	if len(sequences) != 251 || slices.Contains(sequences, "0") || len(slices.Compact(sequences)) != 251 {
		t.Errorf("the events have the numbers %v", sequences)
	}
	last, err := d.LastEvent(t.Context())
	if err != nil || last < 251 {
		t.Errorf("the last event is number %d, %v", last, err)
	}
}

// TestBackupHasEveryTable, or says that it leaves it out.
func TestBackupHasEveryTable(t *testing.T) {
	t.Parallel()
	url := dbtest.SQLite(t)
	d := dbtest.Open(t, url)
	names, err := d.Texts(t.Context(), "name", "sqlite_master WHERE type = 'table'")
	must(t, err)
	dump, _ := dumped(t, url)
	for _, name := range names {
		other := strings.HasPrefix(name, "river_") || strings.HasPrefix(name, "sqlite_") || name == "goose_db_version"
		if _, is := dump[name]; !is && !other && !slices.Contains(db.LeftOut(), name) {
			t.Errorf("table %s is neither in a backup nor among those that are left out", name)
		}
	}
}

// TestDumpIsOfOneMoment: what is changed while rows are read is not in them.
func TestDumpIsOfOneMoment(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		used(t, d)
		dump, err := db.OpenDump(t.Context(), url)
		must(t, err)
		defer func() { must(t, dump.Close()) }()
		var out bytes.Buffer
		w, err := rows.NewWriter(&out, dump.Schema)
		must(t, err)
		must(t, dump.Rows(t.Context(), &meddler{Writer: w, meddle: func() {
			for _, statement := range []string{
				"DELETE FROM assets", "DELETE FROM events",
				"UPDATE live_streams SET node = 'x'",
			} {
				must(t, d.Exec(t.Context(), statement))
			}
		}}))
		_, err = w.Close()
		must(t, err)
		got := tablesOf(t, out.Bytes())
		if len(got["assets"]) != 250 || len(got["events"]) != 251 || strings.Contains(got["live_streams"][0],
			"node=x") {
			t.Errorf("%d assets, %d events, stream %s", len(got["assets"]), len(got["events"]), got["live_streams"])
		}
	})
}

// meddler changes the database when the first table begins.
type meddler struct {
	*rows.Writer

	meddle func()
}

func (m *meddler) Table(t rows.Table) error {
	if m.meddle != nil {
		m.meddle()
		m.meddle = nil
	}
	return m.Writer.Table(t)
}

// TestLoadIsAllOrNothing: a stream that ends early, or has what is none of ours, changes nothing.
func TestLoadIsAllOrNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		source := dbtest.SQLite(t)
		used(t, dbtest.Open(t, source))
		_, stream := dumped(t, source)
		schema, err := db.SchemaVersion()
		must(t, err)
		head := fmt.Sprintf(`{"millrace_rows":1,"schema":%d}`+"\n", schema)
		target := dbtest.Open(t, url)
		used(t, target)
		must(t, target.Close())
		want, _ := dumped(t, url)
		for name, text := range map[string]string{
			"half":    string(stream[:len(stream)*9/10]),
			"foreign": head + `{"table":"river_job","columns":[{"name":"id","kind":"integer"}]}` + "\n",
			"sql":     head + `{"table":"assets; DROP TABLE events","columns":[{"name":"id","kind":"text"}]}` + "\n",
			"columns": strings.Replace(string(stream), `"name":"media_id"`, `"name":"media_id) SELECT 1 --"`, 1),
			"kinds": strings.Replace(string(stream), `{"name":"media_id","kind":"text"}`,
				`{"name":"media_id","kind":"bytes"}`, 1),
			"missing": head + `{"Tables":0}` + "\n",
		} {
			if err := loadInto(t, url, []byte(text)); err == nil {
				t.Errorf("%s: it is loaded", name)
			}
			if got, _ := dumped(t, url); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: the database is changed", name)
			}
		}
		must(t, loadInto(t, url, stream)) // over what is there
	})
}

// TestLoadRefuses what it can't put rows into.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	newest, err := db.SchemaVersion()
	must(t, err)
	dbtest.Each(t, func(t *testing.T, url string) {
		log := slog.New(slog.DiscardHandler)
		if _, err := db.OpenLoad(t.Context(), url, newest+1, log); err == nil || !strings.Contains(err.Error(),
			"this program knows") {
			t.Errorf("of a newer version: %v", err)
		}
		if _, err := db.OpenLoad(t.Context(), url, 3, log); err == nil {
			t.Error("rows of a version before backups are taken")
		}
		d := dbtest.Open(t, url)
		old, err := db.OpenLoad(t.Context(), url, newest-1, log)
		must(t, err)
		for what, err := range map[string]error{"fits": old.Fits(), "rows": old.Rows(t.Context(), nil, nil)} {
			if err == nil || !strings.Contains(err.Error(), "already") {
				t.Errorf("%s of an older version than the tables: %v", what, err)
			}
		}
		c, err := old.Content(t.Context())
		if err != nil || !c.Empty {
			t.Errorf("content of tables that are newer: %+v, %v", c, err)
		}
		must(t, old.Close())
		must(t, d.Occupy(t.Context(), "node", 0))
		if !strings.HasPrefix(url, "postgres") {
			if _, err = db.OpenLoad(t.Context(), url, newest, log); !errors.Is(err, db.ErrOccupied) {
				t.Errorf("while a service runs: %v", err)
			}
			return
		}
		must(t, d.Exec(t.Context(), fmt.Sprintf("INSERT INTO nodes (id, seen_at, run, valid_until) VALUES ('one', 0, "+
			"'r', %d)",
			time.Now().Add(time.Hour).UnixMilli())))
		l, err := db.OpenLoad(t.Context(), url, newest, log)
		must(t, err)
		defer func() { must(t, l.Close()) }()
		if _, err = l.Content(t.Context()); !errors.Is(err, db.ErrOccupied) {
			t.Errorf("while a node runs: %v", err)
		}
	})
}

// TestLoadOfAnOlderSchema makes the tables as they were, and brings them up to date with the rows in them.
func TestLoadOfAnOlderSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		const older = 37 // tokens had no digest, and nodes no run
		source := dbtest.SQLite(t)
		d := dbtest.Open(t, source)
		must(t, d.MigrateTo(t.Context(), older))
		must(t, d.Exec(t.Context(), "INSERT INTO environments (id, name, kind, is_default, created_at) VALUES ('e', "+
			"'E', 'k', TRUE, 1)"))
		must(t, d.Exec(t.Context(), "INSERT INTO tokens (id, environment_id, name, permissions, hash, created_at, "+
			"revoked_at) "+
			"VALUES ('t', 'e', 'name', 'p', x'00ff', 1, 0)"))
		dump, stream := dumped(t, source)
		if len(dump["tokens"]) != 1 || strings.Contains(dump["tokens"][0], "digest") {
			t.Fatalf("tokens %v", dump["tokens"])
		}
		must(t, loadInto(t, url, stream))
		got, _ := dumped(t, url)
		if len(got["tokens"]) != 1 || !strings.Contains(got["tokens"][0], "digest=<nil>") ||
			!strings.Contains(got["tokens"][0], "hash=[0 255]") {
			t.Errorf("tokens %v", got["tokens"])
		}
	})
}

// TestLoadBeginsGrace: what retention deleted, and a backup brings back, is not deleted again at once.
func TestLoadBeginsGrace(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		source := dbtest.SQLite(t)
		d := dbtest.Open(t, source)
		far := time.Now().Add(10 * retention.DefaultGrace).Truncate(time.Millisecond).UTC()
		for name, starts := range map[string]time.Time{"began": start, "waits": far} {
			env := access.Environment{ID: id.Environment(name), Name: name, Kind: "production", CreatedAt: start}
			must(t, d.Access().InsertEnvironment(t.Context(), env, 9))
			must(t, db.Retention(d).Set(t.Context(), retention.Policy{
				Environment: env.ID, Limits: retention.Limits{MaxAgeDays: 1}, StartsAt: starts, UpdatedAt: start,
			}))
		}
		_, stream := dumped(t, source)
		before := time.Now().Add(retention.DefaultGrace).Truncate(time.Millisecond)
		must(t, loadInto(t, url, stream))
		s := db.Retention(dbtest.Open(t, url))
		began, err := s.Policy(t.Context(), "began")
		if err != nil || !began.On() || began.StartsAt.Before(before) || !began.StartsAt.Before(far) {
			t.Errorf("a policy that deleted: %+v, %v", began, err)
		}
		if waits, err := s.Policy(t.Context(), "waits"); err != nil || !waits.StartsAt.Equal(far) {
			t.Errorf("one that waits for longer: %+v, %v", waits, err)
		}
	})
}

func TestDumpOfNothing(t *testing.T) {
	t.Parallel()
	if _, err := db.OpenDump(t.Context(), t.TempDir()+"/none.db"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no file: %v", err)
	}
	dbtest.Each(t, func(t *testing.T, url string) {
		if !strings.HasPrefix(url, "postgres") {
			return
		}
		if _, err := db.OpenDump(t.Context(), url); !fault.Is(err, fault.NotFound) {
			t.Errorf("no tables: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := db.OpenDump(ctx, url); !errors.Is(err, context.Canceled) {
			t.Errorf("the end of a context: %v", err)
		}
	})
}
