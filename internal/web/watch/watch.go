// Package watch serves the page on which a person looks at a stream or an asset: /watch/{playback_id}, plain HTML with an
// embedded player. It must never know streams, assets or rights: the page asks for /{playback_id}.m3u8 like any other player,
// and shows the response. It starts no goroutine.
package watch

import (
	"context"
	"embed"
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

type handler struct {
	page    static.Asset
	assets  static.Assets
	framers Framers
}

// Handler serves GET and HEAD of /watch/{playback_id} and of /watch/assets/…. Without framers everybody may embed every page.
func Handler(framers Framers) http.Handler {
	h := &handler{framers: framers, assets: static.Read(files, "assets/hls.min.js", "assets/watch.js", "assets/watch.css", "assets/hls.LICENSE")}
	h.page = static.Page(files, "assets/watch.html", h.assets)
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
	if !validID(rest) {
		http.NotFound(w, r)
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
	head := w.Header()
	rules := policy
	if h.framers != nil {
		if sources := h.framers(r.Context(), rest); sources != "" {
			rules += "; frame-ancestors " + sources
		}
	}
	head.Set("Content-Security-Policy", rules)
	head.Set("Referrer-Policy", "no-referrer") // a token may be in the address
	head.Set("Cache-Control", "no-cache")
	h.page.Serve(w, r)
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
