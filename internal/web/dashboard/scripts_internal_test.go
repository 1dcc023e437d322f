package dashboard

import (
	"io/fs"
	"strings"
	"testing"
)

// TestFollowsLast: modules run in their order, so a page that says that it is kept up to date has also its keys, its
// player and its uploads. When follow.js came first, keys that were pressed at once did nothing.
func TestFollowsLast(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	pages := 0
	for _, name := range names {
		page, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(page), `{{asset "follow.js"}}"></script>`)
		if !found {
			continue
		}
		pages++
		if strings.Contains(after, "<script") {
			t.Errorf("%s has a script after follow.js", name)
		}
	}
	if pages < 5 {
		t.Errorf("%d pages follow, want at least 5", pages)
	}
}
