package app

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/control/access"
	"millrace/internal/storage/db/dbtest"
)

// TestNoSecretInTheJournal: where systemd's journal keeps what is shown, no token and no link is made, and the log says
// how to make them; in a file, or at a socket of another kind of parent, both are shown.
func TestNoSecretInTheJournal(t *testing.T) {
	journal, socket := socketTo(t), socketTo(t)
	info, err := journal.Stat()
	if err != nil {
		t.Fatal(err)
	}
	stat, is := info.Sys().(*syscall.Stat_t)
	if !is {
		t.Fatal("a socket has no inode")
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", stat.Dev, stat.Ino))
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err = file.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, tt := range []struct {
		out   *os.File
		shown bool
	}{{journal, false}, {socket, true}, {file, true}} {
		d := dbtest.Open(t, dbtest.SQLite(t))
		var log bytes.Buffer
		n := &node{out: tt.out, log: slog.New(slog.NewTextHandler(&log, nil)), base: "http://h"}
		n.cfg.Dashboard = true
		n.access = access.New(access.Options{Store: d.Access()})
		n.sessions = access.NewSessions(access.SessionOptions{Store: d.Sessions(), Access: n.access})
		if err = firstToken(t.Context(), n.access, n.cfg, n.log, n.out); err != nil {
			t.Fatal(err)
		}
		if err = n.firstLink(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, failed := n.access.Tokens(t.Context())
		if failed != nil || (len(all) == 1) != tt.shown {
			t.Errorf("to %s: tokens %+v, %v", tt.out.Name(), all, failed)
		}
		for _, command := range []string{"millrace token create", "millrace dashboard link"} {
			if strings.Contains(log.String(), command) == tt.shown {
				t.Errorf("to %s: the log is\n%s", tt.out.Name(), &log)
			}
		}
	}
	text, err := os.ReadFile(file.Name())
	if err != nil || !strings.Contains(string(text), "MILLRACE_TOKEN_SECRET=") ||
		!strings.Contains(string(text), "http://h/dashboard") {
		t.Errorf("shown is %q, %v", text, err)
	}
}

// socketTo is a socket that somebody listens at.
func socketTo(t *testing.T) *os.File {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() {
		if err := errors.Join(ours.Close(), theirs.Close()); err != nil {
			t.Error(err)
		}
	})
	return ours
}
