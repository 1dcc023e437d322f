package e2e

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"millrace/test/rig"
)

// TestRollingUpgrade rolls a fleet with live streams and viewers to a version with another schema, and one node of it
// back. Streams are handed over from the old version to the new one and the other way, each goes on in one asset, and
// viewers have no error. At last the schema no longer admits the old version: its nodes leave by themselves, and say
// why.
func TestRollingUpgrade(t *testing.T) {
	rig.Parallel(t, rig.Long)
	scaled(t)
	rig.Binary(t)
	var program string
	built := make(chan struct{})
	t.Cleanup(func() { <-built })
	go func() {
		defer close(built)
		program = rig.BinaryWith(t, "9.9.9", "90000_later.sql", `-- +since same

-- +goose Up
ALTER TABLE live_streams ADD COLUMN later text NOT NULL DEFAULT 'l';
ALTER TABLE assets ADD COLUMN later text NOT NULL DEFAULT 'l';
ALTER TABLE nodes ADD COLUMN later text;
ALTER TABLE playback_ids ADD COLUMN later bigint;
CREATE TABLE laters (id varchar(255) PRIMARY KEY);

-- +goose Down
DROP TABLE laters;
`)
	}()
	w := watchedFleet(t, 3, 3, "6s")
	<-built

	w.Nodes[2].Upgrade(program)
	w.restart(2)
	w.versions("2")

	w.balancer.hold(1, true) // what node 0 leaves comes to the new version
	w.Nodes[0].Upgrade(program)
	w.restart(0)
	w.handedOver(0)
	w.balancer.hold(1, false)
	w.versions("0 2")

	w.balancer.hold(0, true) // what node 2 leaves comes to the old version, and so does it itself
	before := strings.Count(w.Nodes[2].Log(), handedOver)
	w.Nodes[2].Upgrade("")
	w.restart(2)
	if strings.Count(w.Nodes[2].Log(), handedOver) == before {
		t.Error("node 2 has handed nothing over to the version before")
	}
	w.balancer.hold(0, false)
	w.versions("0")
	w.Nodes[2].AwaitLog(t, patience, "a later version has migrated the database, and this one runs on it")

	out, err := exec.CommandContext(t.Context(), "psql", "-XAtqc", "UPDATE schema_compatibility SET since = 90000",
		w.Nodes[0].Setting("MILLRACE_DATABASE_URL")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, i := range []int{1, 2} {
		if how := w.Nodes[i].Ended(patience); how == nil || how.ExitCode() != 1 {
			t.Errorf("node %d ended as %v", i, how)
		}
		w.Nodes[i].AwaitLog(t, patience, "on which only programs that know version 90000 or a later one can run")
	}
	w.end()
}

const handedOver = "broadcast is handed over to another node"

// handedOver checks that a node has handed a broadcast over.
func (w *watchedNodes) handedOver(i int) {
	w.Helper()
	w.Nodes[i].AwaitLog(w, patience, handedOver)
}

// versions checks which nodes are of the later version.
func (w *watchedNodes) versions(want string) {
	w.Helper()
	var newer []string
	for i, n := range w.Nodes {
		var doc struct {
			Info struct {
				Version string `json:"version"`
			} `json:"info"`
		}
		code, text, err := try(w.Context(), n.HTTP+"/openapi.json")
		if err == nil {
			err = json.Unmarshal(text, &doc)
		}
		if err != nil || code != 200 {
			w.Fatalf("node %d: %d, %v", i, code, err)
		}
		if doc.Info.Version == "9.9.9" {
			newer = append(newer, fmt.Sprint(i))
		}
	}
	if got := strings.Join(newer, " "); got != want {
		w.Errorf("the nodes of the later version are %q, want %q", got, want)
	}
}
