package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// origin is what a release is built from.
type origin struct {
	version, commit string
	time            time.Time // of the commit; every file that is made has it
}

// headings are those of versions in the changelog, the newest first: ## [1.2.3] - 2026-12-24.
var headings = regexp.MustCompile(`(?m)^## \[(\d+)\.(\d+)\.(\d+)\] - (.+)$`)

var day = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// asked asks the repository and the changelog. A commit with the tag of a version is that version: the changelog must
// begin with it and its day, and nothing may have changed since. Any other commit is one on the way to the version that
// the changelog begins with, or, if there is that already, to the next: 1.2.3-dev.TIME+COMMIT, which sorts before
// 1.2.3.
func asked(ctx context.Context, root string) (origin, error) {
	text, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return origin{}, fmt.Errorf("read changelog: %w", err)
	}
	newest := headings.FindStringSubmatch(string(text))
	if newest == nil {
		return origin{}, errors.New("CHANGELOG.md has no heading of a version: ## [1.2.3] - 2026-12-24")
	}
	version := strings.Join(newest[1:4], ".")
	of := origin{version: version}
	git := func(args ...string) string {
		if err != nil {
			return ""
		}
		var out []byte
		out, err = exec.CommandContext(ctx, "git", append([]string{"-C", root}, args...)...).Output()
		if err != nil {
			err = fmt.Errorf("git %s (give -version, -commit and -time where there is no repository): %w", args[0], err)
		}
		return strings.TrimSpace(string(out))
	}
	of.commit = git("rev-parse", "HEAD")
	seconds := git("show", "-s", "--format=%ct", "HEAD")
	tags := strings.Fields(git("tag", "--points-at", "HEAD", "--list", "v[0-9]*"))
	before := git("tag", "--list", "v"+version)
	changes := git("status", "--porcelain")
	if err != nil {
		return origin{}, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return origin{}, fmt.Errorf("read the commit's time: %w", err)
	}
	of.time = time.Unix(at, 0).UTC()
	switch {
	case len(tags) > 0 && (len(tags) > 1 || tags[0] != "v"+version):
		return origin{}, fmt.Errorf("the commit has the tag %s, but CHANGELOG.md begins with %s",
			strings.Join(tags, " and "), version)
	case len(tags) == 1 && !day.MatchString(newest[4]):
		return origin{}, fmt.Errorf("CHANGELOG.md does not say on which day %s was published, but %q",
			version, newest[4])
	case len(tags) == 1 && changes != "":
		return origin{}, fmt.Errorf("files have changed since %s:\n%s", tags[0], changes)
	case len(tags) == 1:
		return of, nil
	}
	if before != "" {
		patch, _ := strconv.Atoi(newest[3]) // digits, by the expression
		of.version = fmt.Sprintf("%s.%s.%d", newest[1], newest[2], patch+1)
	}
	of.version += fmt.Sprintf("-dev.%s+%.12s", of.time.Format("20060102150405"), of.commit)
	if changes != "" {
		of.version += ".modified"
	}
	return of, nil
}
