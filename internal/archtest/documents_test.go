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

// named is a test that a document names, with its package or without: `window.TestTextIsRecorded`.
var named = regexp.MustCompile("`(?:([a-z0-9]+)\\.)?((?:Test|Fuzz|Benchmark)[A-Z]\\w*)")

var declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)

// missingTests says which tests documents name that there are not. A package is the last part of its folder's path.
func missingTests(tree fs.FS) (complaints []string, err error) {
	tests := map[string][]string{} // the names of packages by test
	texts, err := read(tree, func(file string) bool {
		return path.Ext(file) == ".md" || strings.HasSuffix(file, "_test.go")
	})
	for file, text := range texts {
		for _, m := range declared.FindAllStringSubmatch(text, -1) {
			if path.Ext(file) == ".go" {
				tests[m[1]] = append(tests[m[1]], path.Base(path.Dir(file)))
			}
		}
	}
	for file, text := range texts {
		if path.Ext(file) != ".md" {
			continue
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			in, ok := tests[m[2]]
			if !ok || m[1] != "" && !slices.Contains(in, m[1]) {
				complaints = append(complaints, file+" names "+strings.Trim(m[0], "`")+", which is no test")
			}
		}
	}
	slices.Sort(complaints)
	return complaints, err
}

// complain fails the test with what is wrong with the tree, or why it could not be looked at.
func complain(t *testing.T, complaints []string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

func TestDocumentsNameTests(t *testing.T) {
	t.Parallel()
	complaints, err := missingTests(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestDocumentsNameTestsComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := missingTests(fstest.MapFS{
		"a/x/x_test.go": file("func TestHere(t *testing.T) {"),
		"docs/a.md":     file("`x.TestHere`, `TestHere`, TestNowhere in prose, `make test`"),
		"docs/b.md":     file("`y.TestHere`, `TestGone`"),
	})
	want := []string{"docs/b.md names TestGone, which is no test", "docs/b.md names y.TestHere, which is no test"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %q, %v", got, err)
	}
}
