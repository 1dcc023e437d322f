package copies_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/live"
	"millrace/internal/control/node"
	"millrace/internal/copies"
	"millrace/internal/id"
	"millrace/internal/leaktest"
	"millrace/internal/media/follow"
	"millrace/internal/media/frame"
	"millrace/internal/media/journal"
	"millrace/internal/media/timeline"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// fleet is nodes that reach each other in memory.
type fleet struct {
	t     *testing.T
	media bool

	mu    sync.Mutex
	rows  []node.Node
	nodes map[id.Node]http.Handler
	posts map[id.Node]int
	cut   map[id.Node]bool          // nobody reaches it
	slow  time.Duration             // what a request takes
	late  bool                      // and it takes that though nobody waits any more
	lag   map[id.Node]time.Duration // what a request to one takes
}

func newFleet(t *testing.T, media bool) *fleet {
	t.Helper()
	return &fleet{
		t: t, media: media, nodes: map[id.Node]http.Handler{}, posts: map[id.Node]int{}, cut: map[id.Node]bool{},
		lag: map[id.Node]time.Duration{},
	}
}

// Nodes implements copies.Options.Rows.
func (f *fleet) Nodes(context.Context) ([]node.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]node.Node(nil), f.rows...), nil
}

// peer is how a node reaches others.
type peer struct {
	*fleet

	self id.Node
}

type callerKey struct{}

// Do implements follow.Peer.
func (p peer) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	h, cut, slow, late := p.nodes[to.ID], p.cut[to.ID] || p.cut[p.self], max(p.slow, p.lag[to.ID]), p.late
	if r.Method == http.MethodPost {
		p.posts[to.ID]++
	}
	p.mu.Unlock()
	if late {
		time.Sleep(slow)
	} else if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if h == nil || cut {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(ctx, callerKey{}, p.self)))
	return w.Result(), nil
}

// add starts a node in a zone.
func (f *fleet) add(name id.Node, zone string, load float64) *copies.Service {
	f.t.Helper()
	s := copies.New(copies.Options{
		Self: live.Owner{Node: name, Run: "run of " + string(name)}, Zone: zone, Media: f.media, Rows: f,
		Peer: peer{f, name}, From: func(ctx context.Context) id.Node {
			n, _ := ctx.Value(callerKey{}).(id.Node)
			return n
		},
		Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	f.mu.Lock()
	f.nodes[name] = s.Store()
	f.rows = append(f.rows, node.Node{
		Name: name, Run: "run of " + string(name), State: node.Alive, AdvertiseURL: "http://" + string(name),
		Load: node.Load{CPU: load},
	})
	f.mu.Unlock()
	ctx, stop := context.WithCancel(context.WithoutCancel(f.t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	f.t.Cleanup(func() { stop(); <-done })
	return s
}

// lose has a node be gone.
func (f *fleet) lose(name id.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut[name] = true
	for i := range f.rows {
		if f.rows[i].Name == name {
			f.rows[i].State = node.Gone
		}
	}
}

// writing is a journal that is copied.
type writing struct {
	*journal.Journal

	feed *copies.Feed
	file *journal.Media
	n    int
}

func write(t *testing.T, s *copies.Service, m id.Media) *writing {
	t.Helper()
	feed := s.Open(copies.Of{Media: m})
	own, _ := feed.Taps()
	j := journal.New(journal.Options{
		Dir: filepath.Join(t.TempDir(), string(m)), Tap: own, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); _ = j.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	j.Note(0, journal.Record{
		Init:      &timeline.Init{Rendition: "v", Codec: "c"},
		Rendition: &timeline.RenditionInfo{ID: "v", Kind: frame.Video, Timescale: 1000},
	}, []byte("init"))
	j.Note(0, journal.Record{Begin: "v"}, nil)
	return &writing{Journal: j, feed: feed, file: j.Media(0, "v")}
}

// newPair is two nodes, of which b copies what a writes.
func newPair(t *testing.T, media bool) (f *fleet, a, b *copies.Service, w *writing) {
	t.Helper()
	f = newFleet(t, media)
	a, b = f.add("a", "", 0), f.add("b", "", 0)
	w = write(t, a, "m")
	time.Sleep(3 * time.Second)
	return f, a, b, w
}

func (w *writing) part(size int) {
	w.n++
	w.Part(w.file, bytes.Repeat([]byte{byte('a' + w.n%26)}, size), 100, true)
}

// got is what of the broadcast is known at a node: the media, or how long it was.
func got(t *testing.T, s *copies.Service, m id.Media) (data []byte, told int64, found bool) {
	t.Helper()
	c, found := s.Left(t.Context(), m)
	j := journal.New(journal.Options{
		Dir: filepath.Join(t.TempDir(), "left"), Copied: journal.Copied{Records: c.Own, Before: 100},
		Logger: slog.New(slog.DiscardHandler),
	})
	for s := range j.Left {
		s.Load()
		if v := s.Rendition("v"); v != nil {
			data, told = v.Data, v.Lost
		}
	}
	return data, told, found
}

// What is published is with another node at once, and a third one gets it back when the first one is gone, or the one
// that has it.
func TestCopyOutlivesItsOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a, b, c := f.add("a", "", 0), f.add("b", "", 0), f.add("c", "", 0)
		w := write(t, a, "m")
		time.Sleep(3 * time.Second)
		want := ""
		for range 50 {
			w.part(1000)
			want += strings.Repeat(string(rune('a'+w.n%26)), 1000)
			if data, _, _ := got(t, c, "m"); string(data) != want { // at once
				t.Fatalf("part %d: %d bytes of %d", w.n, len(data), len(want))
			}
		}
		w.part(3 << 20) // more than fits into one request
		want += strings.Repeat(string(rune('a'+w.n%26)), 3<<20)
		f.lose("a")
		for _, s := range []*copies.Service{b, c} {
			if data, _, _ := got(t, s, "m"); string(data) != want {
				t.Errorf("%d bytes of %d are left", len(data), len(want))
			}
		}
		if s := a.Stats(); s.Copied != 1 || s.Late != 0 || s.Dropped != 0 ||
			s.Lags[0.2] != s.LagCount || s.LagCount < 51 {
			t.Errorf("%+v", s)
		}
	})
}

// Where there are no copies, others know how long what was published is.
func TestLengthsOutliveTheOwner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, b, w := newPair(t, false)
		w.part(1 << 20)
		w.part(1 << 20)
		time.Sleep(time.Second)
		f.lose("a")
		if data, told, found := got(t, b, "m"); len(data) > 0 || told != 200 || !found {
			t.Errorf("%d bytes, %d ticks, found %v", len(data), told, found)
		}
		if s := a.Stats(); s.Sent > 10_000 {
			t.Errorf("%d bytes were sent", s.Sent)
		}
	})
}

