// Package encode runs ffmpeg and ffprobe as child processes, to encode pictures and sound and to rewrite containers
// that the service does not read itself.
//
// It must never know jobs, resources, HLS or HTTP. A child sees the files and pipes that it is given, no network, one
// demuxer chosen by us and none of our environment; the kernel enforces this where it can (Confinement). A child's
// time, memory and output are bounded, and it is always killed and reaped before Run returns. The goroutines that serve
// a child's pipes belong to Process.Run and end with it.
package encode

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/fault"
	"millrace/internal/trace"
)

// Why a child was killed. What it worked on is at fault only where it has worked.
var (
	// ErrStalled says that it gave nothing and has run all the while.
	ErrStalled = errors.New("gave no output in time")
	// ErrIdle says that it gave nothing and has hardly run: it waited for a disk, its input, a processor, or was
	// stopped.
	ErrIdle = errors.New("gave no output in time, and has hardly run")
	// ErrLate says that it has not ended in time: Limits.Wall.
	ErrLate = errors.New("has not ended in time")
)

// ProcessOptions describe one run of a program.
type ProcessOptions struct {
	Program  string // absolute path
	Args     []string
	Limits   Limits
	Priority Priority

	// Input writes to the child's standard input, which is closed when it returns; nil gives an empty one. Its context
	// ends with the child. An error kills the child, but a child that stops reading is no error.
	Input func(ctx context.Context, w io.Writer) error
	// InputAhead is how many bytes of input are written before the child reads them, rounded up to whole pages; zero
	// is what the system has, 64 KiB.
	InputAhead int
	// Output reads the child's standard output; nil discards it. Its context ends when the child is killed. What it
	// leaves is drained; an error kills the child and comes back from Run.
	Output func(ctx context.Context, r io.Reader) error
	// Further read what the child writes to descriptors 3, 4 and so on, as Output; there is no Progress then.
	Further []func(ctx context.Context, r io.Reader) error
	// Progress is told how far the output has come; the arguments must then hold "-progress pipe:3".
	Progress func(at time.Duration)
	// Said is given the last of what the child has said, when it has ended well.
	Said func(string)
	// Writes are the files that the child makes. It may write no others, and read only these, Reads and the inputs
	// among Args (-i file:…).
	Writes []string
	Reads  []string
	// Files are the child's too, from descriptor 3 on; a child that tells of its progress has none. They stay the
	// caller's to close.
	Files []*os.File
	// Hurry, once closed, says that somebody waits for the child now: it goes on as OnDemand. nil: nobody will.
	Hurry <-chan struct{}
	// Stall is how long the child may give neither output nor, without Output, progress; zero is for ever. While it
	// waits for a processor that others have, which with Background and Ahead may take long, it is not the child that
	// stalls. The error is ErrStalled where it has run meanwhile, else ErrIdle.
	Stall time.Duration
}

// Process is one child, run once.
type Process struct {
	opts  ProcessOptions
	least leastShare

	mu    sync.Mutex
	state State
}

// NewProcess prepares a child; nothing runs yet.
func NewProcess(opts ProcessOptions) *Process {
	return &Process{opts: opts, least: twentieth(), state: Starting}
}

// State is where the child is.
func (p *Process) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

func (p *Process) happened(f Fact) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to, ok := Next(p.state, f); ok {
		p.state = to
	}
}

// ExitError is an end of the child that we did not cause.
type ExitError struct {
	Program string // its base name
	Code    int    // exit status, -1 after a signal
	Signal  string // empty after an exit
	Stderr  string // the last 4 KiB of what it said: for our log, not for users

	// CPU is the limit of its processor time, where it ended by that; 0: it did not.
	CPU time.Duration
}

func (e *ExitError) Error() string {
	s := e.Program + " ended with exit status " + strconv.Itoa(e.Code)
	if e.Signal != "" {
		s = e.Program + " was ended by signal: " + e.Signal
	}
	if e.CPU > 0 {
		s += fmt.Sprintf(", after %s of processor time", e.CPU)
	}
	if said := strings.TrimSpace(e.Stderr); said != "" {
		s += ": " + said[strings.LastIndexByte(said, '\n')+1:]
	}
	return s
}

// run is a started child with our ends of its pipes.
type run struct {
	process  *Process
	cmd      *exec.Cmd
	cancel   context.CancelCauseFunc
	stderr   tail
	input    *os.File // ours to write; nil without
	output   *os.File // ours to read; nil without
	further  []*os.File
	said     *os.File
	progress *os.File // progress; nil without
	release  func()   // of the thread that started the child
	theirs   []*os.File
	serving  sync.WaitGroup // stderr, progress, output
	feeding  sync.WaitGroup

	mu       sync.Mutex
	reaped   bool  // the child's number may be another's now
	broken   error // of Output, after the child closed its end
	lastCall *time.Timer
}

// Run starts the child and returns when it has ended, has been reaped and its pipes are drained. When ctx ends, the
// child's process group is killed at once and the cause of ctx is the error.
func (p *Process) Run(ctx context.Context) error { return p.RunAs(ctx, "") }

