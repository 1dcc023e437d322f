package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestRoles has three nodes share the work: one takes encoders and calls, one has viewers, one encodes. What a viewer
// wants that is not stored is made by the worker; without one it is said when to ask again, and another one takes over.
func TestRoles(t *testing.T) {
	rig.Parallel(t)
	scaled(t)
	node := func(beside *rig.Server, roles string) *stage {
		o := rig.Options{Pair: rig.Scaled, Beside: beside, Args: []string{
			"--internal-addr", "127.0.0.1:0", "--metrics-addr", "127.0.0.1:0", "--roles", roles,
		}}
		return &stage{Server: rig.Start(t, o)}
	}
	front := node(nil, "api,ingest")
	viewers, worker := node(front.Server, "playback"), node(front.Server, "worker")
	refuses(t, front, "/nothing.m3u8", "playback")
	refuses(t, viewers, "/video/v1/assets", "api")
	refuses(t, viewers, "/whip", "ingest")
	if _, _, text := viewers.Get(t, viewers.HTTP+"/readyz"); !strings.Contains(string(text), "\nroles: playback\n") {
		t.Errorf("/readyz says %q", text)
	}

	live := front.CreateLive(t, "low", nil)
	e := front.Publish(t, live.Text("stream_key"), rig.Clip{Size: "640x480", Kbit: 600, GOP: 1})
	viewers.AwaitPlayable(t, viewers.PlayURL(live.Text("playback_ids.0.id")), patience)
	picture(t, viewers.HTTP+"/"+live.Text("playback_ids.0.id")+"/thumbnail.jpg?latest=true", "jpeg", 640, 480)
	asset := front.Live(t, live.Text("id")).Text("active_asset_id")
	e.Stop()
	front.Complete(t, live.Text("id"))
	a := front.AwaitAsset(t, asset, "ready", patience, func(a rig.Object) bool {
		return a.Text("status") == "ready" && !a.Flag("is_live")
	})
	id := a.Text("playback_ids.0.id")
	list := smaller(t, viewers, id)
	if len(list.entries) < 2 {
		t.Fatalf("the smaller rendition has %d entries", len(list.entries))
	}
	for i, entry := range list.entries[:2] { // the init segment, and the first one
		if code, _, body := viewers.Get(t, entry.url); code != http.StatusOK || len(body) == 0 {
			t.Fatalf("entry %d: %d %.300s", i, code, body)
		}
	}
	picture(t, viewers.HTTP+"/"+id+"/thumbnail.jpg?time=0", "jpeg", 640, 480)
	if kept, _ := encoded(t, worker); kept == 0 {
		t.Error("the worker has encoded no segment")
	}
	for name, s := range map[string]*stage{"with encoders": front, "with viewers": viewers} {
		if kept, vain := encoded(t, s); kept+vain > 0 {
			t.Errorf("the node %s has encoded %d segments", name, kept+vain)
		}
	}
	made := metrics(t, viewers.Server)
	for _, line := range []string{
		`millrace_node_role{role="playback"} 1`, "millrace_workers 1", `millrace_orders_total{outcome="made"}`,
		`millrace_queue_slots{queue="background"} 0`, `millrace_queue_waiting{queue="background"} 0`,
	} {
		if !strings.Contains(made, line) {
			t.Errorf("no %s in the metrics", line)
		}
	}

	worker.Kill(t)
	address := viewers.HTTP + "/" + id + "/storyboard.jpg"
	code, head, body := viewers.Get(t, address)
	if code != http.StatusServiceUnavailable || head.Get("Retry-After") == "" ||
		!bytes.Contains(body, []byte(`"code":"no_worker"`)) {
		t.Errorf("without a worker: %d %v %.300s", code, head, body)
	}
	if code, _, _ = viewers.Get(t, list.entries[1].url); code != http.StatusOK {
		t.Errorf("what is stored, without a worker: %d", code)
	}
	node(front.Server, "worker")
	eventually(t, func() error {
		if code, _, body := viewers.Get(t, address); code != http.StatusOK {
			return fmt.Errorf("with another worker: %d %.300s", code, body)
		}
		return nil
	})
}

// refuses expects that a node does not serve a path, and says which role it takes.
func refuses(t *testing.T, s *stage, path, role string) {
	t.Helper()
	code, head, body := s.Get(t, s.HTTP+path)
	if code != http.StatusMisdirectedRequest || head.Get("Cache-Control") != "no-store" ||
		!bytes.Contains(body, []byte(`"code":"no_role_`+role+`"`)) {
		t.Errorf("%s: %d %v %s", path, code, head, body)
	}
}

// eventually asks until it is answered as expected.
func eventually(t *testing.T, ask func() error) {
	t.Helper()
	err := ask()
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); err = ask() {
		rig.Pause(100 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
}
