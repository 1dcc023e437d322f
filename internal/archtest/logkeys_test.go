package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// logPage documents the keys of the log, each in the first cell of a row of a table.
const logPage = "docs/logs.md"

var documentedKey = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// firstPair is the index of the first key among the arguments of each method of a logger.
var firstPair = map[string]int{
	"With": 0, "Debug": 1, "Info": 1, "Warn": 1, "Error": 1,
	"DebugContext": 2, "InfoContext": 2, "WarnContext": 2, "ErrorContext": 2, "Log": 3, "LogAttrs": 3,
}

// attrs are the functions of log/slog that make an attribute.
var attrs = []string{
	"String", "Int", "Int64", "Uint64", "Float64", "Bool", "Time", "Duration", "Any", "Group", "GroupAttrs",
}

// passedOn are the files whose loggers are given attributes that are made elsewhere, and why. Where the attributes are
// made in a list of their own, []any{"key", value}, its keys are looked at too, as are those of append.
var passedOn = map[string]string{
	"internal/broadcast/broadcast.go":       "the labels of a broadcast, a list",
	"internal/delivery/warnings.go":         "a list of slog.Attr",
	"internal/internode/quiet.go":           "warn passes on what its callers have",
	"internal/internode/server.go":          "a list, for warn",
	"internal/media/ingest/ingest.go":       "LogAttributes of the broadcast",
	"internal/media/ingest/whip/session.go": "a list, and LogAttributes of the broadcast",
	"internal/storage/queue/worker.go":      "a list of slog.Attr",
}

// loggerNames are what every logger is called, so that its lines are found.
var loggerNames = []string{"log", "logger", "Logger"}

// logKeys is what a tree logs: the place of the first use of each key, and what can't be said to be a key.
type logKeys struct {
	used       map[string]string
	complaints []string
}

// isLogger says whether an expression is a logger, by its name or by what made it.
func isLogger(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return slices.Contains(loggerNames, e.Name)
	case *ast.SelectorExpr:
		return isLogger(e.Sel)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "With" {
			return isLogger(s.X)
		}
		return isLogger(e.Fun) // ingest.Logger(…)
	}
	return false
}

// file is one whose keys are looked for.
type file struct {
	keys   *logKeys
	name   string
	set    *token.FileSet
	consts map[string]string // the package's constant strings
}

// key notes a key, or complains of what is none.
func (f *file) key(e ast.Expr) {
	at := fmt.Sprintf("%s:%d", f.name, f.set.Position(e.Pos()).Line)
	name, ok := "", false
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			name, _ = strconv.Unquote(e.Value)
			ok = true
		}
	case *ast.Ident:
		name, ok = f.consts[e.Name]
	}
	if !ok {
		f.complain(at + " logs a key that is not constant, which nobody can find or document: name it in place")
		return
	}
	f.keys.used[name] = cmp.Or(f.keys.used[name], at)
}

// complain notes what is wrong, except where a logger may be given what is made elsewhere.
func (f *file) complain(line string) {
	if passedOn[f.name] == "" {
		f.keys.complaints = append(f.keys.complaints, line)
	}
}

// pairs notes the keys among the arguments of a logger, which alternate with values where they are no attributes.
func (f *file) pairs(args []ast.Expr) {
	for len(args) > 0 {
		if ofSlog(args[0]) != "" { // noted where it is seen itself
			args = args[1:]
			continue
		}
		f.key(args[0])
		args = args[min(2, len(args)):]
	}
}

// ofSlog is the name of the function of log/slog that an expression calls to make an attribute.
func ofSlog(e ast.Expr) string {
	if c, ok := e.(*ast.CallExpr); ok {
		if s, ok := c.Fun.(*ast.SelectorExpr); ok && slices.Contains(attrs, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "slog" {
				return s.Sel.Name
			}
		}
	}
	return ""
}

