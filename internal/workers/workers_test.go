package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/fault"
	"millrace/internal/id"
	"millrace/internal/media/follow"
	"millrace/internal/media/turns"
	"millrace/internal/presentation"
)

// farm is nodes, of which some are workers: it is the database and the network.
type farm struct {
	mu    sync.Mutex // held by what several do at once
	nodes []node.Node
	dead  map[id.Node]bool
	err   error // of workers
	data  []byte
	asked []id.Node
	saw   []request
	away  bool             // the database is
	stuck map[id.Node]bool // it takes for ever
}

func (f *farm) Nodes(context.Context) ([]node.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away {
		return nil, errors.New("the database is away")
	}
	return f.nodes, nil
}

func (f *farm) Do(ctx context.Context, to follow.Node, r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	f.asked = append(f.asked, to.ID)
	if f.stuck[to.ID] {
		f.mu.Unlock()
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	defer f.mu.Unlock()
	if f.dead[to.ID] {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	(&Handler{Maker: f, Logger: slog.New(slog.DiscardHandler)}).ServeHTTP(w, r)
	res := w.Result()
	if res.StatusCode == http.StatusOK {
		res.ContentLength = int64(w.Body.Len())
	}
	return res, nil
}

func (f *farm) Make(ctx context.Context, o presentation.Order) ([]byte, error) {
	f.saw = append(f.saw, request{o, turns.Viewer(ctx)})
	return f.data, f.err
}

// newFarm has nodes a to e of all roles but f, which has not that of a worker, and g, which is gone; asker knows them.
func newFarm(t *testing.T) (f *farm, a *Asker, outcomes *[]string) {
	t.Helper()
	f = &farm{dead: map[id.Node]bool{}, data: []byte("made")}
	for i := range 5 {
		name := string(rune('a' + i))
		f.nodes = append(f.nodes, node.Node{
			Name: id.Node(name), State: node.Alive, Roles: []string{node.RoleWorker}, AdvertiseURL: "http://" + name,
		})
	}
	f.nodes[4].Roles = []string{node.RoleAll}
	f.nodes = append(f.nodes,
		node.Node{Name: "f", State: node.Alive, Roles: []string{node.RoleIngest}, AdvertiseURL: "http://f"},
		node.Node{Name: "g", State: node.Gone, Roles: []string{node.RoleWorker}, AdvertiseURL: "http://g"},
		node.Node{Name: "h", State: node.Alive, Roles: []string{node.RoleWorker}})
	outcomes = &[]string{}
	a = New(Options{
		Rows: f, Peer: f, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
		Ended: func(o string) {
			f.mu.Lock()
			defer f.mu.Unlock()
			*outcomes = append(*outcomes, o)
		},
	})
	a.look(t.Context())
	return f, a, outcomes
}

func order(n int) presentation.Order {
	return presentation.Order{Asset: id.Asset(fmt.Sprint("asset", n))}
}

// TestSameWorker: what is of one rendition is asked of one worker, different ones are spread over all that there are,
// and what one has that goes is the only thing that moves.
func TestSameWorker(t *testing.T) {
	t.Parallel()
	f, a, _ := newFarm(t)
	if a.Alive() != 5 {
		t.Errorf("%d workers, want a to e", a.Alive())
	}
	first := map[int]id.Node{}
	count := map[id.Node]int{}
	for n := range 1000 {
		first[n] = a.pick(order(n))[0].ID
		count[first[n]]++
		if again := a.pick(order(n))[0].ID; again != first[n] {
			t.Errorf("the same is asked of %s and %s", first[n], again)
		}
	}
	for _, name := range []id.Node{"a", "b", "c", "d", "e"} {
		if count[name] < 120 || count[name] > 280 {
			t.Errorf("of 1000 things %d are asked of %s", count[name], name)
		}
	}
	f.nodes = f.nodes[1:]
	a.look(t.Context())
	for n, was := range first {
		if now := a.pick(order(n))[0].ID; now != was && was != "a" {
			t.Errorf("what was asked of %s is asked of %s since a is gone", was, now)
		}
	}
}

// TestBusyLast: a worker with more to do than it can, or one that leaves, is asked after the others.
func TestBusyLast(t *testing.T) {
	t.Parallel()
	for what, become := range map[string]func(*node.Node){
		"is busy":    func(n *node.Node) { n.Load.CPU = loaded },
		"is leaving": func(n *node.Node) { n.Draining = true },
	} {
		f, a, _ := newFarm(t)
		name := a.pick(order(1))[0].ID
		become(&f.nodes[slices.IndexFunc(f.nodes, func(n node.Node) bool { return n.Name == name })])
		a.look(t.Context())
		if all := a.pick(order(1)); all[0].ID == name || all[4].ID != name {
			t.Errorf("%s, which %s, is asked in the order %v", name, what, all)
		}
	}
}

// TestNextWorker: one that does not respond is followed by the next, and asked last for a while; after three it ends.
func TestNextWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, outcomes := newFarm(t)
		all := a.pick(order(1))
		f.dead[all[0].ID] = true
		ctx := turns.For(t.Context(), func() string { return "192.0.2.0" })
		data, err := a.Make(ctx, order(1))
		if err != nil || string(data) != "made" || !slices.Equal(f.asked, []id.Node{all[0].ID, all[1].ID}) {
			t.Errorf("%q %v, asked %v", data, err, f.asked)
		}
		if f.saw[0].Viewer != "192.0.2.0" || f.saw[0].Asset != "asset1" {
			t.Errorf("the worker is asked for %+v", f.saw[0])
		}
		if last := a.pick(order(1))[4].ID; last != all[0].ID {
			t.Errorf("%s does not respond, and %s is asked last", all[0].ID, last)
		}
		time.Sleep(silence + time.Second)
		if again := a.pick(order(1))[0].ID; again != all[0].ID {
			t.Errorf("later %s is asked first", again)
		}
		for _, w := range all {
			f.dead[w.ID] = true
		}
		f.asked = nil
		_, err = a.Make(t.Context(), order(1))
		if !fault.Is(err, fault.Unavailable) || fault.CodeOf(err) != NoWorker || len(f.asked) != tries {
			t.Errorf("all are dead: %v, asked %v", err, f.asked)
		}
		if want := []string{Made, NoWorker}; !slices.Equal(*outcomes, want) {
			t.Errorf("outcomes %v, want %v", *outcomes, want)
		}
	})
}

