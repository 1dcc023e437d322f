package node_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/node"
)

// migrated is a database with a schema and nodes.
type migrated struct {
	node.Store

	schema int64
	nodes  []node.Node
}

func (m *migrated) Schema(context.Context) (int64, error)      { return m.schema, nil }
func (m *migrated) Nodes(context.Context) ([]node.Node, error) { return m.nodes, nil }

// TestSchemas: that the database was migrated by a newer version is said once, and of each process that knows another
// schema; of those that are gone, and of the same one, nothing.
func TestSchemas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		d := &migrated{schema: 41, nodes: []node.Node{
			{Name: "same", Run: "1", Schema: 41, State: node.Alive},
			{Name: "gone", Run: "2", Schema: 40, State: node.Gone},
			{Name: "ancient", State: node.Alive},
		}}
		s := node.NewSchemas(d, 41, slog.New(slog.NewTextHandler(log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(25 * time.Second)
			synctest.Wait()
			lines := strings.Count(log.String(), "\n")
			for _, w := range want {
				if !strings.Contains(log.String(), w) {
					t.Errorf("%s: no %q in\n%s", when, w, log)
				}
			}
			if lines != len(want) {
				t.Errorf("%s: %d lines, want %d:\n%s", when, lines, len(want), log)
			}
			log.Reset()
		}
		expect("all is well")
		d.nodes = append(d.nodes, node.Node{Name: "old", Run: "3", Version: "1.1", Schema: 40, State: node.Alive})
		expect("an older one", `node=old its_version=1.1 its_schema=40 schema=41`)
		expect("which goes on")
		d.schema = 42
		d.nodes = append(d.nodes, node.Node{Name: "new", Run: "4", Schema: 42, State: node.Alive})
		expect("a newer one", `database_schema=42 schema=41`, `node=new`)
		d.nodes[3].Run = "5"
		expect("started again", `node=old`)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
