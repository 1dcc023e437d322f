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
	fuzz              time.Duration // for each target that is chosen; 0: none
	base              string
	again             int // how many tests that failed at the machine's pace may be run once more
	packages          []string
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
	f.BoolVar(&o.all, "all", false, "every package: units, then end to end and browser; with the race detector the "+
		"units that are concurrent and differ from where this branch left origin's")
	f.BoolVar(&o.race, "race", false,
		"with the race detector; with -units and -all only the units that start goroutines or "+
			"hold locks")
	f.BoolVar(&o.short, "short", false, "go test -short")
	f.BoolVar(&o.once, "count1", false, "run again what is cached (end-to-end and browser tests always are)")
	f.BoolVar(&o.services, "services", false,
		"start PostgreSQL and S3, named by MILLRACE_TEST_POSTGRES and MILLRACE_TEST_S3")
	f.BoolVar(&o.require, "require", false, "set MILLRACE_TEST_REQUIRE=1 and count a skipped test as a failure")
	f.StringVar(&o.versitygw, "versitygw", "", "path of the S3 server's binary")
	f.StringVar(&o.run, "run", "", "go test -run")
	f.DurationVar(&o.timeout, "timeout", 0, fmt.Sprintf("go test -timeout, for each package "+
		"(default %v for units of -units and -all, else %v)", unitsMost, slowMost))
	f.IntVar(&o.again, "again", 0,
		"how many end-to-end and browser tests that failed are run once more, alone; what passes "+
			"then is called flaky and fails nothing. If more have failed, none is run again")
	f.DurationVar(&o.fuzz, "fuzz", 0,
		"how long to fuzz each target that faces the network and has changed, and four others")
	f.StringVar(&o.base, "base", "", "the commit since which a package has changed (default: where this branch left "+
		"origin's; for -fuzz on that branch itself, a day ago)")
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
	if o.again > 0 {
		printKnown(out, knownFlaky, time.Now())
	}
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
		begin := time.Now()
		r.pace = p.pace
		processor, failed := p.goTest(ctx, env, r)
		r.pace = false
		r.spent(p.name, time.Since(begin), processor)
		if failed != nil {
			return failed
		}
	}
	o.runAgain(ctx, env, r)
	if o.fuzz == 0 {
		return nil
	}
	begin := time.Now()
	processor, err := fuzz(ctx, o, r)
	r.spent("fuzzing", time.Since(begin), processor)
	return err
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
	return append(started, s3), []string{
		"MILLRACE_TEST_POSTGRES=" + pg.URL, "MILLRACE_TEST_S3=" + s3.URL, "MILLRACE_TEST_VERSITYGW=" + versitygw,
	}, nil
}

// goTest runs the phase, reports each event, and returns the processor time that it took. A cancelled ctx ends the
// whole process group.
//
// It has a session of its own, to which Linux gives a share of the processors of its own (sched(7), autogroup). Without
// it encodes that yield to all else (SCHED_IDLE) hardly go on beside a busy program of the same session.
func (p phase) goTest(ctx context.Context, env []string, r *report) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "go", append(p.args, p.packages...)...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 20 * time.Second
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("run go test: %w", err)
	}
	cmd.Stderr = r.stderr()
	if err = cmd.Start(); err != nil {
		return 0, fmt.Errorf("run go test: %w", err)
	}
	before := r.failed
	readErr := r.read(pipe)
	err = cmd.Wait()
	// What the tests left behind goes with them.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	processor := processorTime(cmd)
	if readErr != nil {
		return processor, readErr
	}
	if err != nil && r.failed == before && ctx.Err() == nil {
		return processor, fmt.Errorf("run go test: %w", err)
	}
	return processor, nil
}

// processorTime is what a command that has ended and all that it waited for took of the processors.
func processorTime(cmd *exec.Cmd) time.Duration {
	if cmd.ProcessState == nil {
		return 0
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}
