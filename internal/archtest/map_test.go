package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// inside lists folders whose own packages the map leaves out: one line says what all of them are.
var inside = []string{
	"internal/app", "internal/worker", "internal/media/codec", "internal/media/container",
	"internal/web/dashboard",
}

// The map is to be seen at once, on the screen of a laptop.
const maxMapLines, maxMapColumns = 60, 120

var (
	folderOnMap = regexp.MustCompile(`([a-z0-9]+)/`)
	wordOnMap   = regexp.MustCompile(`[a-z0-9]+`)
	inBackticks = regexp.MustCompile("`([a-z0-9/]+)`")
)

// packageImports gives the imports of ours of each package under internal, tests left out.
func packageImports(tree fs.FS) (map[string][]string, error) {
	out := map[string][]string{}
	err := fs.WalkDir(tree, "internal", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "testdata" {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		pkg := path.Dir(p)
		out[pkg] = append(out[pkg], "")
		if strings.HasSuffix(p, "_test.go") {
			return nil
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			full, _ := strconv.Unquote(spec.Path.Value)
			out[pkg] = append(out[pkg], strings.TrimPrefix(full, module))
		}
		return nil
	})
	return out, err
}

// offTheMap says which packages the map of ARCHITECTURE.md leaves out, and which folders it names that are not there.
func offTheMap(page string, packages map[string][]string) (complaints []string) {
	_, rest, _ := strings.Cut(page, "```\n")
	shown, _, ok := strings.Cut(rest, "```")
	if !ok {
		return []string{"ARCHITECTURE.md has no map"}
	}
	if n := strings.Count(shown, "\n"); n > maxMapLines {
		complaints = append(complaints, fmt.Sprintf("the map has %d lines, budget %d", n, maxMapLines))
	}
	for line := range strings.Lines(shown) {
		if n := utf8.RuneCountInString(line) - 1; n > maxMapColumns {
			complaints = append(complaints,
				fmt.Sprintf("a line of the map has %d columns, budget %d", n, maxMapColumns))
		}
	}
	words := wordOnMap.FindAllString(shown, -1)
	folders := []string{"cmd", "test", "tools", "internal"}
	for pkg := range packages {
		folders = append(folders, strings.Split(pkg, "/")...)
		leaf := slices.ContainsFunc(inside, func(f string) bool { return strings.HasPrefix(pkg, f+"/") })
		if !leaf && !strings.HasSuffix(pkg, "test") && !slices.Contains(words, path.Base(pkg)) {
			complaints = append(complaints, pkg+" is not on the map")
		}
	}
	for _, m := range folderOnMap.FindAllStringSubmatch(shown, -1) {
		if !slices.Contains(folders, m[1]) {
			complaints = append(complaints, "the map shows "+m[1]+"/, which is not there")
		}
	}
	slices.Sort(complaints)
	return complaints
}

// wrongPlanes compares the packages that import both planes with those that the page says know both.
func wrongPlanes(page string, packages map[string][]string) (complaints []string) {
	var said, found []string
	for paragraph := range strings.SplitSeq(page, "\n\n") {
		if _, list, ok := strings.Cut(paragraph, "know both:"); ok {
			for _, m := range inBackticks.FindAllStringSubmatch(list, -1) {
				said = append(said, m[1])
			}
		}
	}
	for pkg, imports := range packages {
		knows := func(plane string) bool {
			return slices.ContainsFunc(imports, func(to string) bool { return within(to, "internal/"+plane) })
		}
		if knows("control") && knows("media") {
			top, _, _ := strings.Cut(strings.TrimPrefix(pkg, "internal/"), "/")
			found = append(found, top)
		}
	}
	for _, pkg := range found {
		if !slices.Contains(said, pkg) {
			complaints = append(complaints, pkg+" knows both planes, and the page does not say so")
		}
	}
	for _, pkg := range said {
		if !slices.Contains(found, pkg) {
			complaints = append(complaints, pkg+" does not know both planes, and the page says so")
		}
	}
	slices.Sort(complaints)
	return slices.Compact(complaints)
}

func TestMap(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	packages, err := packageImports(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(offTheMap(string(page), packages), wrongPlanes(string(page), packages)...) {
		t.Error(c)
	}
}

func TestMapComplains(t *testing.T) {
	t.Parallel()
	file := func(src string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(src)} }
	packages, err := packageImports(fstest.MapFS{
		"internal/control/live/x.go":  file("package live"),
		"internal/media/hls/x.go":     file("package hls"),
		"internal/media/codec/y/x.go": file("package y"),
		"internal/worker/x/x.go":      file(`package x; import ("millrace/internal/control/live"; "millrace/internal/media/hls")`),
		"internal/joins/x.go":         file(`package joins; import ("millrace/internal/control/live"; "millrace/internal/media/hls")`),
		"internal/joins/x_test.go":    file(`package joins; import "fmt"`),
		"internal/one/x.go":           file(`package one; import "millrace/internal/control/live"`),
		"internal/one/x_test.go":      file(`package one; import "millrace/internal/media/hls"`),
	})
	if err != nil {
		t.Fatal(err)
	}
	page := "Two know both: `one` and\n`worker`.\n\n```\ncontrol/ media/ (hls/ gone/) one/ joins, worker/\n```\n"
	got := append(offTheMap(page, packages), wrongPlanes(page, packages)...)
	want := []string{
		"internal/control/live is not on the map",
		"the map shows gone/, which is not there",
		"joins knows both planes, and the page does not say so",
		"one does not know both planes, and the page says so",
	}
	if !slices.Equal(got, want) {
		t.Errorf("complaints %q", got)
	}
	large := "```\nlive hls " + strings.Repeat("x", 130) + strings.Repeat("\njoins one worker", 70) + "\n```\n"
	if got := offTheMap(large, packages); len(got) != 2 {
		t.Errorf("a large map: %q", got)
	}
	if got := offTheMap("no map", packages); len(got) != 1 {
		t.Errorf("without a map: %q", got)
	}
}
