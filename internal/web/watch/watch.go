// Package watch serves the page on which a person looks at a stream or an asset: /watch/{playback_id}, plain HTML with an
// embedded player. It must never know streams, assets or rights: the page asks for /{playback_id}.m3u8 like any other player,
// and shows the response; what else it may say it is told. It starts no goroutine.
package watch

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"path"
	"strings"

	"millrace/internal/web/static"
)

//go:embed assets
var files embed.FS

// policy lets the page run its own script, talk to its own origin, and nothing else. hls.js runs its worker and feeds
// the video element from blobs; its subtitle tracks begin with an empty data: address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob: data:; " +
	"connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'"

// maxID bounds a playback ID in an address; the service's own are shorter.
const maxID = 128

// Framers says who may embed the page of a playback ID, as sources of the directive frame-ancestors (CSP level 3, section 6.4.2.1); empty: all.
type Framers func(ctx context.Context, playbackID string) (sources string)

// Options configures a Handler.
type Options struct {
	Framers  Framers  // nil: everybody may embed every page
	Describe Describe // nil: pages have no titles and lead to no recordings
}

type handler struct {
	Options

	page   *template.Template
	assets static.Assets
}

// Handler serves GET and HEAD of /watch/{playback_id}, of /watch/{playback_id}/about and of /watch/assets/….
func Handler(o Options) http.Handler {
	h := &handler{Options: o, assets: static.Read(files,
		"assets/hls.min.js", "assets/controls.js", "assets/watch.js", "assets/watch.css", "assets/hls.LICENSE",
	)}
	address := template.FuncMap{"asset": func(name string) string { return "assets/" + h.assets.Address(name) }}
	h.page = template.Must(template.New("watch.html").Funcs(address).ParseFS(files, "assets/watch.html"))
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	rest, ok := strings.CutPrefix(path.Clean(r.URL.Path), "/watch/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name, ok := strings.CutPrefix(rest, "assets/"); ok {
		h.assets.Serve(w, r, name)
		return
	}
	playbackID, about := strings.CutSuffix(rest, "/about")
	if !validID(playbackID) {
		http.NotFound(w, r)
		return
	}
	if about {
		h.serveAbout(w, r, playbackID)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/") { // the page's addresses are relative to /watch/{id}
		to := "../" + rest
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	h.servePage(w, r, playbackID)
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || id == "assets" {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
