// Package browser drives a headless Chromium, through a small node program with playwright-core (folder driver), and reads
// what its video element and hls.js say. It is for tests; it must know no server's internals, only pages. The one goroutine it
// starts, the reader of the driver's responses, ends with the driver.
package browser

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Browser is a running Chromium with an empty profile.
type Browser struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	errs *strings.Builder

	mu      sync.Mutex
	next    int
	waiting map[int]chan response
	ended   error // set when the driver is gone
}

type command struct {
	ID       int    `json:"id"`
	Do       string `json:"do"`
	Page     int    `json:"page,omitempty"`
	Frame    int    `json:"frame,omitempty"`
	URL      string `json:"url,omitempty"`
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`
	Selector string `json:"selector,omitempty"`
	Label    string `json:"label,omitempty"`
	Code     string `json:"code,omitempty"`
	File     string `json:"file,omitempty"`
}

type response struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// headlessShell is Chromium's engine without the browser around it: tests of the dashboard take 37 s of processor time
// with it, and 47 with the whole, which MILLRACE_TEST_BROWSER can name. Debian builds both from the same source.
const headlessShell = "chromium-headless-shell"

// responseWait bounds one command: a page that hangs fails its test, not the run.
const responseWait = 2 * time.Minute

// Start opens a browser that closes with the test. Without browser, node or the driver's packages the test is skipped,
// or fails when MILLRACE_TEST_REQUIRE is set. flags are more of Chromium's.
func Start(t testing.TB, flags ...string) *Browser {
	t.Helper()
	chromium, dir, err := find()
	if err != nil {
		if os.Getenv("MILLRACE_TEST_REQUIRE") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	b := &Browser{errs: &strings.Builder{}, waiting: map[int]chan response{}}
	b.cmd = exec.Command("node", append([]string{"driver.mjs", chromium}, flags...)...) //nolint:noctx // it ends when its stdin is closed, tidily
	b.cmd.Dir = dir
	b.cmd.Stderr = b.errs
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.WaitDelay = 5 * time.Second
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatalf("start browser: %v", err)
	}
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	hello := make(chan response, 1)
	b.waiting[0] = hello
	if err = b.cmd.Start(); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(out)
	}()
	t.Cleanup(func() { b.close(read) })
	if _, err = b.wait(0, hello); err != nil {
		t.Fatalf("start browser: %v", err)
	}
	return b
}

// find gives the browser's path and the driver's folder.
func find() (chromium, dir string, err error) {
	if chromium, err = exec.LookPath(cmp.Or(os.Getenv("MILLRACE_TEST_BROWSER"), headlessShell)); err != nil {
		return "", "", fmt.Errorf("find browser (MILLRACE_TEST_BROWSER names another): %w", err)
	}
	if _, err = exec.LookPath("node"); err != nil {
		return "", "", errors.New("find browser: node is not installed")
	}
	root, err := os.Getwd()
	if err != nil {
		return "", "", fmt.Errorf("find browser driver: %w", err)
	}
	for ; root != "/"; root = filepath.Dir(root) {
		dir = filepath.Join(root, "test/browser/driver")
		if _, err = os.Stat(filepath.Join(dir, "driver.mjs")); err == nil {
			break
		}
	}
	if _, err = os.Stat(filepath.Join(dir, "node_modules/playwright-core")); err != nil {
		return "", "", errors.New("find browser driver: run scripts/install-node-packages.sh")
	}
	return chromium, dir, nil
}

// Module is the path of a file of an npm package that the driver has.
func (b *Browser) Module(name string) string { return filepath.Join(b.cmd.Dir, "node_modules", name) }

// read hands each response to who waits for it, and an error to all when the driver ends.
func (b *Browser) read(out io.Reader) {
	lines := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			b.mu.Lock()
			b.ended = fmt.Errorf("read browser driver: %w", err)
			for id, c := range b.waiting {
				c <- response{ID: id, Error: b.ended.Error()}
				delete(b.waiting, id)
			}
			b.mu.Unlock()
			return
		}
		var a response
		if json.Unmarshal(line, &a) != nil {
			continue // something that a library printed
		}
		b.mu.Lock()
		if c, ok := b.waiting[a.ID]; ok {
			c <- a
			delete(b.waiting, a.ID)
		}
		b.mu.Unlock()
	}
}

func (b *Browser) close(read <-chan struct{}) {
	_ = b.in.Close()
	select {
	case <-read:
	case <-time.After(10 * time.Second):
	}
	// Whatever is left of the browser goes with the group.
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.cmd.Wait()
}

func (b *Browser) wait(id int, c <-chan response) (json.RawMessage, error) {
	select {
	case a := <-c:
		if a.Error != "" {
			return nil, errors.New(a.Error)
		}
		return a.Value, nil
	case <-time.After(responseWait):
		b.mu.Lock()
		delete(b.waiting, id)
		b.mu.Unlock()
		return nil, errors.New("wait for browser: no response")
	}
}

// do sends a command and decodes its response into value, when value is not nil.
func (b *Browser) do(c command, value any) error {
	done := make(chan response, 1)
	b.mu.Lock()
	if b.ended != nil {
		b.mu.Unlock()
		return b.ended
	}
	b.next++
	c.ID = b.next
	b.waiting[c.ID] = done
	line, err := json.Marshal(c)
	if err == nil {
		_, err = b.in.Write(append(line, '\n'))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("send %s to browser: %w", c.Do, err)
	}
	raw, err := b.wait(c.ID, done)
	if err != nil {
		return fmt.Errorf("%s in browser: %w", c.Do, err)
	}
	if value == nil {
		return nil
	}
	if err := json.Unmarshal(raw, value); err != nil {
		return fmt.Errorf("read response of %s: %w", c.Do, err)
	}
	return nil
}
