package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestStormOfRungs kills the server at random moments of a live stream that somebody watches in a lower rendition,
// which is encoded meanwhile: what the viewer was given of it is never another one, and never gone. Nobody else has
// those bytes: they are in no record, and who encodes again gets others.
func TestStormOfRungs(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		kills := killsOr(t, stormKills)
		random := dice(t)
		s := rig.Start(t, rig.Options{Pair: p})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		t.Cleanup(func() { cancel(); wg.Wait() })
		var at address
		at.set(s)
		x := newStormStream(t, s, "low", 290*time.Millisecond)
		x.clip = stormClipOf(t, "640x480", "storm-rungs.flv", "-tune", "zerolatency",
			"-b:v", "600k", "-maxrate", "600k", "-bufsize", "600k")
		wg.Go(func() { x.publish(ctx, &at) })
		s.AwaitPlayable(t, s.PlayURL(x.play), patience)
		seen := newMemory(random.Uint64())
		seen.made = true
		rung := awaitRung(t, s.PlayURL(x.play))
		wg.Go(func() { seen.follow(ctx, &at, path(join(t, s.PlayURL(x.play), rung)), x.stamps.Sent) })
		for n := range kills {
			x.await(t)
			seen.awaitPart(t)
			rig.Pause(stormPause(random))
			x.killed()
			s.Kill(t)
			listed := seen.last()
			s.Run(t)
			at.set(s)
			seen.recall(t, s.HTTP, fmt.Sprintf("kill %d", n+1), listed)
			if t.Failed() {
				return
			}
		}
		seen.awaitPart(t)
		cancel()
		wg.Wait()
		seen.recall(t, s.HTTP, "the end", seen.last())
	})
}

// awaitRung waits for a lower rendition to be offered: it is once a whole segment is there.
func awaitRung(t *testing.T, master string) string {
	t.Helper()
	for end := time.Now().Add(patience); ; rig.Pause(50 * time.Millisecond) {
		for _, uri := range references(string(get(t, master))) {
			if strings.Contains(uri, "270p-") {
				return uri
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no lower rendition is offered within %v:\n%s", patience, get(t, master))
		}
	}
}

// awaitPart waits until the viewer was given two parts more: somebody encodes.
func (m *memory) awaitPart(t *testing.T) {
	t.Helper()
	given := func() (parts int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		for path := range m.sums {
			if strings.Count(path[strings.LastIndexByte(path, '/'):], ".") == 2 { // 7.3.m4s
				parts++
			}
		}
		return parts
	}
	want := given() + 2
	for end := time.Now().Add(patience); given() < want; rig.Pause(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no part is given within %v", patience)
		}
	}
}
