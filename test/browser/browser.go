// Package browser drives a headless Chromium, through a small node program with playwright-core (folder driver), and
// reads what its video element and hls.js say. It is for tests; it must know no server's internals, only pages. The one
// goroutine it starts, the reader of the driver's responses, ends with the driver, which ends with the test process.
package browser

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Browser is a running Chromium with an empty profile.
type Browser struct {
	driver *driver
	id     int
}

// headlessShell is Chromium's engine without the browser around it: tests of the dashboard take 37 s of processor time
// with it, and 47 with the whole, which MILLRACE_TEST_BROWSER can name. Debian builds both from the same source.
const headlessShell = "chromium-headless-shell"

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
	b := &Browser{}
	if b.driver, err = sharedDriver(dir); err != nil {
		t.Fatal(err)
	}
	if err = b.do(command{Do: "launch", File: chromium, Flags: flags}, &b.id); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.do(command{Do: "quit"}, nil); err != nil {
			t.Error(err)
		}
	})
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
func (b *Browser) Module(name string) string {
	return filepath.Join(b.driver.cmd.Dir, "node_modules", name)
}

// do sends a command and decodes its response into value, when value is not nil.
func (b *Browser) do(c command, value any) error {
	c.Browser = b.id
	return b.driver.do(c, value)
}
