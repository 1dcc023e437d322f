package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"millrace/test/browser"
	"millrace/test/rig"
)

// docsPages are the pages to copy that stand in docs/uploads.md.
func docsPages(t *testing.T) (pages []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/uploads.md")
	made(t, err)
	for i, block := range strings.Split(string(text), "```html\n") {
		if i > 0 {
			page, _, _ := strings.Cut(block, "```")
			pages = append(pages, page)
		}
	}
	return pages
}

// cdn is where the pages take their uploaders from: package and version.
var cdn = regexp.MustCompile(`https://cdn\.jsdelivr\.net/npm/(@?[\w/-]+)@([\d.]+)/`)

// fromHere has a page take its uploader from the packages that are installed, of the version that it names.
func fromHere(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("driver/package.json")
	made(t, err)
	var installed struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	made(t, json.Unmarshal(text, &installed))
	for _, m := range cdn.FindAllStringSubmatch(page, -1) {
		if have := installed.Dependencies[m[1]]; have != m[2] {
			t.Errorf("the page names %s %s, what was tried is %q", m[1], m[2], have)
		}
	}
	return cdn.ReplaceAllString(page, "/modules/$1/")
}

// TestDocsUploadsPages: the pages of docs/uploads.md, word by word, upload the film that a person chooses.
func TestDocsUploadsPages(t *testing.T) {
	rig.Parallel(t)
	documented := docsPages(t)
	film := rig.File(t, "a.mp4", rig.Clip{Size: "320x180", Kbit: 300, GOP: 2, Seconds: 4})
	s := rig.Start(t, rig.Options{})
	b := browser.Start(t)
	for i, c := range []struct{ url, field, file, done string }{
		{
			"URL of the upload", "data.url", "mux-uploader input[type=file]",
			"document.querySelector('mux-uploader').hasAttribute('upload-complete')",
		},
		{
			"tus_url of the upload", "data.tus_url", "#file",
			"document.getElementById('said').textContent === 'Uploaded.'",
		},
	} {
		if len(documented) != 2 || !strings.Contains(documented[i], c.url) {
			t.Fatalf("%d pages, none of which has %q", len(documented), c.url)
		}
		pages := http.NewServeMux()
		site := httptest.NewServer(pages)
		t.Cleanup(site.Close)
		code, o := s.Do(t, "POST", "/video/v1/uploads", rig.Object{"cors_origin": site.URL})
		if code != http.StatusCreated {
			t.Fatalf("create upload: %d %v", code, o)
		}
		page := strings.Replace(fromHere(t, documented[i]), c.url, o.Text(c.field), 1)
		pages.Handle("/modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir("driver/node_modules"))))
		pages.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, page) })
		p := b.Open(t, site.URL)
		p.Choose(t, c.file, film)
		p.Await(t, "uploaded", c.done, patience)
		_, now := s.Do(t, "GET", "/video/v1/uploads/"+o.Text("data.id"), nil)
		if now.Text("data.status") != "asset_created" {
			t.Errorf("%s: upload %v", c.url, now)
		}
	}
}
