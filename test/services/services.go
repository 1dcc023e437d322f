// Package services starts the servers that integration tests need: a private PostgreSQL and a private S3 server, each
// in its own temporary folder, on a loopback port and with a password that this user's runs have kept. It must know
// nothing of the product. It writes no goroutine of its own but one per child to wait for its end; Stop ends both.
package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Service is a running server. Stop ends it and removes its files.
type Service struct {
	// URL is how tests reach it, with a password that is worth nothing while no tests run.
	URL string

	dir  string
	addr address
	cmd  *exec.Cmd
	end  syscall.Signal // asks for a quick, clean end
	out  *tail
	ran  chan struct{} // closed when the process has ended
}

// stopWait is how long a server may take to end by itself.
const stopWait = 10 * time.Second

// readyWait is how long a server may take to respond after its start.
const readyWait = 60 * time.Second

var errEnded = errors.New("ended before it was ready")

// Stop ends the server and removes its folder. It may be called twice and on nil.
func (s *Service) Stop() {
	if s == nil {
		return
	}
	_ = s.cmd.Process.Signal(s.end)
	select {
	case <-s.ran:
	case <-time.After(stopWait):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		<-s.ran
	}
	s.forget()
}

// Kill ends the server and all its processes as a power cut would. Its files stay until Stop.
func (s *Service) Kill() {
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.ran
}

// forget lets another run have the address, and removes the files.
func (s *Service) forget() {
	s.addr.release()
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// start runs cmd and waits until ready returns nil.
func (s *Service) start(ctx context.Context, ready func(context.Context) error) error {
	s.out = &tail{}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if s.cmd.SysProcAttr == nil {
		s.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	// A group of its own: a terminal's Ctrl-C goes to us first, and we end it after the tests that use it.
	s.cmd.SysProcAttr.Setpgid = true
	s.cmd.SysProcAttr.Pdeathsig = s.end
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.cmd.Path, err)
	}
	s.ran = make(chan struct{})
	go func() {
		_ = s.cmd.Wait()
		close(s.ran)
	}()
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-s.ran:
			return fmt.Errorf("%s: %w: %s", s.cmd.Path, errEnded, s.out)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %s", s.cmd.Path, err, s.out)
		case <-tick.C:
		}
	}
}

// retry starts a server again, on another port, when the one that was free has been taken meanwhile.
func retry(ctx context.Context, start func(context.Context) (*Service, error)) (*Service, error) {
	var last error
	for range 3 {
		s, err := start(ctx)
		if err == nil {
			return s, nil
		}
		last = err
		if s != nil && s.cmd.Process != nil {
			s.Stop()
		}
		if !errors.Is(err, errEnded) {
			break
		}
	}
	return nil, last
}

// unprivileged gives the account that servers which refuse root run under; nil when we are not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // no other account is needed
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("read account %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}, nil
	}
	return nil, errors.New("find an unprivileged account: neither postgres nor nobody exists")
}

// tail keeps the last few kilobytes written to it, for the message when a server does not start.
type tail struct {
	mu sync.Mutex
	b  []byte
}

var _ io.Writer = (*tail)(nil)

func (t *tail) Write(p []byte) (int, error) {
	const keep = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > keep {
		t.b = append(t.b[:0], t.b[len(t.b)-keep:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
