package e2e

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

// onlookers are viewers of one media playlist at several nodes: a number means the same segment, at the same time,
// wherever and whenever it is listed. One that is listed as a gap stays lost at that node; another node may have listed
// it before, or goes on listing it.
type onlookers struct {
	t    *testing.T
	path string

	mu     sync.Mutex
	all    map[int]shownSegment
	newest map[*rig.Server]int // number of the newest segment that a node has shown
	codes  map[*rig.Server]map[int]int
	loses  bool // what was listed last may have been lost with its owner, at every node
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// stop has nobody look any more, as before the end is shown.
func (o *onlookers) stop() {
	o.cancel()
	o.wg.Wait()
}

type shownSegment struct {
	uri, date string
	gap       bool
	at        *rig.Server
}

// watchAt has viewers ask nodes again and again until the test ends.
func watchAt(t *testing.T, path string, nodes ...*rig.Server) *onlookers {
	s := &onlookers{
		t: t, path: path, all: map[int]shownSegment{}, newest: map[*rig.Server]int{},
		codes: map[*rig.Server]map[int]int{},
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.cancel = cancel
	for _, n := range nodes {
		s.codes[n] = map[int]int{}
		s.wg.Go(func() {
			for ctx.Err() == nil {
				s.look(ctx, n)
				rig.Pause(30 * time.Millisecond)
			}
		})
	}
	t.Cleanup(s.stop)
	return s
}

// look reads the playlist at a node, which may be stopped.
func (o *onlookers) look(ctx context.Context, n *rig.Server) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	code, text, err := try(ctx, n.HTTP+o.path)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.codes[n][code]++; err == nil && code == http.StatusOK {
		o.note(n, text)
	}
}

// note looks at a playlist that a node has given; who calls it has the lock.
func (o *onlookers) note(n *rig.Server, text []byte) {
	number, next := 0, shownSegment{at: n}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		tag, value, _ := strings.Cut(line, ":")
		switch {
		case tag == "#EXT-X-MEDIA-SEQUENCE":
			number, _ = strconv.Atoi(value)
		case tag == "#EXT-X-PROGRAM-DATE-TIME":
			next.date = value
		case line == "#EXT-X-GAP":
			next.gap = true
		case line == "#EXT-X-ENDLIST":
			o.t.Errorf("an end is shown:\n%s", text)
		case line != "" && line[0] != '#':
			next.uri = line
			o.see(number, next, text)
			number, next = number+1, shownSegment{at: n}
		}
	}
	o.newest[n] = max(o.newest[n], number-1)
}

// see is called with the lock.
func (o *onlookers) see(number int, now shownSegment, text []byte) {
	was, known := o.all[number]
	switch {
	case !known, was.gap && !now.gap && was.at != now.at:
		o.all[number] = now
	case now.gap && !was.gap && (was.at != now.at || o.loses): // lost for that node
		if o.loses { // for good
			o.all[number] = now
		}
	case was.uri != now.uri && !now.gap, was.gap != now.gap, was.date != "" && now.date != "" && was.date != now.date:
		o.t.Errorf("number %d was %+v, and at node %p is %+v:\n%s", number, was, now.at, now, text)
		o.all[number] = now
	}
}

// lose says that an owner dies.
func (o *onlookers) lose() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.loses = true
}

// at is the number of the newest segment that a node has shown.
func (o *onlookers) at(n *rig.Server) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.newest[n]
}

// await waits until a node has shown a segment with a number.
func (o *onlookers) await(n *rig.Server, what string, number int) {
	o.t.Helper()
	for end := time.Now().Add(2 * patience); o.at(n) < number; rig.Pause(50 * time.Millisecond) {
		if time.Now().After(end) {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.t.Fatalf("%s: number %d is not shown, but %d; status codes %v", what, number, o.newest[n], o.codes[n])
		}
	}
}

// firstList is the path of a live stream's first media playlist.
func firstList(t *testing.T, at *rig.Server, l rig.Object) string {
	t.Helper()
	path := "/" + l.Text("playback_ids.0.id") + ".m3u8"
	at.AwaitPlayable(t, at.HTTP+path, patience)
	_, master := fetched(t, at, path, "identity")
	return "/" + listedURIs(string(master))[0]
}

// TestNodeStopped stops the node with the encoder as a machine that hangs is, until another node has its broadcast:
// as the encoder has come to that one, or to show slate. When it goes on again it lists nothing that the other one
// has not, and plays that one's from then on.
func TestNodeStopped(t *testing.T) {
	rig.Parallel(t, rig.Long)
	for name, comes := range map[string]bool{"and the encoder comes to another node": true, "for long": false} {
		t.Run(name, func(t *testing.T) {
			rig.Parallel(t)
			scaled(t)
			f := rig.StartFleet(t, 3, rig.Options{})
			a, b, c := f.Nodes[0], f.Nodes[1], f.Nodes[2]
			l := a.CreateLive(t, "low", rig.Object{"reconnect_window": 300})
			a.Publish(t, l.Text("stream_key"), small())
			list := firstList(t, c, l)
			s := watchAt(t, list, a, b, c)
			s.await(a, "before", s.at(a)+3)
			// What no other node knows of is lost with the node, be it all that there was.
			recorded := func(o rig.Object) bool { return o.Number("duration") > 0 }
			b.AwaitAsset(t, b.Live(t, l.Text("id")).Text("active_asset_id"), "recorded", patience, recorded)
			a.Signal(t, syscall.SIGSTOP)
			t.Cleanup(func() { _ = syscall.Kill(a.PID(), syscall.SIGCONT) }) // it could not be ended otherwise
			stopped := s.at(a)
			if comes {
				b.Publish(t, l.Text("stream_key"), small())
			}
			s.await(c, "while it is stopped", stopped+12)
			a.Signal(t, syscall.SIGCONT)
			a.AwaitLog(t, patience, "broadcast lost to another node")
			s.await(a, "when it goes on", s.at(c)+2)
		})
	}
}
