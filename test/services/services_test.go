package services

import (
	"net"
	"net/url"
	"os"
	"os/exec"
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
	out, err := exec.CommandContext(t.Context(), "psql", "-XAtc", "CREATE DATABASE x", "-c", "SHOW fsync", s.URL).CombinedOutput()
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