// The node that copies stays the same while it lives; when it is gone another one has all of it.
func TestCopyMovesToAnotherNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a, b, c := f.add("a", "", 0), f.add("b", "", 0), f.add("c", "", 0.9)
		w := write(t, a, "m")
		time.Sleep(3 * time.Second)
		w.part(100)
		f.mu.Lock()
		f.rows[1].Load.CPU, f.rows[2].Load.CPU = 3, 0 // it is as it is
		f.mu.Unlock()
		time.Sleep(10 * time.Second)
		w.part(100)
		if b.Stats().Kept != 1 || c.Stats().Kept != 0 {
			t.Fatalf("b has %d, c %d", b.Stats().Kept, c.Stats().Kept)
		}
		f.lose("b")
		w.part(100) // nobody waits for long
		time.Sleep(10 * time.Second)
		w.part(100)
		f.lose("a")
		if data, _, _ := got(t, c, "m"); len(data) != 400 {
			t.Errorf("%d bytes are left", len(data))
		}
	})
}

// A node that does not copy a broadcast any more has less of it than the one that does, though it is heard as often.
func TestOldCopyIsNotTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a, b, c := f.add("a", "", 0), f.add("b", "", 0), f.add("c", "", 0.9)
		m := write(t, a, "m")
		time.Sleep(3 * time.Second)
		m.part(100)
		f.mu.Lock()
		f.cut["b"] = true
		f.mu.Unlock()
		time.Sleep(10 * time.Second)
		f.mu.Lock()
		f.cut["b"] = false
		f.mu.Unlock()
		time.Sleep(40 * time.Second)
		n := write(t, a, "n")
		time.Sleep(3 * time.Second)
		m.part(100)
		n.part(100)
		if b.Stats().Kept != 2 || c.Stats().Kept != 1 {
			t.Fatalf("b has %d, c %d", b.Stats().Kept, c.Stats().Kept)
		}
		f.lose("a")
		for _, s := range []*copies.Service{b, c} {
			if data, _, _ := got(t, s, "m"); len(data) != 200 {
				t.Errorf("%d bytes are left", len(data))
			}
		}
	})
}

