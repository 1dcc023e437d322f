package config

import (
	"strings"
	"testing"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	postgres := []string{"--database-url=postgres://u:p@h/d", "--internal-addr=10.0.0.5:9465"}
	for name, tt := range map[string]struct {
		args []string
		want string
		err  string
	}{
		"not given":          {nil, "all", ""},
		"all on SQLite":      {[]string{"--roles=all"}, "all", ""},
		"each by its name":   {[]string{"--roles=worker,playback,ingest,api"}, "all", ""},
		"one":                {append(postgres, "--roles=worker"), "worker", ""},
		"in their order":     {append(postgres, "--roles= Playback,api,api"), "api,playback", ""},
		"piece by piece":     {append(postgres, "--roles=ingest", "--roles=api"), "api,ingest", ""},
		"empty":              {append(postgres, "--roles="), "", `has the part ""`},
		"an empty part":      {append(postgres, "--roles=api,"), "", `has the part ""`},
		"unknown":            {append(postgres, "--roles=workers"), "", "did you mean worker?"},
		"all beside another": {append(postgres, "--roles=all,api"), "", "has all beside other roles"},
		"on SQLite":          {[]string{"--roles=ingest"}, "", "need PostgreSQL"},
		"alone":              {append(postgres[:1:1], "--roles=ingest"), "", "need internal-addr"},
	} {
		cfg, err := Parse(tt.args, nil, files(nil))
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %v, want %q", name, err, tt.err)
		case tt.err == "" && (err != nil || cfg.Node.Roles.String() != tt.want):
			t.Errorf("%s: %q, %v, want %q", name, cfg.Node.Roles, err, tt.want)
		}
	}
}

func TestHasRole(t *testing.T) {
	t.Parallel()
	for _, role := range everyRole() {
		if !(Roles{RoleAll}).Has(role) || !(Roles{role}).Has(role) || !Roles(nil).Has(role) {
			t.Errorf("a node with the role %s does not have it", role)
		}
	}
	if (Roles{"api", "ingest"}).Has("worker") || (Roles{"worker"}).All() {
		t.Error("a node has roles that it was not given")
	}
}
