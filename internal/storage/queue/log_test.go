package queue

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"

	"millrace/internal/fault"
)

func TestLibraryLog(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		log  func(*slog.Logger)
		want string
	}{
		"first attempt": {
			func(l *slog.Logger) { l.Error("leadership.Elector: Error attempting reelection", "attempt", 1) }, "INFO",
		},
		"fourth attempt": {
			func(l *slog.Logger) { l.Error("leadership.Elector: Error attempting reelection", "attempt", 4) }, "WARN",
		},
		"with attributes": {func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").Error("leadership.Elector: Error attempting election", "attempt", 2)
		}, "INFO"},
		"something else": {func(l *slog.Logger) { l.Error("jobExecutor: it failed", "attempt", 1) }, "ERROR"},
	} {
		var b bytes.Buffer
		tt.log(slog.New(libraryLog{slog.NewTextHandler(&b, nil), &outage{}}))
		if !strings.Contains(b.String(), "level="+tt.want+" ") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
	var b bytes.Buffer
	slog.New(libraryLog{
		slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}), &outage{},
	}).Error("leadership.Elector: Error", "attempt", 1)
	if b.Len() > 0 {
		t.Errorf("a logger of warnings has %s", b.String())
	}
}

// TestOutageIsLoggedOnce: while the database is away there is a warning when it begins and one when it ends, whichever
// part of River meets it, in whichever form; what is no outage stays an error.
func TestOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	q := &Queue{logger: slog.New(slog.NewTextHandler(&b, nil))}
	river := slog.New(libraryLog{q.logger.Handler(), &q.outage})
	for range 2 {
		refused := fmt.Errorf("failed to connect: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})
		for range 3 {
			river.Error("producer: Queue status update, error updating in database", "err", "unexpected EOF")
			river.With("a", 1).Error("notifier: Error running listener", "err", refused)
			river.Error("leadership.Elector: Error attempting to elect", "attempt", 9, "err", refused)
			river.Error("JobScheduler: Error scheduling jobs", "error", "FATAL: terminating (SQLSTATE 57P01)")
			q.couldNot(t.Context(), fault.New(fault.Unavailable, "the database can't be reached"))
		}
		river.Error("jobExecutor: panic recovery; possible bug with Worker", "error", "index out of range")
		q.couldNot(t.Context(), errors.New("no such table"))
		q.reached(t.Context())
		q.reached(t.Context())
	}
	want := []string{"WARN " + awayText, "ERROR jobExecutor", "WARN queue could not", "WARN " + backText}
	var got []string
	for line := range strings.Lines(b.String()) {
		_, line, _ = strings.Cut(line, "level=")
		got = append(got, strings.Replace(line, `msg="`, "", 1))
	}
	ok := len(got) == 2*len(want)
	for i := range got {
		ok = ok && strings.HasPrefix(strings.Replace(got[i], "msg=", "", 1), want[i%len(want)])
	}
	if !ok {
		t.Errorf("twice %q, got\n%s", want, b.String())
	}
}
