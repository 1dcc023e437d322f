package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// rotated is how many targets are fuzzed though nothing changed for them: others at the next commit.
const rotated = 4

// chosenTargets are the targets whose package, or what it imports, differs from base, and some others in rotation.
func chosenTargets(ctx context.Context, base string) ([]target, error) {
	list, err := packages(ctx)
	if err != nil {
		return nil, err
	}
	all, err := targets(list)
	if err != nil {
		return nil, err
	}
	if base == "" {
		if base = defaultBase(ctx); base == "" {
			return all, nil // no history to compare with
		}
	}
	files, err := changedFiles(ctx, base)
	if err != nil {
		return nil, err
	}
	count, err := git(ctx, "rev-list", "--count", "HEAD")
	if err != nil {
		return nil, err
	}
	turn, err := strconv.Atoi(count)
	if err != nil {
		return nil, fmt.Errorf("count commits: %w", err)
	}
	return choose(all, list, changedPackages(list, files), turn), nil
}

// choose takes the targets that changed packages reach, and of the others those whose turn it is.
func choose(all []target, list []pack, changed map[string]change, turn int) (chosen []target) {
	deps := map[string][]string{}
	for _, p := range list {
		deps[p.path] = p.deps
	}
	var others []target
	for _, t := range all {
		reached := changed[t.pkg] != 0 ||
			slices.ContainsFunc(deps[t.pkg], func(d string) bool { return changed[d]&code != 0 })
		if reached {
			chosen = append(chosen, t)
		} else {
			others = append(others, t)
		}
	}
	for i := range min(rotated, len(others)) {
		chosen = append(chosen, others[(turn*rotated+i)%len(others)])
	}
	return chosen
}

// change says what of a package has changed.
type change int

const (
	code  change = 1 << iota // what is compiled into who imports it
	tests                    // only its tests and their data
)

// changedPackages sorts files, with absolute paths, into the packages they belong to.
func changedPackages(list []pack, files []string) map[string]change {
	of := map[string]string{}
	for _, p := range list {
		of[p.dir] = p.path
	}
	changed := map[string]change{}
	for _, f := range files {
		what := tests
		if strings.HasSuffix(f, ".go") && !strings.HasSuffix(f, "_test.go") && !strings.Contains(f, "/testdata/") {
			what = code
		}
		for dir := filepath.Dir(f); len(dir) > 1; dir = filepath.Dir(dir) {
			if pkg, ok := of[dir]; ok {
				changed[pkg] |= what
				break
			}
		}
	}
	return changed
}

// changedHere are the packages that -all runs with the race detector though -race is not given: those that differ from
// where this branch left origin's. On that branch itself these are the ones with changes that are not committed.
func (o options) changedHere(ctx context.Context, list []pack) (map[string]change, error) {
	if !o.all || o.race {
		return nil, nil //nolint:nilnil // none
	}
	base := o.base
	if base == "" {
		var err error
		if base, err = forkPoint(ctx); err != nil {
			return nil, nil //nolint:nilnil,nilerr // a checkout that came from nowhere: nothing to differ from
		}
	}
	files, err := changedFiles(ctx, base)
	if err != nil {
		return nil, err
	}
	return changedPackages(list, files), nil
}

// forkPoint is where this branch left origin's.
func forkPoint(ctx context.Context) (string, error) {
	return git(ctx, "merge-base", "HEAD", "origin/HEAD")
}

// defaultBase is where this branch left the one it came from; on that branch itself, the newest commit that is a day
// older than the last. It is empty where there is no history.
func defaultBase(ctx context.Context) string {
	head, err := git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return ""
	}
	base, err := forkPoint(ctx)
	if err == nil && base != head {
		return base
	}
	date, err := git(ctx, "log", "-1", "--format=%ct", "HEAD")
	if err != nil {
		return ""
	}
	seconds, err := strconv.ParseInt(date, 10, 64)
	if err != nil {
		return ""
	}
	base, err = git(ctx, "rev-list", "-1", "--before="+strconv.FormatInt(seconds-24*60*60, 10), "HEAD")
	if err != nil {
		return ""
	}
	return base
}

// changedFiles are the absolute paths of what differs from base, uncommitted and new files included.
func changedFiles(ctx context.Context, base string) ([]string, error) {
	top, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	differ, err := git(ctx, "-C", top, "diff", "--name-only", base)
	if err != nil {
		return nil, err
	}
	fresh, err := git(ctx, "-C", top, "ls-files", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.FieldsSeq(differ + "\n" + fresh) {
		files = append(files, filepath.Join(top, name))
	}
	return files, nil
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}
