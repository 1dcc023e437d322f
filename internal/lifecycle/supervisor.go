package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Supervisor is a Service that tells systemd how this process does, by the protocol of sd_notify(3): that it is ready
// when it runs, that it is alive as often as WatchdogSec= wants, and that it stops. Add it last, so that it is stopped
// first. Without NOTIFY_SOCKET in the environment it does nothing. While there is a supervisor, SIGHUP ends nothing: it
// is what `systemctl reload` sends, also where there is nothing to reload.
type Supervisor struct {
	// Alive returns while the process is well, and hangs if it is not. It must wait for no other program: a slow
	// database or disk is no reason to be killed.
	Alive func()
	// Getenv reads the environment; os.Getenv if nil.
	Getenv func(string) string
}

// Name implements Service.
func (*Supervisor) Name() string { return "supervisor" }

// Run implements Service.
func (s *Supervisor) Run(ctx context.Context) error {
	getenv := s.Getenv
	if getenv == nil {
		getenv = os.Getenv //nolint:forbidigo // systemd's own, not this program's
	}
	address := getenv("NOTIFY_SOCKET")
	if address == "" {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	every, err := watchdog(getenv)
	if err != nil {
		return err
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("reach the supervisor at NOTIFY_SOCKET: %w", err)
	}
	defer func() { _ = conn.Close() }() // nothing is buffered
	reloads := make(chan os.Signal, 1)
	signal.Notify(reloads, syscall.SIGHUP)
	defer signal.Stop(reloads)
	tell := func(state string) error {
		_, failed := conn.Write([]byte(state))
		return failed
	}
	if err = tell("READY=1"); err != nil {
		return fmt.Errorf("tell the supervisor that the service is ready: %w", err)
	}
	err = beat(ctx, every, s.Alive, tell)
	return errors.Join(err, tell("STOPPING=1"))
}

// watchdog is how often the supervisor is told that the process is alive: twice within the time that it wants, or never
// (0) if it wants nothing, or wants it of another process.
func watchdog(getenv func(string) string) (time.Duration, error) {
	text, of := getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")
	if text == "" || of != "" && of != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	us, err := strconv.ParseInt(text, 10, 64)
	if err != nil || us <= 0 || us > int64(24*time.Hour/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q and must be microseconds, up to a day", text)
	}
	return time.Duration(us) * time.Microsecond / 2, nil
}

// beat tells the supervisor that the process is alive, until ctx ends. What could not be told is told with the next
// beat: the supervisor may be slow.
func beat(ctx context.Context, every time.Duration, alive func(), tell func(string) error) error {
	if every == 0 {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.C:
			alive()
			_ = tell("WATCHDOG=1")
		}
	}
}
