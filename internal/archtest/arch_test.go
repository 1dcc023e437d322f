// Package archtest keeps the import direction, the owners of goroutines and the size budget.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

const module = "millrace/"

// layers says what each folder may import of this module; the longest matching prefix rules.
var layers = map[string][]string{
	"cmd":                         {"internal/app"},
	"internal/app":                {"internal"},
	"internal/bridge":             {"internal/bridge/measure", "internal/control", "internal/media", "internal/storage/blob", "internal/lifecycle", "internal/id", "internal/fault"},
	"internal/config":             {"internal/spelling"},
	"internal/spelling":           {},
	"internal/id":                 {},
	"internal/fault":              {},
	"internal/lifecycle":          {},
	"internal/socket":             {},
	"internal/openfile":           {},
	"internal/programtest":        {},
	"internal/disk":               {},
	"internal/crash":              {},
	"internal/fetch":              {"internal/fault", "internal/disk"},
	"internal/certificate":        {},
	"internal/control":            {"internal/control/event", "internal/control/job", "internal/control/playbackid", "internal/control/assetopt", "internal/control/field", "internal/control/language", "internal/id", "internal/fault"},
	"internal/control/event":      {"internal/id"},
	"internal/control/job":        {"internal/id", "internal/fault"},
	"internal/control/playbackid": {"internal/control/field", "internal/id", "internal/fault"},
	"internal/control/field":      {"internal/control/language", "internal/fault"},
	"internal/control/language":   {"internal/fault"},
	"internal/control/assetopt":   {"internal/control/playbackid", "internal/control/field", "internal/control/language", "internal/id", "internal/fault"},
	"internal/media/frame":        {},
	"internal/media/hls":          {},
	"internal/media/captions":     {},
	"internal/media/codec":        {"internal/media/frame", "internal/media/codec"},
	"internal/media/container":    {"internal/media/frame", "internal/media/codec", "internal/media/container"},
	"internal/media/timeline":     {"internal/media/frame"},
	"internal/media/ondemand":     {"internal/media/frame", "internal/media/timeline", "internal/media/container", "internal/media/codec"},
	"internal/media/rtmpwire":     {},
	"internal/media/ingest":       {"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/rtmpwire", "internal/media/ingest", "internal/lifecycle", "internal/socket"},
	"internal/media/relay":        {"internal/media/frame", "internal/media/codec", "internal/media/rtmpwire", "internal/fault"},
	"internal/media/health":       {"internal/media/frame"},
	"internal/media/session":      {"internal/media/frame", "internal/media/codec", "internal/lifecycle"},
	"internal/media/slate":        {"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/lettering"},
	"internal/media/transform":    {"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/encode", "internal/media/lettering", "internal/media/overlay"},
	"internal/media/lettering":    {},
	"internal/media/overlay":      {"internal/media/codec", "internal/fault"},
	"internal/media/ladder":       {},
	"internal/media/transcode":    {"internal/media/frame", "internal/media/timeline", "internal/media/codec", "internal/media/container", "internal/media/encode", "internal/media/ladder", "internal/fault"},
	"internal/media/clip":         {"internal/media/frame", "internal/media/timeline", "internal/media/codec", "internal/media/container", "internal/media/encode"},
	"internal/media/download":     {"internal/media/frame", "internal/media/timeline", "internal/media/container", "internal/fault"},
	"internal/media/cascade":      {"internal/fault", "internal/media/container", "internal/media/encode", "internal/media/ladder", "internal/media/window"},
	"internal/media/images":       {"internal/media/timeline", "internal/media/codec", "internal/media/container", "internal/media/encode", "internal/fault"},
	"internal/media/packager":     {"internal/media/frame", "internal/media/timeline", "internal/media/container", "internal/media/codec"},
	"internal/media/journal":      {"internal/media/frame", "internal/media/timeline", "internal/openfile"},
	"internal/media/window":       {"internal/media/frame", "internal/media/timeline", "internal/media/journal", "internal/media/hls", "internal/media/container", "internal/openfile", "internal/lifecycle"},
	"internal/media/playback":     {"internal/media/frame", "internal/media/hls", "internal/media/timeline", "internal/media/captions", "internal/id", "internal/fault"},
	"internal/media/encode":       {"internal/media/frame", "internal/media/codec", "internal/media/container", "internal/media/timeline", "internal/lifecycle", "internal/fault"},
	"internal/storage/blob":       {"internal/storage/blob", "internal/openfile", "internal/fault"},
	"internal/storage/db":         {"internal/control", "internal/storage/db", "internal/id", "internal/fault"},
	"internal/storage/queue":      {"internal/control/job", "internal/storage/db", "internal/crash", "internal/lifecycle", "internal/id", "internal/fault"},
	"internal/bridge/claim":       {"internal/lifecycle", "internal/id"},
	"internal/bridge/measure":     {"internal/control/asset", "internal/media/frame", "internal/media/ladder", "internal/media/timeline"},
	"internal/worker":             {"internal/bridge/measure", "internal/worker/settle", "internal/control", "internal/media", "internal/storage/blob", "internal/fetch", "internal/id", "internal/fault"},
	"internal/web":                {"internal/control", "internal/web/static", "internal/id", "internal/fault", "internal/spelling"},
	"internal/web/express":        {"internal/socket"},
	"test":                        {"test", "internal/programtest"},
	"tools":                       {},
	"test/bench":                  {"test", "internal/media/encode", "internal/media/ladder"}, // whose settings its peer is given
}