// RunAs is Run, and says in traces what the child is for: probe, audio, ….
func (p *Process) RunAs(ctx context.Context, kind string) error {
	ctx, span := p.span(ctx, kind)
	err := p.run(ctx, span)
	span.End(err)
	return err
}

func (p *Process) run(ctx context.Context, span trace.Span) error {
	if ctx.Err() != nil {
		p.happened(Cut)
		return fmt.Errorf("start %s: %w", filepath.Base(p.opts.Program), context.Cause(ctx))
	}
	if wall := p.opts.Limits.Wall; wall > 0 {
		bounded, release := context.WithTimeoutCause(ctx, wall, ErrLate)
		defer release()
		ctx = bounded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{process: p, cancel: cancel}
	defer r.closeAll()
	if err := r.start(ctx); err != nil {
		if ctx.Err() != nil {
			p.happened(Cut)
			return fmt.Errorf("start %s: %w", filepath.Base(p.opts.Program), context.Cause(ctx))
		}
		p.happened(SpawnBroke)
		return fmt.Errorf("start %s: %w", filepath.Base(p.opts.Program), err)
	}
	defer r.release()
	p.happened(Spawned)
	p.opts.Priority.apply(r.cmd.Process.Pid)
	if err := p.opts.Limits.apply(r.cmd.Process.Pid); err != nil {
		cancel(err)
	}
	feedCtx, stopFeeding := context.WithCancel(ctx)
	defer stopFeeding()
	r.serve(ctx)
	r.feed(feedCtx)
	r.followTurns(feedCtx)
	r.reap()
	stopFeeding()
	err := r.result(ctx)
	r.describe(span)
	return err
}

func (r *run) start(ctx context.Context) error {
	opts := r.process.opts
	r.cmd = exec.CommandContext(ctx, opts.Program, opts.Args...) //nolint:gosec // arguments from args.go, no shell
	// ours holds secrets
	r.cmd.Env = []string{"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin", "AV_LOG_FORCE_NOCOLOR=1"}
	r.cmd.Dir = "/"
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r.cmd.Cancel = r.kill
	var stdin, stdout, stderr, progress *os.File
	var err error
	if opts.Input != nil {
		if stdin, r.input, err = os.Pipe(); err != nil {
			return fmt.Errorf("open pipe: %w", err)
		}
		r.theirs = append(r.theirs, stdin)
		r.cmd.Stdin = stdin
		if err = resize(r.input, opts.InputAhead); err != nil {
			return err
		}
	}
	for _, out := range []struct {
		ours, its **os.File
		wanted    bool
	}{
		{&r.output, &stdout, opts.Output != nil},
		{&r.said, &stderr, true},
		{&r.progress, &progress, opts.Progress != nil},
	} {
		if !out.wanted {
			continue
		}
		if *out.ours, *out.its, err = os.Pipe(); err != nil {
			return fmt.Errorf("open pipe: %w", err)
		}
		r.theirs = append(r.theirs, *out.its)
	}
	if stdout != nil {
		r.cmd.Stdout = stdout
	}
	r.cmd.Stderr = stderr
	if progress != nil {
		r.cmd.ExtraFiles = []*os.File{progress} // descriptor 3
	} else {
		r.cmd.ExtraFiles = opts.Files
	}
	for range opts.Further {
		var ours, its *os.File
		if ours, its, err = os.Pipe(); err != nil {
			return fmt.Errorf("open pipe: %w", err)
		}
		r.further, r.theirs, r.cmd.ExtraFiles = append(r.further, ours), append(r.theirs, its),
			append(r.cmd.ExtraFiles, its)
	}
	for _, path := range opts.Writes {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec,govet // an output of ours
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("make output: %w", err)
		}
	}
	if r.release, err = begin(r.cmd, &opts); err != nil {
		return err // Run says what was started
	}
	for _, f := range r.theirs {
		_ = f.Close()
	}
	return nil
}

// resize has a pipe hold so many bytes; zero leaves it as it is.
func resize(pipe *os.File, size int) error {
	if size == 0 {
		return nil
	}
	conn, err := pipe.SyscallConn() // Fd would take its deadlines away
	if err != nil {
		return fmt.Errorf("resize pipe: %w", err)
	}
	refused := conn.Control(func(fd uintptr) { _, err = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, size) })
	if err = errors.Join(refused, err); err != nil {
		return fmt.Errorf("resize pipe: %w", err)
	}
	return nil
}

// kill ends the child's whole group; os/exec calls it when the context ends.
func (r *run) kill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process.happened(Cut)
	r.abandon()
	if r.reaped {
		return os.ErrProcessDone
	}
	return syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // read by os/exec
}

// abandon closes our ends of the pipes, which wakes readers even if something escaped from the group and holds the
// others.
func (r *run) abandon() {
	if r.output != nil {
		_ = r.output.Close()
	}
	for _, f := range r.further {
		_ = f.Close()
	}
	if r.progress != nil {
		_ = r.progress.Close()
	}
	_ = r.said.SetReadDeadline(time.Now().Add(time.Second))
}

