package db_test

import (
	"strings"
	"testing"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestDirectory: the owner of a live stream is the node that its row names, if it lives and others can reach that one,
// and if there is a broadcast, or was a moment ago.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dbtest.EachOpen(t, func(t *testing.T, d *db.DB) {
		register := func(name, advertised string, valid time.Duration) {
			t.Helper()
			n := node.Node{Name: id.Node(name), Run: "run", AdvertiseURL: advertised}
			_, _, err := d.Nodes().Register(t.Context(), n, valid)
			must(t, err)
		}
		register("there", "http://10.0.0.5:9465", time.Hour)
		register("alone", "", time.Hour)
		register("dead", "http://10.0.0.6:9465", 0)
		for name, tt := range map[string]struct {
			owner live.Owner
			asset id.Asset
			want  string
		}{
			"owned":          {live.Owner{Node: "there", Run: "run"}, "asset", "http://10.0.0.5:9465"},
			"ended":          {live.Owner{Node: "there", Run: "run"}, "", ""},
			"just ended":     {live.Owner{Node: "there", Run: "run"}, "", "http://10.0.0.5:9465"},
			"just restarted": {live.Owner{Node: "there", Run: "earlier"}, "", ""},
			"restarted":      {live.Owner{Node: "there", Run: "earlier"}, "asset", ""},
			"of no run":      {live.Owner{Node: "there"}, "asset", ""},
			"dead":           {live.Owner{Node: "dead", Run: "run"}, "asset", ""},
			"unreachable":    {live.Owner{Node: "alone", Run: "run"}, "asset", ""},
			"without a row":  {live.Owner{Node: "nowhere", Run: "run"}, "asset", ""},
			"idle":           {live.Owner{}, "", ""},
		} {
			s := idleStream("env", name, at(0))
			s.Owner, s.ActiveAsset = tt.owner, tt.asset
			if strings.HasPrefix(name, "just ") {
				s.UpdatedAt = time.Now()
			}
			insertStreams(t, d, s)
			got, err := d.Directory().Owner(t.Context(), s.ID)
			if tt.want == "" {
				wantKind(t, err, fault.NotFound)
				continue
			}
			must(t, err)
			if want := (node.Owner{Name: tt.owner.Node, AdvertiseURL: tt.want, Environment: "env"}); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		_, err := d.Directory().Owner(t.Context(), "unknown")
		wantKind(t, err, fault.NotFound)
	})
}
