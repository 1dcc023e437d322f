package encode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"millrace/internal/leaktest"
)

// TestMain is also every fake program: called as "fake <what> <mark>", this binary misbehaves as told. The mark makes
// what it leaves behind findable.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		fake(os.Args[2])
		return
	}
	leaktest.Main(m)
}

func fake(what string) {
	switch what {
	case "hang":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Fprintln(os.Stderr, "hanging")
		forever()
	case "family": // a grandchild that holds our pipes and ignores signals
		child := exec.CommandContext(rootOfFake(), os.Args[0], os.Args[1], "hang", os.Args[3])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, "up")
	case "family-hang":
		fake("family")
		forever()
	case "up-hang":
		fmt.Fprintln(os.Stdout, "up")
		fake("hang")
	case "parent": // as the service: runs a child of its own
		err := NewProcess(ProcessOptions{
			Program: os.Args[0], Args: []string{"fake", "up-hang", os.Args[3]}, Priority: Live,
			Output: func(_ context.Context, r io.Reader) error {
				_, err := io.Copy(os.Stdout, r)
				return err
			},
		}).Run(rootOfFake())
		fmt.Fprintln(os.Stdout, "ended", err)
	case "flood":
		line := []byte(strings.Repeat("noise \x1b[31m\xff", 100) + "\n")
		for range 20_000 {
			_, _ = os.Stderr.Write(line)
		}
		fmt.Fprintln(os.Stderr, "the last words")
		os.Exit(3)
	case "copy":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf": // never reads its input
		fmt.Fprintln(os.Stdout, "done")
	case "endless":
		for {
			if _, err := os.Stdout.Write(make([]byte, 1<<16)); err != nil {
				os.Exit(4)
			}
		}
	case "closes": // ends its output in the middle, then fails
		fmt.Fprint(os.Stdout, "half")
		_ = os.Stdout.Close()
		fmt.Fprintln(os.Stderr, "the reason")
		os.Exit(5)
	case "env":
		for _, e := range os.Environ() {
			fmt.Fprintln(os.Stdout, e)
		}
		dir, _ := os.Getwd()
		fmt.Fprintln(os.Stdout, dir)
	case "told-spin": // says who it is first
		fmt.Fprintln(os.Stdout, os.Getpid())
		fake("spin")
	case "spin-caught": // ends by itself when its time is up, as ffmpeg does
		up := make(chan os.Signal, 1)
		signal.Notify(up, syscall.SIGXCPU)
		go fake("spin")
		<-up
		for used := (syscall.Rusage{}); used.Utime.Sec+used.Stime.Sec < 1; { // what it had to do yet
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used)
		}
		os.Exit(123)
	case "told-spin-there": // with four threads
		for range 3 {
			go func() {
				onFirstProcessor()
				fake("spin")
			}()
		}
		onFirstProcessor()
		fake("told-spin")
	case "work-there": // works for 0.1 s, then prints how long another process ran meanwhile; its number is on stdin
		onFirstProcessor()
		in, _ := io.ReadAll(os.Stdin) // until its priority is set
		other, _ := strconv.Atoi(string(in))
		before, _ := processorTime(other)
		for begin := ownTime(); ownTime() < begin+100*time.Millisecond; {
			_ = os.Args
		}
		after, _ := processorTime(other)
		fmt.Fprintln(os.Stdout, int64(after-before))
	case "spin":
		for {
			_ = os.Args
		}
	case "stat":
		_, _ = io.ReadAll(os.Stdin) // until priority and limits are set
		b, _ := os.ReadFile("/proc/self/stat")
		limits, _ := os.ReadFile("/proc/self/limits")
		_, _ = os.Stdout.Write(append(b, limits...))
	case "escape":
		escape(os.Args[4], os.Args[5])
	case "progress":
		progress := os.NewFile(3, "progress")
		fmt.Fprint(progress, "out_time_us=N/A\nprogress=continue\nout_time_us=1500000\nprogress=continue\n")
		fmt.Fprint(progress, "out_time_us=3000000\nprogress=end\n")
	case "progress-hang":
		progress := os.NewFile(3, "progress")
		fmt.Fprint(progress, "out_time_us=1500000\nprogress=continue\n")
		forever()
	}
}

// ownTime is the processor time of this process.
func ownTime() time.Duration {
	ran, _ := processorTime(os.Getpid())
	return ran
}

