// Package publish serves the page on which a person publishes a camera or a screen from the browser: /publish/, plain
// HTML that speaks WHIP. It must never know streams, keys or rights: the page calls /whip like any other publisher,
// with the key that the person enters, and shows the response. It starts no goroutine.
package publish

import (
	"embed"
	"maps"
	"net/http"
	"strings"

	"millrace/internal/web/static"
	"millrace/internal/web/style"
)

//go:embed assets
var files embed.FS

// policy lets the page run its own script, talk to its own origin, and nothing else; nobody may frame a page that shows
// a camera.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

type handler struct {
	page   static.Asset
	assets static.Assets
}

// Handler serves GET and HEAD of /publish, /publish/ and /publish/assets/….
func Handler() http.Handler {
	h := &handler{assets: static.Read(files, "assets/publish.js", "assets/capture.js",
		"assets/level.js", "assets/whip.js", "assets/publish.css")}
	maps.Copy(h.assets, static.Read(style.Files, "style.css"))
	h.page = static.Page(files, "assets/publish.html", h.assets)
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	switch name, asset := strings.CutPrefix(r.URL.Path, "/publish/assets/"); {
	case asset:
		h.assets.Serve(w, r, name)
	case r.URL.Path == "/publish": // the page's addresses are relative to /publish/
		head.Set("Location", "publish/")
		w.WriteHeader(http.StatusMovedPermanently)
	case r.URL.Path == "/publish/":
		head.Set("Content-Security-Policy", policy)
		head.Set("Permissions-Policy", "camera=(self), microphone=(self), display-capture=(self)")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-cache")
		h.page.Serve(w, r)
	default:
		http.NotFound(w, r)
	}
}