// look notes the keys of one node of the syntax tree.
func (f *file) look(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Field:
		for _, name := range n.Names {
			if isLoggerType(n.Type) && !slices.Contains(loggerNames, name.Name) {
				f.complain(fmt.Sprintf("%s:%d has a logger called %s, whose keys are not found: call it log or Logger",
					f.name, f.set.Position(name.Pos()).Line, name.Name))
			}
		}
	case *ast.CompositeLit: // a list of pairs: labels := []any{"key", value}
		if a, ok := n.Type.(*ast.ArrayType); ok && passedOn[f.name] != "" && len(n.Elts)%2 == 0 {
			if x, ok := a.Elt.(*ast.Ident); ok && x.Name == "any" {
				f.pairs(n.Elts)
			}
		}
	case *ast.CallExpr:
		if ofSlog(n) != "" {
			f.key(n.Args[0])
			if name := ofSlog(n); name == "Group" || name == "GroupAttrs" {
				f.pairs(n.Args[1:])
			}
			return true
		}
		switch fun := n.Fun.(type) {
		case *ast.Ident:
			if fun.Name == "append" && passedOn[f.name] != "" && len(n.Args)%2 == 1 {
				f.pairs(n.Args[1:])
			}
		case *ast.SelectorExpr:
			from, ok := firstPair[fun.Sel.Name]
			switch {
			case isQuiet(fun):
				from = 3 // warn(ctx, kind, line, …)
			case !ok || !isLogger(fun.X):
				return true
			}
			if len(n.Args) > from {
				f.pairs(n.Args[from:])
			}
		}
	}
	return true
}

// isLoggerType says whether a type is *slog.Logger.
func isLoggerType(t ast.Expr) bool {
	p, ok := t.(*ast.StarExpr)
	if !ok {
		return false
	}
	s, ok := p.X.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "slog" && s.Sel.Name == "Logger"
}

// isQuiet says whether a call is to internode's warn, which takes pairs as a logger does.
func isQuiet(fun *ast.SelectorExpr) bool {
	s, ok := fun.X.(*ast.SelectorExpr)
	return fun.Sel.Name == "warn" && ok && s.Sel.Name == "quiet"
}

// constants are the strings that constants of a file's package have, by name.
func constants(f *ast.File, into map[string]string) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec) //nolint:forcetypeassert // what a const declaration has
			for i, e := range v.Values {
				if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
					into[v.Names[i].Name], _ = strconv.Unquote(l.Value)
				}
			}
		}
	}
}

// loggedKeys are those that the product uses.
func loggedKeys(tree fs.FS) (keys logKeys, err error) {
	keys.used = map[string]string{}
	texts, err := read(tree, func(file string) bool {
		return (strings.HasPrefix(file, "internal/") || strings.HasPrefix(file, "cmd/")) &&
			strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") &&
			!strings.Contains(file, "/testdata/")
	})
	if err != nil {
		return keys, err
	}
	set, parsed, consts := token.NewFileSet(), map[string]*ast.File{}, map[string]map[string]string{}
	for name, text := range texts {
		f, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return keys, err
		}
		parsed[name] = f
		if consts[path.Dir(name)] == nil {
			consts[path.Dir(name)] = map[string]string{}
		}
		constants(f, consts[path.Dir(name)])
	}
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		f := &file{keys: &keys, name: name, set: set, consts: consts[path.Dir(name)]}
		ast.Inspect(parsed[name], f.look)
	}
	return keys, nil
}

// readKeys are the keys that our own programs and tests look for in the log, with the place of the first of each: the
// tags of a struct that has msg among them.
func readKeys(tree fs.FS) (keys map[string]string, err error) {
	texts, err := read(tree, func(file string) bool { return strings.HasSuffix(file, ".go") })
	if err != nil {
		return nil, err
	}
	keys = map[string]string{}
	set := token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if !strings.Contains(texts[name], "`json:\"msg\"`") {
			continue
		}
		f, err := parser.ParseFile(set, name, texts[name], parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			tags := map[string]string{}
			for _, field := range s.Fields.List {
				if field.Tag != nil {
					text, _ := strconv.Unquote(field.Tag.Value)
					at := fmt.Sprintf("%s:%d", name, set.Position(field.Pos()).Line)
					tags[reflect.StructTag(text).Get("json")] = at
				}
			}
			if tags["msg"] != "" {
				for key, at := range tags {
					keys[key] = cmp.Or(keys[key], at)
				}
			}
			return true
		})
	}
	return keys, nil
}