// onFirstProcessor has the calling goroutine run on the first of the processors that it may use, and on no other.
func onFirstProcessor() {
	runtime.LockOSThread()
	var all, first unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		panic(err)
	}
	for i := 0; first.Count() == 0; i++ {
		if all.IsSet(i) {
			first.Set(i)
		}
	}
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		panic(err)
	}
}

// rootOfFake is what main would have: a fake is a program.
func rootOfFake() context.Context { return context.Background() } //nolint:forbidigo // see above

func forever() {
	for {
		<-time.NewTimer(time.Hour).C
	}
}

// fakeOptions make a process of a fake and, at the end of the test, look for what it left behind.
func fakeOptions(t *testing.T, what string) ProcessOptions {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("mark-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	t.Cleanup(func() {
		if left := running(t, mark); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	return ProcessOptions{Program: program, Args: []string{"fake", what, mark}, Priority: Live}
}

// running lists processes with mark as an argument, the dead ones that nobody has reaped included where they are ours.
func running(t *testing.T, mark string) []string {
	t.Helper()
	var found []string
	// an orphan that was killed takes a moment to be reaped by init
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		found = nil
		procs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range procs {
			if line, err := os.ReadFile(p + "/cmdline"); err == nil &&
				strings.Contains(string(line), "\x00"+mark+"\x00") {
				found = append(found, p)
			}
			if stat, err := os.ReadFile(p + "/stat"); err == nil {
				fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
				if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
					found = append(found, p+" (not reaped)")
				}
			}
		}
		if len(found) == 0 {
			return nil
		}
		<-time.NewTimer(20 * time.Millisecond).C
	}
	return found
}

var errEnough = errors.New("enough")

func TestRunKillsWhatHangs(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"hang", "family-hang"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			opts := fakeOptions(t, what)
			opts.Output = func(_ context.Context, r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(300*time.Millisecond, func() { cancel(errEnough) })
			defer timer.Stop()
			p := NewProcess(opts)
			if err := p.Run(ctx); !errors.Is(err, errEnough) || p.State() != Killed {
				t.Errorf("got %v in state %s", err, p.State())
			}
		})
	}
}

func TestRunKillsGrandchildrenOfTheDead(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "family")
	var said []byte
	opts.Output = func(_ context.Context, r io.Reader) (err error) {
		said, err = io.ReadAll(r) // ends only when nobody holds the pipe
		return err
	}
	p := NewProcess(opts)
	if err := p.Run(t.Context()); err != nil || string(said) != "up\n" || p.State() != Finished {
		t.Errorf("got %v, %q in state %s", err, said, p.State())
	}
}

// A child ends with the service even if the service is killed.
func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "parent")
	parent := exec.CommandContext(t.Context(), opts.Program, opts.Args...) // as the service is, not confined
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 3)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "up\n" {
		t.Errorf("said %q, %v", said, err)
	}
	_ = parent.Process.Kill() // alone: its child leads a group of its own
	_ = parent.Wait()         // it was killed
}

func TestRunKeepsLastWords(t *testing.T) {
	t.Parallel()
	p := NewProcess(fakeOptions(t, "flood"))
	err := p.Run(t.Context())
	exit, ok := errors.AsType[*ExitError](err)
	if !ok || exit.Code != 3 || len(exit.Stderr) > tailSize ||
		!strings.HasSuffix(err.Error(), "ended with exit status 3: the last words") ||
		strings.Contains(exit.Stderr, "\x1b") || !utf8.ValidString(exit.Stderr) || p.State() != Failed {
		t.Errorf("got %v in state %s", err, p.State())
	}
}

func TestRunPipes(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "copy")
	const size = 3 << 20
	opts.Input = func(_ context.Context, w io.Writer) error {
		_, err := w.Write(make([]byte, size))
		return err
	}
	var got int64
	opts.Output = func(_ context.Context, r io.Reader) (err error) {
		got, err = io.Copy(io.Discard, r)
		return err
	}
	p := NewProcess(opts)
	if err := p.Run(t.Context()); err != nil || got != size || p.State() != Finished {
		t.Errorf("got %d bytes, %v in state %s", got, err, p.State())
	}
}

func TestRunDrainsWhatIsNotWanted(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "copy")
	opts.Input = func(_ context.Context, w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}
	opts.Output = func(_ context.Context, r io.Reader) error {
		_, err := r.Read(make([]byte, 10))
		return err
	}
	if err := NewProcess(opts).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRunInputAhead: a child is sent as much ahead as is asked for, not what the system has; its input still ends with
