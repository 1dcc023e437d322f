package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Pgbouncer starts a pooler in front of the PostgreSQL server that a URL leads to: its mode is transaction or session.
// URL is that of the same database through it.
func Pgbouncer(ctx context.Context, server, mode string) (*Service, error) {
	return retry(ctx, func(ctx context.Context) (*Service, error) { return pgbouncer(ctx, server, mode) })
}

// PgbouncerPath finds the program, which Debian keeps off the PATH of users.
func PgbouncerPath() (string, error) {
	p, err := exec.LookPath("pgbouncer")
	if err != nil {
		p, err = exec.LookPath("/usr/sbin/pgbouncer")
	}
	if err != nil {
		return "", fmt.Errorf("find pgbouncer: %w", err)
	}
	return p, nil
}

func pgbouncer(ctx context.Context, server, mode string) (s *Service, err error) {
	program, err := PgbouncerPath()
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(server)
	if err != nil {
		return nil, errors.New("read the server's URL: it is none")
	}
	password, _ := u.User.Password()
	host, port := u.Hostname(), u.Port()
	addr, err := newAddress(ctx)
	if err != nil {
		return nil, err
	}
	s, attr, err := newFolder(addr)
	if err == nil {
		u.Host = addr.host()
		s.URL, s.end = u.String(), syscall.SIGTERM
		err = s.configure(attr.Credential, map[string]string{
			"users": fmt.Sprintf("%q %q\n", u.User.Username(), password),
			"pgbouncer.ini": fmt.Sprintf("[databases]\n* = host=%s port=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"+
				"listen_port = %d\nunix_socket_dir =\nauth_type = scram-sha-256\nauth_file = %s/users\n"+
				"pool_mode = %s\nmax_client_conn = 500\n", host, port, addr.Port, s.dir, mode),
		})
	}
	if err != nil {
		s.forget()
		return nil, err
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, filepath.Join(s.dir, "pgbouncer.ini"))
	s.cmd.Dir, s.cmd.SysProcAttr = s.dir, attr
	return s, s.start(ctx, func(ctx context.Context) error {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr.host())
		if err == nil {
			err = c.Close()
		}
		return err
	})
}

// configure writes files into the server's folder, for the account that it runs under.
func (s *Service) configure(account *syscall.Credential, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(s.dir, name)
		err := os.WriteFile(path, []byte(text), 0o600)
		if err == nil && account != nil {
			err = os.Chown(path, int(account.Uid), int(account.Gid))
		}
		if err != nil {
			return fmt.Errorf("write settings: %w", err)
		}
	}
	return nil
}
