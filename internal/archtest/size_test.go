package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// What is to be held in the head at once: packages of ours that one imports, methods of a type, fields of a struct and
// lines of a function. Fields with tags, which are a wire format's or a table's, do not count.
var budget = size{imports: 25, methods: 30, fields: 15, lines: 80}

// size is what a package or a type has.
type size struct{ imports, methods, fields, lines int }

// large has what was larger than that when it was counted. Its numbers may only go down: who makes one smaller lowers
// it here, and nothing comes in anew.
var large = sizes{
	"internal/app":                                   {imports: 100},
	"internal/app.node":                              {methods: 58, fields: 38},
	"internal/broadcast.Options":                     {fields: 19},
	"internal/broadcast.broadcast":                   {methods: 57, fields: 16},
	"internal/broadcast.recorder":                    {fields: 19},
	"internal/broadcast.sink":                        {fields: 20},
	"internal/config.Config":                         {fields: 56},
	"internal/control/live.CreateInput":              {fields: 18},
	"internal/delivery.Dispatcher":                   {fields: 21},
	"internal/media/codec/h264.Slices":               {fields: 19},
	"internal/media/container/mp4.Track":             {fields: 29},
	"internal/media/container/mpegts.stream":         {fields: 16},
	"internal/media/encode.Track":                    {fields: 22},
	"internal/media/encode.run":                      {fields: 17},
	"internal/media/hls.Media":                       {fields: 17},
	"internal/media/images.Request":                  {fields: 17},
	"internal/media/ingest/srt.conn":                 {fields: 22},
	"internal/media/ingest/whip.session":             {fields: 24},
	"internal/media/ondemand.streamer":               {fields: 16},
	"internal/media/ondemand.trackBuffer":            {fields: 26},
	"internal/media/packager.Packager":               {methods: 49, fields: 24},
	"internal/media/packager.track":                  {fields: 31},
	"internal/media/rendition/justintime.run":        {fields: 21},
	"internal/media/rendition/liveladder.encoderRun": {fields: 20},
	"internal/media/session.Session":                 {fields: 24},
	"internal/media/session.Stats":                   {fields: 16},
	"internal/media/session.videoTrack":              {fields: 20},
	"internal/media/slate.content":                   {fields: 18},
	"internal/media/speech/worker.sphinx":            {fields: 21},
	"internal/media/transform.worker":                {fields: 17},
	"internal/media/window.Edge":                     {methods: 113, fields: 20},
	"internal/media/window.liveRendition":            {fields: 20},
	"internal/media/window.segment":                  {fields: 16},
	"internal/presentation.recorded":                 {fields: 20},
	"internal/storage/db.DB":                         {methods: 82},
	"internal/web/api.Options":                       {fields: 18},
	"internal/web/express.conn":                      {fields: 20},
}

// beyond has what is larger than the budget; what is within it is 0.
func (s size) beyond() size {
	over := func(n, budget int) int {
		if n > budget {
			return n
		}
		return 0
	}
	return size{
		imports: over(s.imports, budget.imports), methods: over(s.methods, budget.methods),
		fields: over(s.fields, budget.fields), lines: over(s.lines, budget.lines),
	}
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch x := t.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// sizes are those of a tree, by package, type or function.
type sizes map[string]size

func (s sizes) update(name string, by func(*size)) {
	now := s[name]
	by(&now)
	s[name] = now
}

// add counts a file's types and functions.
func (s sizes) add(pkg string, files *token.FileSet, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			name := pkg + "." + n.Name.Name
			if n.Recv != nil {
				of := pkg + "." + receiver(n.Recv.List[0].Type)
				s.update(of, func(z *size) { z.methods++ })
				name = of + "." + n.Name.Name
			}
			lines := files.Position(n.End()).Line - files.Position(n.Pos()).Line + 1
			s.update(name, func(z *size) { z.lines = max(z.lines, lines) })
		case *ast.TypeSpec:
			if t, ok := n.Type.(*ast.StructType); ok {
				for _, f := range t.Fields.List {
					if f.Tag == nil {
						s.update(pkg+"."+n.Name.Name, func(z *size) { z.fields += max(len(f.Names), 1) })
					}
				}
			}
		}
		return true
	})
}

