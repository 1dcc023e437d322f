package db_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

func aNode(name, run string) node.Node {
	return node.Node{
		Name: "a", Run: run, Version: "1.2", Roles: []string{"ingest", "jobs"},
		AdvertiseURL: "http://" + name + ":8080", Schema: newer,
		Load: node.Load{Streams: 3, Viewers: 70, CPU: 0.25},
	}
}

// newer is a schema that no database has yet.
const newer = 1 << 20

// TestNodeSchemas: a node is outdated when the database has a newer schema than its program knows, whoever has made it.
func TestNodeSchemas(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		store, ctx := d.Nodes(), t.Context()
		own, err := db.SchemaVersion()
		must(t, err)
		for name, schema := range map[string]int64{"a0": 0, "b-older": own - 1, "c-same": own, "d-newer": own + 1} {
			n := aNode(name, name)
			n.Name, n.Schema = id.Node(name), schema
			_, _, err = store.Register(ctx, n, time.Hour)
			must(t, err)
		}
		expect := func(schema int64, want ...bool) {
			t.Helper()
			if got, failed := store.Schema(ctx); failed != nil || got.Newest != schema {
				t.Errorf("the schema is %+v, %v, want %d", got, failed, schema)
			}
			all, failed := store.Nodes(ctx)
			must(t, failed)
			var got []bool
			for _, n := range all {
				got = append(got, n.Outdated)
			}
			if !slices.Equal(got, want) {
				t.Errorf("outdated with schema %d: %v, want %v", schema, got, want)
			}
		}
		expect(own, true, true, false, false)
		const migrate = "INSERT INTO goose_db_version (version_id, is_applied) VALUES (%d, TRUE)"
		must(t, d.Exec(ctx, fmt.Sprintf(migrate, own+1)))
		expect(own+1, true, true, true, false)
		older := dbtest.Open(t, url) // a program that knows less opens it all the same
		_, err = older.Nodes().Nodes(ctx)
		must(t, err)
	})
}

// TestNodeRows is the life of a row: of one run, then of the next one, whose row the first one doesn't touch.
func TestNodeRows(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store, first := d.Nodes(), aNode("a", "run1")
		started, earlier, err := store.Register(t.Context(), first, time.Hour)
		must(t, err)
		if earlier != nil {
			t.Errorf("an earlier row: %+v", earlier)
		}
		first.StartedAt = started
		first.Load.Streams = 4
		must(t, store.Renew(t.Context(), first, time.Hour))
		first.State = node.Alive
		if got := theNode(t, store); !same(got, first) || got.ValidUntil.Sub(got.SeenAt) != time.Hour {
			t.Errorf("listed as %+v", got)
		}

		second := aNode("a2", "run2")
		second.StartedAt, earlier, err = store.Register(t.Context(), second, time.Hour)
		must(t, err)
		if earlier == nil || !same(*earlier, first) {
			t.Errorf("the earlier run is told as %+v", earlier)
		}
		if err = store.Renew(t.Context(), first, time.Hour); !errors.Is(err, node.ErrReplaced) {
			t.Errorf("the earlier run renews: %v", err)
		}
		must(t, store.Leave(t.Context(), "a", "run1", time.Hour))
		second.State = node.Alive
		if got := theNode(t, store); !same(got, second) {
			t.Errorf("listed as %+v", got)
		}

		must(t, store.Leave(t.Context(), "a", "run2", time.Hour))
		if got := theNode(t, store); got.State != node.Gone || got.Load != (node.Load{}) || got.Version != "1.2" {
			t.Errorf("after its end it is listed as %+v", got)
		}
	})
}

// theNode is the only one.
func theNode(t *testing.T, store node.Store) node.Node {
	t.Helper()
	all, err := store.Nodes(t.Context())
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("%d nodes are listed: %+v", len(all), all)
	}
	return all[0]
}

