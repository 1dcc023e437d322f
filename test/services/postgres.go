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
	dir, err := os.MkdirTemp("", "millrace-pg-")
	if err != nil {
		return nil, fmt.Errorf("make folder for PostgreSQL: %w", err)
	}
	var addr address
	defer func() {
		if s == nil {
			addr.release()
			_ = os.RemoveAll(dir)
		}
	}()
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if addr, err = keptAddress(ctx, "postgres"); err != nil {
		return nil, err
	}
	passFile := filepath.Join(dir, "pass")
	if err = os.WriteFile(passFile, []byte(addr.Password), 0o600); err != nil {
		return nil, fmt.Errorf("write password file: %w", err)
	}
	attr := &syscall.SysProcAttr{}
	if account != nil {
		attr.Credential = account
		for _, p := range []string{dir, passFile} {
			if err = os.Chown(p, int(account.Uid), int(account.Gid)); err != nil {
				return nil, fmt.Errorf("hand folder to PostgreSQL: %w", err)
			}
		}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "--no-sync", "--auth=scram-sha-256",
		"--username=millrace",
		"--pwfile="+passFile, "--encoding=UTF8", "--locale=C.UTF-8", "--pgdata="+data)
	initdb.Dir, initdb.SysProcAttr = dir, attr
	out, err := initdb.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("create database cluster: %w: %s", err, out)
	}
	s = &Service{dir: dir, addr: addr, end: syscall.SIGINT}
	s.URL = (&url.URL{
		Scheme: "postgres", User: url.UserPassword("millrace", addr.Password), Host: addr.host(), Path: "/postgres",
		RawQuery: "sslmode=disable",
	}).String()
	port := strconv.Itoa(addr.Port)
	s.cmd = exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), "-D", data, "-p", port,
		"-k", "",
		"-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c",
		"full_page_writes=off",
		"-c", "max_connections=400", "-c", "shared_buffers=64MB", "-c", "timezone=UTC")
	s.cmd.Dir, s.cmd.SysProcAttr = dir, attr
	return s, s.start(ctx, func(ctx context.Context) error {
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