// it.
func TestRunInputAhead(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "deaf")
	opts.InputAhead = 8 << 10
	opts.Input = func(_ context.Context, w io.Writer) error {
		if n, err := unix.FcntlInt(w.(*os.File).Fd(), unix.F_GETPIPE_SZ, 0); err != nil || n != 8<<10 {
			t.Errorf("the pipe holds %d bytes, %v", n, err)
		}
		return nil
	}
	if err := NewProcess(opts).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRunDeafChildIsNoError(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "deaf")
	opts.Input = func(ctx context.Context, w io.Writer) error {
		for ctx.Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := NewProcess(opts).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRunInputWaitingForNothingEndsWithTheChild(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "deaf")
	opts.Input = func(ctx context.Context, _ io.Writer) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if err := NewProcess(opts).Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestRunBrokenEnds(t *testing.T) {
	t.Parallel()
	t.Run("output", func(t *testing.T) {
		t.Parallel()
		opts := fakeOptions(t, "endless")
		opts.Output = func(_ context.Context, r io.Reader) error {
			_, _ = io.ReadFull(r, make([]byte, 1<<20))
			return errEnough
		}
		p := NewProcess(opts)
		if err := p.Run(t.Context()); !errors.Is(err, errEnough) || p.State() != Killed {
			t.Errorf("got %v in state %s", err, p.State())
		}
	})
	t.Run("input", func(t *testing.T) {
		t.Parallel()
		opts := fakeOptions(t, "copy")
		opts.Input = func(context.Context, io.Writer) error { return errEnough }
		if err := NewProcess(opts).Run(t.Context()); !errors.Is(err, errEnough) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("panics", func(t *testing.T) {
		t.Parallel()
		opts := fakeOptions(t, "endless")
		opts.Output = func(context.Context, io.Reader) error { panic("nobody thought of this") }
		if err := NewProcess(opts).Run(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "nobody thought of this") {
			t.Errorf("got %v", err)
		}
		opts = fakeOptions(t, "copy")
		opts.Input = func(context.Context, io.Writer) error { panic("nor of this") }
		if err := NewProcess(opts).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "nor of this") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the child's reason is the better one", func(t *testing.T) {
		t.Parallel()
		opts := fakeOptions(t, "closes")
		opts.Output = func(_ context.Context, r io.Reader) error {
			if _, err := io.ReadFull(r, make([]byte, 100)); err != nil {
				return fmt.Errorf("half a box: %w", err)
			}
			return nil
		}
		if exit, ok := errors.AsType[*ExitError](NewProcess(opts).Run(t.Context())); !ok ||
			exit.Stderr != "the reason" {
			t.Errorf("got %v", exit)
		}
	})
	t.Run("output after a good end", func(t *testing.T) {
		t.Parallel()
		opts := fakeOptions(t, "deaf")
		opts.Output = func(_ context.Context, r io.Reader) error {
			_, _ = io.ReadAll(r)
			return errEnough
		}
		if err := NewProcess(opts).Run(t.Context()); !errors.Is(err, errEnough) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRunStalls(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"hang", "progress-hang"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			opts := fakeOptions(t, what)
			opts.Stall = 400 * time.Millisecond
			if what == "hang" {
				opts.Output = func(_ context.Context, r io.Reader) error {
					_, err := io.ReadAll(r)
					return err
				}
			} else {
				opts.Progress = func(time.Duration) {}
			}
			p := NewProcess(opts)
			if err := p.Run(t.Context()); !errors.Is(err, ErrIdle) || p.State() != Killed { // it sleeps
				t.Errorf("got %v in state %s", err, p.State())
			}
		})
	}
}

// A child that is stopped while it works gives no output, and nothing that it works on is at fault.
func TestRunStopped(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "told-spin")
	opts.Stall = 400 * time.Millisecond
	opts.Output = func(_ context.Context, r io.Reader) error {
		var pid int
		if _, err := fmt.Fscanln(r, &pid); err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		_, err := io.ReadAll(r)
		return err
	}
	p := NewProcess(opts)
	if err := p.Run(t.Context()); !errors.Is(err, ErrIdle) || p.State() != Killed {
		t.Errorf("got %v in state %s", err, p.State())
	}
}

// A child has so much time on the clock.
func TestRunLate(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "hang")
	opts.Limits.Wall = 50 * time.Millisecond
	p := NewProcess(opts)
	if err := p.Run(t.Context()); !errors.Is(err, ErrLate) || p.State() != Killed {
		t.Errorf("got %v in state %s", err, p.State())
	}
}

