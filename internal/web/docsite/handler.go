package docsite

import (
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"millrace/docs"
	"millrace/internal/web/static"
)

// Path is where Handler serves the site.
const Path = "/docs"

// policy lets pages load their own files, and nobody frame them.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// kinds are the content types of the site's files by the ends of their names.
var kinds = map[string]string{ //nolint:gochecknoglobals // a table
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".md": "text/markdown; charset=utf-8", ".webp": "image/webp",
}

// Embedded serves the documentation of this program.
func Embedded(o Options) http.Handler { return Handler(docs.Files, o) }

// Handler serves GET and HEAD of /docs, which leads to /docs/, and of what is below. The site is made when it is first
// asked for; it panics if the documents, which are embedded, don't make one.
func Handler(from fs.FS, o Options) http.Handler {
	site := sync.OnceValue(func() map[string]static.Asset {
		all, err := Build(from, o)
		if err != nil {
			panic("docsite: " + err.Error())
		}
		out := map[string]static.Asset{}
		for name, b := range all {
			kind, ok := kinds[path.Ext(name)]
			if !ok {
				kind = "text/plain; charset=utf-8"
			}
			out[name] = static.New(b, kind)
		}
		return out
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			head.Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		name, ok := strings.CutPrefix(r.URL.Path, Path+"/")
		if !ok { // the addresses of pages are relative to /docs/
			head.Set("Location", "docs/")
			w.WriteHeader(http.StatusMovedPermanently)
			return
		}
		if name == "" {
			name = address(start)
		}
		file, ok := site()[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		head.Set("Content-Security-Policy", policy)
		head.Set("Cache-Control", "no-cache") // an upgrade changes it
		file.Serve(w, r)
	})
}
