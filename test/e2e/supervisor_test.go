package e2e

import (
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

// TestSupervised runs the service as systemd does with Type=notify and WatchdogSec=: it says that it is ready when its
// listeners are open, that it is alive while it runs, and that it stops. A reload ends nothing, where there is nothing
// to reload.
func TestSupervised(t *testing.T) {
	rig.Parallel(t)
	at := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	buf := make([]byte, 4096)
	next := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		n, err := socket.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
	s := rig.Start(t, rig.Options{Env: []string{"NOTIFY_SOCKET=" + at, "WATCHDOG_USEC=200000"}})
	if state := next(); state != "READY=1" {
		t.Fatalf("the first that the supervisor hears is %q", state)
	}
	healthy := func(when string) {
		t.Helper()
		if code, _, body := (&stage{Server: s}).Get(t, s.HTTP+"/healthz"); code != http.StatusNoContent {
			t.Errorf("%s /healthz is %d: %s", when, code, body)
		}
	}
	healthy("when it is ready")
	s.Signal(t, syscall.SIGHUP)
	for range 3 {
		if state := next(); state != "WATCHDOG=1" {
			t.Fatalf("the supervisor hears %q while it runs", state)
		}
	}
	healthy("after a reload")
	s.Signal(t, syscall.SIGTERM)
	for state := next(); state != "STOPPING=1"; state = next() {
		if state != "WATCHDOG=1" {
			t.Fatalf("the supervisor hears %q while it stops", state)
		}
	}
}
