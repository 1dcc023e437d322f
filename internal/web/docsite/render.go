package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Sections of these levels are in the list of what a page has.
const firstListed, lastListed = 2, 3

// render makes the page of a document.
func render(from fs.FS, name string, source []byte, o Options) (*page, error) {
	md := goldmark.New(
		goldmark.WithExtensions(extension.Table),
		goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&nodes{}, 100))),
	)
	names := parser.NewContext(parser.WithIDs(&ids{used: map[string]int{}}))
	doc := md.Parser().Parse(text.NewReader(source), parser.WithContext(names))
	p := &page{File: name, Address: address(name)}
	if err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.heading(n, source)
		case *ast.Paragraph:
			if p.About == "" {
				p.About = firstSentence(plain(n, source))
			}
		}
		return ast.WalkContinue, nil
	}); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if p.Title == "" {
		return nil, fmt.Errorf("%s has no heading", name)
	}
	p.Short = shortName(name, p.Title)
	p.text(doc, source)
	resolve(from, doc, o)
	var b bytes.Buffer
	if err := md.Renderer().Render(&b, source, doc); err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	p.Body = template.HTML(b.String()) //nolint:gosec // the documents are ours, and raw HTML in them is left out
	return p, nil
}

func (p *page) heading(n *ast.Heading, source []byte) {
	name := plain(n, source)
	if n.Level == 1 && p.Title == "" {
		p.Title = name
	}
	id, _ := n.AttributeString("id")
	b, _ := id.([]byte)
	p.Sections = append(p.Sections, section{Level: n.Level, ID: string(b), Heading: name})
}

// text keeps the words of each section for the search.
func (p *page) text(doc ast.Node, source []byte) {
	at := -1
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading {
			at++
		} else if at >= 0 {
			s := &p.Sections[at]
			s.words = strings.TrimSpace(s.words + " " + plain(n, source))
		}
	}
}

// Listed gives the sections that the list of what a page has names.
func (p *page) Listed() (out []section) {
	for _, s := range p.Sections {
		if s.Level >= firstListed && s.Level <= lastListed {
			out = append(out, s)
		}
	}
	return out
}

// plain is the text of a node in one line.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		case *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		default:
			if !entering && (n.Type() == ast.TypeBlock) {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

func firstSentence(s string) string {
	if head, _, more := strings.Cut(s, ". "); more {
		return head + "."
	}
	return s
}

// resolve has links lead to pages instead of documents. A link to what the site does not have leads to the sources or,
// without any, is left out, as is a picture.
func resolve(from fs.FS, doc ast.Node, o Options) {
	var gone []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			to, ok := target(from, string(n.Destination), o)
			if n.Destination = []byte(to); !ok {
				gone = append(gone, n)
			}
		case *ast.Image:
			at := string(n.Destination)
			if _, err := fs.Stat(from, at); err != nil && !strings.Contains(at, "://") {
				gone = append(gone, n)
				return ast.WalkSkipChildren, nil
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range gone {
		parent := n.Parent()
		for child := n.FirstChild(); n.Kind() == ast.KindLink && child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
		parent.RemoveChild(parent, n)
		if parent.ChildCount() == 0 && parent.Parent() != nil {
			parent.Parent().RemoveChild(parent.Parent(), parent)
		}
	}
}

// target is where a link of a document leads on the site, if it leads anywhere.
func target(from fs.FS, link string, o Options) (string, bool) {
	file, fragment, hasFragment := strings.Cut(link, "#")
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") || file == "" {
		return link, true
	}
	if _, err := fs.Stat(from, path.Clean(file)); err != nil || path.Ext(file) == ".md" && strings.Contains(file, "/") {
		at := path.Join("docs", file)
		if o.Source == "" || strings.HasPrefix(at, "..") {
			return link, false
		}
		return strings.TrimSuffix(o.Source, "/") + "/" + at, true
	}
	if path.Ext(file) == ".md" {
		file = address(file)
	}
	if hasFragment {
		file += "#" + fragment
	}
	return file, true
}

// ids names headings as GitHub does, so that a link leads to the same one in the sources and on the site.
type ids struct{ used map[string]int }

// Generate implements parser.IDs.
func (i *ids) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsNumber(r), r == '_', r == '-':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(linkless(string(value))))
	n := i.used[id]
	i.used[id]++
	if n > 0 {
		id += "-" + strconv.Itoa(n)
	}
	return []byte(id)
}

// Put implements parser.IDs.
func (i *ids) Put(value []byte) { i.used[string(value)]++ }

// linkless is a line of Markdown with the texts of its links alone.
func linkless(line string) string {
	for {
		head, rest, ok := strings.Cut(line, "](")
		if !ok {
			return line
		}
		_, tail, _ := strings.Cut(rest, ")")
		line = head + tail
	}
}

// nodes writes what differs from goldmark's own HTML.
type nodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (n *nodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, n.heading)
	r.Register(ast.KindFencedCodeBlock, n.code)
	r.Register(ast.KindCodeSpan, n.word)
	r.Register(ast.KindHTMLBlock, nothing)
	r.Register(ast.KindRawHTML, nothing)
	r.Register(east.KindTable, n.table)
}

func nothing(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

// heading has a link to itself.
func (n *nodes) heading(w util.BufWriter, source []byte, of ast.Node, entering bool) (ast.WalkStatus, error) {
	h, ok := of.(*ast.Heading)
	if !ok {
		return ast.WalkContinue, nil
	}
	id, _ := h.AttributeString("id")
	at, _ := id.([]byte)
	if entering {
		_, err := fmt.Fprintf(w, `<h%d id="%s">`, h.Level, at)
		return ast.WalkContinue, err
	}
	if h.Level > 1 {
		_, _ = fmt.Fprintf(w, `&nbsp;<a class="anchor" href="#%s" aria-label="Link to %s">#</a>`, at,
			util.EscapeHTML([]byte(plain(h, source))))
	}
	_, err := fmt.Fprintf(w, "</h%d>\n", h.Level)
	return ast.WalkContinue, err
}

// code is a block that can be scrolled with the keyboard, and that a script puts a button on.
func (n *nodes) code(w util.BufWriter, source []byte, of ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	_, err := fmt.Fprintf(w, `<div class="code"><pre tabindex="0"><code>%s</code></pre></div>`+"\n",
		util.EscapeHTML(of.Lines().Value(source)))
	return ast.WalkSkipChildren, err
}

// shortWord is how many bytes of code stay in one line, which browsers else break at hyphens.
const shortWord = 28

// word is code in a line of text.
func (n *nodes) word(w util.BufWriter, source []byte, of ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	code, tag := plain(of, source), "<code>"
	if len(code) <= shortWord {
		tag = `<code class="short">`
	}
	_, err := fmt.Fprintf(w, "%s%s</code>", tag, util.EscapeHTML([]byte(code)))
	return ast.WalkSkipChildren, err
}

// table scrolls by itself where the screen is too narrow for it.
func (n *nodes) table(w util.BufWriter, _ []byte, _ ast.Node, entering bool) (ast.WalkStatus, error) {
	tag := "</table></div>\n"
	if entering {
		tag = `<div class="table" tabindex="0"><table>` + "\n"
	}
	_, err := w.WriteString(tag)
	return ast.WalkContinue, err
}
