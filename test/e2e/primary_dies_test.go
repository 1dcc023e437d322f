package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestPrimaryDies kills PostgreSQL's primary under two nodes, and promotes its standby some seconds later. Encoders
// stay connected, and players at both nodes go on by the rules. The standby had what was committed: what was
// acknowledged is there, each picture is recorded, jobs go on, and each event reaches the endpoint in its order.
func TestPrimaryDies(t *testing.T) {
	rig.Parallel(t)
	pg, database := rig.StartReplicated(t)
	f := rig.StartFleet(t, 2, rig.Options{Database: database})
	a, b := f.Nodes[0], f.Nodes[1]
	e := &endpoint{t: t, last: map[string]happening{}, seen: map[string]bool{}}
	sink := httptest.NewServer(e)
	t.Cleanup(sink.Close)
	if code, o := a.Do(t, http.MethodPost, "/system/v1/webhooks", rig.Object{
		"address": sink.URL,
	}); code != http.StatusCreated {
		t.Fatalf("create webhook: %d %v", code, o)
	}
	file := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 12})
	input := rig.Files(t, map[string]string{"a.mp4": file}) + "/a.mp4"
	ctx, cancel := context.WithCancel(t.Context())
	var encoders, wg sync.WaitGroup
	t.Cleanup(func() { cancel(); encoders.Wait(); wg.Wait() })
	clip := stormClip(t, "storm.flv", "-tune", "zerolatency")
	var streams []*stormStream
	for i, mode := range []string{"low", "standard"} {
		x := newStormStream(t, a, mode, time.Second)
		x.clip = clip
		streams = append(streams, x)
		var at address
		at.set(f.Nodes[i])
		encoders.Go(func() { x.publish(ctx, &at) })
	}
	for _, x := range streams {
		a.AwaitPlayable(t, a.PlayURL(x.play), patience)
		x.asset = a.AwaitLive(t, x.id, "active", patience, func(o rig.Object) bool {
			return o.Text("active_asset_id") != ""
		}).Text("active_asset_id")
	}
	const pause = 3 * time.Second
	for _, n := range f.Nodes {
		wg.Go(func() {
			check(t, "across the failover", hlscheck.Options{
				URL: n.PlayURL(streams[0].play), Follow: pause + 9*time.Second, LowLatency: true, MaxSegments: 30,
			})
		})
	}
	done := make(chan map[string]int, 1)
	changing, changed := context.WithCancel(ctx)
	wg.Go(func() { done <- changeUntil(changing, t, f, streams) })
	rig.Pause(2 * time.Second)
	var assets []string
	for range 3 {
		assets = append(assets, b.CreateAsset(t, input).Text("id"))
	}
	pg.Primary.Kill()
	died := time.Now()
	rig.Pause(pause)
	if err := pg.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	assets = append(assets, a.CreateAsset(t, input).Text("id"))
	t.Logf("%v after the death an asset is created", time.Since(died).Round(10*time.Millisecond))
	for _, id := range assets {
		b.AwaitAsset(t, id, "ready", patience, rig.Ready)
	}
	changed()
	wg.Wait()
	cancel()
	encoders.Wait()
	for _, x := range streams {
		if len(x.lives) != 1 {
			t.Errorf("the encoder connected %d times", len(x.lives))
		}
		a.AwaitLive(t, x.id, "without encoder", patience, away)
		a.Complete(t, x.id)
		x.account(t, a, a.AwaitAsset(t, x.asset, "finished", patience, rig.Finished))
	}
	all := allTold(t, b, <-done)
	seen, again := e.counts()
	for end := time.Now().Add(patience); seen < len(all); seen, again = e.counts() {
		if time.Now().After(end) {
			t.Fatalf("%d of %d events were delivered", seen, len(all))
		}
		rig.Pause(50 * time.Millisecond)
	}
	t.Logf("%d events, %d of them again", len(all), again)
}

// changeUntil changes streams at any node until ctx ends, and gives how many changes of each were acknowledged.
func changeUntil(ctx context.Context, t *testing.T, f *rig.Fleet, streams []*stormStream) map[string]int {
	acknowledged := map[string]int{}
	for n := 0; ctx.Err() == nil; n++ {
		id := streams[n%len(streams)].id
		code, _ := f.Nodes[n/len(streams)%len(f.Nodes)].Do(t, http.MethodPatch, "/video/v1/live-streams/"+id,
			rig.Object{"passthrough": fmt.Sprint("change ", n)})
		if code == http.StatusOK {
			acknowledged[id]++
		}
	}
	return acknowledged
}

// allTold gives all events, of which each resource has its own without a gap, and one for each change.
func allTold(t *testing.T, s *rig.Server, acknowledged map[string]int) []happening {
	t.Helper()
	all, of := everything(t, s), map[string]int{}
	for _, h := range all {
		if of[h.Resource.ID]++; int64(of[h.Resource.ID]) != h.Resource.Number {
			t.Errorf("number %d of %s is its %dth event", h.Resource.Number, h.Resource.ID, of[h.Resource.ID])
		}
	}
	for id, n := range acknowledged {
		if of[id] < n+1 { // and that of its creation
			t.Errorf("%s: %d events of %d changes", id, of[id], n)
		}
	}
	return all
}