// A node that was started again is sent all once, and nothing by the link to the process before.
func TestCopierIsStartedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, b, w := newPair(t, true)
		w.part(100)
		f.mu.Lock()
		f.rows[1].Run = "the next one"
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		sent := a.Stats().Sent
		time.Sleep(10 * time.Second)
		if s := a.Stats(); s.Sent != sent || s.Copied != 1 || b.Stats().Kept != 1 {
			t.Errorf("sent %d bytes, and %d later: %+v", sent, s.Sent, s)
		}
	})
}

// What a node had is not what the next one has, though the first one says so late.
func TestLateResponse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a := f.add("a", "", 0)
		f.add("b", "", 0)
		f.add("c", "", 0.9)
		w := write(t, a, "m")
		time.Sleep(3 * time.Second)
		f.mu.Lock()
		f.slow, f.late, f.cut["c"], f.rows[1].State = 2500*time.Millisecond, true, true, node.Gone
		f.mu.Unlock()
		w.part(100)
		time.Sleep(2600 * time.Millisecond)
		if s := a.Stats(); s.Copied != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Nodes that come and go under new names don't keep others out for ever.
func TestSendersAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		f.add("b", "", 0)
		send := func(from string) int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, copies.Path+"?session=s&run=r&at=0", nil)
			res, err := peer{f, id.Node(from)}.Do(t.Context(), follow.Node{ID: "b"}, r)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode
		}
		for i := range 1024 {
			send(fmt.Sprint("n", i))
		}
		if code := send("another"); code != http.StatusTooManyRequests {
			t.Errorf("one too many: %d", code)
		}
		time.Sleep(36 * time.Minute)
		if code := send("another"); code != http.StatusNoContent {
			t.Errorf("when the others are gone: %d", code)
		}
	})
}

// A node that does not keep up holds one part up, for no longer than a disk may.
func TestSlowCopyHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _, w := newPair(t, true)
		w.part(100)
		f.mu.Lock()
		f.slow = time.Second
		f.mu.Unlock()
		began := time.Now()
		for range 20 {
			w.part(100)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("twenty parts took %v", took)
		}
		if s := a.Stats(); s.Late != 1 || s.Copied != 0 {
			t.Errorf("%+v", s)
		}
		f.mu.Lock()
		f.slow = 0
		f.mu.Unlock()
		time.Sleep(4 * time.Second)
		if s := a.Stats(); s.Copied != 1 {
			t.Errorf("it does not catch up: %+v", s)
		}
	})
}

// A broadcast that is over is forgotten; one that its node has left is not.
func TestOverIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a, b := f.add("a", "", 0), f.add("b", "", 0)
		over, left := write(t, a, "over"), write(t, a, "left")
		time.Sleep(3 * time.Second)
		over.part(100)
		left.part(100)
		f.mu.Lock()
		f.cut["b"] = true // for a moment
		f.mu.Unlock()
		over.feed.Close(true)
		left.feed.Close(false)
		left.part(100) // which nobody copies
		time.Sleep(time.Second)
		f.mu.Lock()
		f.cut["b"] = false
		f.mu.Unlock()
		time.Sleep(5 * time.Second)
		_, _, first := got(t, b, "over")
		_, _, second := got(t, b, "left")
		if first || !second {
			t.Errorf("over: %v, left: %v", first, second)
		}
		if s := a.Stats(); s.Feeds != 0 || s.Bytes != 0 {
			t.Errorf("%+v", s)
		}
		time.Sleep(36 * time.Minute)
		if s := b.Stats(); s.Kept != 0 || s.Bytes != 0 {
			t.Errorf("what nobody writes any more is kept for ever: %+v", s)
		}
	})
}

