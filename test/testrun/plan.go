package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// phase is one go test command.
type phase struct {
	name     string
	args     []string
	packages []string
	pace     bool // what its tests see depends on the machine's pace: what fails may be run once more
}

// installs has the tests that make a release and boot a machine to install it on. They come last, by themselves: they
// keep both processors busy.
const installs = "millrace/test/release"

// isSlow reports whether a folder's tests start the real binary, encoders and browsers: they run after the others and
// without the race detector, and never from the cache, which does not know the binary.
func isSlow(pkg string) bool {
	return slices.ContainsFunc([]string{"millrace/test/e2e", "millrace/test/browser"}, func(s string) bool {
		return pkg == s || strings.HasPrefix(pkg, s+"/")
	})
}

// plan says which go test commands a run is made of.
func plan(ctx context.Context, o options) ([]phase, error) {
	if len(o.packages) > 0 {
		return []phase{{name: "tests", args: o.goTestArgs(o.race, true), packages: o.packages}}, nil
	}
	list, err := packages(ctx)
	if err != nil {
		return nil, err
	}
	changed, err := o.changedHere(ctx, list)
	if err != nil {
		return nil, err
	}
	return o.phases(list, changed), nil
}

// phases sorts packages into go test commands; those that have changed are run with the race detector.
//
// Tests that start the whole service are of two kinds. What some see depends on what else the machine does: they come
// first, and say rig.Paced. Then come the others, which say rig.Parallel. Which of them run at once is decided there,
// by what the machine has to do; go test has all of them begin.
func (o options) phases(list []pack, changed map[string]change) (phases []phase) {
	var raced, plain, slow, paced, last []string
	for _, p := range list {
		switch {
		case p.path == installs:
			last = append(last, p.path)
		case isSlow(p.path):
			slow, paced = append(slow, p.path), append(paced, p.paced...)
		case p.canRace() && (o.race || changed[p.path] != 0):
			raced = append(raced, p.path)
		default:
			plain = append(plain, p.path)
		}
	}
	add := func(name string, packages []string, args ...string) {
		if len(packages) > 0 {
			phases = append(phases, phase{name: name, args: args, packages: packages})
		}
	}
	add("units without -race", plain, o.goTestArgs(false, false)...)
	add("units with -race", raced, o.goTestArgs(true, false)...)
	if o.all && len(slow) > 0 {
		units := len(phases)
		names := "^(" + strings.Join(paced, "|") + ")$"
		args := append(o.goTestArgs(false, true), "-p", strconv.Itoa(len(slow)), "-parallel", "1000")
		add("end to end and in a browser, paced", slow,
			append(slices.Clone(args), "-run", names)...)
		add("end to end and in a browser, in parallel", slow,
			append(slices.Clone(args), "-skip", names)...)
		add("packages, built and installed", last, o.goTestArgs(false, true)...)
		for i := range phases[units:] {
			phases[units+i].pace = true
		}
	}
	return phases
}

// How long the tests of one package may take. On two cores the slowest package of units takes 3 minutes, test/e2e 13
// on quiet ones: a machine half as fast, with something to do beside it, needs three times that.
const (
	unitsMost = 15 * time.Minute
	slowMost  = 40 * time.Minute
)

// goTestArgs are the arguments of a go test command but for its packages. What may be end to end or in a browser is
// slow: it is never taken from the cache and has more time.
func (o options) goTestArgs(race, slow bool) []string {
	timeout := unitsMost
	if slow {
		timeout = slowMost
	}
	if o.timeout != 0 {
		timeout = o.timeout
	}
	args := []string{"test", "-json", "-trimpath", "-timeout", timeout.String()}
	if o.short {
		args = append(args, "-short")
	}
	if o.once || slow {
		args = append(args, "-count=1")
	}
	if o.run != "" {
		args = append(args, "-run", o.run)
	}
	if race {
		args = append(args, "-race", "-gcflags="+notRaced)
	}
	return args
}

// notRaced leaves SQLite, which is C in the form of Go, without the race detector's instructions: they make it seven
// times slower and look at none of our memory. The locks around it are Go's own and stay visible. Only this package:
// one that instantiates generic types of the standard library would leave them without the instructions everywhere.
const notRaced = "modernc.org/sqlite/lib=-race=false"

// pack is a package of ours.
type pack struct {
	path, dir  string
	concurrent bool     // it or its tests start goroutines or hold locks
	paced      []string // tests that say rig.Paced; nil for units
	deps       []string // import paths, of ours and others
}

// canRace reports whether the race detector has something to look at: the product, not what looks at it.
func (p pack) canRace() bool { return p.concurrent && !strings.HasPrefix(p.path, "millrace/test/") }

// packages lists all packages of the module.
func packages(ctx context.Context) ([]pack, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.ImportPath}}\t{{.Dir}}\t{{join .Deps \" \"}}",
		"millrace/...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("list packages: %w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var list []pack
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		p := pack{path: fields[0], dir: fields[1], deps: strings.Fields(fields[2])}
		if p.concurrent, err = isConcurrent(p.dir); err != nil {
			return nil, err
		}
		if isSlow(p.path) {
			if p.paced, err = pacedTests(p.dir); err != nil {
				return nil, err
			}
		}
		list = append(list, p)
	}
	return list, nil
}

// isConcurrent reports whether a folder's Go files, tests included, have a go statement or import what goroutines are
// held together with. That tests run side by side counts for nothing: each has its own.
func isConcurrent(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return false, fmt.Errorf("find Go files: %w", err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return false, fmt.Errorf("read Go file: %w", err)
		}
		if importsLocks(f) || startsGoroutine(f) {
			return true, nil
		}
	}
	return false, nil
}

func importsLocks(f *ast.File) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool {
		path, err := strconv.Unquote(i.Path.Value)
		return err == nil &&
			slices.Contains([]string{
				"sync", "sync/atomic", "golang.org/x/sync/errgroup", "golang.org/x/sync/semaphore",
			}, path)
	})
}

func startsGoroutine(f *ast.File) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		_, is := n.(*ast.GoStmt)
		found = found || is
		return !found
	})
	return found
}
