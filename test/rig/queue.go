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
	came    int             // how many tests, waiting or not
	tops    map[string]rank // of tests at the top, by name
	waiting []waiter
}

// rank is where a test begins, by its fields in their order.
type rank struct {
	length int // of the test at the top: 0 if it is long, else 1
	top    int // how many tests had come up to the one at the top,
	own    int // and up to this one
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
		r = rank{length: 1, top: q.came}
		if long && !sub {
			r.length = 0
		}
		q.tops[top] = r
	}
	r.own = q.came
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
	return cmp.Or(cmp.Compare(r.length, other.length), cmp.Compare(r.top, other.top), cmp.Compare(r.own, other.own))
}
