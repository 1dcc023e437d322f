package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Postgres starts a PostgreSQL cluster of its own. URL names its administration database, in which tests may
// CREATE DATABASE. Nothing is kept: fsync is off.
func Postgres(ctx context.Context) (*Service, error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	return retry(ctx, func(ctx context.Context) (*Service, error) { return postgres(ctx, bin) })
}

func postgres(ctx context.Context, bin string) (s *Service, err error) {
	addr, err := keptAddress(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	return newCluster(ctx, bin, addr, "synchronous_commit=off")
}

// newCluster starts a server on a new cluster, with more settings than all have. It has the address from here on.
func newCluster(ctx context.Context, bin string, addr address, settings ...string) (s *Service, err error) {
	s, attr, err := newFolder(addr)
	defer func() {
		if err != nil && s != nil && s.cmd == nil {
			s.forget()
			s = nil
		}
	}()
	if err != nil {
		return s, err
	}
	passFile := filepath.Join(s.dir, "pass")
	if err = os.WriteFile(passFile, []byte(addr.Password), 0o600); err != nil {
		return s, fmt.Errorf("write password file: %w", err)
	}
	if account := attr.Credential; account != nil {
		if err = os.Chown(passFile, int(account.Uid), int(account.Gid)); err != nil {
			return s, fmt.Errorf("hand file to PostgreSQL: %w", err)
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--no-sync", "--auth=scram-sha-256",
		"--username=millrace",
		"--pwfile="+passFile, "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata="+s.data())
	initdb.Dir, initdb.SysProcAttr = s.dir, attr
	if out, err := initdb.CombinedOutput(); err != nil {
		return s, fmt.Errorf("create database cluster: %w: %s", err, out)
	}
	return s, s.serve(ctx, bin, attr, settings)
}

// newFolder makes the folder of a PostgreSQL server, and what its processes are started with.
func newFolder(addr address) (*Service, *syscall.SysProcAttr, error) {
	s := &Service{addr: addr, end: syscall.SIGINT}
	s.URL = (&url.URL{
		Scheme: "postgres", User: url.UserPassword("millrace", addr.Password), Host: addr.host(), Path: "/postgres",
		RawQuery: "sslmode=disable",
	}).String()
	account, err := unprivileged()
	if err != nil {
		return s, nil, err
	}
	if s.dir, err = os.MkdirTemp("", "millrace-pg-"); err != nil {
		return s, nil, fmt.Errorf("make folder for PostgreSQL: %w", err)
	}
	if account != nil {
		if err = os.Chown(s.dir, int(account.Uid), int(account.Gid)); err != nil {
			return s, nil, fmt.Errorf("hand folder to PostgreSQL: %w", err)
		}
	}
	return s, &syscall.SysProcAttr{Credential: account}, nil
}

func (s *Service) data() string { return filepath.Join(s.dir, "data") }

// serve starts the server on the cluster in its folder.
func (s *Service) serve(ctx context.Context, bin string, attr *syscall.SysProcAttr, settings []string) error {
	port := strconv.Itoa(s.addr.Port)
	args := []string{"-D", s.data(), "-p", port, "-k", ""}
	for _, c := range append([]string{
		"listen_addresses=127.0.0.1", "fsync=off", "full_page_writes=off", "max_connections=400",
		"shared_buffers=64MB", "timezone=UTC",
	}, settings...) {
		args = append(args, "-c", c)
	}
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), args...)
	s.cmd.Dir, s.cmd.SysProcAttr = s.dir, attr
	return s.start(ctx, func(ctx context.Context) error {
		return exec.CommandContext(ctx, filepath.Join(bin, "pg_isready"), "-q", "-h", "127.0.0.1", "-p", port).Run()
	})
}

// postgresBin finds the folder of initdb and postgres, the newest where several are installed: Debian keeps them off
// the PATH.
func postgresBin() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if len(found) > 0 {
		version := func(p string) int {
			n, _ := strconv.Atoi(strings.Split(p, "/")[4])
			return n
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
	}
	p, err := exec.LookPath("initdb")
	if err != nil {
		return "", errors.New("find PostgreSQL: no initdb in /usr/lib/postgresql nor on the PATH")
	}
	return filepath.Dir(p), nil
}
