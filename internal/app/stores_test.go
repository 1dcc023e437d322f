package app

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"millrace/internal/app/cli"
	"millrace/internal/fault"
	"millrace/internal/storage/db"
	"millrace/internal/storage/db/dbtest"
)

// TestAwaited waits for a database that is away, says so each five seconds, and for nothing else.
func TestAwaited(t *testing.T) {
	t.Parallel()
	gone := fault.Wrap(fault.Unavailable, errors.New("connection refused"), "the database can't be reached")
	refused := errors.New("password authentication failed")
	for name, tt := range map[string]struct {
		away  time.Duration
		then  error // what opening says from then on
		stop  time.Duration
		want  error
		takes time.Duration
		lines int
		calls int
	}{
		"there":   {0, nil, time.Hour, nil, 0, 0, 1},
		"comes":   {12 * time.Second, nil, time.Hour, nil, 12 * time.Second, 3, 13},
		"refuses": {2 * time.Second, refused, time.Hour, refused, 2 * time.Second, 1, 3},
		"stopped": {time.Hour, nil, 10500 * time.Millisecond, errStopped, 10500 * time.Millisecond, 3, 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.stop)
				defer cancel()
				began, asked := time.Now(), 0
				logged := &logs{addrs: map[string]string{}}
				_, err := awaited(ctx, slog.New(logged), func(context.Context) (int, error) {
					asked++
					if time.Since(began) < tt.away {
						return 0, gone
					}
					return 1, tt.then
				})
				if !errors.Is(err, tt.want) || time.Since(began) != tt.takes || len(logged.warns) != tt.lines ||
					asked != tt.calls {
					t.Errorf("%v after %v, %d lines, asked %d times", err, time.Since(began), len(logged.warns), asked)
				}
			})
		})
	}
}

// TestServeWaitsForPostgres that comes up after it, as at the boot of a machine.
func TestServeWaitsForPostgres(t *testing.T) {
	t.Parallel()
	url := dbtest.Postgres(t)
	var lc net.ListenConfig
	free, err := lc.Listen(t.Context(), "tcp", "127.0.78.1:0") // where nobody else listens: it is taken again later
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_ = free.Close()
	cfg := configuration(t, t.TempDir(), "--database-url="+dbtest.At(t, url, addr))
	ctx, stop := context.WithCancel(t.Context())
	s := &service{
		t: t, stop: stop, done: make(chan error, 1), out: &output{},
		logs: &logs{addrs: map[string]string{}, ready: make(chan struct{})},
	}
	s.onWarn = sync.OnceFunc(func() {
		ln, err := lc.Listen(t.Context(), "tcp", addr)
		if err != nil {
			t.Error(err)
			return
		}
		dbtest.Proxy(t, ln, url, false)
	})
	go func() { s.done <- serve(ctx, cfg, slog.New(s.logs), s.out) }()
	defer s.end()
	select {
	case <-s.ready:
	case err := <-s.done:
		s.done = nil
		t.Fatalf("it ended with %v", err)
	case <-time.After(patience):
		t.Fatal("it is not ready")
	}
	if !s.warned("waiting for the database") {
		t.Error("it says nothing")
	}
}

// TestSecondServiceOnTheSameDatabase is refused, with another data folder too.
func TestSecondServiceOnTheSameDatabase(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "m.db")
	first := configuration(t, t.TempDir(), "--database-url=sqlite:"+file)
	start(t, first)
	err := serve(t.Context(),
		configuration(t, t.TempDir(), "--database-url=sqlite:"+file, "--master-key-file="+masterKeyPath(first)),
		slog.New(slog.DiscardHandler), io.Discard)
	if !errors.Is(err, db.ErrOccupied) || !strings.Contains(err.Error(), file) ||
		!strings.Contains(err.Error(), "--database-url") {
		t.Errorf("it says %v", err)
	}
}

// TestMistypedDataDir: a command that needs a database makes neither one nor a folder where the name is mistyped.
func TestMistypedDataDir(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		code int
		made bool
	}{
		"token":       {[]string{"token", "create"}, cli.ExitFailed, false},
		"environment": {[]string{"environment", "video-quality", "plus"}, cli.ExitFailed, false},
		"audit":       {[]string{"audit"}, cli.ExitFailed, false},
		"link":        {[]string{"dashboard", "link"}, cli.ExitFailed, false},
		"webhook":     {[]string{"webhook", "list"}, cli.ExitFailed, false},
		"drm":         {[]string{"drm-configuration", "list"}, cli.ExitFailed, false},
		"key":         {[]string{"signing-key", "list"}, cli.ExitFailed, false},
		"fingerprint": {[]string{"master-key", "fingerprint"}, cli.ExitFailed, false},
		"rotation":    {[]string{"master-key", "rotate"}, cli.ExitFailed, false},
		"create":      {[]string{"token", "create", "--create"}, cli.ExitOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "dta")
			var out, errs bytes.Buffer
			code := Main(append(tt.args, "--data-dir", dir), nil, &out, &errs)
			_, err := os.Stat(dir)
			if code != tt.code || errors.Is(err, fs.ErrNotExist) == tt.made {
				t.Errorf("exit code %d, %v: %s", code, err, errs.String())
			}
			if said := strings.Contains(errs.String(), "there is no database at "+dir); said == tt.made {
				t.Errorf("got %q", errs.String())
			}
		})
	}
}