// TestLateIsNotSilent: a worker that has not made a thing in time may be at it, and is asked first again.
func TestLateIsNotSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _ := newFarm(t)
		first := a.pick(order(1))[0].ID
		f.stuck = map[id.Node]bool{first: true}
		data, err := a.Make(t.Context(), order(1))
		if err != nil || string(data) != "made" || len(f.asked) != 2 {
			t.Errorf("%q %v, asked %v", data, err, f.asked)
		}
		a.pass(t.Context(), hint{order: order(1)})
		if now := a.pick(order(1))[0].ID; now != first {
			t.Errorf("%s is late, and %s is asked first", first, now)
		}
	})
}

// TestHintFindsSilentWorkers: who watches does not find out again that a worker is not there.
func TestHintFindsSilentWorkers(t *testing.T) {
	t.Parallel()
	f, a, _ := newFarm(t)
	first := a.pick(order(1))[0].ID
	f.dead[first] = true
	a.pass(t.Context(), hint{order: order(1)})
	if last := a.pick(order(1))[4].ID; last != first {
		t.Errorf("%s does not respond, and %s is asked last", first, last)
	}
}

// TestOutcomes: what passes is tried at the next worker, what does not is told as it is.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err     error
		kind    fault.Kind
		asked   int
		outcome string
	}{
		"busy":     {fault.New(fault.Unavailable, "busy"), fault.Unavailable, tries, Busy},
		"too many": {fault.New(fault.TooMany, "many"), fault.Unavailable, tries, Busy},
		"no longer a worker": {
			fault.New(fault.Conflict, "no worker"), fault.Unavailable, tries, Busy,
		},
		"broken":  {errors.New("secret"), fault.Internal, 1, Failed},
		"nothing": {fault.New(fault.NotFound, "no such segment"), fault.NotFound, 1, Made},
	} {
		f, a, outcomes := newFarm(t)
		f.err = tt.err
		_, err := a.Make(t.Context(), order(1))
		if !fault.Is(err, tt.kind) || len(f.asked) != tt.asked || !slices.Equal(*outcomes, []string{tt.outcome}) {
			t.Errorf("%s: %v, %d asked, %v", name, err, len(f.asked), *outcomes)
		}
	}
}

// TestStored: what a worker has stored, and is large, has no bytes; nor is there an error.
func TestStored(t *testing.T) {
	t.Parallel()
	f, a, _ := newFarm(t)
	f.data = nil
	if data, err := a.Make(t.Context(), order(1)); data != nil || err != nil {
		t.Errorf("%q %v", data, err)
	}
}

