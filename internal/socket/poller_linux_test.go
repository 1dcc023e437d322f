package socket_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"millrace/internal/socket"
)

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// TestShortConnectionsLeaveNothing comes and goes some thousand times, as scanners do.
func TestShortConnectionsLeaveNothing(t *testing.T) { //nolint:paralleltest // counts the descriptors of the process
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	before := descriptors(t)
	p, err := socket.NewPoller(time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- p.Run() }()
	for i := range 3000 {
		theirs, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		nc, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		ours, err := p.Adopt(nc)
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 { // they hang up
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		}
		_, _ = ours.Close(), theirs.Close()
	}
	if err := errors.Join(p.Close(), <-done); err != nil {
		t.Fatal(err)
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}

// TestSilenceCostsNothing: while nobody sends the poller makes no rounds, of which there would be hundreds here.
func TestSilenceCostsNothing(t *testing.T) { //nolint:paralleltest // counts the switches of the process
	ours, theirs := polled(t, startPoller(t, time.Millisecond))
	switches := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return u.Nvcsw
	}
	b := make([]byte, 1)
	if _, err := theirs.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(b); err != nil {
		t.Fatal(err)
	}
	silence := func() { // half a second
		if err := ours.SetReadDeadline(time.Now().Add(500 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := ours.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal(err)
		}
	}
	before := switches()
	silence()
	if n := switches() - before; n > 300 {
		t.Errorf("%d switches while nothing was sent", n)
	}
	if err := ours.SetReadDeadline(time.Time{}); err != nil { // and it is awake at once
		t.Fatal(err)
	}
	if _, err := theirs.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(b); err != nil {
		t.Fatal(err)
	}
}
