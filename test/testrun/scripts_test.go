package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bench is a folder with copies of this repository's scripts, and a folder of programs that stand in for others.
type bench struct {
	dir, bin string
	env      []string
}

// newBench copies the scripts: go test sees that they were read, so that a change of one runs these tests again.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{dir: dir, bin: filepath.Join(dir, "bin")}
	if err := os.Mkdir(b.bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "scripts"), os.DirFS("../../scripts")); err != nil {
		t.Fatal(err)
	}
	b.env = append(os.Environ(), "PATH="+b.bin+":"+os.Getenv("PATH"), "TMPDIR="+filepath.Join(dir, "tmp"),
		"XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "FORCE=")
	b.folder(t, "tmp")
	return b
}

func (b *bench) folder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// program puts a shell script on the PATH.
func (b *bench) program(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(b.bin, name)
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o700); err != nil { //nolint:gosec // to be run
		t.Fatal(err)
	}
}

// run runs a command in the folder and returns all that it said and its exit status.
func (b *bench) run(t *testing.T, name string, args ...string) (output string, status int) {
	t.Helper()
	out, err := b.command(t.Context(), name, args...).CombinedOutput()
	exit, failed := errors.AsType[*exec.ExitError](err)
	if err != nil && !failed {
		t.Fatal(err)
	}
	if failed {
		status = exit.ExitCode()
	}
	return string(out), status
}

func (b *bench) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = b.dir, b.env
	return cmd
}

func TestStep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for name, tt := range map[string]struct {
		command []string
		status  int
		want    string // % stands for the seconds
	}{
		"green":       {[]string{"echo", "hello"}, 0, "== x\n   hello\n== x: % s\n"},
		"is silent":   {[]string{"true"}, 0, "== x\n== x: % s\n"},
		"red":         {[]string{"sh", "-c", "echo no >&2; exit 3"}, 3, "   no\nstep failed: x, after % s, with"},
		"not there":   {[]string{"./none"}, 127, "step failed: x"},
		"was killed":  {[]string{"sh", "-c", "kill -9 $$"}, 137, "step failed: x"},
		"half a line": {[]string{"printf", "half"}, 0, "   half"},
	} {
		out, status := b.run(t, "scripts/step.sh", append([]string{"x"}, tt.command...)...)
		first, rest, _ := strings.Cut(tt.want, "%")
		if _, after, ok := strings.Cut(out, first); !ok || status != tt.status || !strings.Contains(after, rest) {
			t.Errorf("%s: exit status %d, want %d:\n%swant:\n%s", name, status, tt.status, out, tt.want)
		}
	}
}

// TestStepIsLive: what a step says is there before it ends.
func TestStepIsLive(t *testing.T) {
	t.Parallel()
	cmd := newBench(t).command(t.Context(), "scripts/step.sh", "x", "sh", "-c", "echo begun; read line; echo $line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"== x", "   begun"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
	}
	fmt.Fprintln(in, "go on")
	if !lines.Scan() || lines.Text() != "   go on" {
		t.Errorf("%q after it went on", lines.Text())
	}
	if err = cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	for free, tt := range map[string]struct {
		status int
		warns  bool
	}{"15000": {}, "14999": {warns: true}, "2000": {warns: true}, "1999": {status: 1, warns: true}} {
		b := newBench(t)
		b.env = append(b.env, "SHM="+b.folder(t, "shm"))
		b.program(t, "df", "echo Avail; echo "+free)
		out, status := b.run(t, "scripts/machine.sh")
		if status != tt.status || strings.Contains(out, "WARNING") != tt.warns {
			t.Errorf("%s MB: exit status %d, want %d, warns: want %t\n%s", free, status, tt.status, tt.warns, out)
		}
	}
}

// TestMachineNamesWhatIsLeft counts folders in memory that no process holds, and names what killed runs have left.
func TestMachineNamesWhatIsLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.env = append(b.env, "SHM="+b.folder(t, "shm"))
	ours := fmt.Sprintf("shm/millrace-%d/", os.Geteuid())
	b.folder(t, ours+"left")
	held, err := os.Open(b.folder(t, ours+"held"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }() // it was only locked
	if err = syscall.Flock(int(held.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-4 * time.Hour)
	for _, name := range []string{"tmp/millrace-pg-1", "shm/millrace-blob-1", "tmp/millrace-notes-1", "tmp/x-pg-1"} {
		if err = os.Chtimes(b.folder(t, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	b.folder(t, "tmp/millrace-s3-2") // of a run that is at work
	out, status := b.run(t, "scripts/machine.sh")
	blob, pg := filepath.Join(b.dir, "shm/millrace-blob-1"), filepath.Join(b.dir, "tmp/millrace-pg-1")
	want := "rm -r:\n" + blob + "\n" + pg + "\n"
	if status != 0 || !strings.Contains(out, " 1 folders of ended") || !strings.HasSuffix(out, want) {
		t.Errorf("exit status %d:\n%s", status, out)
	}
}
