// Package docsite makes a site of the documentation: a page of HTML for each Markdown file, with navigation, a search
// that needs no server, and llms.txt. Pages refer to one another by relative links, so the same files work below any
// path and from a disk. It must never know what the documentation is about. It starts no goroutine.
package docsite

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"

	"millrace/internal/web/style"
)

//go:embed assets
var files embed.FS

// Options say what the site cannot know from its documents.
type Options struct {
	Version   string // on each page; empty: none
	Source    string // URL of the sources, for links to files outside the documents; empty: their texts only
	Reference string // relative address of the API reference; empty: the site has none
}

// start is the document that the site begins with.
const start = "README.md"

// page is a document of the site.
type page struct {
	File, Address string // as Markdown and as HTML, relative to the site
	Title, Short  string // its heading, and its name in the navigation
	About         string // its first sentence
	Body          template.HTML
	Sections      []section
}

// section is a part of a page below a heading.
type section struct {
	Level              int
	ID, Heading, words string
}

// Build makes all files of the site, by their paths.
func Build(from fs.FS, o Options) (map[string][]byte, error) {
	pages, err := readPages(from, o)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{"llms.txt": llms(pages), "assets/search-index.js": searchIndex(pages)}
	for name, in := range map[string]fs.FS{
		"assets/docs.css": files, "assets/docs.js": files, "assets/theme.js": files, "assets/style.css": style.Files,
	} {
		if in == fs.FS(files) {
			out[name], err = fs.ReadFile(in, name)
		} else {
			out[name], err = fs.ReadFile(in, path.Base(name))
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	if err = others(from, out); err != nil {
		return nil, err
	}
	layout, err := template.ParseFS(files, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the layout: %w", err)
	}
	for i, p := range pages {
		var b bytes.Buffer
		v := view{page: p, Options: o, Groups: groups(pages)}
		if i > 0 {
			v.Previous = pages[i-1]
		}
		if i+1 < len(pages) {
			v.Next = pages[i+1]
		}
		if err := layout.Execute(&b, v); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.Address, err)
		}
		out[p.Address] = b.Bytes()
	}
	return out, nil
}

// view is what the layout shows.
type view struct {
	*page
	Options
	Groups         []shownGroup
	Previous, Next *page
}

// Home reports whether it is the page that the site begins with.
func (v view) Home() bool { return v.File == start }

// readPages reads the documents, in the order of the navigation.
func readPages(from fs.FS, o Options) ([]*page, error) {
	names, err := fs.Glob(from, "*.md")
	if err != nil || !slices.Contains(names, start) {
		return nil, errors.Join(err, fs.ErrNotExist, errors.New("there is no "+start))
	}
	var pages []*page
	for _, name := range inOrder(names) {
		text, err := fs.ReadFile(from, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		p, err := render(from, name, text, o)
		if err != nil {
			return nil, err
		}
		pages = append(pages, p)
	}
	return pages, nil
}

// others adds the documents themselves, and what they show or link to.
func others(from fs.FS, out map[string][]byte) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && !slices.Contains([]string{".", "front", "pictures"}, name):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) == ".go":
			return nil
		}
		out[name], err = fs.ReadFile(from, name)
		return err
	})
}

// llms is the site for language models, as llmstxt.org proposes: each page as Markdown.
func llms(pages []*page) []byte {
	var b strings.Builder
	for _, p := range pages {
		if p.File == start {
			fmt.Fprintf(&b, "# %s\n\n> %s\n", p.Title, p.About)
		}
	}
	for _, g := range groups(pages) {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Name)
		for _, p := range g.Pages {
			fmt.Fprintf(&b, "- [%s](%s): %s\n", p.Title, p.File, p.About)
		}
	}
	return []byte(b.String())
}

// found is what the search shows of one section.
type found struct {
	At      string `json:"at"`
	Page    string `json:"page"`
	Heading string `json:"heading,omitempty"`
	Text    string `json:"text"`
}

// searchIndex is a script, since pages that are not from a server may read nothing else.
func searchIndex(pages []*page) []byte {
	var all []found
	for _, p := range pages {
		for _, s := range p.Sections {
			f := found{At: p.Address, Page: p.Short, Text: s.words}
			if s.Level > 1 {
				f.At, f.Heading = p.Address+"#"+s.ID, s.Heading
			}
			all = append(all, f)
		}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic("docsite: strings have no JSON: " + err.Error())
	}
	return slices.Concat([]byte("window.searchIndex = "), b, []byte(";\n"))
}
