package watch

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/web/header"
	"millrace/internal/web/iframe"
	"millrace/internal/web/respond"
)

// OEmbedPath is where other sites ask what to show of a link (oembed.com, section 2).
const OEmbedPath = "/oembed"

const (
	maxURL  = 2048 // bytes of the parameter url
	maxSide = 1920 // pixels of a player, however large it may be
)

// validStart are the values of an embed page's start that are passed on.
var validStart = regexp.MustCompile(`^[0-9hms.]{1,20}$`)

// oembed is the response, oembed.com section 2.3.4.
type oembed struct {
	Type            string `json:"type"`
	Version         string `json:"version"`
	Title           string `json:"title"`
	ProviderName    string `json:"provider_name"`
	ProviderURL     string `json:"provider_url"`
	HTML            string `json:"html"`
	Width           int    `json:"width"`
	Height          int    `json:"height"`
	ThumbnailURL    string `json:"thumbnail_url,omitempty"`
	ThumbnailWidth  int    `json:"thumbnail_width,omitempty"`
	ThumbnailHeight int    `json:"thumbnail_height,omitempty"`
}

// serveOEmbed responds to GET and HEAD of /oembed, from any origin: what it says is for everybody.
func (h *handler) serveOEmbed(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Cache-Control", "no-store")
	if header.Open(w, r) {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		head.Set("Allow", "GET, HEAD, OPTIONS")
		refuse(w, http.StatusMethodNotAllowed, "method_not_allowed", "the method must be one of GET, HEAD, OPTIONS")
		return
	}
	if r.Method == http.MethodHead {
		w = respond.Head{ResponseWriter: w}
	}
	query := r.URL.Query()
	if format := query.Get("format"); format != "" && format != "json" {
		refuse(w, http.StatusNotImplemented, "not_implemented", "format: there is json only")
		return
	}
	box, err := boxOf(query)
	if err == nil {
		err = checkURL(query["url"])
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, "invalid_parameters", fault.Messages(err)...)
		return
	}
	playbackID, start, ok := h.watched(query.Get("url"))
	if !ok {
		refuse(w, http.StatusNotFound, "not_found", "url: must be that of a watch or embed page of this service: "+
			h.PublicURL+"/watch/{playback_id}")
		return
	}
	h.describeEmbed(w, r, playbackID, start, box)
}

// boxOf reads maxwidth and maxheight. With one of the two alone the other is as large as the shape wants it.
func boxOf(query url.Values) (iframe.Size, error) {
	if !query.Has("maxwidth") && !query.Has("maxheight") {
		return iframe.Usual, nil
	}
	var wrong fault.List
	side := func(name string) int {
		if !query.Has(name) {
			return maxSide
		}
		n, err := strconv.ParseUint(query.Get(name), 10, 31)
		if err != nil || n == 0 {
			wrong.At(name, ": must be a whole number of pixels, from 1 on")
		}
		return int(min(n, maxSide))
	}
	box := iframe.Size{Width: side("maxwidth"), Height: side("maxheight")}
	return box, wrong.Err()
}

func checkURL(given []string) error {
	switch {
	case len(given) != 1 || given[0] == "":
		return fault.New(fault.Invalid, "url: must be given, once")
	case len(given[0]) > maxURL:
		return fault.New(fault.Invalid, "url: must have at most %d bytes", maxURL)
	}
	return nil
}

// watched gives the playback ID that the address of a watch or embed page is about, and where it begins. !ok: it is the
// address of something else.
func (h *handler) watched(address string) (playbackID, start string, ok bool) {
	base, err := url.Parse(h.PublicURL)
	if err != nil || base.Host == "" {
		return "", "", false
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || !sameHost(base, u) {
		return "", "", false
	}
	rest, ok := strings.CutPrefix(u.Path, base.Path)
	if !ok {
		return "", "", false
	}
	folder, playbackID := path.Split(strings.TrimSuffix(rest, "/"))
	if folder != "/watch/" && folder != "/embed/" || !validID(playbackID) {
		return "", "", false
	}
	if start = u.Query().Get("start"); !validStart.MatchString(start) {
		start = ""
	}
	return playbackID, start, true
}

// sameHost compares hosts and ports. Who pastes a link may have written either scheme.
func sameHost(a, b *url.URL) bool {
	usual := map[string]string{"http": "80", "https": "443"}
	port := func(u *url.URL) string {
		if p := u.Port(); p != "" && p != usual[u.Scheme] {
			return p
		}
		return ""
	}
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

// describeEmbed responds with what is to be shown of a playback ID that everybody may watch.
func (h *handler) describeEmbed(w http.ResponseWriter, r *http.Request, playbackID, start string, box iframe.Size) {
	const private = "this video is not for everybody: show the link"
	v, err := h.view(r, playbackID, embedded, nil)
	switch {
	case fault.Is(err, fault.NotFound), err == nil && !v.Public: // an asset that came to nothing
		refuse(w, http.StatusNotFound, "not_found", "there is no video at this address")
		return
	case fault.Is(err, fault.Denied), fault.Is(err, fault.Invalid), err == nil && v.framers == nobody && !v.unsure:
		refuse(w, http.StatusUnauthorized, "unauthorized", private)
		return
	case err != nil, v.unsure:
		respond.RetryAfter(w, 0)
		refuse(w, http.StatusServiceUnavailable, "unavailable", "the service is not available; try again")
		return
	}
	c := v.Card()
	c.Player = v.size().Filling(box)
	if start != "" {
		c.Embed += "?" + url.Values{"start": {start}}.Encode()
	}
	out := oembed{
		Type: "video", Version: "1.0", Title: c.Title, ProviderName: "Millrace", ProviderURL: h.PublicURL,
		HTML: iframe.Code(c.Embed, c.Title, c.Player), Width: c.Player.Width, Height: c.Player.Height,
	}
	picture := iframe.Size{
		Width: min(box.Width, pictureBox.Width), Height: min(box.Height, pictureBox.Height),
	}
	if address, shape := v.picture(picture); shape != (iframe.Size{}) { // the three go together
		out.ThumbnailURL, out.ThumbnailWidth, out.ThumbnailHeight = address, shape.Width, shape.Height
	}
	w.Header().Set("Cache-Control", "public, max-age=60")
	respond.JSON(w, http.StatusOK, out)
}

func refuse(w http.ResponseWriter, status int, typ string, messages ...string) {
	respond.Refuse(w, status, respond.Error{Type: typ, Messages: messages})
}
