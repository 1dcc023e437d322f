package lifecycle

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// supervised runs a Supervisor with an environment, and gives what it tells.
func supervised(t *testing.T, env map[string]string) (told <-chan string, stop func() error) {
	t.Helper()
	at := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(lines)
		buf := make([]byte, 4096)
		for {
			n, err := socket.Read(buf)
			if err != nil {
				return
			}
			lines <- string(buf[:n])
			if string(buf[:n]) == "STOPPING=1" {
				return
			}
		}
	})
	env["NOTIFY_SOCKET"] = at
	s := &Supervisor{Alive: func() {}, Getenv: func(k string) string { return env[k] }}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	return lines, func() error {
		cancel(ErrStop)
		defer func() { _ = socket.Close() }()
		defer reading.Wait()
		return <-done
	}
}

// TestSupervisor: a supervisor hears that the service is ready, that it is alive, and that it stops.
func TestSupervisor(t *testing.T) {
	t.Parallel()
	told, stop := supervised(t, map[string]string{"WATCHDOG_USEC": "20000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())})
	got := []string{<-told, <-told, <-told}
	if err := stop(); !errors.Is(err, ErrStop) {
		t.Errorf("it ended with %v", err)
	}
	last := ""
	for line := range told {
		last = line
	}
	if want := []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"}; !slices.Equal(got, want) || last != "STOPPING=1" {
		t.Errorf("told were %q and at the end %q", got, last)
	}
}

// TestSupervisorWantsNoBeat: without a watchdog, or with one that is another process's, only the beginning and the end
// are told, and a hang-up ends nothing.
func TestSupervisorWantsNoBeat(t *testing.T) {
	t.Parallel()
	for name, env := range map[string]map[string]string{
		"no watchdog": {}, "another process's": {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told, stop := supervised(t, env)
			got := []string{<-told}
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			if err := stop(); !errors.Is(err, ErrStop) {
				t.Errorf("it ended with %v", err)
			}
			for line := range told {
				got = append(got, line)
			}
			if want := []string{"READY=1", "STOPPING=1"}; !slices.Equal(got, want) {
				t.Errorf("told were %q, want %q", got, want)
			}
		})
	}
}

// TestSupervisorHearsNothingOfAHang: a process that hangs is not told to be alive.
func TestSupervisorHearsNothingOfAHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		well := make(chan struct{}, 1) // what a process that hangs holds
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- beat(ctx, time.Second, func() { well <- struct{}{}; <-well },
				func(string) error { told.Add(1); return errors.New("the supervisor is slow") })
		}()
		time.Sleep(3500 * time.Millisecond)
		well <- struct{}{}
		time.Sleep(time.Minute)
		if n := told.Load(); n != 3 {
			t.Errorf("it was told to be alive %d times, want 3", n)
		}
		<-well
		time.Sleep(time.Second)
		if told.Load() < 4 {
			t.Error("it is not told to be alive again")
		}
		cancel(ErrStop)
		if err := <-done; !errors.Is(err, ErrStop) {
			t.Errorf("it ended with %v", err)
		}
	})
}

func TestSupervisorThatIsNotThere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no socket":    {map[string]string{"NOTIFY_SOCKET": "/nowhere"}, "NOTIFY_SOCKET"},
		"no number":    {map[string]string{"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC"},
		"not positive": {map[string]string{"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "0"}, "WATCHDOG_USEC"},
	} {
		s := &Supervisor{Alive: func() {}, Getenv: func(k string) string { return tt.env[k] }}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrStop)
	if err := (&Supervisor{Getenv: func(string) string { return "" }}).Run(ctx); !errors.Is(err, ErrStop) {
		t.Errorf("without a supervisor it ended with %v", err)
	}
}
