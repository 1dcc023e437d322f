package services

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestPostgres(t *testing.T) {
	t.Parallel()
	if _, err := postgresBin(); err != nil && os.Getenv("MILLRACE_TEST_REQUIRE") == "" {
		t.Skip(err)
	}
	s, err := Postgres(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	out, err := exec.CommandContext(t.Context(), "psql", "-XAtc", "CREATE DATABASE x", "-c", "SHOW fsync",
		s.URL).CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "off") {
		t.Errorf("psql: %v: %s", err, out)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Stop()
	if c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host); err == nil {
		_ = c.Close()
		t.Error("PostgreSQL still listens after Stop")
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("folder is left behind: %v", err)
	}
}

// Not in parallel: a process that another test starts would have our socket for a little longer than we have it.
func TestAddressIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "cache", "postgres.json")
	get := func() address {
		t.Helper()
		a, err := addressIn(t.Context(), file)
		if err != nil || a.Port == 0 || a.Password == "" {
			t.Fatalf("addressIn() = port %d, %v; want a port and a password", a.Port, err)
		}
		t.Cleanup(a.release)
		return a
	}
	same := func(a, b address) bool { return a.Port == b.Port && a.Password == b.Password }

	kept := get()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("file of the password: %v, %v; want it for its owner alone", info.Mode(), err)
	}
	if beside := get(); beside.Port == kept.Port || beside.Password == kept.Password {
		t.Errorf("a run beside another one has port %d, like that, or its password", beside.Port)
	}
	kept.release()
	later := get()
	later.release()
	if !same(later, kept) {
		t.Errorf("the next run has port %d, want %d and the same password", later.Port, kept.Port)
	}

	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mended := get()
	mended.release()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", mended.host())
	if err != nil {
		t.Fatal(err)
	}
	moved := get()
	moved.release()
	if err = l.Close(); err != nil {
		t.Fatal(err)
	}
	last := get()
	if same(mended, kept) || moved.Port == mended.Port || !same(last, moved) {
		t.Errorf("ports %d, then %d from an empty file, %d as something listened there, %d at last; want three that "+
			"differ, "+
			"and the third again", kept.Port, mended.Port, moved.Port, last.Port)
	}
}

// TestPostgresReplicated kills a primary: its standby has what was committed, takes writes once it is promoted, and not
// before.
func TestPostgresReplicated(t *testing.T) {
	t.Parallel()
	if _, err := postgresBin(); err != nil && os.Getenv("MILLRACE_TEST_REQUIRE") == "" {
		t.Skip(err)
	}
	r, err := PostgresReplicated(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Stop()
	if err := r.Primary.SQL(t.Context(), "CREATE TABLE x (n int)", "INSERT INTO x VALUES (42)"); err != nil {
		t.Fatal(err)
	}
	r.Primary.Kill()
	if err := r.Standby.SQL(t.Context(), "INSERT INTO x VALUES (43)"); err == nil {
		t.Error("the standby takes writes before it is promoted")
	}
	if err := r.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Standby.SQL(t.Context(), "INSERT INTO x SELECT 1 / (n - 41) FROM x WHERE n = 42",
		"SELECT 1 / (COUNT(*) - 1) FROM x"); err != nil {
		t.Errorf("the promoted standby lacks what was committed, or takes no writes: %v", err)
	}
	r.Stop()
	for _, s := range []*Service{r.Primary, r.Standby} {
		if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
			t.Errorf("folder is left behind: %v", err)
		}
	}
}
