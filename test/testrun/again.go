package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// again is a test that failed where what tests see depends on the machine's pace, with all of it that failed.
type again struct {
	pkg, test string // what is run once more: the whole test, on the pair of stores that it failed on
	failures  []failure
}

// suspects are the tests that may be run once more, each once. One that panicked, raced, leaked or never ended is none,
// nor is one that has been known to be flaky for too long.
func (r *report) suspects(flaky []known, now time.Time) (list []again) {
	for _, f := range r.failures {
		old := func(k known) bool { return k.covers(f.pkg, f.test) && now.After(k.until()) }
		if !f.again || slices.ContainsFunc(flaky, old) {
			continue
		}
		top := whole(f.test)
		i := slices.IndexFunc(list, func(a again) bool { return a.pkg == f.pkg && a.test == top })
		if i < 0 {
			i = len(list)
			list = append(list, again{pkg: f.pkg, test: top})
		}
		list[i].failures = append(list[i].failures, f)
	}
	return list
}

// noneAgain takes the second run from what failed in a package that raced or panicked.
func (r *report) noneAgain(pkg string) {
	for i := range r.failures {
		r.failures[i].again = r.failures[i].again && r.failures[i].pkg != pkg
	}
}

// whole is the test that a subtest belongs to, on its pair: what subtests share is looked at by the test around them.
func whole(test string) string {
	parts := strings.Split(test, "/")
	if len(parts) > 1 && strings.Contains(parts[1], "+") {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// pattern names one test for go test -run.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// runAgain gives what failed at the machine's pace a second run, alone, when everything else has ended. What passes
// then is flaky: it is named in the end with what it said, and does not fail the run. What fails twice has failed.
func (o options) runAgain(ctx context.Context, env []string, r *report) {
	list := r.suspects(knownFlaky, time.Now())
	if o.again == 0 || len(list) == 0 {
		return
	}
	if len(list) > o.again {
		fmt.Fprintf(r.out, "%d tests failed end to end and in browsers: too many for an accident, none is run again\n",
			len(list))
		return
	}
	begin, processor := time.Now(), time.Duration(0)
	o.run = ""
	for _, a := range list {
		if ctx.Err() != nil {
			return
		}
		fmt.Fprintf(r.out, "again, alone: %s %s\n", short(a.pkg), a.test)
		second := newReport(io.Discard)
		p := phase{args: append(o.goTestArgs(false, true), "-run", pattern(a.test)), packages: []string{a.pkg}}
		took, err := p.goTest(ctx, env, second)
		processor += took
		r.second(a, second, err)
	}
	r.spent("again, alone", time.Since(begin), processor)
}

// second says what came of a test's second run.
func (r *report) second(a again, second *report, err error) {
	if err == nil && len(second.failures) == 0 && second.skipped == 0 && second.passed > 0 {
		r.takeBack(a)
		return
	}
	for _, f := range second.failures {
		r.failures = append(r.failures, failure{name: f.name + " (again, alone)", output: f.output})
	}
	if err != nil {
		r.failures = append(r.failures, failure{name: a.test + " (again, alone)", output: err.Error()})
	}
}

// takeBack counts what failed once and passed alone as passed, and keeps it to be named in the end.
func (r *report) takeBack(a again) {
	for _, f := range a.failures {
		r.failed, r.passed = r.failed-1, r.passed+1
		r.failures = slices.DeleteFunc(r.failures, func(x failure) bool { return x == f })
		r.flaky = append(r.flaky, f)
	}
}

// printFlaky prints what flaky tests said when they failed.
func (r *report) printFlaky() {
	for _, f := range r.flaky {
		fmt.Fprintf(r.out, "\n--- FLAKY %s (passed when it was run again, alone)\n    %s\n", f.name, indented(f.output))
	}
}

// nameFlaky names the flaky tests, each with the first thing that it said, near the closing line.
func (r *report) nameFlaky() {
	if len(r.flaky) == 0 {
		return
	}
	fmt.Fprintf(r.out, "\nflaky, passed when run again, alone: %d\n", len(r.flaky))
	for _, f := range r.flaky {
		why := ""
		if lines := said(f.output); len(lines) > 0 {
			why = lines[0]
		}
		fmt.Fprintf(r.out, "  %s: %.160s\n", f.name, why)
	}
}