// TestTurns: so many wait at a time, and one address with too many of them does not keep others out.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _ := newFarm(t)
		inside := make([]*turns.Turn, mostAsked)
		for i := range inside {
			var err error
			if inside[i], err = a.line.Enter(t.Context(), "greedy", 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		greedy, other := make(chan error, mostWaiting+1), make(chan error, 1)
		ask := func(viewer string, ended chan<- error) {
			_, err := a.Make(turns.For(t.Context(), func() string { return viewer }), order(1))
			ended <- err
		}
		for range mostWaiting + 1 {
			go ask("greedy", greedy)
		}
		synctest.Wait()
		if len(greedy) != 1 || len(f.asked) > 0 {
			t.Fatalf("%d of one more than may wait are not let wait, asked %v", len(greedy), f.asked)
		}
		if err := <-greedy; !fault.Is(err, fault.Unavailable) {
			t.Errorf("one too many: %v", err)
		}
		go ask("other", other)
		synctest.Wait()
		inside[0].Leave()
		synctest.Wait()
		if err := <-other; err != nil || f.saw[0].Viewer != "other" {
			t.Errorf("the other is told %v, and the first order is for %q", err, f.saw[0].Viewer)
		}
		if len(greedy) != mostWaiting { // one place serves all, one after the other
			t.Errorf("%d have ended", len(greedy))
		}
		for _, turn := range inside[1:] {
			turn.Leave()
		}
	})
}

// TestBounds: so much is read at a time, and an order has so many bytes.
func TestBounds(t *testing.T) {
	t.Parallel()
	f, a, _ := newFarm(t)
	a.reading = mostBytes
	if _, err := a.Make(t.Context(), order(1)); !fault.Is(err, fault.Unavailable) {
		t.Error(err)
	}
	a.reading = 0
	long := order(1)
	long.Query = strings.Repeat("&", maxOrder/4) // each is several bytes when it is sent
	_, err := a.Make(t.Context(), long)
	if !fault.Is(err, fault.Invalid) || len(a.silent) > 0 || len(f.asked) != tries {
		t.Errorf("an order that is too long: %v, %d silent, %d sent", err, len(a.silent), len(f.asked)-tries)
	}
	w := httptest.NewRecorder()
	(&Handler{Maker: f}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"?order={", nil))
	if w.Code != http.StatusBadRequest {
		t.Errorf("an order that can't be read: %d", w.Code)
	}
}

// stuckWriter is a connection whose other end reads when the test says so.
type stuckWriter struct {
	*httptest.ResponseRecorder

	reads chan struct{}
}

func (s stuckWriter) Write(data []byte) (int, error) {
	<-s.reads
	return len(data), nil
}

// TestUnsentIsBounded: nodes that ask and do not read can't fill a worker's memory, and what they leave is free again.
func TestUnsentIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, _, _ := newFarm(t)
		f.data = make([]byte, mostUnsent/4)
		h := &Handler{Maker: f, Logger: slog.New(slog.DiscardHandler)}
		serve := func(w http.ResponseWriter) {
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"?order={}", nil))
		}
		reads := make(chan struct{})
		for range 4 {
			go serve(stuckWriter{httptest.NewRecorder(), reads})
			synctest.Wait()
		}
		w := httptest.NewRecorder()
		if serve(w); w.Code != http.StatusTooManyRequests {
			t.Errorf("one too many: %d", w.Code)
		}
		close(reads)
		synctest.Wait()
		w = httptest.NewRecorder()
		if serve(w); w.Code != http.StatusOK || h.unsent.Load() != 0 {
			t.Errorf("when they have read: %d, %d bytes wait", w.Code, h.unsent.Load())
		}
	})
}

// TestHints: what is behind a segment that is watched is asked for once in a while, and nobody waits. While the
// database is away those workers are asked that there were.
func TestHints(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, a, _ := newFarm(t)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.Run(ctx) }()
		o := order(1)
		o.Ahead = true
		for range 100 {
			a.Ahead(ctx, o)
		}
		synctest.Wait()
		if len(f.saw) != 1 || !f.saw[0].Ahead {
			t.Errorf("a hint that came a hundred times is passed on as %+v", f.saw)
		}
		f.mu.Lock()
		f.away = true
		f.mu.Unlock()
		time.Sleep(hintAgain + time.Second)
		a.Ahead(ctx, o)
		synctest.Wait()
		if len(f.saw) != 2 {
			t.Errorf("later it is passed on %d times", len(f.saw))
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for n := range mostHints + 10 { // nobody takes them: it does not wait
			a.Ahead(t.Context(), order(n))
		}
	})
}
