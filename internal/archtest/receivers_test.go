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
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
	"unicode/utf8"
)

// receivers are the names by which methods of a package's type call their value.
type receivers map[string]map[string]bool

// add collects those of a file.
func (r receivers) add(pkg string, file *ast.File) {
	for _, d := range file.Decls {
		method, ok := d.(*ast.FuncDecl)
		if !ok || method.Recv == nil || len(method.Recv.List[0].Names) == 0 {
			continue
		}
		name := method.Recv.List[0].Names[0].Name
		if name == "_" {
			continue
		}
		of := pkg + "." + receiver(method.Recv.List[0].Type)
		if r[of] == nil {
			r[of] = map[string]bool{}
		}
		r[of][name] = true
	}
}

// complaints says of which types the receivers have several names, or one that begins with another letter.
func (r receivers) complaints() (lines []string) {
	for of, names := range r {
		if len(names) > 1 {
			lines = append(lines, fmt.Sprintf("%s has receivers of %d names: choose one", of, len(names)))
		}
		first, _ := utf8.DecodeRuneInString(of[strings.LastIndexByte(of, '.')+1:])
		for name := range names {
			if !strings.HasPrefix(name, string(unicode.ToLower(first))) {
				lines = append(lines, fmt.Sprintf("%s has a receiver %s: begin it with the type's letter", of, name))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// receiversOf collects those of a tree, tests included.
func receiversOf(tree fs.FS) (receivers, error) {
	all := receivers{}
	err := fs.WalkDir(tree, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") {
			return nil
		}
		src, err := fs.ReadFile(tree, p)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all.add(path.Dir(p)+" "+file.Name.Name, file)
		return nil
	})
	return all, err
}

// TestReceivers: a method calls its value by one name for each type, which begins with the type's letter.
func TestReceivers(t *testing.T) {
	t.Parallel()
	found, err := receiversOf(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range found.complaints() {
		t.Error(line)
	}
}

func TestReceiversComplain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		src   string
		lines int
	}{
		"its letter":    {"package a\nfunc (b *Box[K]) M() {}\nfunc (b Box[K]) N() {}", 0},
		"two letters":   {"package a\nfunc (bx Box) M() {}", 0},
		"none":          {"package a\nfunc (Box) M() {}\nfunc (_ Box) N() {}", 0},
		"other letter":  {"package a\nfunc (x Box) M() {}", 1},
		"two names":     {"package a\nfunc (b Box) M() {}\nfunc (bx Box) N() {}", 1},
		"a second type": {"package a\nfunc (b Box) M() {}\nfunc (b Car) N() {}", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := receiversOf(fstest.MapFS{"internal/a/x.go": {Data: []byte(tt.src)}})
			if err != nil {
				t.Fatal(err)
			}
			if got := found.complaints(); len(got) != tt.lines {
				t.Errorf("got %q", got)
			}
		})
	}
}
