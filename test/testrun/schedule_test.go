package main

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// TestTurn: what runs beside other tests gives way, and no more when they have ended.
func TestTurn(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	own := niceOf(t, 0)
	at := newTurn(own + 3)
	at.begins(cmd.Process.Pid)
	if got := niceOf(t, cmd.Process.Pid); got != own+3 {
		t.Errorf("gives way by %d, want %d", got, own+3)
	}
	at.hurry()
	got := niceOf(t, cmd.Process.Pid)
	if root := syscall.Geteuid() == 0; root && got != 0 || got > own+3 {
		t.Errorf("gives way by %d when nobody else runs", got)
	}
	at.ends()
	at.begins(syscall.Getpid()) // this very process: what begins later gives way to nobody
	if got := niceOf(t, 0); got != own {
		t.Errorf("what begins later gives way by %d, want %d", got, own)
	}
}

// niceOf is a process's nice value; Linux gives 20 less it.
func niceOf(t *testing.T, process int) int {
	t.Helper()
	p, err := syscall.Getpriority(syscall.PRIO_PROCESS, process)
	if err != nil {
		t.Fatal(err)
	}
	return 20 - p
}

// TestReadsAtOnce: two commands, of the same package too, tell of their tests at the same time.
func TestReadsAtOnce(t *testing.T) {
	t.Parallel()
	r := newReport(io.Discard)
	var all sync.WaitGroup
	for sequence := range 2 {
		all.Go(func() {
			var events strings.Builder
			for n := range 100 {
				for _, action := range []string{"run", "pass"} {
					fmt.Fprintf(&events, `{"Action":%q,"Package":"p","Test":"Test%d_%d"}`+"\n", action, sequence, n)
				}
			}
			events.WriteString(`{"Action":"run","Package":"p","Test":"TestX"}` + "\n" + `{"Action":"fail","Package":"p"}` + "\n")
			if failed, err := r.read(strings.NewReader(events.String()), true); failed != 1 || err != nil {
				t.Errorf("%d failed, %v", failed, err)
			}
		})
	}
	all.Wait()
	if r.passed != 200 || r.failed != 2 {
		t.Errorf("%d passed, %d failed, want 200 and 2", r.passed, r.failed)
	}
}
