package main

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// report counts tests and prints what a person wants to read. Only tests without subtests are counted, so that each
// thing counts once; a parent counts when it fails by itself. Several commands may tell it of their tests at once.
type report struct {
	mu                      sync.Mutex
	out                     io.Writer
	passed, failed, skipped int

	failures []failure
	flaky    []failure // failed, and passed when run again
	skips    []string
	tests    []timing // tests without subtests
	phases   []spending
}

// timing is how long something took.
type timing struct {
	name string
	took time.Duration
}

// spending is what a phase of the run took.
type spending struct {
	name            string
	took, processor time.Duration
}

// mostSlow is how many of the slowest tests are named in the end.
const mostSlow = 20

type failure struct {
	name, output string
	pkg, test    string // of a test
	again        bool   // it may be run once more
}

const neverEnded = "(never ended)\n"

// maxOutput bounds what one failure prints; its end is what matters.
const maxOutput = 64 << 10

// slowTest is the duration from which a passing test is named.
const slowTest = 10 * time.Second

func newReport(out io.Writer) *report {
	return &report{out: &sharedWriter{out: out}}
}

// sharedWriter is written to by several at once.
type sharedWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *sharedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}

// fail counts a failure that belongs to no test.
func (r *report) fail(name, output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	r.failures = append(r.failures, failure{name: name, output: output})
}

// spent notes how long a phase of the run took, and how much of the processors.
func (r *report) spent(name string, took, processor time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phases = append(r.phases, spending{name, took, processor})
}

// times prints the slowest tests and where the minutes went.
func (r *report) times() {
	slices.SortStableFunc(r.tests, func(a, b timing) int { return cmp.Compare(b.took, a.took) })
	slow := r.tests[:min(len(r.tests), mostSlow)]
	slow = slices.DeleteFunc(slices.Clone(slow), func(t timing) bool { return t.took < time.Second })
	if len(slow) > 0 {
		fmt.Fprintln(r.out, "\nthe slowest tests:")
	}
	for _, t := range slow {
		fmt.Fprintf(r.out, "  %4.0fs  %s\n", t.took.Seconds(), t.name)
	}
	if len(r.phases) == 0 {
		return
	}
	fmt.Fprintln(r.out, "\nwhere the time went:")
	for _, p := range r.phases {
		fmt.Fprintf(r.out, "  %6s  %s (%s of processor time)\n", p.took.Round(time.Second), p.name, p.processor.Round(time.Second))
	}
}

// close prints the failures and the closing line, and returns the exit code. With strict, a skipped test is a failed run.
func (r *report) close(strict bool) int {
	r.printFlaky()
	for _, f := range r.failures {
		fmt.Fprintf(r.out, "\n--- FAIL %s\n    %s\n", f.name, indented(f.output))
	}
	if len(r.skips) > 0 {
		fmt.Fprintf(r.out, "\nskipped:\n")
		for _, s := range r.skips {
			fmt.Fprintf(r.out, "  %s\n", s)
		}
		if strict {
			fmt.Fprintln(r.out, "nothing may be skipped in this run, so it has failed")
		}
	}
	r.times()
	if r.passed+r.failed == 0 {
		fmt.Fprintln(r.out, "no test ran, so this run has failed")
	}
	if len(r.failures) > 0 {
		fmt.Fprintln(r.out, "\nfailed:")
		for _, f := range r.failures {
			fmt.Fprintf(r.out, "  %s\n", f.name)
		}
	}
	r.nameFlaky()
	fmt.Fprintf(r.out, "\n%s\n", counts(r.passed, r.failed, r.skipped))
	if r.failed > 0 || r.passed == 0 || strict && r.skipped > 0 {
		return 1
	}
	return 0
}

// indented is the end of an output, set in.
func indented(out string) string {
	out = strings.TrimRight(out, "\n")
	if len(out) > maxOutput {
		out = "…" + out[len(out)-maxOutput:]
	}
	return strings.ReplaceAll(out, "\n", "\n    ")
}

// stderr takes what the go command says outside its events.
func (r *report) stderr() io.Writer { return r.out }

func counts(passed, failed, skipped int) string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", passed, failed, skipped)
}

func short(pkg string) string { return strings.TrimPrefix(pkg, "millrace/") }

// sentence is a line that a test logs: "    file.go:12: text". What else it says on further lines is set in deeper.
var sentence, further = regexp.MustCompile(`^ {4}\w+\.go:\d+: `), regexp.MustCompile(`^ {8}`)

// said gives the end of what a test logs, a few lines of each sentence: why it failed, as soon as it has. The whole output comes in the end.
func said(output string) []string {
	const most, more, longest = 12, 2, 900
	var list []string
	after := more // lines behind the last sentence
	for line := range strings.Lines(output) {
		switch {
		case sentence.MatchString(line):
			after = 0
		case after < more && further.MatchString(line):
			after++
		default:
			continue
		}
		line = strings.TrimRight(line, "\n")[4:]
		list = append(list, line[:min(len(line), longest)])
	}
	return list[max(0, len(list)-most):]
}

// skipReason finds the sentence given to t.Skip, a test's last one.
func skipReason(output string) string {
	list := said(output)
	if len(list) == 0 {
		return "no reason given"
	}
	_, reason, _ := strings.Cut(list[len(list)-1], ": ")
	return reason
}
