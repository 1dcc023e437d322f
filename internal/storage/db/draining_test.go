package db_test

import (
	"testing"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestDraining: that a node is to leave holds for the process that is there, whatever it renews, until it is taken
// back. The next process of that name stays, and so does every other node.
func TestDraining(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		ctx, nodes, drains := t.Context(), d.Nodes(), db.Drains(d)
		expect := func(run string, want bool) {
			t.Helper()
			got, err := drains.Draining(ctx, "a", run)
			must(t, err)
			all, err := nodes.Nodes(ctx)
			must(t, err)
			if got != want || all[0].Name != "a" || all[0].Draining != want || len(all) > 1 && all[1].Draining {
				t.Errorf("draining %t, want %t: %+v", got, want, all)
			}
		}
		for _, name := range []id.Node{"a", "a\x00", "a\xff"} {
			wantKind(t, drains.Drain(ctx, name, true), fault.NotFound)
		}
		first := aNode("a", "run1")
		started, _, err := nodes.Register(ctx, first, time.Hour)
		must(t, err)
		other := aNode("b", "run9")
		other.Name = "b"
		_, _, err = nodes.Register(ctx, other, time.Hour)
		must(t, err)
		expect("run1", false)
		must(t, drains.Drain(ctx, "a", true))
		first.StartedAt = started
		must(t, nodes.Renew(ctx, first, time.Hour))
		expect("run1", true)
		if all, failed := nodes.Nodes(ctx); failed != nil || all[0].Shown() != node.Draining {
			t.Errorf("shown as %s, %v", all[0].Shown(), failed)
		}
		must(t, drains.Drain(ctx, "a", false))
		expect("run1", false)
		must(t, drains.Drain(ctx, "a", true))
		_, _, err = nodes.Register(ctx, aNode("a", "run2"), time.Hour)
		must(t, err)
		expect("run2", false)
		_, err = drains.Draining(ctx, "a", "run1")
		wantKind(t, err, fault.NotFound)
		must(t, drains.Drain(ctx, "a", true))
		must(t, nodes.Leave(ctx, "a", "run2", time.Hour))
		if all, failed := nodes.Nodes(ctx); failed != nil || all[0].Shown() != node.Gone {
			t.Errorf("after its end it is shown as %s, %v", all[0].Shown(), failed)
		}
		wantKind(t, drains.Drain(ctx, "a", true), fault.NotFound)
	})
}
