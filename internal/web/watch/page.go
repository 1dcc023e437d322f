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
	fullPage = layout{template: "watch.html"}
	embedded = layout{template: "embed.html", embedded: true}
)

// nobody is the source for frame-ancestors when no site may embed a page.
const nobody = "'none'"

// view is what a page is made of.
type view struct {
	About

	Embedded   bool
	Private    bool // the viewer may not watch
	PlaybackID string

	base    string // of the whole addresses; empty: not known
	framers string // who may embed the page; empty: everybody
	unsure  bool   // it could not be found out, so that nobody may
}

// view is a page as a viewer with these tokens may see it. With an error it is one of which nothing is known.
func (h *handler) view(r *http.Request, playbackID string, as layout, tokens []string) (view, error) {
	about, err := h.about(r, playbackID, tokens)
	framers, known := h.framers(r, playbackID, as)
	return view{
		About: about, Embedded: as.embedded, Private: fault.Is(err, fault.Denied), PlaybackID: playbackID,
		base: h.PublicURL, framers: framers, unsure: !known,
	}, err
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

// thumbnail is the path of a picture of what is watched; empty: there is none that everybody may see.
func (v view) thumbnail() string {
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

// Poster is the address of that picture, seen from the page.
func (v view) Poster() string {
	v.base = ".."
	address, _ := v.picture(pictureBox)
	return address
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
	v, _ := h.view(r, playbackID, as, r.URL.Query()["token"])
	var page bytes.Buffer
	if err := h.pages.ExecuteTemplate(&page, as.template, v); err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	rules := policy
	if v.framers != "" {
		rules += "; frame-ancestors " + v.framers
	}
	w.Header().Set("Content-Security-Policy", rules)
	send(w, r, "text/html; charset=utf-8", page.Bytes())
}

// framers says who may show a page in a frame; empty: everybody. Where that is not known, nobody may. An embed page
// says so also where everybody may: browsers then don't heed an X-Frame-Options that a proxy adds (CSP level 3, section
// 6.4.2.2). In a frame of which nothing else is known it says that there is no video.
func (h *handler) framers(r *http.Request, playbackID string, as layout) (sources string, known bool) {
	const all = "*"
	if h.Framers != nil {
		var err error
		sources, err = h.Framers(r.Context(), playbackID)
		nothing := as.embedded && fault.Is(err, fault.NotFound) // to protect
		if err != nil && !nothing {
			return nobody, false
		}
	}
	if sources == "" && as.embedded {
		return all, true
	}
	return sources, true
}
