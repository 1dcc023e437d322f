package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
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
	failed   int // children that failed
	done     bool
}

// stream is what one go test command says of its tests, while it runs.
type stream struct {
	to       *report
	pace     bool // its tests depend on the machine's pace: what fails may be run again
	failed   int
	packages map[string]*pkg
	builds   map[string]*strings.Builder // output of the compiler, by import path
}

// read takes the events of one command up to its end, and returns how many tests have failed. With pace its tests
// depend on the machine's pace.
func (r *report) read(in io.Reader, pace bool) (failed int, err error) {
	s := &stream{to: r, pace: pace, packages: map[string]*pkg{}, builds: map[string]*strings.Builder{}}
	err = s.read(in)
	return s.failed, err
}

func (s *stream) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("read test events: %w", err)
		}
	}
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.packages)) {
		s.endPackage(name, event{Action: "fail", Package: name})
	}
	return nil
}

func (s *stream) line(line []byte) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) != nil {
		fmt.Fprint(s.to.out, string(line)) // not an event: go itself speaks
		return
	}
	s.event(e)
}

func (s *stream) event(e event) {
	if e.ImportPath != "" { // build-output, build-fail
		b := s.builds[e.ImportPath]
		if b == nil {
			b = &strings.Builder{}
			s.builds[e.ImportPath] = b
		}
		b.WriteString(e.Output)
		return
	}
	p := s.packages[e.Package]
	if p == nil {
		p = &pkg{tests: map[string]*test{}}
		s.packages[e.Package] = p
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
			s.endPackage(e.Package, e)
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
		if t := p.tests[e.Test]; t != nil {
			t.output.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		s.endTest(p, e)
	}
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

func (s *stream) endTest(p *pkg, e event) {
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
		s.to.skips = append(s.to.skips, short(e.Package)+" "+e.Test+": "+skipReason(t.output.String()))
	case e.Action == "fail":
		if parent := p.parent(e.Test); parent != nil {
			parent.failed++
		}
		if leaf || t.failed == 0 {
			p.failed++
			out := t.output.String()
			s.to.failures = append(s.to.failures, failure{
				name: short(e.Package) + " " + e.Test, output: out, pkg: e.Package, test: e.Test,
				again: s.pace && !strings.HasSuffix(out, neverEnded),
			})
			fmt.Fprintf(s.to.out, "FAIL  %s %s\n", short(e.Package), e.Test)
			for _, line := range append(said(t.output.String()), p.firstRace()...) {
				fmt.Fprintf(s.to.out, "      %s\n", line)
			}
		}
	}
	took := time.Duration(e.Elapsed * float64(time.Second))
	if took >= slowTest && e.Action == "pass" && leaf {
		fmt.Fprintf(s.to.out, "  ok  %s %s (%.0fs)\n", short(e.Package), e.Test, took.Seconds())
	}
	if leaf {
		s.to.tests = append(s.to.tests, timing{short(e.Package) + " " + e.Test, took})
	}
	if t.failed == 0 && e.Action != "fail" {
		t.output.Reset()
	}
}

func (s *stream) endPackage(name string, e event) {
	p := s.packages[name]
	delete(s.packages, name)
	if p == nil {
		return
	}
	for _, n := range slices.Sorted(maps.Keys(p.tests)) {
		if !p.tests[n].done && p.tests[n].children == 0 { // it never said how it ended: a panic, a timeout, an exit
			p.tests[n].output.WriteString(neverEnded)
			s.endTest(p, event{Action: "fail", Package: name, Test: n})
		}
	}
	if e.Action == "fail" && p.failed == 0 {
		p.failed++
		out := p.output.String()
		if b := s.builds[e.FailedBuild]; b != nil {
			out = b.String() + out
		}
		s.to.failures = append(s.to.failures, failure{name: short(name), output: out})
		fmt.Fprintf(s.to.out, "FAIL  %s\n", short(name))
	} else if e.Action == "fail" && strings.Contains(p.output.String(), "panic:") {
		s.to.failures = append(s.to.failures, failure{name: short(name) + " (panic)", output: p.output.String()})
	}
	if e.Action == "fail" && (p.races.Len() > 0 || p.panicked) {
		s.to.noneAgain(name)
	}
	if e.Action == "fail" && p.races.Len() > 0 { // it belongs to no test: those that ran at that moment have failed
		s.to.failures = append(s.to.failures, failure{name: short(name) + " (data race)", output: p.races.String()})
	}
	s.failed += p.failed
	s.to.passed, s.to.failed, s.to.skipped = s.to.passed+p.passed, s.to.failed+p.failed, s.to.skipped+p.skipped
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
	fmt.Fprintf(s.to.out, "%s  %s: %s (%s)\n", word, short(name), counts(p.passed, p.failed, p.skipped), took)
}