// What is left to another writer is kept for as long as that one may ask for it, also while the node that had it copied
// sends other things. If it writes that again, the copy goes on.
func TestLeftIsForgottenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a, b := f.add("a", "", 0), f.add("b", "", 0)
		left, again, other := write(t, a, "left"), write(t, a, "again"), write(t, a, "other")
		time.Sleep(3 * time.Second)
		for _, w := range []*writing{left, again, other} {
			w.part(100)
		}
		time.Sleep(time.Second)
		left.feed.Close(false)
		again.feed.Close(false)
		time.Sleep(time.Minute)
		other.part(100)
		for _, m := range []id.Media{"left", "again"} {
			if _, _, found := got(t, b, m); !found {
				t.Errorf("%s is not kept for a minute", m)
			}
		}
		write(t, a, "again").part(100)
		time.Sleep(2 * time.Minute)
		_, _, first := got(t, b, "left")
		_, _, second := got(t, b, "again")
		if first || !second {
			t.Errorf("what was left is kept: %v; what is written again: %v", first, second)
		}
	})
}

// The next writer finds all that was published up to the end, whether media are copied or how long they are alone.
func TestLeftIsWhole(t *testing.T) {
	t.Parallel()
	for name, media := range map[string]bool{"media": true, "lengths": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, _, b, w := newPair(t, media)
				for range 3 {
					w.part(100)
				}
				synctest.Wait() // the journal has them
				w.feed.Close(false)
				data, told, found := got(t, b, "m")
				if media && len(data) != 300 || !media && told != 300 || !found {
					t.Errorf("%d bytes and %d ms are there: %v", len(data), told, found)
				}
			})
		})
	}
}

// Memory is bounded: the oldest media goes, and is counted; how long it was is known.
func TestCopiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, b, w := newPair(t, true)
		const size, most = 1 << 20, 64 << 20
		for range 100 {
			w.part(size)
			time.Sleep(100 * time.Millisecond)
		}
		sa, sb := a.Stats(), b.Stats()
		if sa.Bytes > most || sb.Bytes > most || sa.Dropped < 100*size-most || sb.Dropped == 0 {
			t.Errorf("at the owner %+v\nat the other node %+v", sa, sb)
		}
		f.lose("a")
		if _, told, _ := got(t, b, "m"); told != 100*100 {
			t.Errorf("it was %d long", told)
		}
	})
}

// What another node sends may be anything.
func TestHostileSender(t *testing.T) {
	t.Parallel()
	f := newFleet(t, true)
	s := copies.New(copies.Options{
		Rows: f, Peer: peer{f, "b"}, From: func(context.Context) id.Node { return "a" }, Now: time.Now,
		Logger: slog.New(slog.DiscardHandler), Media: true,
	})
	send := func(session string, at int, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost,
			fmt.Sprintf("%s?session=%s&run=r&at=%d", copies.Path, session, at), strings.NewReader(body))
		w := httptest.NewRecorder()
		s.Store().ServeHTTP(w, r)
		return w.Code
	}
	begin := func(m string) string { return "b" + string(rune(len(m))) + m + "\x00\x00\x00\x00\x00\x00\x00\x00" }
	huge := binary.BigEndian.AppendUint32([]byte("r\x01m\x00"), 1<<31)
	for name, body := range map[string]string{
		"another kind": "x\x01m", "no name": "b\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"a long name":     begin(strings.Repeat("m", 101)),
		"another journal": "r\x01m\x07\x00\x00\x00\x02aaaaaa", "a huge record": string(huge) + "aaaa",
	} {
		if code := send(name[:1], 0, body); code != http.StatusUnprocessableEntity && code != http.StatusBadRequest {
			t.Errorf("%s: %d", name, code)
		}
	}
	if code := send("s", 5, ""); code != http.StatusConflict {
		t.Errorf("a stream that has not begun: %d", code)
	}
	ok := begin("m") + "r\x01n\x00\x00\x00\x00\x02aaaabb" // of what has not begun
	if code := send("s", 0, ok); code != http.StatusNoContent {
		t.Errorf("a good one: %d", code)
	}
	if code := send("s", len(ok), "r\x01m\x00\x00\x00\x00\x02aaaabb"); code != http.StatusNoContent {
		t.Errorf("a record that can't be read: %d", code)
	}
	if st := s.Stats(); st.Kept != 1 || st.Dropped != 10 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
}