// same compares all but the times of the last renewal.
func same(a, b node.Node) bool {
	a.SeenAt, a.ValidUntil, b.SeenAt, b.ValidUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return reflect.DeepEqual(a, b)
}

// TestNodesExpire by themselves, and are forgotten when another one ends later.
func TestNodesExpire(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Nodes()
		_, _, err := store.Register(t.Context(), aNode("a", "run"), -time.Minute)
		must(t, err)
		if got := theNode(t, store); got.State != node.Gone {
			t.Errorf("a minute after its end it is %+v", got)
		}
		must(t, store.Leave(t.Context(), "other", "run", 2*time.Minute))
		theNode(t, store)
		must(t, store.Leave(t.Context(), "other", "run", 30*time.Second))
		if all, err := store.Nodes(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("listed at last: %+v, %v", all, err)
		}
	})
}

// TestNodesOfEarlierVersions say no more than that they work on jobs; what they remove of a newer one comes back.
func TestNodesOfEarlierVersions(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		store := d.Nodes()
		must(t, d.SeeNode(t.Context(), "a"))
		if got := theNode(t, store); got.State != node.Alive || got.Run != "" || got.SeenAt.IsZero() {
			t.Errorf("an earlier version is listed as %+v", got)
		}
		n := aNode("a", "run")
		must(t, store.Renew(t.Context(), n, time.Hour))
		if got := theNode(t, store); got.Run != "run" || got.State != node.Alive || got.StartedAt.IsZero() {
			t.Errorf("written again it is listed as %+v", got)
		}
		if _, err := d.ReleaseJobs(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if got := theNode(t, store); got.State != node.Alive {
			t.Errorf("without jobs it is listed as %+v", got)
		}
		if lost, err := d.LostNodes(t.Context(), -time.Hour); err != nil || len(lost) != 0 {
			t.Errorf("lost with its jobs given back: %v, %v", lost, err)
		}
	})
}

// TestNodesOverABrokenConnection: the one connection is opened again for the renewal after.
func TestNodesOverABrokenConnection(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	dbtest.Proxy(t, ln, url, false)
	d, other := dbtest.Open(t, dbtest.At(t, url, ln.Addr().String())), dbtest.Open(t, url)
	store, n := d.Nodes(), aNode("a", "run")
	n.StartedAt, _, err = store.Register(t.Context(), n, time.Hour)
	must(t, err)
	must(t, other.Exec(t.Context(), "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"+
		" WHERE datname = current_database() AND pid <> pg_backend_pid()"))
	if err = store.Renew(t.Context(), n, time.Hour); err != nil && !fault.Is(err, fault.Unavailable) {
		t.Errorf("over a broken connection: %v", err)
	}
	must(t, store.Renew(t.Context(), n, time.Hour))
}

// TestLeastConnections opens a database whose URL allows fewer connections than its migration takes.
func TestLeastConnections(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, limited(t, dbtest.Postgres(t), "1"))
	release, err := d.TakeConnections(t.Context(), 2)
	must(t, err)
	must(t, release())
}

// TestNodesWithABusyPool renews while all connections of the pool are taken.
func TestNodesWithABusyPool(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, limited(t, dbtest.Postgres(t), "2"))
	store, n := d.Nodes(), aNode("a", "run")
	var err error
	n.StartedAt, _, err = store.Register(t.Context(), n, time.Hour)
	must(t, err)
	release, err := d.TakeConnections(t.Context(), 2)
	must(t, err)
	short, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	renewed := store.Renew(short, n, 2*time.Hour)
	must(t, release())
	must(t, renewed)
	if got := theNode(t, store); got.ValidUntil.Sub(got.SeenAt) != 2*time.Hour {
		t.Errorf("listed as %+v", got)
	}
}

// limited gives a PostgreSQL database's URL with that many connections in the pool.
func limited(t *testing.T, database, conns string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal("the database's URL can't be read") // it has a password
	}
	q := u.Query()
	q.Set("pool_max_conns", conns)
	u.RawQuery = q.Encode()
	return u.String()
}
