package archtest

import (
	"bufio"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is how long a line of Go is at most; a tab has four. The lines that are longer have a tag, a raw string or
// a nolint that can't be broken. Their number may only go down.
const maxColumns, longLines = 120, 364

// TestColumns: no line is longer than others were.
func TestColumns(t *testing.T) {
	t.Parallel()
	n, err := long(os.DirFS("../.."))
	switch {
	case err != nil:
		t.Fatal(err)
	case n > longLines:
		t.Errorf("%d lines have more than %d columns, %d had before: break the new ones", n, maxColumns, longLines)
	case n < longLines-50: // so that not each change has to touch the number
		t.Errorf("%d lines have more than %d columns: set longLines to that", n, maxColumns)
	}
}

// long counts the lines of Go that are too long.
func long(tree fs.FS) (n int, err error) {
	err = fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && name != "." &&
			(strings.HasPrefix(e.Name(), ".") ||
				slices.Contains([]string{"bin", "tmp", "node_modules", "testdata"}, e.Name())):
			return fs.SkipDir
		case e.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		f, err := tree.Open(name)
		if err != nil {
			return err
		}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if utf8.RuneCount(lines.Bytes())+3*strings.Count(lines.Text(), "\t") > maxColumns {
				n++
			}
		}
		if err = lines.Err(); err != nil {
			_ = f.Close() // it was only read
			return err
		}
		return f.Close()
	})
	return n, err
}
