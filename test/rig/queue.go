package rig

import (
	"cmp"
	"slices"
	"strings"
)

// queue is the tests of a package that wait for their turn, in the order in which they begin. Subtests of a test come
// right after it, as it has a service at work for them. At the top those that are long come first, so that the last
// ones of a run are short and keep the machine busy up to its end.
type queue struct {
	came    int
	tops    map[string]rank
	waiting []waiter
}

// rank is where a test begins, by its fields in their order.
type rank struct {
	top int // 0 for a long test at the top, else 1
	at  int // how many tests had come before the one at the top,
	sub int // and before this one
}

type waiter struct {
	name string
	rank
}

// arrive gives a test its rank. A subtest has that of the test at its top.
func (q *queue) arrive(name string, long bool) rank {
	q.came++
	top, _, sub := strings.Cut(name, "/")
	r, known := q.tops[top]
	if !known {
		r = rank{top: 1, at: q.came}
		if long && !sub {
			r.top = 0
		}
		q.tops[top] = r
	}
	r.sub = q.came
	return r
}

// wait puts a test in its place.
func (q *queue) wait(name string, r rank) {
	i, _ := slices.BinarySearchFunc(q.waiting, r, func(w waiter, r rank) int { return w.compare(r) })
	q.waiting = slices.Insert(q.waiting, i, waiter{name, r})
}

// isNext reports whether no other test begins before this one.
func (q *queue) isNext(name string) bool { return q.waiting[0].name == name }

func (q *queue) leave(name string) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w waiter) bool { return w.name == name })
}

func (r rank) compare(other rank) int {
	return cmp.Or(cmp.Compare(r.top, other.top), cmp.Compare(r.at, other.at), cmp.Compare(r.sub, other.sub))
}
