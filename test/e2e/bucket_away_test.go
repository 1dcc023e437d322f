package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/hlscheck"
	"millrace/test/rig"
)

// awayFor is how long the bucket of TestBucketAway refuses connections, and a fifth of all its outage;
// MILLRACE_TEST_AWAY says otherwise.
const awayFor = 4 * time.Second

// TestBucketAway has the bucket of three nodes refuse connections, then respond with 503, then with 500, then say
// nothing, without a pause. An encoder stays connected and players at its node and at another one go on by the rules;
// another encoder's node is killed and starts again meanwhile, and its recording ends. What only the bucket has is 503.
// Afterwards all that was given to viewers has the same bytes, each picture is recorded, uploads and fetched files are
// whole, what was deleted is gone, and each event has reached the endpoint in its order.
func TestBucketAway(t *testing.T) {
	rig.Parallel(t, rig.Long)
	each := awayFor
	if text := os.Getenv("MILLRACE_TEST_AWAY"); text != "" {
		var err error
		if each, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	bucket := rig.StartBucket(t)
	f := rig.StartFleet(t, 3, rig.Options{Storage: bucket.URL})
	a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
	e := &endpoint{t: t, last: map[string]happening{}, seen: map[string]bool{}}
	sink := httptest.NewServer(e)
	t.Cleanup(sink.Close)
	if code, o := a.Do(t, http.MethodPost, "/system/v1/webhooks", rig.Object{
		"address": sink.URL,
	}); code != http.StatusCreated {
		t.Fatalf("create webhook: %d %v", code, o)
	}
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 12})
	input := rig.Files(t, map[string]string{"a.mp4": film}) + "/a.mp4"
	gone := a.AwaitAsset(t, a.CreateAsset(t, input).Text("id"), "ready", patience, rig.Ready)
	doomed := a.Left(t) // all that there is
	old := a.AwaitAsset(t, a.CreateAsset(t, input).Text("id"), "ready", patience, rig.Ready)
	oldMedia := mediaPlaylists(t, a.PlayURL(old.Text("playback_ids.0.id")))[0].entries

	ctx, cancel := context.WithCancel(t.Context())
	var encoders, viewers, checks sync.WaitGroup
	t.Cleanup(func() { cancel(); encoders.Wait(); viewers.Wait(); checks.Wait() })
	ending, end := context.WithCancel(ctx)
	defer end()
	clip := stormClip(t, "storm.flv", "-tune", "zerolatency")
	x, y := newStormStream(t, a, "low", time.Second), newStormStream(t, a, "low", time.Second)
	var atA, atB, atC address
	atA.set(a)
	atB.set(b)
	atC.set(c)
	x.clip, y.clip = clip, clip
	encoders.Go(func() { x.publish(ctx, &atA) })
	encoders.Go(func() { y.publish(ending, &atC) })
	for _, s := range []*stormStream{x, y} {
		a.AwaitPlayable(t, a.PlayURL(s.play), patience)
		s.asset = a.AwaitLive(t, s.id, "active", patience, func(o rig.Object) bool {
			return o.Text("active_asset_id") != ""
		}).Text("active_asset_id")
	}
	for _, n := range []*rig.Server{a, b} {
		checks.Go(func() {
			// What has left the playlist by then is stored, and was so before.
			checkBut(t, "while the bucket is away", []string{"removal-early"}, hlscheck.Options{
				URL: n.PlayURL(x.play), Follow: 11*each/2 + 2*awayFor, LowLatency: true, MaxSegments: 1,
			})
		})
	}
	seen := []*memory{newMemory(1), newMemory(2), newMemory(3)} // of x at its node and at another one; of y
	for i, at := range []*address{&atA, &atB, &atC} {
		s := []*stormStream{x, x, y}[i]
		for _, uri := range references(string(get(t, b.PlayURL(s.play)))) {
			viewers.Go(func() { seen[i].follow(ctx, at, path(join(t, b.PlayURL(s.play), uri)), s.stamps.Sent) })
		}
	}
	data := rig.Padded(t, film, 20<<20)
	u := createUpload(t, a)
	const sent = 9 << 20 // a piece of a bucket, and some of the next
	send := func(n *rig.Server, from, to int) (*http.Response, error) {
		return u.put(n, fmt.Sprintf("%d-%d/%d", from, to-1, len(data)), bytes.NewReader(data[from:to]), int64(to-from))
	}
	if resp, err := send(a, 0, sent); err != nil || resp.StatusCode != http.StatusPermanentRedirect {
		t.Fatalf("first chunk: %v %v", resp, err)
	}

	for _, m := range seen {
		m.catchUp(t)
	}
	var assets []string
	for i, phase := range []struct {
		how  string
		long time.Duration
	}{
		{rig.BucketRefuses, each}, {rig.BucketSlow, each}, {rig.BucketBroken, each / 2}, {rig.BucketSilent, 3 * each},
	} {
		bucket.Be(phase.how)
		over := time.After(phase.long)
		var probes sync.WaitGroup
		probes.Go(func() {
			got, err := u.send(http.MethodGet, oldMedia[len(oldMedia)-1-i].url, http.Header{}, nil, 0)
			wantAway(t, phase.how+": what only the bucket has", got, err)
		})
		probes.Go(func() {
			got, err := send(b, sent, len(data))
			wantAway(t, phase.how+": an upload", got, err)
		})
		if code, _, body := b.Get(t, b.HTTP+"/readyz/node"); code != http.StatusOK {
			t.Errorf("%s: the node has the status %d: %s", phase.how, code, body)
		}
		if code, _, body := b.Get(t, b.HTTP+"/readyz"); code != http.StatusServiceUnavailable ||
			!strings.Contains(string(body), "storage: does not respond") {
			t.Errorf("%s: the service has the status %d: %s", phase.how, code, body)
		}
		assets = append(assets, b.CreateAsset(t, input).Text("id"))
		switch phase.how {
		case rig.BucketRefuses:
			y.killed()
			c.Kill(t)
			c.Run(t)
			atC.set(c)
			y.await(t)
		case rig.BucketSlow:
			end()
			a.AwaitLive(t, y.id, "without encoder", patience, away)
			a.Complete(t, y.id)
			code, o := a.Do(t, http.MethodDelete, "/video/v1/assets/"+gone.Text("id"), nil)
			if code != http.StatusNoContent {
				t.Errorf("delete: %d %v", code, o)
			}
		}
		probes.Wait()
		<-over
	}
	for _, id := range append(assets, y.asset) {
		if o := a.Asset(t, id); rig.Finished(o) {
			t.Errorf("asset %s is finished, and the bucket has nothing of it", id)
		}
	}
	bucket.Be(rig.BucketThere)

	for _, id := range assets {
		b.AwaitAsset(t, id, "ready", patience, rig.Ready)
	}
	for limit := time.Now().Add(patience); ; rig.Pause(200 * time.Millisecond) {
		left := slices.DeleteFunc(a.Left(t), func(key string) bool { return !slices.Contains(doomed, key) })
		if len(left) == 0 {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("left of a deleted asset: %q", left)
		}
	}
	n, _ := u.kept(c, len(data))
	if n < sent {
		t.Errorf("%d bytes of the upload are kept, and %d were acknowledged", n, sent)
	}
	if resp, err := send(c, n, len(data)); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the rest of the upload: %v %v", resp, err)
	}
	_, o := a.Do(t, http.MethodGet, "/video/v1/uploads/"+u.id, nil)
	b.AwaitAsset(t, o.Text("data.asset_id"), "ready", patience, rig.Ready)
	if !slices.ContainsFunc(a.AllStored(t, "source.mp4"), func(got []byte) bool { return bytes.Equal(got, data) }) {
		t.Error("the file that was uploaded is not stored")
	}
	checks.Wait()
	for _, m := range seen[:2] {
		m.mu.Lock()
		all := slices.Clone(m.whole)
		m.mu.Unlock()
		for _, n := range f.Nodes {
			m.recall(t, n.HTTP, "once the bucket is back", all)
		}
	}
	cancel()
	encoders.Wait()
	viewers.Wait()
	seen[2].recall(t, c.HTTP, "of the stream whose node was killed", nil)
	a.AwaitLive(t, x.id, "without encoder", patience, away)
	a.Complete(t, x.id)
	if len(x.lives) != 1 || len(y.lives) != 2 {
		t.Errorf("the encoders connected %d and %d times", len(x.lives), len(y.lives))
	}
	for _, s := range []*stormStream{x, y} {
		s.account(t, a, a.AwaitAsset(t, s.asset, "finished", patience, rig.Finished))
	}
	all := allTold(t, b, nil)
	told, again := e.counts()
	for limit := time.Now().Add(patience); told < len(all); told, again = e.counts() {
		if time.Now().After(limit) {
			t.Fatalf("%d of %d events were delivered", told, len(all))
		}
		rig.Pause(50 * time.Millisecond)
	}
	t.Logf("%d events, %d of them again", len(all), again)
}

// catchUp waits until all that is listed was given.
func (m *memory) catchUp(t *testing.T) {
	t.Helper()
	given := func() bool {
		listed := m.last()
		m.mu.Lock()
		defer m.mu.Unlock()
		lacks := func(path string) bool { _, known := m.sums[path]; return !known }
		return len(listed) > 0 && !slices.ContainsFunc(listed, lacks)
	}
	for end := time.Now().Add(patience); !given(); rig.Pause(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a viewer does not catch up")
		}
	}
}

// wantAway wants a request to be refused as one that the storage is away for.
func wantAway(t *testing.T, what string, got *http.Response, err error) {
	t.Helper()
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	_, _ = io.Copy(io.Discard, got.Body)
	if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("%s: status %d, Retry-After %q", what, got.StatusCode, got.Header.Get("Retry-After"))
	}
}
