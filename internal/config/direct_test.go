package config

import (
	"bytes"
	"strings"
	"testing"
)

// TestDatabaseServers: a URL may name several servers, and another one lead to the server behind it. Neither is shown
// with its password.
func TestDatabaseServers(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:hunter2@one,two/m", "postgres://u:hunter2@one:5432,two:5433/m?target_session_attrs=read-write",
		"postgresql://u:hunter2@10.0.0.1:5432,10.0.0.2:5432/m", "postgres:///m?host=one,two&user=u&password=hunter2",
		"postgres://u:hunter2@[::1]:5432,[::2]:5432/one", "postgres://u:hunter2@one,[fe80::1]/m?password=hunter2",
	} {
		cfg := mustLoad(t, nil, []string{
			"MILLRACE_DATABASE_URL=postgres://u:hunter2@pooler:6432/m", "MILLRACE_DATABASE_DIRECT_URL=" + url,
		}, "")
		if cfg.Database.Address() != "postgres://u:hunter2@pooler:6432/m" || cfg.Database.Server() != url {
			t.Errorf("%s: got %q behind %q", url, cfg.Database.Server(), cfg.Database.Address())
		}
		var b bytes.Buffer
		if err := cfg.Print(&b); err != nil || strings.Contains(b.String(), "hunter2") ||
			!strings.Contains(b.String(), "one") && !strings.Contains(b.String(), "10.0.0.1") {
			t.Errorf("%v: %s", err, b.String())
		}
		cfg = mustLoad(t, []string{"--database-url=" + url, "--database-direct-url=" + url}, nil, "")
		if len(cfg.Warnings) != 2 {
			t.Errorf("%s: as flags: %q", url, cfg.Warnings)
		}
		if alone := mustLoad(t, nil, []string{"MILLRACE_DATABASE_URL=" + url}, ""); alone.Database.Server() != url {
			t.Errorf("%s alone: %q", url, alone.Database.Server())
		}
	}
	for url, want := range map[string]string{
		"sqlite:x.db":                                "not the URL of a PostgreSQL server",
		"postgres://u:hunter2@h":                     "names no database",
		"postgres://u:hunter2@[::1]:5432,[::2]":      "names no database",
		"postgres://u:hunter2@[::1]:hunter2,[::2]/m": "not a database URL",
		"postgres://u:hunter2@[::1,hunter2]/m":       "not a database URL",
		"postgres://u:p,hunter2/[@[::1],[hunter2]/m": "not a database URL",
		"postgres://u@h/m":                           "database-url", // which is SQLite
	} {
		_, err := Parse(nil, []string{"MILLRACE_DATABASE_DIRECT_URL=" + url}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
