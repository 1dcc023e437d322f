package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
)

// migrated is a database with a schema and nodes.
type migrated struct {
	node.Store

	schema node.Schema
	nodes  []node.Node
	away   bool
}

func (m *migrated) Schema(context.Context) (node.Schema, error) {
	if m.away {
		return node.Schema{}, errors.New("no database")
	}
	return m.schema, nil
}
func (m *migrated) Nodes(context.Context) ([]node.Node, error) { return m.nodes, nil }

// TestSchemas: that the database was migrated by a later version is said once, and of each process that knows another
// schema; of those that are gone, and of the same one, nothing. When the database no longer admits this program, the
// node is told to leave, once.
func TestSchemas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		d := &migrated{schema: node.Schema{Newest: 41, Since: 40}, nodes: []node.Node{
			{Name: "same", Run: "1", Schema: 41, State: node.Alive},
			{Name: "gone", Run: "2", Schema: 40, State: node.Gone},
			{Name: "ancient", State: node.Alive},
		}}
		var left []error
		leave := func(why error) { left = append(left, why) }
		s := node.NewSchemas(d, 41, leave, slog.New(slog.NewTextHandler(log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		expect := func(when, line string, want ...string) {
			t.Helper()
			time.Sleep(25 * time.Second)
			synctest.Wait()
			lines := strings.Count(log.String(), "\n")
			for _, w := range want {
				if !strings.Contains(log.String(), w) {
					t.Errorf("%s: no %q in\n%s", when, w, log)
				}
			}
			if lines != len(want) || s.Line() != line {
				t.Errorf("%s: %d lines, want %d:\n%s%q, want %q", when, lines, len(want), log, s.Line(), line)
			}
			log.Reset()
		}
		expect("all is well", "")
		d.nodes = append(d.nodes, node.Node{Name: "old", Run: "3", Version: "1.1", Schema: 40, State: node.Alive})
		expect("an older one", "", `node=old its_version=1.1 its_schema=40 schema=41`)
		expect("which goes on", "")
		d.schema = node.Schema{Newest: 42, Since: 41}
		d.nodes = append(d.nodes, node.Node{Name: "new", Run: "4", Schema: 42, State: node.Alive})
		const later = "schema: 42, of a later version; this one knows 41, and runs on it\n"
		expect("a newer one", later, `database_schema=42 schema=41`, `node=new`)
		d.nodes[3].Run = "5"
		expect("started again", later, `node=old`)
		d.away = true
		expect("no database", later)
		if len(left) > 0 {
			t.Errorf("it was told to leave: %v", left)
		}
		d.away, d.schema = false, node.Schema{Newest: 43, Since: 42}
		expect("one that this can't run on", later, "and this one can't run on it: it stops")
		expect("still", later)
		const why = "version 43 of the schema, on which only programs that know version 42"
		if len(left) != 1 || !strings.Contains(left[0].Error(), why) {
			t.Errorf("it was told to leave: %v", left)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestAdmits: who may run on a schema.
func TestAdmits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		newest, since, own int64
		admits             bool
	}{
		{45, 45, 45, true},
		{45, 45, 46, true},
		{46, 45, 45, true},
		{46, 45, 44, false},
		{46, 46, 45, false},
		{46, 46, 46, true},
		{44, 0, 45, true},
		{45, 50, 46, true}, // it is migrated
	} {
		s := node.Schema{Newest: tt.newest, Since: tt.since}
		if err := s.Admits(tt.own); (err == nil) != tt.admits || err != nil && !fault.Is(err, fault.Conflict) {
			t.Errorf("%+v, %d: %v", s, tt.own, err)
		}
	}
}
