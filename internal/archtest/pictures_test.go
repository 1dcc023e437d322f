package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// shown is a picture in a document: its alternative text, and where it is.
var shown = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)

// Pictures of docs/pictures have at most so many bytes each, and all together.
const maxPicture, maxPictures = 60_000, 450_000

// pictures says which pictures documents show that there are not, or without an alternative text, and which there are
// that no document shows, or that are too large.
func pictures(tree fs.FS) (complaints []string, err error) {
	documents, err := fs.Glob(tree, "*.md")
	if err != nil {
		return nil, err
	}
	more, err := fs.Glob(tree, "docs/*.md")
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, file := range append(documents, more...) {
		text, failed := fs.ReadFile(tree, file)
		if failed != nil {
			return nil, failed
		}
		for _, m := range shown.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[2], "://") {
				continue
			}
			at := path.Join(path.Dir(file), m[2])
			named[at] = true
			if _, gone := fs.Stat(tree, at); gone != nil {
				complaints = append(complaints, fmt.Sprintf("%s shows %s, which is not there", file, at))
			}
			if strings.TrimSpace(m[1]) == "" {
				complaints = append(complaints, fmt.Sprintf("%s shows %s without an alternative text", file, at))
			}
		}
	}
	all, err := fs.Glob(tree, "docs/pictures/*")
	total := int64(0)
	for _, at := range all {
		info, failed := fs.Stat(tree, at)
		if failed != nil {
			return nil, failed
		}
		total += info.Size()
		if !named[at] {
			complaints = append(complaints, at+" is in no document")
		}
		if info.Size() > maxPicture {
			complaints = append(complaints, fmt.Sprintf("%s has %d bytes, more than %d", at, info.Size(), maxPicture))
		}
	}
	if total > maxPictures {
		complaints = append(complaints, fmt.Sprintf("docs/pictures has %d bytes, more than %d", total, maxPictures))
	}
	slices.Sort(complaints)
	return complaints, err
}

func TestPictures(t *testing.T) {
	t.Parallel()
	complaints, err := pictures(os.DirFS("../.."))
	complain(t, complaints, err)
}

func TestPicturesComplains(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	got, err := pictures(fstest.MapFS{
		"README.md": file("![A list](docs/pictures/list.webp) ![far](https://example.com/a.png)"),
		"docs/a.md": file("![](pictures/list.webp)\n![Gone](pictures/gone.webp)\n" +
			"![Big](pictures/big.webp)"),
		"docs/pictures/list.webp": file("x"),
		"docs/pictures/big.webp":  file(strings.Repeat("x", maxPicture+1)),
		"docs/pictures/odd.webp":  file("x"),
	})
	want := []string{
		"docs/a.md shows docs/pictures/gone.webp, which is not there",
		"docs/a.md shows docs/pictures/list.webp without an alternative text",
		"docs/pictures/big.webp has 60001 bytes, more than 60000",
		"docs/pictures/odd.webp is in no document",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("complaints %q, %v", got, err)
	}
}
