package claim_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/claim"
	"millrace/internal/claim/claimtest"
	"millrace/internal/id"
)

// node is a claimer and its way to the others.
type node struct {
	*claim.Claimer
	way *claimtest.Way
}

func start(t *testing.T, m *claimtest.Memory, name string) *node {
	t.Helper()
	n := &node{way: &claimtest.Way{Memory: m}}
	n.Claimer = claim.New(claim.Options{
		Store: n.way, Node: id.Node(name), Run: "1", Now: time.Now, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.Run(ctx) // ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return n
}

func nobody() {}

// waited is how long somebody waits for a key, and whether it is free then.
func (n *node) waited(t *testing.T, key string) (time.Duration, bool) {
	t.Helper()
	began := time.Now()
	free := n.Wait(t.Context(), key)
	return time.Since(began), free
}

func TestOneOfTwo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := claimtest.NewMemory()
		a, b := start(t, m, "a"), start(t, m, "b")
		n, doneA := a.Claim(t.Context(), []string{"1", "2", "3"}, nobody)
		if n != 3 {
			t.Fatalf("%d of 3 keys that nobody has", n)
		}
		if mine, _ := b.Claim(t.Context(), []string{"3", "4"}, nobody); mine != 0 {
			t.Errorf("%d are b's, though the first one is not", mine)
		}
		synctest.Wait() // what b got of it is given back
		n, doneB := b.Claim(t.Context(), []string{"4", "5", "2", "6"}, nobody)
		if n != 2 {
			t.Errorf("%d are b's", n)
		}
		time.Sleep(time.Minute) // what is in hand stays, what is not in front is given back
		if got := fmt.Sprint(m.Claimed()); got != "[1 2 3 4 5]" {
			t.Errorf("claimed: %s", got)
		}
		go func() {
			time.Sleep(2 * time.Second)
			doneA("2")
		}()
		if took, free := b.waited(t, "2"); !free || took < 2*time.Second || took > 2200*time.Millisecond {
			t.Errorf("waited %s, free: %v", took, free)
		}
		if took, free := b.waited(t, "9"); !free || took > 0 {
			t.Errorf("of what nobody makes: waited %s, free: %v", took, free)
		}
		doneA("1")
		doneA("3")
		doneA()
		doneB()
		synctest.Wait()
		if got := m.Claimed(); len(got) > 0 {
			t.Errorf("not given back: %v", got)
		}
		asked := a.way.Asked()
		time.Sleep(time.Minute)
		if asked != a.way.Asked() {
			t.Error("who has nothing asks")
		}
	})
}

// Who holds what somebody else waits for hears of it within a second.
func TestWanted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := claimtest.NewMemory()
		a, b := start(t, m, "a"), start(t, m, "b")
		var wanted, other atomic.Bool
		_, done := a.Claim(t.Context(), []string{"1", "2"}, func() { wanted.Store(true) })
		_, done2 := a.Claim(t.Context(), []string{"3"}, func() { other.Store(true) })
		time.Sleep(10 * time.Second)
		if wanted.Load() {
			t.Error("wanted by nobody")
		}
		go b.Wait(t.Context(), "2")
		time.Sleep(1010 * time.Millisecond)
		if !wanted.Load() || other.Load() {
			t.Errorf("wanted %v, another %v", wanted.Load(), other.Load())
		}
		done()
		done2()
	})
}

// A node that has died is waited for for seconds, one that lives and is slow not for ever; and so is a database that is
// away or does not answer.
func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		trouble  func(a, b *node)
		from, to time.Duration
		free     bool
	}{
		"slow": {func(*node, *node) {}, 10 * time.Second, 10 * time.Second, false},
		"dead": {
			func(a, _ *node) { a.way.Be(claimtest.Silent) }, 3 * time.Second, 4200 * time.Millisecond, true,
		},
		"database away":  {func(_, b *node) { b.way.Be(claimtest.Broken) }, 0, 100 * time.Millisecond, false},
		"database hangs": {func(_, b *node) { b.way.Be(claimtest.Silent) }, 0, 10 * time.Second, false},
		"away for it that has it": {
			func(a, _ *node) { a.way.Be(claimtest.Broken) }, 3 * time.Second, 4200 * time.Millisecond, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := claimtest.NewMemory()
				a, b := start(t, m, "a"), start(t, m, "b")
				if n, _ := a.Claim(t.Context(), []string{"1"}, nobody); n != 1 {
					t.Fatal("not claimed")
				}
				time.Sleep(20500 * time.Millisecond)
				tt.trouble(a, b)
				if took, free := b.waited(t, "1"); free != tt.free || took < tt.from || took > tt.to {
					t.Errorf("waited %s, free: %v", took, free)
				}
				if tt.free {
					if n, _ := b.Claim(t.Context(), []string{"1"}, nobody); n != 1 {
						t.Error("it can't be taken over")
					}
				}
			})
		})
	}
}

// Where nobody can be asked, everybody makes everything, and does not ask each time.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]claimtest.State{"away": claimtest.Broken, "hangs": claimtest.Silent} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := claimtest.NewMemory()
				a := start(t, m, "a")
				a.way.Be(state)
				began := time.Now()
				if n, done := a.Claim(t.Context(), []string{"1", "2"}, nobody); n != 2 ||
					time.Since(began) > 2*time.Second {
					t.Errorf("%d keys after %s", n, time.Since(began))
				} else {
					done()
				}
				time.Sleep(2 * time.Second)
				asked, again := a.way.Asked(), time.Now()
				for range 100 {
					if n, _ := a.Claim(t.Context(), []string{"3"}, nobody); n != 1 {
						t.Error("it is not mine")
					}
				}
				if a.way.Asked() != asked || time.Since(again) > 0 {
					t.Errorf("asked %d times more, %s", a.way.Asked()-asked, time.Since(again))
				}
				a.way.Be(claimtest.Open)
				time.Sleep(5 * time.Second)
				if n, _ := a.Claim(t.Context(), []string{"4"}, nobody); n != 1 || len(m.Claimed()) != 1 {
					t.Errorf("%d claimed, in the store %v", n, m.Claimed())
				}
			})
		})
	}
}
