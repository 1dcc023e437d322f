package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// TestBucketAway has the bucket of two nodes break off connections, then refuse every request, then say nothing, for
// 20 seconds each. Encoders stay connected and players at both nodes go on by the rules; what only the bucket has is
// 503. A recording that ends meanwhile is whole afterwards, jobs end well, and each event reaches the endpoint.
func TestBucketAway(t *testing.T) {
	rig.Parallel(t, rig.Long)
	bucket := rig.StartBucket(t)
	f := rig.StartFleet(t, 2, rig.Options{Env: []string{"MILLRACE_STORAGE_URL=" + bucket.URL}})
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
	old := a.AwaitAsset(t, a.CreateAsset(t, input).Text("id"), "ready", patience, rig.Ready)
	oldMedia := mediaPlaylists(t, a.PlayURL(old.Text("playback_ids.0.id")))[0].entries
	ctx, cancel := context.WithCancel(t.Context())
	var encoders, wg sync.WaitGroup
	t.Cleanup(func() { cancel(); encoders.Wait(); wg.Wait() })
	clip := stormClip(t, "storm.flv", "-tune", "zerolatency")
	ending, end := context.WithCancel(ctx)
	defer end()
	var streams []*stormStream
	for i, until := range []context.Context{ctx, ending} {
		x := newStormStream(t, a, "low", time.Second)
		x.clip = clip
		streams = append(streams, x)
		var at address
		at.set(f.Nodes[i])
		encoders.Go(func() { x.publish(until, &at) })
	}
	for _, x := range streams {
		a.AwaitPlayable(t, a.PlayURL(x.play), patience)
		x.asset = a.AwaitLive(t, x.id, "active", patience, func(o rig.Object) bool {
			return o.Text("active_asset_id") != ""
		}).Text("active_asset_id")
	}
	const each = 20 * time.Second
	for _, n := range f.Nodes {
		wg.Go(func() {
			check(t, "while the bucket is away", hlscheck.Options{
				URL: n.PlayURL(streams[0].play), Follow: 3*each + 5*time.Second, LowLatency: true, MaxSegments: 30,
			})
		})
	}
	var assets []string
	for i, how := range []string{rig.BucketBroken, rig.BucketSlow, rig.BucketSilent} {
		bucket.Be(how)
		began := time.Now()
		if how != rig.BucketSilent { // a read of it ends after that
			last := oldMedia[len(oldMedia)-1-i].url
			if code, head, body := a.Get(t, last); code != http.StatusServiceUnavailable || head.Get("Retry-After") == "" {
				t.Errorf("%s: %s: status %d, Retry-After %q: %.200s", how, last, code, head.Get("Retry-After"), body)
			}
		}
		for path, want := range map[string]int{"/readyz/node": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
			if code, _, body := b.Get(t, b.HTTP+path); code != want {
				t.Errorf("%s: %s: status %d, want %d: %s", how, path, code, want, body)
			}
		}
		assets = append(assets, b.CreateAsset(t, input).Text("id"))
		if how == rig.BucketSlow {
			end() // its recording ends with nothing stored
		}
		rig.Pause(each - time.Since(began))
	}
	bucket.Be(rig.BucketThere)
	for _, id := range assets {
		b.AwaitAsset(t, id, "ready", 3*patience, rig.Ready)
	}
	wg.Wait()
	cancel()
	encoders.Wait()
	for _, x := range streams {
		if len(x.lives) != 1 {
			t.Errorf("the encoder connected %d times", len(x.lives))
		}
		a.AwaitLive(t, x.id, "without encoder", patience, away)
		a.Complete(t, x.id)
		x.account(t, a, a.AwaitAsset(t, x.asset, "finished", 3*patience, rig.Finished))
	}
	all := allTold(t, b, nil)
	seen, again := e.counts()
	for limit := time.Now().Add(patience); seen < len(all); seen, again = e.counts() {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d events were delivered", seen, len(all))
		}
		rig.Pause(50 * time.Millisecond)
	}
	t.Logf("%d events, %d of them again", len(all), again)
}
