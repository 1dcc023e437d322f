package db_test

import (
	"bytes"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/control/asset"
	"millrace/internal/control/audit"
	"millrace/internal/control/drm"
	"millrace/internal/control/event"
	"millrace/internal/control/job"
	"millrace/internal/control/live"
	"millrace/internal/control/playbackid"
	"millrace/internal/control/restriction"
	"millrace/internal/control/signing"
	"millrace/internal/control/upload"
	"millrace/internal/control/usage"
	"millrace/internal/control/vocabulary"
	"millrace/internal/control/webhook"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
	"millrace/internal/storage/rows"
)

// updateSchemas writes the rows of the newest schema into testdata/schemas, where none of that schema are; those of
// earlier ones stay as they were written. It notes the migrations there too.
var updateSchemas = flag.Bool("update", false, "write rows of the newest schema, for TestUpgrade")

const (
	schemasDir = "testdata/schemas"
	// keptMigrations has a line for each migration of a schema that is kept: the digest of its statements and its
	// name.
	keptMigrations = schemasDir + "/migrations.txt"
	// everyTableFrom is the first schema with rows in the tables that a backup leaves out, too: they have a file of
	// their own beside it.
	everyTableFrom = 45
	leftOutFile    = ".left-out"
)

// keptSchemas are the files with rows of a schema.
func keptSchemas(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(schemasDir + "/[0-9][0-9][0-9].jsonl")
	must(t, err)
	if len(files) < 3 {
		t.Fatalf("there are %q", files)
	}
	return files
}

// TestUpgrade brings the rows of each schema that is kept, with some of every kind, to the newest one, on each engine,
// and reads them through the stores.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	newest, err := db.SchemaVersion()
	must(t, err)
	if *updateSchemas {
		writeSchema(t, newest)
		noteMigrations(t)
	}
	for _, file := range keptSchemas(t) {
		text, err := os.ReadFile(file)
		must(t, err)
		more, err := os.ReadFile(leftOutOf(file))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			hasEveryTable(t, text, more)
			dbtest.Each(t, func(t *testing.T, url string) {
				before := loadSchema(t, url, text, more)
				d := dbtest.Open(t, url)
				readEveryKind(t, d)
				after, _ := dumped(t, url)
				maps.Copy(after, tablesOf(t, leftOutRows(t, url, newest)))
				for table, all := range before {
					if len(after[table]) != len(all) || len(all) == 0 {
						t.Errorf("%s had %d rows, and has %d", table, len(all), len(after[table]))
					}
				}
			})
		})
	}
}

// hasEveryTable checks that rows of a schema are in each of its tables.
func hasEveryTable(t *testing.T, text, more []byte) {
	t.Helper()
	r, err := rows.NewReader(bytes.NewReader(text))
	must(t, err)
	if r.Schema() < everyTableFrom {
		return
	}
	d := dbtest.Open(t, dbtest.SQLite(t))
	must(t, d.MigrateTo(t.Context(), r.Schema()))
	names, err := d.Texts(t.Context(), "name", "sqlite_master WHERE type = 'table'")
	must(t, err)
	have := tablesOf(t, text)
	maps.Copy(have, tablesOf(t, more))
	if len(have["jobs"]) == 0 {
		t.Error("there is no job")
	}
	for _, name := range names {
		other := strings.HasPrefix(name, "river_") || strings.HasPrefix(name, "sqlite_") ||
			name == "goose_db_version" || name == "schema_compatibility"
		if !other && len(have[name]) == 0 {
			t.Errorf("table %s has no row: give it one in fillEveryKind, and write the rows again with -update", name)
		}
	}
}

// loadSchema puts rows into a database of their schema, and gives them.
func loadSchema(t *testing.T, url string, text, more []byte) map[string][]string {
	t.Helper()
	r, err := rows.NewReader(bytes.NewReader(text))
	must(t, err)
	l, err := db.OpenLoad(t.Context(), url, r.Schema(), slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, l.Rows(t.Context(), r, nil))
	tables := tablesOf(t, text)
	if len(more) > 0 {
		r, err = rows.NewReader(bytes.NewReader(more))
		must(t, err)
		must(t, l.LeftOut(t.Context(), r))
		maps.Copy(tables, tablesOf(t, more))
	}
	must(t, l.Close())
	return tables
}

// leftOutOf is the file with the rows of the other tables.
func leftOutOf(file string) string {
	return strings.TrimSuffix(file, ".jsonl") + leftOutFile + ".jsonl"
}

func leftOutRows(t *testing.T, url string, schema int64) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := rows.NewWriter(&out, schema)
	must(t, err)
	must(t, db.DumpLeftOut(t.Context(), url, w))
	_, err = w.Close()
	must(t, err)
	return out.Bytes()
}

// writeSchema writes the rows of the newest schema, unless they are kept.
func writeSchema(t *testing.T, schema int64) {
	t.Helper()
	file := fmt.Sprintf("%s/%03d.jsonl", schemasDir, schema)
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		must(t, err)
		return
	}
	url := dbtest.SQLite(t)
	d := dbtest.Open(t, url)
	fillEveryKind(t, d)
	_, stream := dumped(t, url)
	must(t, os.MkdirAll(schemasDir, 0o750))
	must(t, os.WriteFile(leftOutOf(file), leftOutRows(t, url, schema), 0o600))
	must(t, os.WriteFile(file, stream, 0o600))
}

