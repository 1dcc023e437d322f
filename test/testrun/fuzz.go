package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// facesNetwork are the folders whose fuzz targets -fuzz chooses from: what reads bytes that a stranger has sent, over a
// connection or in a file. A package below one of them needs nothing more than a function FuzzXxx.
var facesNetwork = []string{ //nolint:gochecknoglobals // a table
	"millrace/internal/media/ingest", "millrace/internal/media/rtmpwire", "millrace/internal/media/relay",
	"millrace/internal/media/images",
	"millrace/internal/media/container", "millrace/internal/media/codec", "millrace/internal/media/captions",
	"millrace/internal/media/ondemand",
	"millrace/internal/media/playback", "millrace/internal/media/speech/remote", "millrace/internal/fetch",
	"millrace/internal/cpix",
	"millrace/internal/clientaddr", "millrace/internal/proxyprotocol", "millrace/internal/internode",
	"millrace/internal/media/follow/wire",
	"millrace/internal/control/signing", "millrace/internal/control/restriction",
	"millrace/internal/web/api", "millrace/internal/web/express", "millrace/internal/web/licence",
	"millrace/internal/web/upload",
}

const (
	fuzzers   = 2                // targets at a time, each with one worker
	fuzzBuild = 10 * time.Minute // that a target may take beyond its time: building it, first of all
	// minimize is how many attempts are made at a smaller input. Go's minute for each that reaches something new would
	// be all of the time.
	minimize = "10x"
	// inAll is the processor time that all targets have together: a change that reaches every parser shortens the time
	// of each.
	inAll   = 6 * time.Minute
	atLeast = 5 * time.Second
)

// target is one fuzz target.
type target struct{ pkg, dir, name string }

// targets finds the fuzz targets of the packages that face the network.
func targets(list []pack) ([]target, error) {
	var out []target
	for _, p := range list {
		if !slices.ContainsFunc(facesNetwork, func(f string) bool {
			return p.path == f || strings.HasPrefix(p.path, f+"/")
		}) {
			continue
		}
		names, err := fuzzFunctions(p.dir)
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			out = append(out, target{p.path, p.dir, n})
		}
	}
	if len(out) == 0 {
		return nil, errors.New("find fuzz targets: there are none, the table of folders must be wrong")
	}
	return out, nil
}

func fuzzFunctions(dir string) ([]string, error) {
	return testFunctions(dir, func(fn *ast.FuncDecl) bool { return strings.HasPrefix(fn.Name.Name, "Fuzz") })
}

// testFunctions names, in their order, the functions of a folder's test files that are wanted, and no methods.
func testFunctions(dir string, wanted func(*ast.FuncDecl) bool) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read tests: %w", err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && wanted(fn) {
				names = append(names, fn.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}

// fuzzed is how a target's time has ended.
type fuzzed struct {
	target
	took, processor time.Duration
	output          string
	failed          bool
}

// fuzz gives the chosen targets their time, reports each as a test, and returns the processor time that all took. It
// has the machine to itself: beside the end-to-end tests players stall and encoders start late, even with the least
// priority.
func fuzz(ctx context.Context, o options, r *report) (processor time.Duration, err error) {
	list, err := chosenTargets(ctx, o.base)
	if err != nil {
		return 0, err
	}
	each := share(o.fuzz, len(list))
	ended, todo := make(chan fuzzed), make(chan target, len(list))
	for _, t := range list {
		todo <- t
	}
	close(todo)
	var workers sync.WaitGroup
	for range fuzzers {
		workers.Go(func() {
			for t := range todo {
				if ctx.Err() == nil {
					ended <- t.fuzz(ctx, each)
				}
			}
		})
	}
	go func() {
		workers.Wait()
		close(ended)
	}()
	fmt.Fprintf(r.out, "fuzzing: %d targets\n", len(list))
	for x := range ended {
		processor += x.processor
		if ctx.Err() == nil {
			r.fuzzed(x)
		}
	}
	return processor, nil
}

// share is the time of each of n targets: what was asked for, or an equal share of what all have together.
func share(asked time.Duration, n int) time.Duration {
	return min(asked, max(atLeast, inAll/time.Duration(n)))
}

// fuzz runs one target. A cancelled ctx ends the whole process group.
func (t target) fuzz(ctx context.Context, long time.Duration) fuzzed {
	ctx, cancel := context.WithTimeout(ctx, long+fuzzBuild)
	defer cancel()
	begin := time.Now()
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+t.name+"$", "-fuzztime", long.String(),
		"-trimpath",
		"-fuzzminimizetime", minimize, "-parallel", "1", t.pkg)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 20 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	f := fuzzed{
		target: t, took: time.Since(begin), processor: processorTime(cmd), output: out.String(),
		failed: err != nil && !justEnded(out.String()),
	}
	if f.failed {
		f.output += t.input(f.output)
		if ctx.Err() != nil {
			f.output += fmt.Sprintf("\nit did not end within %v\n", long+fuzzBuild)
		}
	}
	return f
}

var written = regexp.MustCompile(`Failing input written to (\S+)`)

// justEnded tells a fuzzer that was interrupted at the end of its time in the middle of an input, which Go takes for a
// failure (golang.org/issue/75804), from one that has found something.
func justEnded(output string) bool {
	return strings.Contains(output, "context deadline exceeded") && !written.MatchString(output) &&
		!strings.Contains(output, "panic:")
}

// input is the input that was found, to be read in a log whose machine is gone.
func (t target) input(output string) string {
	m := written.FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	b, err := os.ReadFile(filepath.Join(t.dir, m[1]))
	if err != nil {
		return fmt.Sprintf("\nthe input can not be read: %v\n", err)
	}
	return fmt.Sprintf("\nThe input; put it into %s:\n%s", filepath.Join(strings.TrimPrefix(t.pkg, "millrace/"), m[1]),
		b)
}

var executed = regexp.MustCompile(`execs: (\d+)`)

// fuzzed counts a target as a test.
func (r *report) fuzzed(f fuzzed) {
	name := short(f.pkg) + " " + f.name
	if f.failed {
		r.failed++
		r.failures = append(r.failures, failure{name: name + " (fuzzing)", output: f.output})
		fmt.Fprintf(r.out, "FAIL  %s, fuzzed for %.0fs\n", name, f.took.Seconds())
		return
	}
	r.passed++
	runs := "?"
	if all := executed.FindAllStringSubmatch(f.output, -1); len(all) > 0 {
		runs = all[len(all)-1][1]
	}
	fmt.Fprintf(r.out, "ok    %s: fuzzed with %s inputs (%.0fs)\n", name, runs, f.took.Seconds())
}