func (r *run) closeAll() {
	for _, f := range append(append(r.theirs, r.further...), r.input, r.output, r.said, r.progress) {
		if f != nil {
			_ = f.Close()
		}
	}
}

// serve reads every pipe that the child writes to.
func (r *run) serve(ctx context.Context) {
	r.serving.Go(func() { _, _ = io.Copy(&r.stderr, r.said) })
	if r.progress != nil {
		r.serving.Go(r.readProgress)
	}
	if r.output != nil {
		r.serveOutput(ctx, r.output, r.process.opts.Output)
	}
	for i, f := range r.further {
		r.serveOutput(ctx, f, r.process.opts.Further[i])
	}
}

func (r *run) serveOutput(ctx context.Context, file *os.File, read func(context.Context, io.Reader) error) {
	out := r.watch(file)
	out.stall = r.process.opts.Stall
	r.serving.Go(func() {
		if err := fault.Guard(func() error { return read(ctx, out) }); err != nil {
			r.outputBroke(fmt.Errorf("read output of %s: %w%s", filepath.Base(r.cmd.Path), err, fault.Trace(err)),
				out.ended)
		}
		_, _ = io.Copy(io.Discard, out)
	})
}

// untilEnd is how long a child may take to end once it has closed its output.
const untilEnd = time.Minute

// outputBroke ends a child whose output is of no use. One that has closed its output is about to end by itself and may
// have a better reason: it gets time for that. Where it does not end, nobody knows whether the output was all of it.
func (r *run) outputBroke(err error, ended bool) {
	if !ended {
		r.cancel(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
	if !r.reaped {
		r.lastCall = time.AfterFunc(untilEnd, func() {
			r.cancel(fmt.Errorf("%w after its output, of which was said: %s", ErrLate, err.Error()))
		})
	}
}

func (r *run) feed(ctx context.Context) {
	if r.input == nil {
		return
	}
	r.feeding.Go(func() {
		err := fault.Guard(func() error { return r.process.opts.Input(ctx, r.input) })
		_ = r.input.Close()
		if err != nil && ctx.Err() == nil && !errors.Is(err, syscall.EPIPE) {
			r.cancel(fmt.Errorf("write input of %s: %w", filepath.Base(r.cmd.Path), err))
		}
		r.process.happened(InputEnded)
	})
}

// reap waits for the child. While it is dead but not yet reaped its number can't be given to another group, which makes
// it safe to end what it may have left behind.
func (r *run) reap() {
	pid := r.cmd.Process.Pid
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	r.mu.Lock()
	r.reaped = true
	if r.lastCall != nil {
		r.lastCall.Stop()
	}
	r.mu.Unlock()
	_ = r.cmd.Wait() // the state tells the end
}

// result waits for the pipes and says how it ended.
func (r *run) result(ctx context.Context) error {
	if r.input != nil {
		_ = r.input.SetWriteDeadline(time.Now())
	}
	r.feeding.Wait()
	drained := make(chan struct{})
	go func() {
		r.serving.Wait()
		close(drained)
	}()
	select {
	case <-drained:
	case <-ctx.Done():
		r.abandon()
		<-drained
	}
	ended := r.cmd.ProcessState
	if ended.Success() && ctx.Err() == nil {
		r.process.happened(Succeeded)
		if r.process.opts.Said != nil {
			r.process.opts.Said(r.stderr.String())
		}
		return r.broken
	}
	name := filepath.Base(r.cmd.Path)
	if ctx.Err() != nil {
		r.process.happened(Cut)
		if said := r.stderr.String(); said != "" {
			return fmt.Errorf("run %s: %w (it said: %s)", name, context.Cause(ctx), said)
		}
		return fmt.Errorf("run %s: %w", name, context.Cause(ctx))
	}
	r.process.happened(Broke)
	e := &ExitError{Program: name, Code: ended.ExitCode(), Stderr: r.stderr.String()}
	if status, ok := ended.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal().String()
	}
	if limits := r.process.opts.Limits; limits.spent(ended) {
		e.CPU = limits.CPU
	}
	return e
}

// readProgress follows ffmpeg's -progress: lines key=value, about two blocks a second.
func (r *run) readProgress() {
	opts := r.process.opts
	in := r.watch(r.progress)
	if opts.Output == nil {
		in.stall = opts.Stall
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "out_time_us=")
		if us, err := strconv.ParseInt(value, 10, 64); found && err == nil && us >= 0 {
			opts.Progress(time.Duration(us) * time.Microsecond)
		}
	}
	_, _ = io.Copy(io.Discard, in)
}

// tailSize is how much of a child's last words is kept, in bytes.
const tailSize = 4 << 10

// tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	last []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	b = b[max(0, n-tailSize):]
	t.last = append(t.last[max(0, min(len(t.last), len(t.last)+len(b)-tailSize)):], b...)
	return n, nil
}

// String is what was kept, as printable text.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	printable := strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\n' || r == 0x7F {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(t.last), "?"))
	return strings.TrimSpace(printable)
}
