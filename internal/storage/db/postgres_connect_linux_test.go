package db

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSilentServerIsNoticed: a connection ends when the server's machine says nothing for long, or takes nothing.
func TestSilentServerIsNoticed(t *testing.T) {
	t.Parallel()
	cfg, err := parsePostgres("postgres://u:p@127.0.0.1/db")
	if err != nil {
		t.Fatal(err)
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	c, err := cfg.ConnConfig.DialFunc(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var idle, every, count, taken int
	err = raw.Control(func(fd uintptr) {
		for option, value := range map[int]*int{
			unix.TCP_KEEPIDLE: &idle, unix.TCP_KEEPINTVL: &every, unix.TCP_KEEPCNT: &count,
			unix.TCP_USER_TIMEOUT: &taken,
		} {
			if *value, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, option); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	silent := time.Duration(idle+every*count) * time.Second
	if within := time.Duration(taken) * time.Millisecond; silent > 15*time.Second || within > 15*time.Second ||
		within == 0 {
		t.Errorf("a connection ends after %v of silence, and after %v when nothing is taken", silent, within)
	}
}

// TestSeveralServers: one of several that does not respond is waited for for less long than a single one.
func TestSeveralServers(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]time.Duration{
		"postgres://u:p@one/db":                                   connectTime,
		"postgres://u:p@one/db?connect_timeout=7":                 7 * time.Second,
		"postgres://u:p@one,two/db":                               connectEach,
		"postgres://u:p@one:5432,one:5433/db":                     connectEach,
		"postgres://u:p@one,two/db?connect_timeout=7":             7 * time.Second,
		"postgres:///db?host=one,two&port=5432,5433&user=u":       connectEach,
		"postgres://u:p@one,two/db?target_session_attrs=any":      connectEach,
		"postgres://u:p@[::1]:5432,[::2]:5432/db?sslmode=disable": connectEach,
	} {
		cfg, err := parsePostgres(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if got := cfg.ConnConfig.ConnectTimeout; got != want || cfg.ConnConfig.ValidateConnect == nil {
			t.Errorf("%s: each server has %v, want %v, and is asked whether it takes writes", url, got, want)
		}
	}
}
