package config

import "testing"

// TestUpgradeBackup is on, in whatever order it and the database are given.
func TestUpgradeBackup(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want bool
	}{
		{nil, true},
		{[]string{"--database-url=sqlite:x.db"}, true},
		{[]string{"--upgrade-backup=off"}, false},
		{[]string{"--upgrade-backup=off", "--database-url=sqlite:x.db"}, false},
		{[]string{"--database-url=postgres://h/n", "--upgrade-backup=off"}, false},
	} {
		if got := mustLoad(t, c.args, nil, "").Database.UpgradeBackup; got != c.want {
			t.Errorf("%q: %v", c.args, got)
		}
	}
}
