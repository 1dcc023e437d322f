package docsite_test

import (
	"bytes"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"millrace/internal/web/docsite"
)

// site makes the site of the documents.
func site(t *testing.T, from fs.FS, o docsite.Options) map[string][]byte {
	t.Helper()
	files, err := docsite.Build(from, o)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// seen is what a page of the site has: anchors, links, and those of its links that stand in the text.
type seen struct{ ids, links, inText []string }

func look(t *testing.T, page []byte) (s seen) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var visit func(n *html.Node, text bool)
	visit = func(n *html.Node, text bool) {
		text = text || n.Data == "article"
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				s.ids = append(s.ids, a.Val)
			case "href", "src":
				s.links = append(s.links, a.Val)
				if text {
					s.inText = append(s.inText, a.Val)
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			visit(c, text)
		}
	}
	visit(doc, false)
	return s
}

// complaints says which links of the site lead nowhere, and which pages no text leads to, from the first page on.
func complaints(t *testing.T, files map[string][]byte) (out []string) {
	t.Helper()
	pages := map[string]seen{}
	for name, b := range files {
		if path.Ext(name) == ".html" {
			pages[name] = look(t, b)
		}
	}
	for name, p := range pages {
		for _, link := range p.links {
			to, fragment, has := strings.Cut(link, "#")
			if strings.Contains(to, ":") {
				continue // elsewhere, or in the page
			}
			if to == "" {
				to = name
			}
			if _, ok := files[to]; !ok || has && path.Ext(to) == ".html" && !slices.Contains(pages[to].ids, fragment) {
				out = append(out, name+" links to "+link)
			}
		}
	}
	reached, next := map[string]bool{"index.html": true}, []string{"index.html"}
	for len(next) > 0 {
		for _, link := range pages[next[0]].inText {
			to, _, _ := strings.Cut(link, "#")
			if _, ok := pages[to]; ok && !reached[to] {
				reached[to], next = true, append(next, to)
			}
		}
		next = next[1:]
	}
	for name := range pages {
		if !reached[name] {
			out = append(out, name+" is not reached")
		}
	}
	slices.Sort(out)
	return out
}

// TestSiteOfDocuments: every link of the site leads somewhere, below any path, and the first page leads to every other
// one, without the navigation beside it.
func TestSiteOfDocuments(t *testing.T) {
	t.Parallel()
	documents := os.DirFS("../../../docs")
	files := site(t, documents, docsite.Options{})
	for _, c := range complaints(t, files) {
		t.Error(c)
	}
	names, err := fs.Glob(documents, "*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d documents, %v", len(names), err)
	}
	for _, name := range names {
		if text, err := fs.ReadFile(documents, name); err != nil || !bytes.Equal(files[name], text) {
			t.Errorf("%s is not on the site as it is: %v", name, err)
		}
		if !bytes.Contains(files["llms.txt"], []byte("]("+name+"): ")) {
			t.Errorf("llms.txt does not name %s", name)
		}
	}
	for name, b := range files {
		if path.Ext(name) == ".html" && bytes.Contains(b, []byte(`href="/`)) {
			t.Errorf("%s links to the root of a server", name)
		}
	}
}

// small are documents with everything that is treated on its own.
var small = fstest.MapFS{
	"README.md": {Data: []byte("# Start\n\nWhat it is. More.\n\n" +
		"[A](a.md#the-end-of-x) and [code](x.conf) and [why](decisions/1.md), [far](https://example.com/)\n")},
	"a.md": {Data: []byte("# A page\n\n<!-- for tests -->\n## The *end* of [x](README.md)!\n\n" +
		"`--flag` <script>alert(1)</script>\n\n```sh\necho \"<b>\" && true\n```\n\n" +
		"| a | b |\n|---|---|\n| 1 | 2 |\n\n![Gone](pictures/gone.webp)\n\n![Here](pictures/here.webp)\n\n" +
		"## The end of x\n\n[up](README.md)\n")},
	"decisions/1.md":     {Data: []byte("# Why\n")},
	"pictures/here.webp": {Data: []byte("picture")},
	"x.conf":             {Data: []byte("conf")},
	"y.go":               {Data: []byte("package y")},
}

