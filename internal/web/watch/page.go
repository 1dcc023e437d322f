package watch

import (
	"bytes"
	"net/http"
	"strings"

	"millrace/internal/fault"
)

// layout is how a page shows the player.
type layout struct {
	template string
	embedded bool // in a frame of another page, of which it fills all
}

// The layouts: with a title and settings around the player, and the player alone.
//
//nolint:gochecknoglobals // constants
var (
	whole    = layout{template: "watch.html"}
	embedded = layout{template: "embed.html", embedded: true}
)

// view is what a page is made of.
type view struct {
	About

	Embedded   bool
	Private    bool // the viewer may not watch
	PlaybackID string
}

// Heading names what is watched.
func (v view) Heading() string {
	switch {
	case v.Title != "":
		return v.Title
	case v.Private:
		return "Private video"
	case v.State == Video, v.State == "":
		return "Video"
	}
	return "Live stream"
}

// Poster is the address of a picture of what is watched, below the service's own; empty: there is none that everybody may
// see.
func (v view) Poster() string {
	const name = "/thumbnail.jpg"
	switch {
	case !v.Public:
	case v.Recording != "":
		return v.Recording + name
	case v.State == OnAir, v.State == Video && v.Width > 0:
		return v.PlaybackID + name
	}
	return ""
}

// servePage responds with a page. What is not known, or not for this viewer, it goes without.
func (h *handler) servePage(w http.ResponseWriter, r *http.Request, playbackID string, as layout) {
	if !validID(playbackID) {
		http.NotFound(w, r)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/") { // the page's addresses are relative to /watch/{id}
		to := "../" + playbackID
		if r.URL.RawQuery != "" {
			to += "?" + r.URL.RawQuery
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	about, err := h.about(r, playbackID)
	seen := view{About: about, Embedded: as.embedded, Private: fault.Is(err, fault.Denied), PlaybackID: playbackID}
	var page bytes.Buffer
	if err = h.pages.ExecuteTemplate(&page, as.template, seen); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	rules := policy
	if sources := h.framers(r, playbackID, as); sources != "" {
		rules += "; frame-ancestors " + sources
	}
	w.Header().Set("Content-Security-Policy", rules)
	send(w, r, "text/html; charset=utf-8", page.Bytes())
}

// framers says who may show a page in a frame; empty: everybody. Where that can't be found out, nobody may. An embed page
// says so also where everybody may: browsers then don't heed an X-Frame-Options that a proxy adds (CSP level 3, section
// 6.4.2.2). In a frame of which nothing else is known it says that there is no video.
func (h *handler) framers(r *http.Request, playbackID string, as layout) string {
	const all, nobody = "*", "'none'"
	sources := ""
	if h.Framers != nil {
		var err error
		sources, err = h.Framers(r.Context(), playbackID)
		nothing := as.embedded && fault.Is(err, fault.NotFound) // to protect
		if err != nil && !nothing {
			return nobody
		}
	}
	if sources == "" && as.embedded {
		return all
	}
	return sources
}