// A node that copies as many broadcasts as it can refuses the next ones, and keeps on copying the others. Another node
// copies those, or this one when there is a place again.
func TestFullNodeRefusesOneBroadcast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, b, w := newPair(t, true)
		var body strings.Builder
		for i := range 999 {
			name := fmt.Sprint("other", i)
			body.WriteString("b" + string(rune(len(name))) + name + "\x00\x00\x00\x00\x00\x00\x00\x00")
		}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), callerKey{}, id.Node("z")), http.MethodPost,
			copies.Path+"?session=s&run=z&at=0", strings.NewReader(body.String()))
		res := httptest.NewRecorder()
		b.Store().ServeHTTP(res, r)
		if s := b.Stats(); res.Code != http.StatusNoContent || s.Kept != 1000 {
			t.Fatalf("%d, %+v", res.Code, s)
		}
		next := write(t, a, "next")
		time.Sleep(5 * time.Second)
		began := time.Now()
		for range 5 {
			w.part(100)
			next.part(100)
		}
		if took := time.Since(began); took > 50*time.Millisecond {
			t.Errorf("ten parts took %v", took)
		}
		time.Sleep(time.Second)
		if s := a.Stats(); s.Feeds != 2 || s.Copied != 1 || s.Refused != 1 || s.Late != 0 {
			t.Errorf("with one place less than broadcasts: %+v", s)
		}
		c := f.add("c", "", 0)
		time.Sleep(3 * time.Second)
		if s := a.Stats(); s.Copied != 2 || c.Stats().Kept != 1 {
			t.Errorf("with another node: %+v, there %+v", s, c.Stats())
		}
		f.lose("c")
		w.feed.Close(true) // so there is a place
		time.Sleep(40 * time.Second)
		if s := a.Stats(); s.Copied != 1 || s.Refused > 2 {
			t.Errorf("when there is a place again: %+v", s)
		}
		w = write(t, a, "later")
		time.Sleep(3 * time.Minute) // the other copies are of a node that has not been heard of since
		w.part(100)
		time.Sleep(time.Second)
		if s := b.Stats(); s.Kept != 1000 || a.Stats().Copied != 2 {
			t.Errorf("when others were not heard of for minutes: %+v, there %+v", a.Stats(), s)
		}
		f.lose("a")
		for m, size := range map[id.Media]int{"next": 500, "later": 100} {
			if data, _, found := got(t, b, m); !found || len(data) != size {
				t.Errorf("%s: found %v, %d bytes", m, found, len(data))
			}
		}
	})
}

// Nodes that do not say where they are keep nobody from being chosen.
func TestSlowNodesDoNotHoldUpTheChoice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		for i := range 20 {
			name := id.Node(fmt.Sprint("slow", i))
			f.lag[name] = 900 * time.Millisecond
			f.add(name, "far", 0)
		}
		a := f.add("a", "near", 0)
		b := f.add("b", "near", 0)
		w := write(t, a, "m")
		time.Sleep(700 * time.Millisecond)
		w.part(100)
		if s := a.Stats(); s.Copied != 1 || b.Stats().Kept != 1 {
			t.Errorf("%+v, at the one that responds %+v", s, b.Stats())
		}
		time.Sleep(2 * time.Second)
		other := write(t, a, "other")
		time.Sleep(3 * time.Second)
		other.part(100)
		if n := b.Stats().Kept; n != 1 {
			t.Errorf("what has come later did not count: %d are copied in the same zone", n)
		}
	})
}

// What a node that is asked for a copy responds may be anything.
func TestHostileKeeper(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, true)
		a := f.add("a", "", 0)
		headers := http.Header{}
		f.mu.Lock()
		f.rows = append(f.rows, node.Node{Name: "b", Run: "r", State: node.Alive, AdvertiseURL: "http://b"})
		f.nodes["b"] = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			maps.Copy(w.Header(), headers)
			_, _ = w.Write([]byte("12345678"))
		})
		f.mu.Unlock()
		for _, bad := range [][2]string{{"", ""}, {"-1", "0"}, {"0", "9"}, {"0", "-1"}, {"9999999999999", "0"}} {
			headers["Millrace-Age"], headers["Millrace-Own"] = []string{bad[0]}, []string{bad[1]}
			if _, found := a.Left(t.Context(), "m"); found {
				t.Errorf("%q was believed", bad)
			}
		}
		headers["Millrace-Age"], headers["Millrace-Own"] = []string{"0"}, []string{"8"}
		if data, _, found := got(t, a, "m"); !found || len(data) > 0 {
			t.Errorf("nonsense became %q", data)
		}
		f.mu.Lock()
		f.slow = time.Minute // it does not respond
		f.mu.Unlock()
		began := time.Now()
		if _, found := a.Left(t.Context(), "m"); found || time.Since(began) != 2*time.Second {
			t.Errorf("found %v after %v", found, time.Since(began))
		}
	})
}
