package node_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/control/node"
	"millrace/internal/id"
)

// row is a database with one row, whose clock is an hour ahead of the machine's.
type row struct {
	mu      sync.Mutex
	node    node.Node
	there   bool
	slow    time.Duration // each call
	away    bool
	calls   int
	waiting int // calls that have not returned
	most    int // of them at once
}

func (r *row) call(ctx context.Context) error {
	r.mu.Lock()
	r.calls++
	r.waiting++
	r.most = max(r.most, r.waiting)
	slow, away := r.slow, r.away
	r.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
	if away {
		return errors.New("the database is away")
	}
	return ctx.Err()
}

func (r *row) now() time.Time { return time.Now().Add(time.Hour) }

func (r *row) listed() node.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.node
	n.State = node.Gone
	if n.ValidUntil.After(r.now()) {
		n.State = node.Alive
	}
	return n
}

func (r *row) Register(ctx context.Context, n node.Node, valid time.Duration) (time.Time, *node.Node, error) {
	if err := r.call(ctx); err != nil {
		return time.Time{}, nil, err
	}
	var earlier *node.Node
	if r.there {
		before := r.listed()
		earlier = &before
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n.StartedAt, n.ValidUntil = r.now(), r.now().Add(valid)
	r.node, r.there = n, true
	return n.StartedAt, earlier, nil
}

func (r *row) Renew(ctx context.Context, n node.Node, valid time.Duration) error {
	if err := r.call(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.node.Run != n.Run {
		return node.ErrReplaced
	}
	n.ValidUntil = r.now().Add(valid)
	r.node = n
	return nil
}

func (r *row) Leave(ctx context.Context, _ id.Node, run string, _ time.Duration) error {
	if err := r.call(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.node.Run == run {
		r.node.ValidUntil = r.now()
	}
	return nil
}

func (r *row) Nodes(context.Context) ([]node.Node, error) { return []node.Node{r.listed()}, nil }

func (r *row) Schema(context.Context) (node.Schema, error) { return node.Schema{}, nil }

// process starts one on the row; the function that is returned ends it in order.
func process(t *testing.T, r *row, run string) (s *node.Service, log *bytes.Buffer, ended chan error, stop func()) {
	t.Helper()
	log, ended = &bytes.Buffer{}, make(chan error, 1)
	streams := 0
	s = node.New(node.Options{
		Store: r, Name: "a", Run: run, Every: time.Second, Valid: 3 * time.Second,
		AdvertiseURL: func() string { return "" },
		Load:         func() node.Load { streams++; return node.Load{Streams: streams} },
		Logger:       slog.New(slog.NewTextHandler(log, nil)),
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- s.Run(ctx) }()
	synctest.Wait()
	return s, log, ended, stop
}

// TestRenewal is the life of a node: there from its start, with figures of this second, and gone with its end.
func TestRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &row{}
		s, log, ended, stop := process(t, r, "run1")
		began := r.now()
		time.Sleep(10*time.Second + time.Millisecond)
		n := r.listed()
		if n.State != node.Alive || n.Load.Streams != 11 || !n.StartedAt.Equal(began) || !s.Renewed() {
			t.Errorf("after ten seconds it is %+v, renewed: %v", n, s.Renewed())
		}
		stop()
		if err := <-ended; err != nil || r.listed().State != node.Gone || log.Len() > 0 {
			t.Errorf("it ended with %v as %+v and said %s", err, r.listed(), log)
		}
	})
}

// TestSlowDatabase gets one renewal at a time, and each is of this second.
func TestSlowDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &row{slow: 10 * time.Second}
		_, _, ended, stop := process(t, r, "run1")
		time.Sleep(time.Minute + 5*time.Second)
		r.mu.Lock()
		calls, most := r.calls, r.most
		r.mu.Unlock()
		if calls != 7 || most != 1 {
			t.Errorf("%d calls in 65 s, %d at once", calls, most)
		}
		stop()
		if err := <-ended; err == nil {
			t.Error("the last word, which takes longer than it may, has no error")
		}
	})
}

// TestDatabaseAway is said once, and its end.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &row{away: true}
		s, log, ended, stop := process(t, r, "run1")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if s.Renewed() || strings.Count(log.String(), "WARN") != 1 {
			t.Errorf("while it is away, renewed: %v:\n%s", s.Renewed(), log)
		}
		r.mu.Lock()
		r.away = false
		r.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !s.Renewed() || r.listed().State != node.Alive || !strings.Contains(log.String(), "says again") {
			t.Errorf("when it is back, renewed: %v:\n%s", s.Renewed(), log)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestTwoOfOneName: the newest run has the row at once; the older one says loudly that it stops, and what to do, and
// leaves the row alone.
func TestTwoOfOneName(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &row{}
		_, log, ended, _ := process(t, r, "run1")
		time.Sleep(5 * time.Second)
		_, newer, _, stop := process(t, r, "run2")
		if n := r.listed(); n.Run != "run2" || n.State != node.Alive {
			t.Errorf("the newer run finds %+v", n)
		}
		if !strings.Contains(newer.String(), "WARN") || !strings.Contains(newer.String(), "--node-id") {
			t.Errorf("the newer one says: %s", newer)
		}
		if err := <-ended; !errors.Is(err, node.ErrReplaced) {
			t.Errorf("the older one ends with %v", err)
		}
		if !strings.Contains(log.String(), "ERROR") || !strings.Contains(log.String(), "--node-id") {
			t.Errorf("the older one says: %s", log)
		}
		time.Sleep(5 * time.Second)
		if n := r.listed(); n.Run != "run2" || n.State != node.Alive {
			t.Errorf("later it is %+v", n)
		}
		stop()
	})
}

// TestRestartAfterKill neither waits nor is refused: nobody renews the row any more, and it may still be valid or not.
func TestRestartAfterKill(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		run   string
		pause time.Duration
		warns bool
	}{
		"at once": {"killed", 0, true}, "later": {"killed", 10 * time.Second, false},
		"with a row of the queue alone": {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &row{}
				_, _, err := r.Register(t.Context(), node.Node{Name: "a", Run: tt.run}, 3*time.Second)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(tt.pause)
				s, log, ended, stop := process(t, r, "run2")
				if n := r.listed(); n.Run != "run2" || n.State != node.Alive || !s.Renewed() {
					t.Errorf("at its start it is %+v", n)
				}
				if strings.Contains(log.String(), "WARN") != tt.warns {
					t.Errorf("it says: %s", log)
				}
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}