// undocumentedKeys compares the keys that the product logs with the page that documents them.
func undocumentedKeys(tree fs.FS) (complaints []string, err error) {
	keys, err := loggedKeys(tree)
	if err != nil {
		return nil, err
	}
	page, err := fs.ReadFile(tree, logPage)
	if err != nil {
		return nil, err
	}
	complaints = keys.complaints
	documented := map[string]bool{}
	for _, m := range documentedKey.FindAllStringSubmatch(string(page), -1) {
		if documented[m[1]] {
			complaints = append(complaints, logPage+" has the key "+m[1]+" twice")
		}
		documented[m[1]] = true
		if keys.used[m[1]] == "" {
			complaints = append(complaints, logPage+" has the key "+m[1]+", which nothing logs")
		}
	}
	readers, err := readKeys(tree)
	if err != nil {
		return nil, err
	}
	for key, at := range readers {
		if !documented[key] && !slices.Contains([]string{"time", "level", "msg"}, key) {
			complaints = append(complaints, at+" looks for the key "+key+", which "+logPage+" does not have")
		}
	}
	for key, at := range keys.used {
		if !documented[key] {
			complaints = append(complaints, at+" logs the key "+key+", which "+logPage+" does not have")
		}
	}
	slices.Sort(complaints)
	return complaints, nil
}

// TestLogKeys: the page of log keys has those that are used, and no others; what reads the log looks for these.
func TestLogKeys(t *testing.T) {
	t.Parallel()
	complaints, err := undocumentedKeys(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestLogKeysComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := undocumentedKeys(fstest.MapFS{
		logPage: file("| key | meaning |\n|---|---|\n| `known` | |\n| `gone` | |\n| `constant` | |\n| `known` | |\n"),
		"internal/a/a.go": file("package a\nconst name = \"constant\"\nfunc f() {\n" +
			"log.Info(\"\", \"known\", 1, name, 2, slog.Int(\"attr\", 3))\n" +
			"s.opts.Logger.With(\"with\", 1).WarnContext(ctx, \"\", \"chained\", 1)\n" +
			"log.Warn(\"\", variable, 1)\nlog.Warn(\"\", list...)\n" +
			"log.Warn(\"\", slog.Group(\"group\", \"inner\", 1))\n" +
			"http.Error(w, \"text\", 1)\nquery.With(\"other\", 1)\n}\n" +
			"func h(l *slog.Logger) {}\n"),
		"internal/a/a_test.go": file("package a\nfunc g() { log.Info(\"\", \"tested\", 1) }\n"),
		"internal/internode/quiet.go": file("package b\nfunc f() {" +
			" log.Info(\"\", append([]any{\"listed\", 1}, \"more\", 2)...) }\n"),
		"test/a/a.go": file("package a\nvar line struct {\nMsg, Level string\nText string `json:\"msg\"`\n" +
			"At string `json:\"time\"`\nA string `json:\"old\"`\nB string `json:\"known\"`\n}\n" +
			"var other struct {\nC string `json:\"other\"`\n}\n"),
	})
	want := []string{
		"docs/logs.md has the key gone, which nothing logs",
		"docs/logs.md has the key known twice",
		"internal/a/a.go:12 has a logger called l, whose keys are not found: call it log or Logger",
		"internal/a/a.go:4 logs the key attr, which docs/logs.md does not have",
		"internal/a/a.go:5 logs the key chained, which docs/logs.md does not have",
		"internal/a/a.go:5 logs the key with, which docs/logs.md does not have",
		"internal/a/a.go:6 logs a key that is not constant, which nobody can find or document: name it in place",
		"internal/a/a.go:7 logs a key that is not constant, which nobody can find or document: name it in place",
		"internal/a/a.go:8 logs the key group, which docs/logs.md does not have",
		"internal/a/a.go:8 logs the key inner, which docs/logs.md does not have",
		"internal/internode/quiet.go:2 logs the key listed, which docs/logs.md does not have",
		"internal/internode/quiet.go:2 logs the key more, which docs/logs.md does not have",
		"test/a/a.go:6 looks for the key old, which docs/logs.md does not have",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %v\n%s", err, strings.Join(got, "\n"))
	}
}
