package socket_test

import (
	"testing"
	"time"

	"millrace/internal/socket"
)

// The kinds of the tests.
const (
	first socket.Kind = iota
	second
)

// TestShares: connections at work for one kind of request leave the places of the others, and where there are no more
// the peer that is furthest behind with what it sends makes way.
func TestShares(t *testing.T) {
	t.Parallel()
	b := socket.NewBudget(9, 9, socket.Share{Places: 6}, socket.Share{Places: 3, Patience: time.Hour})
	g := receive(t, b)
	now := time.Now()
	ago := func(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }
	begin := func(name, from string, k socket.Kind) bool {
		t.Helper()
		g.enter(name, from)
		return g.ours[name].Begin(k)
	}
	for i, from := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"} {
		if !begin(from, from, second) {
			t.Fatalf("%s has no place, and %d have", from, i)
		}
	}
	if begin("all answered", "127.0.0.4", second) {
		t.Error("more than a kind's share are at work")
	}
	g.ours["127.0.0.1"].Waits(ago(59))
	if begin("none beyond patience", "127.0.0.5", second) {
		t.Error("one that is behind by less than the patience of its kind has made way")
	}
	g.ours["127.0.0.2"].Waits(ago(61))
	g.ours["127.0.0.3"].Waits(ago(62))
	if !begin("new", "127.0.0.6", second) {
		t.Error("nobody has made way")
	}
	g.closed("127.0.0.3")
	g.ours["127.0.0.2"].Came() // what it has sent is being worked on
	if begin("while all are at work", "127.0.0.7", second) {
		t.Error("a connection was closed that does not wait for its peer")
	}
	g.ours["127.0.0.1"].End(second)
	if !begin("in place of one that is done", "127.0.0.8", second) {
		t.Error("a place is lost")
	}
}

// TestShareOfOneOrigin: one origin has a part of a kind's places, and loses the slowest of its own.
func TestShareOfOneOrigin(t *testing.T) {
	t.Parallel()
	g := receive(t, socket.NewBudget(9, 9, socket.Share{Places: 5}, socket.Share{Places: 4, PerOrigin: 2}))
	for _, name := range []string{"a", "b"} {
		g.enter(name, "127.0.0.1")
		if !g.ours[name].Begin(second) {
			t.Fatalf("%s has no place", name)
		}
	}
	g.enter("c", "127.0.0.1")
	if g.ours["c"].Begin(second) {
		t.Error("one origin has more than its part")
	}
	g.enter("other", "127.0.0.2")
	if !g.ours["other"].Begin(second) {
		t.Error("another origin has none")
	}
	g.ours["other"].Waits(time.Now().Add(-time.Hour))
	g.ours["b"].Waits(time.Now().Add(-time.Minute))
	if !g.ours["c"].Begin(second) {
		t.Error("the slowest has not made way")
	}
	g.closed("b")
}

// TestSlowestMakesWay for a new connection where no place is left, before those that are idle.
func TestSlowestMakesWay(t *testing.T) {
	t.Parallel()
	b := socket.NewBudget(4, 4)
	g := receive(t, b)
	for _, name := range []string{"idle", "slow", "slower", "busy"} {
		g.enter(name, "127.0.0.1")
	}
	g.ours["busy"].Busy()
	g.ours["slow"].Begin(first)
	g.ours["slow"].Waits(time.Now().Add(-time.Second))
	g.ours["slower"].Begin(first)
	g.ours["slower"].Begin(second) // as over HTTP/2
	g.ours["slower"].Waits(time.Now().Add(-time.Minute))
	g.enter("new", "127.0.0.2") // of slower one request is at work
	g.closed("slow")
	g.ours["slower"].End(second)
	g.enter("newer", "127.0.0.2")
	g.closed("slower")
	g.enter("newest", "127.0.0.2")
	g.closed("idle")
	if n := b.Open(); n != 4 {
		t.Errorf("%d are open, want 4", n)
	}
}

// TestUnreadMakesWay: a connection that has responded and waits for what is left of a body may be closed, and one that
// is idle again does not wait.
func TestUnreadMakesWay(t *testing.T) {
	t.Parallel()
	g := receive(t, socket.NewBudget(3, 3))
	for _, name := range []string{"busy", "unread", "done"} {
		g.enter(name, "127.0.0.1")
		g.ours[name].Busy()
		g.ours[name].Begin(first)
	}
	for i, name := range []string{"unread", "done"} {
		g.ours[name].Waits(time.Now().Add(-time.Duration(i+1) * time.Minute))
		g.ours[name].End(first)
	}
	g.ours["done"].Idle()
	g.ours["done"].Busy()
	g.enter("new", "127.0.0.1")
	g.closed("unread")
}
