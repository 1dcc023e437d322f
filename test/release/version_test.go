package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"millrace/internal/programtest"
)

// TestVersion: the version is that of the commit's tag, as the changelog has it, or one on the way to it.
func TestVersion(t *testing.T) {
	const published = "## [Unreleased]\n\n## [1.2.3] - 2026-12-24\n"
	const next = "## [Unreleased]\n\n## [1.2.3] - not yet published\n"
	tool := filepath.Join(all(t).folder, "release")
	for name, tt := range map[string]struct {
		changelog string
		tag       string // of the commit
		before    string // tag of the commit before
		changed   bool   // a file, since
		want      string // the version, with C for the commit
		fault     string
	}{
		"published":            {changelog: published, tag: "v1.2.3", want: "1.2.3"},
		"not yet":              {changelog: next, want: "1.2.3-dev.20260921141320+C"},
		"not yet, changed":     {changelog: next, changed: true, want: "1.2.3-dev.20260921141320+C.modified"},
		"behind the published": {changelog: published, before: "v1.2.3", want: "1.2.4-dev.20260921141320+C"},
		"the next":             {changelog: published, before: "v1.2.2", tag: "v1.2.3", want: "1.2.3"},
		"tag without a day":    {changelog: next, tag: "v1.2.3", fault: "does not say on which day"},
		"tag of another":       {changelog: published, tag: "v1.2.4", fault: "CHANGELOG.md begins with 1.2.3"},
		"tag, and changed":     {changelog: published, tag: "v1.2.3", changed: true, fault: "changed since v1.2.3"},
		"no version":           {changelog: "## [Unreleased]\n", fault: "no heading of a version"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			run := func(name string, args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), programtest.Path(t, name), args...)
				cmd.Dir = root
				cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=x",
					"GIT_AUTHOR_EMAIL=x@example.org", "GIT_COMMITTER_NAME=x",
					"GIT_COMMITTER_EMAIL=x@example.org", "GIT_COMMITTER_DATE="+seconds+" +0000")
				out, err := cmd.CombinedOutput()
				return strings.TrimSpace(string(out)), err
			}
			git := func(args ...string) string {
				t.Helper()
				out, err := run("git", args...)
				if err != nil {
					t.Fatalf("git %q: %v: %s", args, err, out)
				}
				return out
			}
			git("init", "-q")
			git("commit", "-q", "--allow-empty", "-m", "before")
			if tt.before != "" {
				git("tag", tt.before)
			}
			path := filepath.Join(root, "CHANGELOG.md")
			if err := os.WriteFile(path, []byte("# Changelog\n\n"+tt.changelog), 0o600); err != nil {
				t.Fatal(err)
			}
			git("add", ".")
			git("commit", "-q", "-m", "now")
			if tt.tag != "" {
				git("tag", tt.tag)
			}
			if tt.changed {
				if err := os.WriteFile(filepath.Join(root, "new"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := run(tool, "-show")
			if tt.fault != "" {
				if err == nil || !strings.Contains(got, tt.fault) {
					t.Errorf("got %q, want that it fails with %q", got, tt.fault)
				}
				return
			}
			head := git("rev-parse", "HEAD")
			want := strings.Replace(tt.want, "C", head[:12], 1) + " " + head + " 2026-09-21T14:13:20Z"
			if err != nil || got != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
}
