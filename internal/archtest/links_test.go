package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.+)$`)
	linkText  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	decision  = regexp.MustCompile(`^docs/decisions/(\d{4})-`)
)

// documents reads all Markdown files of the tree, by path.
func documents(tree fs.FS) (map[string]string, error) {
	return read(tree, func(file string) bool { return path.Ext(file) == ".md" })
}

// read reads those files of the tree that are wanted, by path.
func read(tree fs.FS, wanted func(file string) bool) (map[string]string, error) {
	found := map[string]string{}
	err := fs.WalkDir(tree, ".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() &&
			(file == "dist" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && file != "."):
			return fs.SkipDir
		case d.IsDir() || !wanted(file):
			return nil
		}
		text, err := fs.ReadFile(tree, file)
		found[file] = string(text)
		return err
	})
	return found, err
}

// anchors are the fragments that lead to the headings of a document, as GitHub makes them.
func anchors(text string) (found []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		plain := linkText.ReplaceAllString(m[1], "$1")
		found = append(found, strings.ReplaceAll(strings.ToLower(notAnchor.ReplaceAllString(plain, "")), " ", "-"))
	}
	return found
}

// brokenLinks lists the relative links in documents that lead to no file or no heading.
func brokenLinks(tree fs.FS) (complaints []string, err error) {
	texts, err := documents(tree)
	for file, text := range texts {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
				continue
			}
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, missing := fs.Stat(tree, to); missing != nil {
				complaints = append(complaints, file+" links to "+m[1]+", which does not exist")
			} else if in, ok := texts[to]; ok && fragment != "" && !slices.Contains(anchors(in), fragment) {
				complaints = append(complaints, file+" links to "+m[1]+", but "+to+" has no such heading")
			}
		}
	}
	slices.Sort(complaints)
	return complaints, err
}

// unlistedDecisions lists the decision records without a status, and those that their index has no row for, with the
// same number, title and status.
func unlistedDecisions(tree fs.FS) (complaints []string, err error) {
	texts, err := documents(tree)
	index := texts["docs/decisions/README.md"]
	for file, text := range texts {
		if !decision.MatchString(file) {
			continue
		}
		title, rest, _ := strings.Cut(text, "\n\n**Status.** ")
		status, _, found := strings.Cut(rest, ".\n")
		if !found {
			complaints = append(complaints, file+" has no line **Status.** below its title")
			continue
		}
		number, name, _ := strings.Cut(strings.TrimPrefix(title, "# "), ". ")
		row := "| [" + number + "](" + path.Base(file) + ") | " + name + " | " + status + " |\n"
		if !strings.Contains(index, row) {
			complaints = append(complaints, "docs/decisions/README.md has no row "+strings.TrimSpace(row))
		}
	}
	slices.Sort(complaints)
	return complaints, err
}

func TestLinks(t *testing.T) {
	t.Parallel()
	complaints, err := brokenLinks(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestLinksComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := brokenLinks(fstest.MapFS{
		"README.md": file("[a](docs/a.md#the-end) [b](docs/b.md) [c](docs/a.md#end) [d](https://example.org/x) " +
			"[e](#here)\n"),
		"docs/a.md":    file("# A\n## The [end](b.md)!\n[up](../README.md)\n"),
		".hidden/a.md": file("[x](y.md)"),
	})
	want := []string{
		"README.md links to #here, but README.md has no such heading",
		"README.md links to docs/a.md#end, but docs/a.md has no such heading",
		"README.md links to docs/b.md, which does not exist",
		"docs/a.md links to b.md, which does not exist",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %q, %v, want %q", got, err, want)
	}
}

func TestDecisionsAreListed(t *testing.T) {
	t.Parallel()
	complaints, err := unlistedDecisions(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestDecisionsAreListedComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := unlistedDecisions(fstest.MapFS{
		"docs/decisions/README.md":  file("| [1](0001-a.md) | A | Accepted |\n| [2](0002-b.md) | Bee | Accepted |\n"),
		"docs/decisions/0001-a.md":  file("# 1. A\n\n**Status.** Accepted.\n"),
		"docs/decisions/0002-b.md":  file("# 2. B\n\n**Status.** Accepted.\n"),
		"docs/decisions/0003-c.md":  file("# 3. C\n\nText.\n"),
		"docs/decisions/other/a.md": file("# 4. D\n"),
	})
	want := []string{
		"docs/decisions/0003-c.md has no line **Status.** below its title",
		"docs/decisions/README.md has no row | [2](0002-b.md) | B | Accepted |",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %q, %v, want %q", got, err, want)
	}
}
