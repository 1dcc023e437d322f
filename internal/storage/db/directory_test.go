package db_test

import (
	"testing"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db/dbtest"
)

// TestDirectory: the owner of a live stream is the node that has the lease on it, if others can reach that one.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		register := func(name, advertised string) {
			t.Helper()
			n := node.Node{Name: id.Node(name), Run: "run", AdvertiseURL: advertised}
			_, _, err := d.Nodes().Register(t.Context(), n, time.Hour)
			must(t, err)
		}
		register("there", "http://10.0.0.5:9465")
		register("alone", "")
		for name, tt := range map[string]struct {
			node  id.Node
			until time.Duration
			want  string
		}{
			"owned":         {"there", time.Hour, "http://10.0.0.5:9465"},
			"over":          {"there", -time.Second, ""},
			"unreachable":   {"alone", time.Hour, ""},
			"without a row": {"nowhere", time.Hour, ""},
			"idle":          {"", 0, ""},
		} {
			s := idleStream("env", name, at(0))
			s.Node = tt.node
			if tt.until != 0 {
				s.LeaseUntil = time.Now().Add(tt.until)
			}
			insertStreams(t, d, s)
			got, err := d.Directory().Owner(t.Context(), s.ID)
			if tt.want == "" {
				wantKind(t, err, fault.NotFound)
				continue
			}
			must(t, err)
			if want := (node.Owner{Name: tt.node, AdvertiseURL: tt.want, Environment: "env"}); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		_, err := d.Directory().Owner(t.Context(), "unknown")
		wantKind(t, err, fault.NotFound)
	})
}
