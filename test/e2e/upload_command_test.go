package e2e

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"millrace/test/rig"
)

// meter is a proxy in front of a server that counts what goes there, and calls once when so many bytes have.
type meter struct {
	to     atomic.Pointer[string]
	passed atomic.Int64
	at     int64
	call   func()
	cut    bool // break the connection off there too
}

func (m *meter) listen(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // the programs end the connections
	go func() {
		for {
			from, err := ln.Accept()
			if err != nil {
				return
			}
			go m.carry(from)
		}
	}()
	return ln.Addr().String()
}

func (m *meter) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	to, err := net.Dial("tcp", *m.to.Load())
	if err != nil {
		return
	}
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.Copy(from, to); _ = from.Close() }()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if before := m.passed.Add(int64(n)) - int64(n); before < m.at && before+int64(n) >= m.at {
			if m.call(); m.cut {
				return
			}
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// TestUploadCommandGoesOn interrupts millrace upload in the middle of the second of two files. The same command goes
// on there: nothing is sent twice but what was on its way.
func TestUploadCommandGoesOn(t *testing.T) {
	rig.Parallel(t)
	rig.On(t, rig.Embedded, func(t *testing.T, p rig.Pair) {
		clip := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 1.5, Seconds: filmSeconds})
		data := rig.Padded(t, clip, 20<<20)
		dir := t.TempDir()
		files := []string{filepath.Join(dir, "first.mp4"), filepath.Join(dir, "second.mp4")}
		for _, path := range files {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		const chunk = 256 << 10
		m := &meter{at: int64(len(data)) * 3 / 2}
		base := "http://" + m.listen(t)
		s := rig.Start(t, rig.Options{Pair: p, Args: []string{"--public-url", base}})
		addr := strings.TrimPrefix(s.HTTP, "http://")
		m.to.Store(&addr)

		command := func() (*exec.Cmd, *bytes.Buffer) {
			cmd := exec.CommandContext(t.Context(), rig.Binary(t),
				append([]string{"upload", "--public-url", base}, files...)...)
			token, secret := s.Token()
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME=", "MILLRACE_TOKEN_ID="+token,
				"MILLRACE_TOKEN_SECRET="+secret)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			return cmd, &out
		}
		first, out := command()
		started := make(chan struct{})
		m.call = func() {
			<-started
			_ = first.Process.Signal(syscall.SIGINT)
		}
		if err := first.Start(); err != nil {
			t.Fatal(err)
		}
		close(started)
		err := first.Wait()
		if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != 130 ||
			!strings.Contains(out.String(), "second.mp4; the same command goes on there, until ") {
			t.Fatalf("%v\n%s", err, out)
		}
		again, out := command()
		if err = again.Run(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if !strings.Contains(out.String(), "first.mp4: it was sent before") ||
			strings.Count(out.String(), "ASSET_ID=") != 2 {
			t.Errorf("%s", out)
		}
		sent, most := m.passed.Load(), int64(2*len(data)+chunk)
		if sent < int64(2*len(data)) || sent > most {
			t.Errorf("%d bytes went out for two files of %d\n%s", sent, len(data), out)
		}
		t.Logf("%d bytes beyond the files, heads of requests included", sent-int64(2*len(data)))
		if left, err := os.ReadDir(filepath.Join(dir, ".local/state/millrace/uploads")); err != nil || len(left) > 0 {
			t.Errorf("notes are left: %v, %v", left, err)
		}
		code, o := s.Do(t, "GET", "/video/v1/assets", nil)
		if code != http.StatusOK || len(o.List("data")) != 2 {
			t.Fatalf("assets: %d %v", code, o)
		}
		for _, a := range o.List("data") {
			if title := a.Text("meta.title"); title != "first.mp4" && title != "second.mp4" {
				t.Errorf("title %q", title)
			}
			s.AwaitAsset(t, a.Text("id"), "ready", 2*time.Minute, rig.Ready)
		}
	})
}
