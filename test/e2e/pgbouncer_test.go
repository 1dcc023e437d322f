package e2e

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestPgbouncer: two nodes behind a pooler of transactions play each other's streams, and one takes the other's
// broadcast when that dies: its lock is seen to be free. What both had listed stays. A node that does not know the
// server behind the pooler does not start.
func TestPgbouncer(t *testing.T) {
	rig.Parallel(t)
	f := rig.StartFleet(t, 2, rig.StartPgbouncer(t))
	a, b := f.Nodes[0], f.Nodes[1]
	l := a.CreateLive(t, "low", rig.Object{"reconnect_window": 60})
	a.Publish(t, l.Text("stream_key"), small())
	list := firstList(t, b, l)
	s := watchAt(t, list, b)
	s.await(b, "before", s.at(b)+3)
	asset := b.Live(t, l.Text("id")).Text("active_asset_id")
	b.AwaitAsset(t, asset, "recorded", patience, func(o rig.Object) bool { return o.Number("duration") > 0 })
	s.lose()
	died := s.at(b)
	a.Kill(t)
	at := time.Now()
	b.Publish(t, l.Text("stream_key"), small())
	b.AwaitLog(t, patience, `"encoder connected"`, l.Text("id"))
	t.Logf("the encoder was let in after %v", time.Since(at).Round(10*time.Millisecond))
	s.await(b, "after its death", died+2)
	if now := b.Live(t, l.Text("id")).Text("active_asset_id"); now != asset {
		t.Errorf("the asset is %s, and was %s", now, asset)
	}
	for _, n := range f.Nodes {
		for _, wrong := range []string{"prepared statement", "listen for events", "08P01"} {
			if strings.Contains(n.Log(), wrong) {
				t.Errorf("the log has %q", wrong)
			}
		}
	}
	endsAtStart(t, slices.DeleteFunc(b.Environment(), func(v string) bool {
		return strings.HasPrefix(v, "MILLRACE_DATABASE_DIRECT_URL=")
	}))
}

// endsAtStart starts a node that is to say which setting it lacks, and to end.
func endsAtStart(t *testing.T, env []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const free = "127.0.0.1:0"
	node := exec.CommandContext(ctx, rig.Binary(t), "serve", "--data-dir", t.TempDir(), "--http-addr", free,
		"--rtmp-addr", free, "--srt-addr", free, "--webrtc-udp-addr", "off", "--webrtc-tcp-addr", "off")
	node.Env = append(node.Environ(), env...)
	out, err := node.CombinedOutput()
	if ctx.Err() != nil || err == nil || !strings.Contains(string(out), "database-direct-url") {
		t.Errorf("without database-direct-url a node ends with %v:\n%s", err, out)
	}
}
