package e2e

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

// balancer sends encoders and viewers to nodes that take them, as their /readyz/node says.
type balancer struct {
	mu    sync.Mutex
	nodes []*balanced
	turn  int
}

type balanced struct {
	http, rtmp, srt string
	ready           bool
	held            bool // nobody is sent there, however ready it is
}

func balance(t *testing.T, nodes []*rig.Server) *balancer {
	t.Helper()
	b := &balancer{}
	for range nodes {
		b.nodes = append(b.nodes, &balanced{})
	}
	for i := range nodes {
		b.add(i, nodes[i])
	}
	ctx, stop := context.WithCancel(t.Context())
	var probes sync.WaitGroup
	for i := range nodes {
		probes.Go(func() {
			for ctx.Err() == nil {
				b.probe(ctx, i)
				rig.Pause(100 * time.Millisecond)
			}
		})
	}
	t.Cleanup(func() { stop(); probes.Wait() })
	return b
}

// add says where a node is, which takes everybody.
func (b *balancer) add(i int, s *rig.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	*b.nodes[i] = balanced{http: s.HTTP, rtmp: s.RTMP, srt: s.SRT, ready: true}
}

// hold has nobody be sent to a node, or whoever comes again.
func (b *balancer) hold(i int, on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes[i].held = on
}

func (b *balancer) probe(ctx context.Context, i int) {
	b.mu.Lock()
	at := b.nodes[i].http
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	code, _, err := try(ctx, at+"/readyz/node")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[i].http == at {
		b.nodes[i].ready = err == nil && code == http.StatusOK
	}
}

// takes reports whether a node takes anybody.
func (b *balancer) takes(i int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.nodes[i].ready
}

// next is a node that takes somebody.
func (b *balancer) next() balanced {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.nodes {
		b.turn++
		if n := b.nodes[b.turn%len(b.nodes)]; n.ready && !n.held {
			return *n
		}
	}
	return *b.nodes[0]
}

// leaving is a live stream whose nodes leave, one after the other.
type leaving struct {
	rig.Object
	onlookers

	asset string
	low   bool
	stop  func() // of its encoder
}

// watch has a viewer come through the balancer until the test ends. A node that refuses it is not asked again at once.
func (l *leaving) watch(ctx context.Context, b *balancer) {
	for ctx.Err() == nil {
		path := l.path
		if newest := l.at(nil); l.low && newest > 0 {
			path += "?_HLS_msn=" + strconv.Itoa(newest+1)
		}
		at := b.next()
		code, text, err := try(ctx, at.http+path)
		l.mu.Lock()
		if l.codes[nil][code]++; err == nil && code == http.StatusOK {
			l.note(nil, text)
		} else if err == nil {
			l.t.Logf("%s%s: %d %s", at.http, path, code, text)
		}
		l.mu.Unlock()
		rig.Pause(50 * time.Millisecond)
	}
}

// goOn waits until the viewers of all streams have a new segment.
func goOn(streams []*leaving, what string) {
	var next []int
	for _, l := range streams {
		next = append(next, l.at(nil)+1)
	}
	for i, l := range streams {
		l.await(nil, what, next[i])
	}
}

// watchedNodes is a fleet with live streams whose encoders and viewers come through a balancer.
type watchedNodes struct {
	*testing.T
	*rig.Fleet

	balancer *balancer
	streams  []*leaving
	stop     func() // watching
}

// watchedFleet starts nodes and as many live streams without a reconnect window, of which the last third come over SRT.
func watchedFleet(t *testing.T, nodes, streams int, timeout string) *watchedNodes {
	t.Helper()
	f := rig.StartFleet(t, nodes, rig.Options{Args: []string{"--shutdown-timeout", timeout}})
	ctx, stop := context.WithCancel(t.Context())
	var viewers sync.WaitGroup
	w := &watchedNodes{T: t, Fleet: f, balancer: balance(t, f.Nodes), stop: func() { stop(); viewers.Wait() }}
	t.Cleanup(w.stop)
	b := w.balancer
	for i := range streams {
		mode := []string{"low", "standard"}[i%2]
		l := &leaving{Object: f.Nodes[0].CreateLive(t, mode, rig.Object{"reconnect_window": 0}), low: mode == "low"}
		kind, where := "rtmp:", func() string { return b.next().rtmp + "/app/" + l.Text("stream_key") }
		if i >= streams*2/3 {
			kind, where = "srt:", func() string {
				return rig.SRTURL(b.next().srt, l.Text("stream_key"), l.Text("srt_passphrase"), "")
			}
		}
		l.stop = rig.KeepPublishingOver(t, kind, where, small())
		w.streams = append(w.streams, l)
	}
	for _, l := range w.streams {
		l.onlookers = onlookers{
			t: t, path: firstList(t, f.Nodes[0], l.Object), all: map[int]shownSegment{},
			newest: map[*rig.Server]int{}, codes: map[*rig.Server]map[int]int{nil: {}},
		}
		l.asset = f.Nodes[0].Live(t, l.Text("id")).Text("active_asset_id")
		viewers.Go(func() { l.watch(ctx, b) })
	}
	return w
}

// restart has a node leave, and start again.
func (w *watchedNodes) restart(i int) {
	w.Helper()
	n := w.Nodes[i]
	goOn(w.streams, "before a node leaves")
	told := time.Now()
	n.Signal(w, syscall.SIGTERM)
	for w.balancer.takes(i) {
		rig.Pause(10 * time.Millisecond)
	}
	w.Logf("node %d is not ready %v after it was told to stop", i, time.Since(told).Round(10*time.Millisecond))
	if how := n.Ended(patience); how == nil || how.ExitCode() != 0 {
		w.Fatalf("node %d ended as %v", i, how)
	}
	w.Logf("it has ended after %v", time.Since(told).Round(10*time.Millisecond))
	n.Run(w)
	w.balancer.add(i, n)
}

// end checks that each stream has gone on in one asset, and that its viewers had no error.
func (w *watchedNodes) end() {
	w.Helper()
	goOn(w.streams, "at last")
	for _, l := range w.streams {
		now := w.Nodes[0].Live(w, l.Text("id"))
		if got := now.Text("active_asset_id"); got != l.asset || len(now.Texts("recent_asset_ids")) > 0 {
			w.Errorf("the asset is %s, and was %s; earlier ones: %v", got, l.asset, now.Texts("recent_asset_ids"))
		}
		if codes := l.statuses(nil); len(codes) != 1 || codes[http.StatusOK] == 0 {
			w.Errorf("viewers had the statuses %v", codes)
		}
	}
	w.stop() // before their ends are shown
	for _, l := range w.streams {
		l.stop()
	}
}

// TestRollingRestart restarts three nodes one after the other under live streams without a reconnect window, whose
// encoders and viewers come through a balancer. A node that leaves says so at once; each stream goes on in the same
// asset at another node, and its viewers have no error. The log has for how long encoders were away.
func TestRollingRestart(t *testing.T) {
	rig.Parallel(t, rig.Long)
	scaled(t)
	w := watchedFleet(t, 3, 6, "9s")
	for i := range w.Nodes {
		w.restart(i)
	}
	w.end()
}