// statements is the digest of a migration without its comments.
func statements(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("migrations/" + name)
	must(t, err)
	plain := strings.Join(strings.Fields(comment.ReplaceAllString(string(text), "")), " ")
	return fmt.Sprintf("%x", sha256.Sum256([]byte(plain)))
}

// noteMigrations adds those that are not noted yet.
func noteMigrations(t *testing.T) {
	t.Helper()
	noted, err := os.ReadFile(keptMigrations)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	for _, file := range files {
		if name := filepath.Base(file); !bytes.Contains(noted, []byte(" "+name+"\n")) {
			noted = fmt.Appendf(noted, "%s %s\n", statements(t, name), name)
		}
	}
	must(t, os.WriteFile(keptMigrations, noted, 0o600))
}

// TestMigrationsStay: databases have been through the migrations of the schemas that are kept, and nothing goes through
// them again.
func TestMigrationsStay(t *testing.T) {
	t.Parallel()
	if *updateSchemas {
		t.Skip("they are noted now")
	}
	noted, err := os.ReadFile(keptMigrations)
	must(t, err)
	kept := keptSchemas(t)
	newest := strings.TrimSuffix(filepath.Base(kept[len(kept)-1]), ".jsonl")
	for line := range strings.Lines(string(noted)) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if statements(t, name) != digest {
			t.Errorf("%s has changed, and databases have been through it: add another migration", name)
		}
	}
	files, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	for _, file := range files {
		name := filepath.Base(file)
		if name[2:5] <= newest && !bytes.Contains(noted, []byte(" "+name+"\n")) {
			t.Errorf("%s is not noted: a schema that is kept is newer", name)
		}
	}
}

// fillEveryKind has something be in every table.
func fillEveryKind(t *testing.T, d *db.DB) {
	t.Helper()
	ctx := t.Context()
	env, err := d.Access().EnsureDefault(ctx, access.Environment{
		ID: "env", Name: "Default", Kind: "production", CreatedAt: at(0),
	})
	must(t, err)
	told := audit.With(ctx, audit.Entry{
		At: start, Operation: "create-token", Actor: audit.Actor{Type: audit.CommandLine, Name: "ann"},
	})
	must(t, d.Access().InsertToken(told, access.Token{
		ID: "token", Environment: env.ID, Name: "it's", Permissions: []string{"video:read"}, Hash: []byte{0, 255},
		CreatedAt: at(1),
	}, 10))
	must(t, d.LiveStreams().Insert(ctx, live.Change{
		Stream: fullStream("kept"), Events: happened("created"), Jobs: []job.Insert{{
			Kind: "asset.finish", Key: "one", Queue: job.Clips, Owner: "env", At: at(3600),
			Args: []byte(`{"asset":"x"}`),
		}},
	}))
	a := fullAsset("kept")
	must(t, d.Assets().Insert(ctx, asset.Change{
		Asset: a, Tracks: a.Tracks, Events: happened("made"),
		Entries: []asset.TimelineEntry{{Sequence: 1, Data: []byte(`{}`)}, {Sequence: 2, Data: []byte(`{}`)}},
	}))
	must(t, d.Uploads().Insert(ctx, upload.Change{Upload: upload.Upload{
		ID: "upload", Environment: env.ID, Status: upload.Waiting, Secret: "secret of upload", Media: "m",
		CreatedAt: at(1),
	}}))
	must(t, d.InsertWebhook(ctx, webhook.Webhook{
		ID: "hook", Environment: env.ID, Address: "https://hooks.example/", Enabled: true, CreatedAt: at(1),
		Secret: "secret of webhook",
	}, 10))
	public := &rsa.PublicKey{N: new(big.Int).SetBit(big.NewInt(1), 2047, 1), E: 65537}
	key := signing.Key{ID: "key", Environment: env.ID, Public: public, CreatedAt: at(1)}
	must(t, d.Signing().InsertKey(ctx, key, 10))
	must(t, d.Restrictions().Insert(ctx, restriction.Restriction{
		ID: "restriction", Environment: env.ID, CreatedAt: at(1), UpdatedAt: at(1),
		Referrer: restriction.Referrer{AllowedDomains: []string{"*.example.com"}},
	}, 10))
	name := "Places"
	_, err = vocabulary.New(d.Vocabularies()).Create(ctx, env.ID, vocabulary.Input{
		Name: &name, Phrases: &[]string{"Quellimar"},
	}, at(1))
	must(t, err)
	s := drm.New(drm.Options{Store: d.DRM()})
	c, err := s.Create(ctx, env.ID, "ours", drm.Settings{Scheme: drm.CBCS, ClearKey: true}, at(1))
	must(t, err)
	_, err = s.Content(ctx, env.ID, drm.Resource{Kind: playbackid.OfAsset, ID: string(a.ID)}, c.ID, at(1))
	must(t, err)
	must(t, d.Usage().Add(ctx, hour, []usage.Delivered{delivered(a.ID, "", usage.Seconds{Tier720: 1.5})}))
	blob := "x'00ff'"
	if d.OnPostgres() {
		blob = `'\x00ff'`
	}
	for _, statement := range []string{
		"INSERT INTO webhook_deliveries (webhook_id, sequence, resource_id, state, attempts, first_at, next_at, log) " +
			"VALUES ('hook', 1, 'r', 'waiting', 1, 1, 2, '{}')",
		"INSERT INTO deleted_assets (id, environment_id, live_stream_id, document, created_at, deleted_at) " +
			"VALUES ('gone', 'env', '', '{}', 1, 2)",
		"INSERT INTO path_secrets (number, secret) VALUES (1, " + blob + ")",
		"INSERT INTO owners (run, node, seen_at) VALUES ('run', 'node', 1)",
		"INSERT INTO dashboard_password (one, hash) VALUES (1, 'hash')",
		"INSERT INTO nodes (id, seen_at, run, version, schema_version, roles, started_at, renewed_at, valid_until) " +
			"VALUES ('node', 0, 'run', '1.2', 44, 'all', 1, 2, 3)",
		"INSERT INTO claims (object_key, holder, lease_until, wanted) VALUES ('media/x', 'node', 1, TRUE)",
		"INSERT INTO audiences (node, playback_key, viewers, told_at) VALUES ('node', 1, " + blob + ", 2)",
		"INSERT INTO dashboard_links (hash, expires_at) VALUES ('hash', 1)",
		"INSERT INTO dashboard_sessions (hash, environment_id, token_id, address, created_at, expires_at) " +
			"VALUES ('hash', 'env', '', '192.0.2.1', 1, 2)",
		"INSERT INTO media_sizes (media_id, bytes, measured_at) VALUES ('m-kept', 5, 1)",
		"INSERT INTO retention_policies (environment_id, max_age_days, max_bytes, starts_at, updated_at) " +
			"VALUES ('env', 90, 0, 2, 1)",
	} {
		must(t, d.Exec(ctx, statement))
	}
}

