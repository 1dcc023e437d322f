package release

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/programtest"
)

// patience is how long what happens at once on a quiet machine may take.
const patience = 2 * time.Minute

// machine is a copy of this machine with a systemd of its own.
type machine struct {
	pid int // of its first process, here
}

// boot starts a machine which sees a folder as /mnt. It ends with the test.
func boot(t *testing.T, folder string) *machine {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a machine namespaces of its own")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		programtest.Path(t, "systemd")
	}
	script, err := filepath.Abs("testdata/machine.sh")
	if err != nil {
		t.Fatal(err)
	}
	name, at := "millrace-test-"+rand.Text()[:8], t.TempDir()
	var said bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), script, name, at, folder)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.WaitDelay = patience
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
		Setsid:     true,
	}
	if err = cmd.Start(); err != nil {
		t.Fatalf("boot: %v", err)
	}
	m := &machine{pid: cmd.Process.Pid}
	t.Cleanup(func() {
		if t.Failed() {
			out, _ := m.try("journalctl", "--no-pager", "--lines=100")
			t.Logf("the machine said:\n%s\nits journal:\n%s", said.String(), out)
		}
		_ = cmd.Process.Kill() // ends all of its processes
		_ = cmd.Wait()
		clean := exec.CommandContext(context.WithoutCancel(t.Context()), script, "clean", name, at)
		clean.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		if out, err := clean.CombinedOutput(); err != nil {
			t.Errorf("clean up after the machine: %v: %s", err, out)
		}
	})
	m.eventually(t, "has booted", func() error {
		out, err := m.try("systemctl", "is-active", "basic.target")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return m
}

// eventually waits until there is no error.
func (m *machine) eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("it never %s: %v", what, err)
		}
	}
}

// try runs a command on the machine.
func (m *machine) try(args ...string) (output string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	enter := []string{
		"--target", strconv.Itoa(m.pid), "--all", "--root", "--", "/usr/bin/env", "--chdir=/", "-i", "LC_ALL=C.UTF-8",
		"DEBIAN_FRONTEND=noninteractive", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
	}
	out, err := exec.CommandContext(ctx, "nsenter", append(enter, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run is try for what must not fail.
func (m *machine) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := m.try(args...)
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// property is one of the unit's, as systemd has it.
func (m *machine) property(t *testing.T, name string) string {
	t.Helper()
	return m.run(t, "systemctl", "show", "--property="+name, "--value", "millrace.service")
}

// exists reports whether there is a file.
func (m *machine) exists(path string) bool {
	_, err := m.try("test", "-e", path)
	return err == nil
}

// get asks the service for a page, from the machine itself.
func (m *machine) get(t *testing.T, path string) (head http.Header, status int, body string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: m.dial, DisableKeepAlives: true}, Timeout: patience}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8080"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if _, err = b.ReadFrom(resp.Body); err != nil {
		t.Fatalf("GET %s: %v", path, err)
	}
	return resp.Header, resp.StatusCode, b.String()
}

// dial connects in the machine's network.
func (m *machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return inside(m, func() (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, network, address) })
}

// inside opens a socket in the machine's network: it belongs to the network of the thread that opens it.
func inside[T any](m *machine, open func() (T, error)) (socket T, err error) {
	theirs, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", m.pid))
	if err != nil {
		return socket, err
	}
	defer theirs.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err = unix.Setns(int(theirs.Fd()), unix.CLONE_NEWNET); err == nil {
			socket, err = open()
		}
	}()
	<-done
	return socket, err
}
