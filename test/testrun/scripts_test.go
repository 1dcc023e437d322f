package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	b.program(t, "sleep", `echo "$1" >>"$TMPDIR/slept"`)
	b.program(t, "sudo", `exec "$@"`)
	return b
}

// failing puts a program on the PATH that fails its first times with exit status 5, and keeps its arguments.
func (b *bench) failing(t *testing.T, name string, times int, says string) {
	t.Helper()
	b.program(t, name, fmt.Sprintf(`echo "$*" >>"$TMPDIR/calls"
if [ "$(wc -l <"$TMPDIR/calls")" -le %d ]; then echo "%s"; exit 5; fi
`, times, says))
}

// repository makes one of the folder, with a commit, and returns what runs git there.
func (b *bench) repository(t *testing.T) (git func(args ...string)) {
	t.Helper()
	b.write(t, ".gitignore", "bin\ntmp\ncache\n")
	b.program(t, "go", "echo go1.2.3")
	b.env = append(b.env, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=x", "GIT_AUTHOR_EMAIL=x@example.org",
		"GIT_COMMITTER_NAME=x", "GIT_COMMITTER_EMAIL=x@example.org")
	git = func(args ...string) {
		t.Helper()
		if out, status := b.run(t, "git", args...); status != 0 {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	return git
}

// calls are the lines that programs have written to a file of the temporary folder.
func (b *bench) calls(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, "tmp", name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.Collect(strings.Lines(string(data)))
}

func (b *bench) folder(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// program puts a shell script on the PATH.
func (b *bench) program(t *testing.T, name, script string) {
	t.Helper()
	path := filepath.Join(b.bin, name)
	if err := os.WriteFile(path, []byte("#!/bin/bash\n"+script), 0o700); err != nil {
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

func TestRetry(t *testing.T) {
	t.Parallel()
	for fails, tt := range map[int]struct {
		tries, status int
		slept         []string
	}{
		0: {tries: 1}, 1: {tries: 2, slept: []string{"5\n"}}, 2: {tries: 3, slept: []string{"5\n", "15\n"}},
		3: {tries: 3, status: 5, slept: []string{"5\n", "15\n"}},
	} {
		b := newBench(t)
		b.failing(t, "program", fails, "no network")
		out, status := b.run(t, "scripts/retry.sh", "program", "a", "b")
		if n := len(b.calls(t, "calls")); n != tt.tries || status != tt.status {
			t.Errorf("%d failures: %d tries, status %d, want %d, %d\n%s", fails, n, status, tt.tries, tt.status, out)
		}
		if slept := b.calls(t, "slept"); !slices.Equal(slept, tt.slept) {
			t.Errorf("fails %d times: slept %q, want %q", fails, slept, tt.slept)
		}
	}
}

// TestAptWaitsForLocks: what another apt-get holds is waited for, up to a bound; nothing else is tried again.
func TestAptWaitsForLocks(t *testing.T) {
	t.Parallel()
	const held = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1"
	for name, tt := range map[string]struct {
		fails         int
		says, wait    string
		tries, status int
	}{
		"free":              {wait: "300", tries: 1},
		"held for a while":  {fails: 2, says: held, wait: "300", tries: 3},
		"held for too long": {fails: 2, says: held, wait: "0", tries: 1, status: 1},
		"no network":        {fails: 2, says: "E: Failed to fetch", wait: "300", tries: 1, status: 1},
		"dpkg's was waited for": {
			fails: 2, says: "Waiting for cache lock: Could not get lock", wait: "300", tries: 1, status: 1,
		},
	} {
		b := newBench(t)
		b.env = append(b.env, "LOCK_WAIT="+tt.wait)
		b.failing(t, "apt-get", tt.fails, tt.says)
		out, status := b.run(t, "scripts/apt.sh", "update")
		if n := len(b.calls(t, "calls")); n != tt.tries || status != tt.status {
			t.Errorf("%s: %d tries, exit status %d, want %d, %d\n%s", name, n, status, tt.tries, tt.status, out)
		}
		if !strings.Contains(out, tt.says) {
			t.Errorf("%s: what apt-get said is not shown:\n%s", name, out)
		}
	}
}

// TestNodePackagesAreInstalledOnce, again when the network failed, and again when the lock has changed.
func TestNodePackagesAreInstalledOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, folder := range []string{"test/browser/driver", "test/sdk"} {
		b.folder(t, folder+"/node_modules")
		b.write(t, folder+"/package.json", "{}")
		b.write(t, folder+"/package-lock.json", "1")
	}
	b.failing(t, "npm", 1, "no network")
	for step, want := range []int{3, 3, 4} { // one failed; none more; one folder
		if step == 2 {
			b.write(t, "test/sdk/package-lock.json", "2")
		}
		out, status := b.run(t, "scripts/install-node-packages.sh")
		if calls := b.calls(t, "calls"); status != 0 || len(calls) != want {
			t.Errorf("run %d: exit status %d, %q, want %d\n%s", step, status, calls, want, out)
		}
	}
}

// builder stands in for go: it writes what it is to build in two halves, so that a reader sees one that is not whole.
const builder = `echo "$*" >>"$TMPDIR/calls"
case "$*" in
  *GOVERSION) echo go1.2.3 ;;
  *GOARCH) echo amd64 ;;
  *" build "*)
    [ ! -e "$TMPDIR/broken" ] || exit 1
    while [ "$1" != -o ]; do shift; done
    [ ! -e "$TMPDIR/killed" ] || { printf ha >"$2"; kill -9 "$PPID"; exit; }
    printf '#!/bin/bash\necho whole\n' >"$2"
    chmod +x "$2" ;;
esac
`

// newToolBench is a clone with a module that pins the S3 server. Clones share a cache.
func newToolBench(t *testing.T, cache string) *bench {
	t.Helper()
	b := newBench(t)
	b.env = append(b.env, "XDG_CACHE_HOME="+cache, "GO=go")
	b.program(t, "go", builder)
	b.folder(t, "tools/s3")
	b.write(t, "tools/s3/go.mod", "module x\n\nrequire (\n\tgithub.com/versity/versitygw v9.8.7\n)\n")
	b.write(t, "tools/s3/go.sum", "1")
	return b
}

// tool asks for the S3 server, wants one that is whole, and returns its path and how often it was built here.
func (b *bench) tool(t *testing.T) (path string, builds int) {
	t.Helper()
	out, err := b.command(t.Context(), "scripts/tool.sh", "versitygw").Output()
	if err != nil {
		t.Fatal(err)
	}
	path = strings.TrimSpace(string(out))
	if said, status := b.run(t, path); said != "whole\n" || status != 0 {
		t.Errorf("%s is not whole: %q, exit status %d", path, said, status)
	}
	for _, call := range b.calls(t, "calls") {
		if strings.Contains(call, " build ") {
			builds++
		}
	}
	return path, builds
}

// TestToolIsBuiltOnce for all clones, and again when what it is made of has changed.
func TestToolIsBuiltOnce(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	here, there := newToolBench(t, cache), newToolBench(t, cache)
	first, builds := here.tool(t)
	if want := "versitygw-v9.8.7-go1.2.3-amd64-"; builds != 1 || !strings.HasPrefix(filepath.Base(first), want) {
		t.Errorf("%s, built %d times, want %s…", first, builds, want)
	}
	if again, builds := there.tool(t); again != first || builds != 0 {
		t.Errorf("another clone: %s, built %d times, want %s", again, builds, first)
	}
	there.write(t, "tools/s3/go.sum", "2")
	if other, builds := there.tool(t); other == first || builds != 1 {
		t.Errorf("of other modules: %s, built %d times", other, builds)
	}
}

// TestToolIsWholeOrNotThere: what a failed or killed build has made stands under no tool's name.
func TestToolIsWholeOrNotThere(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"broken", "killed"} {
		b := newToolBench(t, t.TempDir())
		b.write(t, "tmp/"+how, "")
		if out, status := b.run(t, "scripts/tool.sh", "versitygw"); status == 0 {
			t.Errorf("%s: no error:\n%s", how, out)
		}
		if err := os.Remove(filepath.Join(b.dir, "tmp", how)); err != nil {
			t.Fatal(err)
		}
		if _, builds := b.tool(t); builds != 2 {
			t.Errorf("%s: built %d times, want 2", how, builds)
		}
	}
}

// TestToolsAreRemoved when nobody has asked for them in two weeks, and those that are asked for are not.
func TestToolsAreRemoved(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	b := newToolBench(t, cache)
	used, _ := b.tool(t)
	old := time.Now().Add(-16 * 24 * time.Hour)
	unused := filepath.Join(cache, "millrace-test-tools", "making-x")
	if err := os.Mkdir(unused, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{used, unused} {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	b.tool(t)
	b.write(t, "tools/s3/go.sum", "2")
	b.tool(t)
	if _, err := os.Stat(used); err != nil {
		t.Errorf("what was asked for: %v", err)
	}
	if _, err := os.Stat(unused); !os.IsNotExist(err) {
		t.Errorf("what nobody has asked for: %v", err)
	}
}

// TestGreenIsRemembered: what has passed on a tree is not run again on that tree.
func TestGreenIsRemembered(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.failing(t, "job", 1, "red")
	git := b.repository(t)
	for _, step := range []struct {
		name         string
		do           func()
		runs, status int
	}{
		{name: "red", runs: 1, status: 5},
		{name: "red is not remembered", runs: 2},
		{name: "green is", runs: 2},
		{name: "forced", do: func() { b.env = append(b.env, "FORCE=1") }, runs: 3},
		{name: "no longer forced", do: func() { b.env = append(b.env, "FORCE=") }, runs: 3},
		{name: "a new file", do: func() { b.write(t, "new", "1") }, runs: 4},
		{name: "as before", runs: 5},
		{name: "committed", do: func() { git("add", "."); git("commit", "-qm", "second") }, runs: 6},
		{name: "another commit of them", do: func() { git("commit", "-q", "--amend", "-m", "third") }, runs: 6},
		{name: "the files of the first", do: func() { git("rm", "-q", "new"); git("commit", "-qm", "x") }, runs: 6},
	} {
		if step.do != nil {
			step.do()
		}
		out, status := b.run(t, "scripts/green.sh", "race", "job")
		if n := len(b.calls(t, "calls")); n != step.runs || status != step.status {
			t.Errorf("%s: %d runs, exit status %d, want %d, %d\n%s", step.name, n, status, step.runs, step.status, out)
		}
	}
}

// TestRuns: each run is in a clone of its own, every second one beside two busy loops, and the table says how it ended.
func TestRuns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.repository(t)
	b.write(t, "not-committed", "")
	b.program(t, "tests", `children="$(cat /proc/[0-9]*/stat 2>/dev/null | awk -v p="$PPID" '$4 == p' | wc -l)"
echo "$children $(ls scripts/runs.sh not-committed made 2>/dev/null | wc -l)" >>"$TMPDIR/calls"
touch made
case "$(wc -l <"$TMPDIR/calls")" in
  1) printf 'failed:\n  e2e TestX\n\nflaky, passed when run again, alone: 1\n  e2e TestY: late\n\n'
    echo "12 passed, 1 failed, 0 skipped"; exit 1 ;;
  2) echo "13 passed, 0 failed, 0 skipped" ;;
  3) echo "step failed: lint, after 3 s, with exit status 2"; exit 2 ;;
esac
`)
	b.env = append(b.env, "COMMAND=tests")
	out, status := b.run(t, "scripts/runs.sh", "4")
	got := regexp.MustCompile(`\| \d+\.\d \|`).ReplaceAllString(out, "| % |")
	want := `| run | load | minutes | passed | failed | flaky |
|---|---|---|---|---|---|
| 1 | none | % | 12 | 1 | 1 |
| 2 | two busy loops | % | 13 | 0 | 0 |
| 3 | none | % | - | lint | 0 |
| 4 | two busy loops | % | - | did not end | 0 |

run 1:
  e2e TestX
  e2e TestY: late
`
	if got != want || status != 0 {
		t.Errorf("exit status %d:\n%s\nwant:\n%s", status, got, want)
	}
	if calls := b.calls(t, "calls"); !slices.Equal(calls, []string{"1 1\n", "3 1\n", "1 1\n", "3 1\n"}) {
		t.Errorf("children of the script and files, of each run: %q", calls)
	}
	out, status = b.run(t, "scripts/runs.sh", "6", "6")
	if _, row, _ := strings.Cut(out,
		"|---|---|---|---|---|---|\n"); !strings.HasPrefix(row, "| 6 | two busy loops |") ||
		strings.Count(row, "\n") != 1 || status != 0 {
		t.Errorf("goes on with the sixth: exit status %d:\n%s", status, out)
	}
}

// TestRunsLeaveNoLoop: the loops end with the script, however it ends.
func TestRunsLeaveNoLoop(t *testing.T) {
	t.Parallel()
	for _, by := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		b := newBench(t)
		b.repository(t)
		b.program(t, "tests", `echo x >>"$TMPDIR/calls"
[ "$(wc -l <"$TMPDIR/calls")" -eq 2 ] || exit 0
echo "$$" >"$TMPDIR/begun"
read -r x <"$TMPDIR/go-on"
`)
		b.env = append(b.env, "COMMAND=tests")
		for _, name := range []string{"begun", "go-on"} {
			if err := syscall.Mkfifo(filepath.Join(b.dir, "tmp", name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cmd := b.command(t.Context(), "scripts/runs.sh", "2")
		out, loops, err := os.Pipe() // the loops hold it as long as they live
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = loops
		if err = cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err = loops.Close(); err != nil {
			t.Fatal(err)
		}
		b.calls(t, "begun")
		if err = cmd.Process.Signal(by); err != nil {
			t.Fatal(err)
		}
		if err = cmd.Wait(); err == nil {
			t.Errorf("%v: no error", by)
		}
		if _, err = io.ReadAll(out); err != nil {
			t.Errorf("%v: %v", by, err)
		}
		left, err := filepath.Glob(filepath.Join(b.dir, "tmp", "tmp.*"))
		if err != nil || len(left) > 0 && by != syscall.SIGKILL {
			t.Errorf("%v: %v, %v is left", by, err, left)
		}
		if by == syscall.SIGKILL { // the tests are not the loops: their own servers end with them
			b.write(t, "tmp/go-on", "\n")
		}
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
