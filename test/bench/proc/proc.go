// Package proc runs the servers that are measured and reads from /proc what they cost. It knows no protocol.
// The goroutine of a Server reads its output and ends with it.
package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ticksPerSecond is USER_HZ, which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// Server is a running process with its children.
type Server struct {
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
}

// Start starts a command; what it writes is kept (the last part of it) and given to lines, line by line, if that is not
// nil.
func Start(env []string, lines func(string), name string, args ...string) (*Server, error) {
	s := &Server{cmd: exec.Command(name, args...), out: &tail{lines: lines}, done: make(chan struct{})} //nolint:noctx // Stop ends it
	s.cmd.Env = append(os.Environ(), env...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // how it ends is of no interest
	}()
	return s, nil
}

// Output is the end of what the process has written.
func (s *Server) Output() string { return s.out.String() }

// Done is closed when the process has ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// PID is the process's number.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Stop asks the process to end and kills it, and what is left of its group, when it takes too long.
func (s *Server) Stop(patience time.Duration) {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(patience):
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.done
}

// Cost is what a process tree has used so far.
type Cost struct {
	CPU time.Duration
	RSS int64 // bytes, resident now
}

// Read measures a process and all below it.
func Read(pid int) (Cost, error) { return Named(pid, "") }

// Named measures those of a process and all below it that are of a program with a name, as the system cuts it; empty:
// all.
func Named(pid int, name string) (Cost, error) {
	var c Cost
	parents, err := processes()
	if err != nil {
		return c, err
	}
	for p, st := range parents {
		for q := p; q != 0; q = parents[q].parent {
			if q == pid && (name == "" || st.name == name) {
				c.CPU += st.cpu
				c.RSS += st.rss
				break
			}
		}
	}
	return c, nil
}

type stat struct {
	name   string
	parent int
	cpu    time.Duration
	rss    int64
}

// processes reads /proc/*/stat; the CPU time of a process counts the children that it has waited for, proc(5).
func processes() (map[int]stat, error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	out := make(map[int]stat, len(files))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read process: %w", err)
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			continue
		}
		end := bytes.LastIndexByte(b, ')') // the name before it may hold anything
		v := strings.Fields(string(b[end+1:]))
		if len(v) < 22 {
			continue
		}
		n := func(i int) int64 { x, _ := strconv.ParseInt(v[i], 10, 64); return x }
		out[pid] = stat{
			name:   string(b[bytes.IndexByte(b, '(')+1 : end]),
			parent: int(n(1)),
			cpu:    time.Duration(n(11)+n(12)+n(13)+n(14)) * time.Second / ticksPerSecond,
			rss:    n(21) * int64(os.Getpagesize()),
		}
	}
	return out, nil
}

// Machine is how much CPU time the whole machine has been busy for.
func Machine() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(b), "\n")
	var busy time.Duration
	for i, f := range strings.Fields(line) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || i == 4 || i == 5 || i > 7 { // the name; idle and waiting for disks; guests are counted already
			continue
		}
		busy += time.Duration(n) * time.Second / ticksPerSecond
	}
	return busy, nil
}

// tail keeps the end of what is written to it.
type tail struct {
	lines func(string)
	mu    sync.Mutex
	kept  []byte
	part  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - 64<<10; n > 0 {
		t.kept = append(t.kept[:0], t.kept[n:]...)
	}
	if t.lines != nil {
		t.part = append(t.part, p...)
		for {
			line, rest, ok := bytes.Cut(t.part, []byte("\n"))
			if !ok {
				break
			}
			t.lines(string(line))
			t.part = rest
		}
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
