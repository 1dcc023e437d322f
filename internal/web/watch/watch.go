// Package watch serves the pages on which a person watches a stream or an asset: /watch/{playback_id}, plain HTML with
// a player, and /embed/{playback_id}, the player alone, for frames of other sites' pages. It also tells other sites how
// to preview a link to either. It must never know streams, assets or rights: the pages request /{playback_id}.m3u8 like
// any other player, and show the response; everything else is passed to them. It starts no goroutine.
package watch

import (
	"context"
	"embed"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"millrace/internal/web/player"
	"millrace/internal/web/static"
)

//go:embed assets
var files embed.FS

// policy lets the pages run their own scripts, talk to their own origin, and nothing else. hls.js runs its worker and
// feeds the video element from blobs; its subtitle tracks begin with an empty data: address.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' " +
	"blob: data:; " +
	"connect-src 'self'; worker-src blob:; base-uri 'none'; form-action 'none'"

// maxID bounds a playback ID in an address; the service's own are shorter.
const maxID = 128

// Framers says who may embed the pages of a playback ID, as sources of the directive frame-ancestors (CSP level 3,
// section 6.4.2.1); empty: all. fault.NotFound: there is no such playback ID.
type Framers func(ctx context.Context, playbackID string) (sources string, err error)

// Options configures a Handler.
type Options struct {
	Framers  Framers  // nil: everybody may embed every page
	Describe Describe // nil: pages have no titles and lead to no recordings
	// PublicURL is how the outside reaches the service, without a slash at the end. Empty: other sites are told
	// nothing.
	PublicURL string
}

type handler struct {
	Options

	pages  *template.Template // watch.html and embed.html
	assets static.Assets
}

// Handler serves GET and HEAD of /watch/{playback_id}, of /watch/{playback_id}/about, of /watch/assets/…, of
// /embed/{playback_id} and of /oembed.
func Handler(o Options) http.Handler {
	h := &handler{Options: o, assets: static.Read(files,
		"assets/hls.min.js.gz", "assets/watch.js", "assets/watch.css", "assets/hls.LICENSE",
	)}
	modules := player.Into(h.assets)
	h.assets.Link(append(slices.Clone(modules), "watch.js")...)
	address := template.FuncMap{
		"asset":   func(name string) string { return "../watch/assets/" + h.assets.Address(name) },
		"modules": func() []string { return modules },
	}
	pages := template.Must(template.New("").Funcs(address).ParseFS(files, "assets/*.html"))
	h.pages = template.Must(pages.ParseFS(player.Files, player.Template))
	return h
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == OEmbedPath {
		h.serveOEmbed(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	clean := path.Clean(r.URL.Path)
	if playbackID, ok := strings.CutPrefix(clean, "/embed/"); ok {
		h.servePage(w, r, playbackID, embedded)
		return
	}
	rest, ok := strings.CutPrefix(clean, "/watch/")
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name, ok := strings.CutPrefix(rest, "assets/"); ok {
		h.assets.Serve(w, r, name)
		return
	}
	if playbackID, ok := strings.CutSuffix(rest, "/about"); ok {
		h.serveAbout(w, r, playbackID)
		return
	}
	h.servePage(w, r, rest, fullPage)
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
