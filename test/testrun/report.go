package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json` (cmd/test2json).
type event struct {
	Action      string  `json:"Action"`
	Package     string  `json:"Package"`
	ImportPath  string  `json:"ImportPath"` // of a build event
	Test        string  `json:"Test"`
	Elapsed     float64 `json:"Elapsed"` // seconds
	Output      string  `json:"Output"`
	FailedBuild string  `json:"FailedBuild"` // of a package's fail event
}

// report counts tests and prints what a person wants to read. Only tests without subtests are counted, so that each
// thing counts once; a parent counts when it fails by itself.
type report struct {
	out                     io.Writer
	passed, failed, skipped int

	packages map[string]*pkg
	builds   map[string]*strings.Builder // output of the compiler, by import path
	failures []failure
	flaky    []failure // failed, and passed when run again
	pace     bool      // the tests that run now depend on the machine's pace: what fails may be run again
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

// pkg is a package whose tests are running.
type pkg struct {
	tests                   map[string]*test
	output                  strings.Builder // outside any test: panics, leaks, exit codes
	races                   strings.Builder // what the race detector says, in the middle of whichever test
	racing, raceReported    bool
	panicked                bool // what had not run yet has not run
	passed, failed, skipped int
	cached                  bool // nothing that it depends on has changed since it passed
}

type test struct {
	output   strings.Builder
	children int
	failed   int           // children that failed
	waiting  bool          // for its turn
	waited   time.Duration // for its turn, which go test counts as its own
	done     bool
}

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
	return &report{out: out, packages: map[string]*pkg{}, builds: map[string]*strings.Builder{}}
}

// read takes a stream of events up to its end.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Fprint(r.out, string(line)) // not an event: go itself speaks
			} else {
				r.event(e)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.packages)) {
		r.endPackage(name, event{Action: "fail", Package: name})
	}
	return nil
}

func (r *report) event(e event) {
	if e.ImportPath != "" { // build-output, build-fail
		b := r.builds[e.ImportPath]
		if b == nil {
			b = &strings.Builder{}
			r.builds[e.ImportPath] = b
		}
		b.WriteString(e.Output)
		return
	}
	p := r.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*test{}}
		r.packages[e.Package] = p
	}
	if e.Action == "output" {
		p.race(e.Output)
		p.panicked = p.panicked || strings.HasPrefix(e.Output, "panic: ")
	}
	if e.Test == "" {
		switch e.Action {
		case "output":
			p.output.WriteString(e.Output)
			p.cached = p.cached || strings.HasSuffix(e.Output, "\t(cached)\n")
		case "pass", "fail", "skip":
			r.endPackage(e.Package, e)
		}
		return
	}
	switch e.Action {
	case "run":
		p.tests[e.Test] = &test{}
		if parent := p.parent(e.Test); parent != nil {
			parent.children++
		}
	case "output":
		if t := p.tests[e.Test]; t != nil && !t.turn(e.Output) {
			t.output.WriteString(e.Output)
		}
	case "pause", "cont":
		if t := p.tests[e.Test]; t != nil {
			t.waiting = e.Action == "pause"
		}
	case "pass", "fail", "skip":
		r.endTest(p, e)
	}
}

// turn is what test/rig logs of a test that has to wait before it begins.
var turn = regexp.MustCompile(`: (?:waits|waited (\d+\.\d)s) for its turn\n$`)

// turn reports whether a line is about the test's turn, and notes if the test waits, and how long it did.
func (t *test) turn(line string) bool {
	m := turn.FindStringSubmatch(line)
	if m == nil {
		return false
	}
	t.waiting = m[1] == ""
	d, _ := time.ParseDuration(m[1] + "s") // 0 of a test that still waits
	t.waited += d
	return true
}

// race keeps the lines of the race detector's reports, which stand between two rules.
func (p *pkg) race(line string) {
	p.racing = p.racing || strings.HasPrefix(line, "WARNING: DATA RACE")
	if p.racing {
		p.races.WriteString(line)
		p.racing = !strings.HasPrefix(line, "==================")
	}
}

// firstRace gives the head of the package's first race, once.
func (p *pkg) firstRace() []string {
	if p.raceReported || p.races.Len() == 0 {
		return nil
	}
	p.raceReported = true
	lines := strings.Split(strings.TrimRight(p.races.String(), "\n"), "\n")
	return lines[:min(len(lines), 30)]
}

func (p *pkg) parent(name string) *test {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return p.tests[name[:i]]
	}
	return nil
}

func (r *report) endTest(p *pkg, e event) {
	t := p.tests[e.Test]
	if t == nil || t.done {
		return
	}
	t.done = true
	leaf := t.children == 0
	switch {
	case e.Action == "pass" && leaf:
		p.passed++
	case e.Action == "skip" && leaf:
		p.skipped++
		r.skips = append(r.skips, short(e.Package)+" "+e.Test+": "+skipReason(t.output.String()))
	case e.Action == "fail":
		if parent := p.parent(e.Test); parent != nil {
			parent.failed++
		}
		if leaf || t.failed == 0 {
			p.failed++
			out := t.output.String()
			r.failures = append(r.failures, failure{
				name: short(e.Package) + " " + e.Test, output: out, pkg: e.Package, test: e.Test,
				again: r.pace && !strings.HasSuffix(out, neverEnded),
			})
			fmt.Fprintf(r.out, "FAIL  %s %s\n", short(e.Package), e.Test)
			for _, line := range append(said(t.output.String()), p.firstRace()...) {
				fmt.Fprintf(r.out, "      %s\n", line)
			}
		}
	}
	took := time.Duration(e.Elapsed*float64(time.Second)) - t.waited
	if took >= slowTest && e.Action == "pass" && leaf {
		fmt.Fprintf(r.out, "  ok  %s %s (%.0fs)\n", short(e.Package), e.Test, took.Seconds())
	}
	if leaf {
		r.tests = append(r.tests, timing{short(e.Package) + " " + e.Test, took})
	}
	if t.failed == 0 && e.Action != "fail" {
		t.output.Reset()
	}
}

func (r *report) endPackage(name string, e event) {
	p := r.packages[name]
	delete(r.packages, name)
	if p == nil {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(p.tests)) {
		// It began and never said how it ended: a panic, a timeout, an exit.
		if t := p.tests[n]; !t.done && !t.waiting && t.children == 0 {
			p.tests[n].output.WriteString(neverEnded)
			r.endTest(p, event{Action: "fail", Package: name, Test: n})
		}
	}
	if e.Action == "fail" && p.failed == 0 {
		p.failed++
		out := p.output.String()
		if b := r.builds[e.FailedBuild]; b != nil {
			out = b.String() + out
		}
		r.failures = append(r.failures, failure{name: short(name), output: out})
		fmt.Fprintf(r.out, "FAIL  %s\n", short(name))
	} else if e.Action == "fail" && strings.Contains(p.output.String(), "panic:") {
		r.failures = append(r.failures, failure{name: short(name) + " (panic)", output: p.output.String()})
	}
	if e.Action == "fail" && (p.races.Len() > 0 || p.panicked) {
		r.noneAgain(name)
	}
	if e.Action == "fail" && p.races.Len() > 0 { // it belongs to no test: those that ran at that moment have failed
		r.failures = append(r.failures, failure{name: short(name) + " (data race)", output: p.races.String()})
	}
	r.passed, r.failed, r.skipped = r.passed+p.passed, r.failed+p.failed, r.skipped+p.skipped
	if p.passed+p.failed+p.skipped == 0 {
		return
	}
	word := "ok  "
	if p.failed > 0 {
		word = "FAIL"
	}
	took := fmt.Sprintf("%.1fs", e.Elapsed)
	if p.cached {
		took = "unchanged since it passed"
	}
	fmt.Fprintf(r.out, "%s  %s: %s (%s)\n", word, short(name), counts(p.passed, p.failed, p.skipped), took)
}

// fail counts a failure that belongs to no test.
func (r *report) fail(name, output string) {
	r.failed++
	r.failures = append(r.failures, failure{name: name, output: output})
}

// spent notes how long a phase of the run took, and how much of the processors.
func (r *report) spent(name string, took, processor time.Duration) {
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
		fmt.Fprintf(r.out, "  %6s  %s (%s of processor time)\n", p.took.Round(time.Second), p.name,
			p.processor.Round(time.Second))
	}
}

// close prints the failures and the closing line, and returns the exit code. With strict, a skipped test is a failed
// run.
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

// said gives the end of what a test logs, a few lines of each sentence: why it failed, as soon as it has. The whole
// output comes in the end.
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