func TestRunTellsProgress(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "progress")
	var got []time.Duration
	opts.Progress = func(at time.Duration) { got = append(got, at) }
	if err := NewProcess(opts).Run(t.Context()); err != nil || fmt.Sprint(got) != "[1.5s 3s]" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestRunGivesNoEnvironment(t *testing.T) {
	t.Setenv("MILLRACE_TOKEN_SECRET", "hush")
	opts := fakeOptions(t, "env")
	var said []byte
	opts.Output = func(_ context.Context, r io.Reader) (err error) {
		said, err = io.ReadAll(r)
		return err
	}
	want := "LC_ALL=C\nPATH=/usr/local/bin:/usr/bin:/bin\nAV_LOG_FORCE_NOCOLOR=1\n/\n"
	if err := NewProcess(opts).Run(t.Context()); err != nil || string(said) != want {
		t.Errorf("got %q, %v", said, err)
	}
}

func TestRunCantStart(t *testing.T) {
	t.Parallel()
	p := NewProcess(ProcessOptions{
		Program: "/nonexistent/ffmpeg", Output: func(context.Context, io.Reader) error { return nil },
	})
	if err := p.Run(t.Context()); !errors.Is(err, os.ErrNotExist) || p.State() != Failed {
		t.Errorf("got %v in state %s", err, p.State())
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	p = NewProcess(ProcessOptions{Program: "/nonexistent/ffmpeg"})
	if err := p.Run(ctx); !errors.Is(err, errEnough) || p.State() != Killed {
		t.Errorf("got %v in state %s", err, p.State())
	}
}

func TestRunLimitsAndPriority(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	ours := strings.Fields(string(own[bytes.LastIndexByte(own, ')')+1:]))[16] // who runs the tests may be nice
	for priority, want := range map[Priority]struct{ policy, nice string }{
		Live: {"0", ours}, OnDemand: {"0", "5"}, Ingest: {"5", ours}, Background: {"5", ours},
	} {
		opts := fakeOptions(t, "stat")
		opts.Args = append(opts.Args, "-i", "file:/proc")
		opts.Priority = priority
		opts.Limits = Limits{AddressSpace: 4 << 30, CPU: 1500 * time.Millisecond, FileSize: 12345}
		opts.Input = func(context.Context, io.Writer) error { return nil }
		var said []byte
		opts.Output = func(_ context.Context, r io.Reader) (err error) {
			said, err = io.ReadAll(r)
			return err
		}
		if err := NewProcess(opts).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		stat, limits, _ := strings.Cut(string(said), "\n")
		fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
		if nice, policy := fields[16], fields[38]; nice != want.nice || policy != want.policy {
			t.Errorf("priority %d: nice %s, policy %s, want %+v", priority, nice, policy, want)
		}
		for _, line := range []string{
			"Max cpu time              2                    7 ",
			"Max file size             12345                12345 ",
			"Max core file size        0                    0 ", "Max open files            256                  256 ",
			"Max address space         4294967296           4294967296 ",
		} {
			if !strings.Contains(limits, line) {
				t.Errorf("%q is not in\n%s", line, limits)
			}
		}
	}
}

func TestRunStopsWhatSpins(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"spin", "spin-caught"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			opts := fakeOptions(t, what)
			opts.Limits = Limits{CPU: time.Second}
			opts.Priority = OnDemand
			exit, ok := errors.AsType[*ExitError](NewProcess(opts).Run(t.Context()))
			if !ok || exit.CPU != time.Second || !strings.Contains(exit.Error(), "after 1s of processor time") {
				t.Errorf("got %v", exit)
			}
		})
	}
}

// Who ends in other ways has not used up its time.
func TestRunEndsWithTimeLeft(t *testing.T) {
	t.Parallel()
	opts := fakeOptions(t, "flood")
	opts.Limits = Limits{CPU: time.Hour}
	if exit, ok := errors.AsType[*ExitError](NewProcess(opts).Run(t.Context())); !ok || exit.CPU != 0 {
		t.Errorf("got %v", exit)
	}
}
