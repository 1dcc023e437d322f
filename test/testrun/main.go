// Command testrun runs Go tests, starts the servers they need, and ends with one line that says how many tests
// passed, failed and were skipped. It must know nothing of the product but where its test packages are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"millrace/test/services"
)

type options struct {
	units, all        bool // which packages, when none is named
	race, short, once bool
	services, require bool
	versitygw         string
	run               string
	timeout           time.Duration
	fuzz              time.Duration // for each target that faces the network; 0: none
	packages          []string
}

// isSlow tells the folders whose tests start the real binary, encoders and browsers: they run after the others, one
// package at a time, without the race detector.
func isSlow(pkg string) bool {
	return slices.ContainsFunc([]string{"millrace/test/e2e", "millrace/test/browser"}, func(s string) bool {
		return pkg == s || strings.HasPrefix(pkg, s+"/")
	})
}

func main() {
	// The servers ask to be ended with the thread that started them; so that thread must last as long as we do.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(code)
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("testrun", flag.ContinueOnError)
	f.SetOutput(out)
	f.BoolVar(&o.units, "units", false, "every package but the end-to-end and browser tests")
	f.BoolVar(&o.all, "all", false, "every package: units with -race, then end to end and browser without")
	f.BoolVar(&o.race, "race", false, "with the race detector")
	f.BoolVar(&o.short, "short", false, "go test -short")
	f.BoolVar(&o.once, "count1", false, "run again what is cached")
	f.BoolVar(&o.services, "services", false, "start PostgreSQL and S3, named by MILLRACE_TEST_POSTGRES and MILLRACE_TEST_S3")
	f.BoolVar(&o.require, "require", false, "set MILLRACE_TEST_REQUIRE=1 and count a skipped test as a failure")
	f.StringVar(&o.versitygw, "versitygw", "", "path of the S3 server's binary")
	f.StringVar(&o.run, "run", "", "go test -run")
	f.DurationVar(&o.timeout, "timeout", 40*time.Minute, "go test -timeout, for each package")
	f.DurationVar(&o.fuzz, "fuzz", 0, "in the end, how long to fuzz each target that faces the network")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.packages = f.Args()
	if !o.units && !o.all && len(o.packages) == 0 {
		return o, errors.New("name packages, or give -units or -all")
	}
	return o, nil
}

func run(ctx context.Context, args []string, out io.Writer) int {
	o, err := parse(args, out)
	if err != nil {
		fmt.Fprintln(out, "testrun:", err)
		return 2
	}
	r := newReport(out)
	if err := runAll(ctx, o, r); err != nil {
		r.fail("testrun", err.Error())
	}
	if err := context.Cause(ctx); err != nil {
		r.fail("testrun", "interrupted")
	}
	return r.close(o.require)
}

func runAll(ctx context.Context, o options, r *report) error {
	var env []string
	if o.require {
		env = append(env, "MILLRACE_TEST_REQUIRE=1")
	}
	if o.services {
		started, more, err := startServices(ctx, o.versitygw)
		defer func() {
			for _, s := range slices.Backward(started) {
				s.Stop()
			}
		}()
		if err != nil {
			return err
		}
		env = append(env, more...)
	}
	phases, err := plan(ctx, o)
	if err != nil {
		return err
	}
	for _, p := range phases {
		if ctx.Err() != nil {
			return nil
		}
		if err := p.goTest(ctx, env, r); err != nil {
			return err
		}
	}
	if o.fuzz > 0 && ctx.Err() == nil {
		return fuzzAll(ctx, o.fuzz, r)
	}
	return nil
}

func startServices(ctx context.Context, versitygw string) (started []*services.Service, env []string, err error) {
	pg, err := services.Postgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	started = append(started, pg)
	s3, err := services.S3(ctx, versitygw)
	if err != nil {
		return started, nil, err
	}
	return append(started, s3), []string{"MILLRACE_TEST_POSTGRES=" + pg.URL, "MILLRACE_TEST_S3=" + s3.URL}, nil
}

// phase is one go test command.
type phase struct {
	args     []string
	packages []string
}

func plan(ctx context.Context, o options) ([]phase, error) {
	base := []string{"test", "-json", "-timeout", o.timeout.String()}
	if o.short {
		base = append(base, "-short")
	}
	if o.once || o.services {
		base = append(base, "-count=1")
	}
	if o.run != "" {
		base = append(base, "-run", o.run)
	}
	withRace := func(on bool) []string {
		if on {
			return append(slices.Clone(base), "-race")
		}
		return slices.Clone(base)
	}
	if len(o.packages) > 0 {
		return []phase{{args: withRace(o.race), packages: o.packages}}, nil
	}
	list, err := exec.CommandContext(ctx, "go", "list", "./...").Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return nil, fmt.Errorf("list packages: %w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("list packages: %w", err)
	}
	var units, later []string
	for pkg := range strings.FieldsSeq(string(list)) {
		if isSlow(pkg) {
			later = append(later, pkg)
		} else {
			units = append(units, pkg)
		}
	}
	phases := []phase{{args: withRace(o.race || o.all), packages: units}}
	if o.all && len(later) > 0 {
		phases = append(phases, phase{args: append(withRace(false), "-p", "1"), packages: later})
	}
	return phases, nil
}

// goTest runs the phase and reports each event. A cancelled ctx ends the whole process group.
func (p phase) goTest(ctx context.Context, env []string, r *report) error {
	cmd := exec.CommandContext(ctx, "go", append(p.args, p.packages...)...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	cmd.Stderr = r.stderr()
	if err = cmd.Start(); err != nil {
		return fmt.Errorf("run go test: %w", err)
	}
	before := r.failed
	readErr := r.read(pipe)
	err = cmd.Wait()
	// What the tests left behind goes with them.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if readErr != nil {
		return readErr
	}
	if err != nil && r.failed == before && ctx.Err() == nil {
		return fmt.Errorf("run go test: %w", err)
	}
	return nil
}
