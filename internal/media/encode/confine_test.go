package encode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// escape is a decoder that somebody has taken over: it tries what it may and what it may not, and says how that went.
func escape(read, write string) {
	say := func(what string, err error) {
		switch {
		case err == nil:
			_, _ = fmt.Fprintln(os.Stdout, what, "went well")
		case errors.Is(err, os.ErrPermission):
			_, _ = fmt.Fprintln(os.Stdout, what, "was refused")
		default:
			_, _ = fmt.Fprintln(os.Stdout, what, "failed:", err)
		}
	}
	try := func(what string, call uintptr, args ...uintptr) {
		var all [6]uintptr
		copy(all[:], args)
		_, _, errno := unix.Syscall6(call, all[0], all[1], all[2], all[3], all[4], all[5])
		if errno != 0 {
			say(what, errno)
			return
		}
		say(what, nil)
	}
	_, err := os.ReadFile(read)
	say("reading its input", err)
	say("writing its output", os.WriteFile(write, []byte("made"), 0o600))
	_, err = os.ReadFile("/etc/passwd")
	say("reading another file", err)
	_, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", os.Getppid()))
	say("reading our environment", err)
	_, err = os.ReadDir(filepath.Dir(write))
	say("listing a folder", err)
	say("writing another file", os.WriteFile(write+".more", nil, 0o600))
	say("removing a file", os.Remove(read))
	say("running a program", exec.CommandContext(rootOfFake(), "/bin/sh", "-c", "true").Run())
	for _, domain := range []int{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX, unix.AF_NETLINK} {
		try("a socket of "+strconv.Itoa(domain), unix.SYS_SOCKET, uintptr(domain), unix.SOCK_STREAM, 0)
	}
	try("io_uring", unix.SYS_IO_URING_SETUP, 1)
	try("a signal to us", unix.SYS_KILL, uintptr(os.Getppid()), 0)
	try("a signal to our first thread", unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(os.Getppid()), 0)
	try("slowing us", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, uintptr(os.Getppid()), 19)
	try("slowing all of our user's", unix.SYS_SETPRIORITY, unix.PRIO_USER, 0, 19)
	try("being slower itself", unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 19)
	try("choosing our processors", unix.SYS_SCHED_SETAFFINITY, uintptr(os.Getppid()))
	try("choosing who is told of a file", unix.SYS_FCNTL, os.Stdout.Fd(), unix.F_SETOWN, uintptr(os.Getppid()))
	// the kernel wants more than that of a thread
	try("a namespace of its own", unix.SYS_CLONE, unix.CLONE_NEWUSER|unix.CLONE_THREAD)
	try("tracing us", unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid()))
	try("changing our limits", unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_CPU)
	try("its own limits", unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CPU)
	privileges, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	_, _ = fmt.Fprintln(os.Stdout, "no_new_privs", privileges, err)
}

// TestConfinement has a child try to get out of what it is given.
func TestConfinement(t *testing.T) {
	t.Parallel()
	if missing := Confined().Missing(); len(missing) > 0 {
		t.Skipf("this kernel has no %v", missing)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := fakeOptions(t, "escape")
	opts.Args, opts.Writes = append(opts.Args, in, out, "-i", "file:"+in), []string{out}
	said := map[string]string{}
	opts.Output = func(_ context.Context, r io.Reader) error {
		text, err := io.ReadAll(r)
		for line := range strings.Lines(string(text)) {
			for _, end := range []string{" went well", " was refused", " failed:", " 1 <nil>"} {
				if what, _, ok := strings.Cut(strings.TrimSpace(line), end); ok {
					said[what] = strings.TrimSpace(line[len(what):])
				}
			}
		}
		return err
	}
	if err := NewProcess(opts).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]string{
		"reading its input": "went well", "writing its output": "went well", "its own limits": "went well",
		"no_new_privs":         "1 <nil>",
		"reading another file": "was refused", "reading our environment": "was refused",
		"listing a folder":     "was refused",
		"writing another file": "was refused", "removing a file": "was refused", "running a program": "was refused",
		"a socket of " + strconv.Itoa(unix.AF_INET):    "was refused",
		"a socket of " + strconv.Itoa(unix.AF_INET6):   "was refused",
		"a socket of " + strconv.Itoa(unix.AF_UNIX):    "was refused",
		"a socket of " + strconv.Itoa(unix.AF_NETLINK): "was refused",
		"io_uring": "was refused", "a signal to us": "was refused", "a signal to our first thread": "was refused",
		"slowing us": "was refused", "slowing all of our user's": "was refused", "being slower itself": "went well",
		"choosing our processors": "was refused", "choosing who is told of a file": "was refused",
		"a namespace of its own": "was refused",
		"tracing us":             "was refused", "changing our limits": "was refused",
	} {
		if said[what] != want {
			t.Errorf("%s: %q, want %q", what, said[what], want)
		}
	}
	if made, err := os.ReadFile(out); err != nil || string(made) != "made" {
		t.Errorf("the output is %q, %v", made, err)
	}
	// It is the child that is confined, and not this process.
	if s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err != nil {
		t.Error(err)
	} else {
		_ = unix.Close(s)
	}
	if err := syscall.Kill(os.Getpid(), 0); err != nil {
		t.Error(err)
	}
	if _, err := os.ReadFile("/etc/passwd"); err != nil {
		t.Error(err)
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	if got := strings.Join((Confinement{}).Missing(), ", "); got != "no_new_privs, Landlock, seccomp filters" {
		t.Errorf("without anything: %s", got)
	}
	if got := (Confinement{Files: true, Calls: true, NewRight: true}).Missing(); len(got) > 0 {
		t.Errorf("with all: %v", got)
	}
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		if err := NewProcess(ProcessOptions{Program: "/bin/true", Priority: Live}).Run(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