func TestBuild(t *testing.T) {
	t.Parallel()
	files := site(t, small, docsite.Options{Version: "1.2.3"})
	if got := complaints(t, files); len(got) > 0 {
		t.Errorf("complaints %q", got)
	}
	want := []string{
		"README.md", "a.html", "a.md", "assets/docs.css", "assets/docs.js", "assets/search-index.js",
		"assets/style.css", "assets/theme.js", "index.html", "llms.txt", "pictures/here.webp", "x.conf",
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("files %q", got)
	}
	first, second := string(files["index.html"]), string(files["a.html"])
	for _, part := range []string{
		`<a href="a.html#the-end-of-x">A</a>`, `<a href="x.conf">`, " and why, ", `<a href="https://example.com/">`,
		"Version 1.2.3",
	} {
		if !strings.Contains(first, part) {
			t.Errorf("the first page has no %s", part)
		}
	}
	for _, part := range []string{
		`<h2 id="the-end-of-x">`, `<h2 id="the-end-of-x-1">`, `echo &quot;&lt;b&gt;&quot; &amp;&amp; true`,
		`<div class="table" tabindex="0"><table>`, `<img src="pictures/here.webp" alt="Here">`,
		`aria-current="page">A page</a>`,
	} {
		if !strings.Contains(second, part) {
			t.Errorf("the second page has no %s:\n%s", part, second)
		}
	}
	for _, part := range []string{"alert(1)</script>", "for tests", "gone.webp"} {
		if strings.Contains(second, part) {
			t.Errorf("the second page has %s", part)
		}
	}
	llms := "# Start\n\n> What it is.\n\n## Get started\n\n- [Start](README.md): What it is.\n\n## More\n\n" +
		"- [A page](a.md): --flag alert(1)\n"
	if got := string(files["llms.txt"]); got != llms {
		t.Errorf("llms.txt:\n%s", got)
	}
	index := `{"at":"a.html#the-end-of-x","page":"A page","heading":"The end of x!","text":"--flag alert(1) echo`
	got := string(files["assets/search-index.js"])
	if !strings.HasPrefix(got, "window.searchIndex = [{") || !strings.Contains(got, index) {
		t.Errorf("index of the search:\n%s", got)
	}
	source := string(site(t, small, docsite.Options{Source: "https://code.example.com/blob/main/"})["index.html"])
	if !strings.Contains(source, `<a href="https://code.example.com/blob/main/docs/decisions/1.md">why</a>`) {
		t.Error("nothing leads to the sources")
	}
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	got := complaints(t, map[string][]byte{
		"index.html": []byte(`<nav><a href="b.html">b</a></nav>` +
			`<article><a href="a.html#here">a</a> <a href="gone.html">gone</a></article>`),
		"a.html": []byte(`<article><a id="there" href="index.html#x">up</a></article>`), "b.html": nil,
	})
	want := []string{
		"a.html links to index.html#x", "b.html is not reached", "index.html links to a.html#here",
		"index.html links to gone.html",
	}
	if !slices.Equal(got, want) {
		t.Errorf("complaints %q", got)
	}
}

func TestBuildWithoutStart(t *testing.T) {
	t.Parallel()
	if _, err := docsite.Build(fstest.MapFS{"a.md": {Data: []byte("# A\n")}}, docsite.Options{}); err == nil {
		t.Error("a site without a first page")
	}
	if _, err := docsite.Build(fstest.MapFS{"README.md": {Data: []byte("text\n")}}, docsite.Options{}); err == nil {
		t.Error("a page without a title")
	}
}

func TestHandler(t *testing.T) {
	t.Parallel()
	h := docsite.Handler(small, docsite.Options{Reference: "reference"})
	for _, tt := range []struct {
		method, path string
		status       int
		kind, has    string
	}{
		{"GET", "/docs", http.StatusMovedPermanently, "", ""},
		{"GET", "/docs/", http.StatusOK, "text/html; charset=utf-8", `href="reference"`},
		{"GET", "/docs/index.html", http.StatusOK, "text/html; charset=utf-8", `href="reference"`},
		{"GET", "/docs/a.md", http.StatusOK, "text/markdown; charset=utf-8", "# A page"},
		{"GET", "/docs/llms.txt", http.StatusOK, "text/plain; charset=utf-8", "# Start"},
		{"GET", "/docs/assets/docs.js", http.StatusOK, "text/javascript; charset=utf-8", "search"},
		{"GET", "/docs/pictures/here.webp", http.StatusOK, "image/webp", "picture"},
		{"GET", "/docs/y.go", http.StatusNotFound, "text/plain; charset=utf-8", ""},
		{"GET", "/docs/../docs/a.md", http.StatusNotFound, "text/plain; charset=utf-8", ""},
		{"POST", "/docs/", http.StatusMethodNotAllowed, "text/plain; charset=utf-8", ""},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil))
		kind := w.Header().Get("Content-Type")
		if w.Code != tt.status || kind != tt.kind || !strings.Contains(w.Body.String(), tt.has) {
			t.Errorf("%s %s: %d %v", tt.method, tt.path, w.Code, w.Header())
		}
		const strict = "default-src 'none'; script-src 'self'; style-src 'self';"
		policy := w.Header().Get("Content-Security-Policy")
		if tt.status == http.StatusOK && (!strings.HasPrefix(policy, strict) || strings.Contains(policy, "unsafe")) {
			t.Errorf("%s: policy %q", tt.path, policy)
		}
	}
}