// readEveryKind reads what fillEveryKind has made.
func readEveryKind(t *testing.T, d *db.DB) {
	t.Helper()
	ctx := t.Context()
	s, err := d.LiveStreams().Find(ctx, "s-kept")
	if err != nil || s.StreamKey != "key-kept" || s.SRTPassphrase != "pass-kept" || len(s.PlaybackIDs) != 2 ||
		s.Settings.SimulcastTargets[0].StreamKey != "k" {
		t.Errorf("live stream %+v, %v", s, err)
	}
	a, err := d.Assets().Find(ctx, "a-kept")
	if err != nil || a.Facts.Duration != 2.5 || len(a.PlaybackIDs) != 2 || len(a.Tracks) != 2 ||
		len(a.Static.Files) != 1 {
		t.Errorf("asset %+v, %v", a, err)
	}
	if all, err := d.Assets().Timeline(ctx, "a-kept", 0); err != nil || len(all) != 2 {
		t.Errorf("timeline %+v, %v", all, err)
	}
	if u, err := d.Uploads().Find(ctx, "upload"); err != nil || u.Secret != "secret of upload" {
		t.Errorf("upload %+v, %v", u, err)
	}
	lists := map[string]func() (int, error){
		"environments": func() (int, error) { l, err := d.Access().Environments(ctx, 1, 9); return len(l), err },
		"tokens":       func() (int, error) { _, err := d.Access().Token(ctx, "token"); return 1, err },
		"signing keys": func() (int, error) { l, err := d.Signing().Keys(ctx, "env", 1, 9); return len(l), err },
		"restrictions": func() (int, error) { l, err := d.Restrictions().List(ctx, "env", 1, 9); return len(l), err },
		"audit log":    func() (int, error) { l, err := d.AuditLog(ctx, audit.Query{Limit: 9}); return len(l), err },
		"vocabularies": func() (int, error) {
			l, err := vocabulary.New(d.Vocabularies()).List(ctx, "env", 1, 9)
			return len(l), err
		},
		"DRM": func() (int, error) {
			l, err := drm.New(drm.Options{Store: d.DRM()}).List(ctx, "env", 1, 9)
			return len(l), err
		},
	}
	for noun, list := range lists {
		if n, err := list(); err != nil || n != 1 {
			t.Errorf("%s: %d, %v", noun, n, err)
		}
	}
	if p, err := db.Retention(d).Policy(ctx, "env"); err != nil || p.On() && p.MaxAgeDays != 90 {
		t.Errorf("retention %+v, %v", p, err)
	}
	if all, err := d.ListEvents(ctx, event.Query{Limit: 9}); err != nil || len(all) != 2 {
		t.Errorf("events %+v, %v", all, err)
	}
	if w, err := d.Webhook(ctx, "env", "hook"); err != nil || w.Secret != "secret of webhook" {
		t.Errorf("webhook %+v, %v", w, err)
	}
	if text, _ := reports(t, d, "env", usage.Query{}); !strings.Contains(text, "a-kept 1.5") {
		t.Errorf("usage %q", text)
	}
}