// tooLarge gives what is larger than the budget.
func tooLarge(tree fs.FS) (sizes, error) {
	all, imports := sizes{}, map[string]map[string]bool{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := path.Dir(p)
		all.add(pkg, files, file)
		if imports[pkg] == nil {
			imports[pkg] = map[string]bool{}
		}
		for _, spec := range file.Imports {
			full, _ := strconv.Unquote(spec.Path.Value)
			if to, ours := strings.CutPrefix(full, module); ours {
				imports[pkg][to] = true
			}
		}
		return nil
	})
	for pkg, to := range imports {
		all.update(pkg, func(z *size) { z.imports = len(to) })
	}
	for name, z := range all {
		all[name] = z.beyond()
	}
	maps.DeleteFunc(all, func(_ string, z size) bool { return z == size{} })
	return all, err
}

// TestSizes: nothing grows beyond the budget, and what is beyond it already only shrinks.
func TestSizes(t *testing.T) {
	t.Parallel()
	found, err := tooLarge(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(found, func(name string, _ size) bool { return !strings.HasPrefix(name, "internal/") })
	for _, line := range compare(found, large) {
		t.Error(line)
	}
}

// compare says in sentences how what was found differs from what may be.
func compare(found, allowed sizes) (lines []string) {
	for name, z := range found {
		if z != allowed[name] {
			lines = append(lines,
				fmt.Sprintf("%s is %+v, and large has %+v: split it where it grew, lower large where it shrank",
					name, z, allowed[name]))
		}
	}
	for name := range allowed {
		if found[name] == (size{}) {
			lines = append(lines, name+" is no longer too large: take it out of large")
		}
	}
	slices.Sort(lines)
	return lines
}

func TestSizesComplain(t *testing.T) {
	t.Parallel()
	var imports, fields, methods, tagged strings.Builder
	for i := range 31 {
		fmt.Fprintf(&imports, "import _ \"%sinternal/x%d\"\n", module, i)
		fmt.Fprintf(&fields, "f%d int\n", i)
		fmt.Fprintf(&tagged, "f%d int `json:\"f%d\"`\n", i, i)
		fmt.Fprintf(&methods, "func (t *T[K]) m%d() {}\n", i)
	}
	for name, tt := range map[string]struct{ src, want string }{
		"imports":     {"package a\n" + imports.String(), "internal/a"},
		"methods":     {"package a\ntype T[K any] struct{}\n" + methods.String(), "internal/a.T"},
		"lines":       {"package a\nfunc f() {\n" + strings.Repeat("f()\n", 79) + "}", "internal/a.f"},
		"all lines":   {"package a\nfunc f() {\n" + strings.Repeat("f()\n", 78) + "}", ""},
		"fields":      {"package a\ntype T struct{\n" + fields.String() + "}", "internal/a.T"},
		"wire format": {"package a\ntype T struct{\n" + tagged.String() + "}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := tooLarge(fstest.MapFS{"internal/a/x.go": {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > 1 || (tt.want != "") != (len(found) == 1) || tt.want != "" && found[tt.want] == (size{}) {
				t.Errorf("got %v, want %q", found, tt.want)
			}
		})
	}
}

// TestSizesOnlyShrink: what is beyond the budget may neither grow nor keep a number that is higher than it is.
func TestSizesOnlyShrink(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		found, allowed sizes
		lines          int
	}{
		"as before":    {sizes{"a.T": {methods: 40}}, sizes{"a.T": {methods: 40}}, 0},
		"new":          {sizes{"a.T": {methods: 40}}, nil, 1},
		"grown":        {sizes{"a.T": {methods: 41}}, sizes{"a.T": {methods: 40}}, 1},
		"shrunk":       {sizes{"a.T": {methods: 39}}, sizes{"a.T": {methods: 40}}, 1},
		"small":        {nil, sizes{"a.T": {methods: 40}}, 1},
		"other number": {sizes{"a.T": {methods: 40, fields: 16}}, sizes{"a.T": {methods: 40}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := compare(tt.found, tt.allowed); len(got) != tt.lines {
				t.Errorf("got %q", got)
			}
		})
	}
}
