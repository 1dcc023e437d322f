package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
)

// Replicated is a PostgreSQL server, the primary, with another one that has what it has by streaming replication, the
// standby.
type Replicated struct {
	Primary, Standby *Service
}

// PostgresReplicated starts both. The primary says that a transaction is committed only when the standby has it.
func PostgresReplicated(ctx context.Context) (r *Replicated, err error) {
	bin, err := postgresBin()
	if err != nil {
		return nil, err
	}
	r = &Replicated{}
	defer func() {
		if err != nil {
			r.Stop()
			r = nil
		}
	}()
	r.Primary, err = retry(ctx, func(ctx context.Context) (*Service, error) {
		addr, failed := newAddress(ctx)
		if failed != nil {
			return nil, failed
		}
		return newCluster(ctx, bin, addr)
	})
	if err != nil {
		return r, err
	}
	r.Standby, err = retry(ctx, func(ctx context.Context) (*Service, error) { return standby(ctx, bin, r.Primary) })
	if err != nil {
		return r, err
	}
	return r, r.Primary.SQL(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
}

// standby starts a server on a copy of another one's cluster, which it follows.
func standby(ctx context.Context, bin string, primary *Service) (s *Service, err error) {
	addr, err := newAddress(ctx)
	if err != nil {
		return nil, err
	}
	addr.Password = primary.addr.Password
	s, attr, err := newFolder(addr)
	defer func() {
		if err != nil && s.cmd == nil {
			s.forget()
			s = nil
		}
	}()
	if err != nil {
		return s, err
	}
	backup := exec.CommandContext(ctx, filepath.Join(bin, "pg_basebackup"), "--dbname="+primary.URL, "--no-sync",
		"--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf", "--pgdata="+s.data())
	backup.Dir, backup.SysProcAttr = s.dir, attr
	if out, err := backup.CombinedOutput(); err != nil {
		return s, fmt.Errorf("copy database cluster: %w: %s", err, out)
	}
	return s, s.serve(ctx, bin, attr, nil)
}

// Database is the URL of one of the databases, by both servers' addresses, the standby's first: who does not look for
// one that takes writes notices.
func (r *Replicated) Database(name string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword("millrace", r.Primary.addr.Password),
		Host: r.Standby.addr.host() + "," + r.Primary.addr.host(), Path: "/" + name, RawQuery: "sslmode=disable",
	}).String()
}

// Promote makes the standby a primary; it returns when that takes writes.
func (r *Replicated) Promote(ctx context.Context) error {
	return r.Standby.SQL(ctx, "SELECT pg_promote()")
}

// Stop ends both servers.
func (r *Replicated) Stop() {
	if r != nil {
		r.Standby.Stop()
		r.Primary.Stop()
	}
}

// SQL runs commands on the administration database of a PostgreSQL server, each in a transaction of its own.
func (s *Service) SQL(ctx context.Context, commands ...string) error {
	args := []string{"-XAtqv", "ON_ERROR_STOP=1"}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	out, err := exec.CommandContext(ctx, "psql", append(args, s.URL)...).CombinedOutput()
	if err != nil {
		return errors.Join(fmt.Errorf("run SQL: %w", err), errors.New(string(out)))
	}
	return nil
}
