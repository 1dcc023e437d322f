package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a running child. It ends with stop, by itself, or with this program, however that ends.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended and all it wrote was read
	err  error         // set before done is closed
	last lastLines
}

// startProcess starts cmd and reads what it writes line by line. line may be nil.
func startProcess(name string, cmd *exec.Cmd, line func(string)) (*process, error) {
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	reader, writer := io.Pipe()
	cmd.Stdout, cmd.Stderr = writer, writer
	cmd.SysProcAttr = childAttributes()
	started, read := make(chan error), make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewScanner(reader)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			p.last.add(in.Text())
			if line != nil {
				line(in.Text())
			}
		}
		_, _ = io.Copy(io.Discard, reader) // a line that is too long ends the scan, and must not block the child
	}()
	go func() {
		runtime.LockOSThread() // the kernel ends the child with the thread that started it, see childAttributes
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
		}
		_ = writer.Close() // never fails
		<-read
		close(p.done)
	}()
	if err := <-started; err != nil {
		<-p.done
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// wait returns when the child has ended, with what it said last if it failed, or when ctx ends.
func (p *process) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
		return p.ended()
	}
}

// ended is the error of a child that has ended.
func (p *process) ended() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s ended with %w\n%s", p.name, p.err, p.last.String())
}

// stop asks the child to end, and kills it when it has not done so after grace.
func (p *process) stop(grace time.Duration) {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		<-p.done
		return
	}
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-p.done:
	case <-t.C:
		_ = p.cmd.Process.Kill() // it may have ended just now
		<-p.done
	}
}

// runProcess runs cmd to its end, and stops it when ctx ends.
func runProcess(ctx context.Context, name string, cmd *exec.Cmd) error {
	p, err := startProcess(name, cmd, nil)
	if err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		p.stop(2 * time.Second)
		return err
	}
	return nil
}

// lastLines keeps the end of what a child wrote.
type lastLines struct {
	mu    sync.Mutex
	lines []string
}

const keptLines = 12

func (l *lastLines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == keptLines {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line)
}

func (l *lastLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// program finds an executable, or says how to install it.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not in the PATH: install it with apt-get install ffmpeg, or run millrace doctor",
			name)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}
