package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// schedule is the order of a run's go test commands. The stages come one after the other, and the sequences of a stage run
// side by side. What is beside them begins with the first, and takes what of the processors they leave idle.
type schedule struct {
	beside sequence
	stages []stage
}

type stage []sequence

// sequence is what runs one after the other.
type sequence []phase

// giveWay is the nice value of what runs beside tests that follow a player or a picture: ten steps are a tenth of the
// processor where both want it.
const giveWay = 10

// run runs everything, and reports it. What fails is in the report; an error ends the run.
func (s schedule) run(ctx context.Context, env []string, r *report) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	beside := newTurn(giveWay)
	done := make(chan error, 1)
	go func() {
		err := s.beside.run(ctx, env, r, beside)
		if err != nil {
			stop()
		}
		done <- err
	}()
	var err error
	for i := 0; i < len(s.stages) && err == nil; i++ {
		err = s.stages[i].run(ctx, env, r)
	}
	if err != nil {
		stop()
	}
	beside.hurry()
	return errors.Join(err, <-done)
}

func (s stage) run(ctx context.Context, env []string, r *report) error {
	errs := make([]error, len(s))
	var all sync.WaitGroup
	for i, l := range s {
		all.Go(func() { errs[i] = l.run(ctx, env, r, newTurn(0)) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (l sequence) run(ctx context.Context, env []string, r *report, at *turn) error {
	for i := 0; i < len(l) && ctx.Err() == nil; i++ {
		begin := time.Now()
		processor, err := l[i].goTest(ctx, env, r, at)
		r.spent(l[i].name, time.Since(begin), processor)
		if err != nil {
			return err
		}
	}
	return nil
}

// turn is how much of the processors the commands of a sequence take where others want them too.
type turn struct {
	mu    sync.Mutex
	nice  int
	group int // the process group that runs; 0: none
}

func newTurn(nice int) *turn { return &turn{nice: nice} }

// begins gives a process group that has just been started its nice value.
func (t *turn) begins(group int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.group = group; t.nice > 0 {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, group, t.nice)
	}
}

func (t *turn) ends() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.group = 0
}

// hurry ends the giving way. A process may not everywhere take back what it gave away: then what runs stays as it is.
func (t *turn) hurry() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nice > 0 && t.group > 0 {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, t.group, 0)
	}
	t.nice = 0
}

// goTest runs the phase, reports each event, and returns the processor time that it took. A cancelled ctx ends the whole process group.
func (p phase) goTest(ctx context.Context, env []string, r *report, at *turn) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, "go", append(p.args, p.packages...)...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
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
	at.begins(cmd.Process.Pid)
	failed, readErr := r.read(pipe, p.pace)
	err = cmd.Wait()
	at.ends()
	// What the tests left behind goes with them.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	processor := processorTime(cmd)
	if readErr != nil {
		return processor, readErr
	}
	if err != nil && failed == 0 && ctx.Err() == nil {
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