// mayGo lists the folders whose job is to own goroutines.
var mayGo = []string{"internal/lifecycle", "internal/certificate", "internal/media/ingest", "internal/media/session", "internal/media/window", "internal/media/encode", "internal/media/relay", "internal/media/transform", "internal/media/transcode", "internal/media/cascade", "internal/media/images", "internal/storage/queue", "internal/bridge", "internal/web/express", "internal/app", "test"}

const maxFuncLines, maxFileLines = 80, 500

func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func rule(pkg string) ([]string, bool) {
	for p := pkg; p != "."; p = path.Dir(p) {
		if allowed, ok := layers[p]; ok {
			return allowed, true
		}
	}
	return nil, false
}

func check(tree fs.FS) (complaints []string, err error) {
	complain := func(f string, args ...any) { complaints = append(complaints, fmt.Sprintf(f, args...)) }
	err = fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") {
			return err
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		if strings.HasSuffix(p, "_test.go") {
			if code := string(src); strings.Contains(code, "time.Sleep"+"(") && !strings.Contains(code, `"testing/synctest"`) {
				complain("%s sleeps outside synctest", p)
			}
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(p)
		allowed, ok := rule(pkg)
		if !ok {
			complain("%s: folder has no rule in archtest", pkg)
		}
		for _, spec := range file.Imports {
			full, _ := strconv.Unquote(spec.Path.Value)
			to, ours := strings.CutPrefix(full, module)
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return within(to, a) }) {
				complain("%s imports %s: may import only %v", pkg, to, allowed)
			}
			if ours && strings.HasSuffix(to, "test") && !within(pkg, "test") {
				complain("%s imports %s: what tests have in common is for tests", pkg, to)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				if !slices.ContainsFunc(mayGo, func(f string) bool { return within(pkg, f) }) {
					complain("%s: go statement; give it to lifecycle or to an owner in mayGo", set.Position(n.Pos()))
				}
			case *ast.FuncDecl:
				if l := set.Position(n.End()).Line - set.Position(n.Pos()).Line + 1; l > maxFuncLines {
					complain("%s: %s has %d lines, budget %d", p, n.Name.Name, l, maxFuncLines)
				}
			}
			return true
		})
		if l := strings.Count(string(src), "\n"); l > maxFileLines {
			complain("%s has %d lines, budget %d", p, l, maxFileLines)
		}
		return nil
	})
	return complaints, err
}

// unwanted are modules that the program must not need again: each cost more than it gave.
var unwanted = map[string]string{
	"gocloud.dev":            "12 MB of program for one file (decision 31)",
	"google.golang.org/grpc": "nothing here speaks gRPC",
	"google.golang.org/api":  "nothing here speaks to Google's services",
}

func TestModules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		for word := range strings.FieldsSeq(line) {
			if why, is := unwanted[word]; is {
				t.Errorf("go.mod needs %s: %s", word, why)
			}
		}
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	complaints, err := check(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range complaints {
		t.Error(c)
	}
}

func TestCheckComplains(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, src, want string }{
		"planes":    {"internal/media/session/x.go", `package session; import _ "millrace/internal/control/live"`, "imports internal/control/live"},
		"nouns":     {"internal/control/live/x.go", `package live; import _ "millrace/internal/control/asset"`, "imports internal/control/asset"},
		"sql":       {"internal/web/api/x.go", `package api; import _ "millrace/internal/storage/db"`, "imports internal/storage/db"},
		"config":    {"internal/worker/vod/x.go", `package vod; import _ "millrace/internal/config"`, "imports internal/config"},
		"goroutine": {"internal/web/api/x.go", "package api\nfunc f() { go f() }", "go statement"},
		"new":       {"internal/utils/x.go", "package utils", "no rule"},
		"sleep":     {"internal/web/api/x_test.go", "package api\nfunc f() { time.Sleep" + "(1) }", "sleeps outside"},
		"tests":     {"internal/media/ingest/srt/x.go", `package srt; import _ "millrace/internal/media/ingest/ingesttest"`, "for tests"},
		"long":      {"internal/web/api/x.go", "package api\nfunc f() {" + strings.Repeat("\n", 90) + "}", "91 lines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := check(fstest.MapFS{tt.file: {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q, want one with %q", got, tt.want)
			}
		})
	}
}
