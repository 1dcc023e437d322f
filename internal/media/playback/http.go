package playback

import (
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"millrace/internal/clientaddr"
	"millrace/internal/fault"
	"millrace/internal/media/captions"
	"millrace/internal/media/delivered"
	"millrace/internal/media/hls"
	"millrace/internal/media/watching"
	"millrace/internal/unsent"
	"millrace/internal/web/respond"
)

// Options is what a Handler needs.
type Options struct {
	Source Source
	// Base is how the outside reaches this server, without a slash at the end: texts that lead to pictures hold whole
	// addresses.
	Base   string
	Logger *slog.Logger
	// Watching is told who watches what; nil: nobody wants to know.
	Watching *watching.Register
	Clients  clientaddr.Finder
	// Unsent is what responses may keep in memory; nil: as much as they like.
	Unsent *unsent.Budget
}

// Handler is the HTTP face of playback. Paths: /{id} and /{id}.m3u8, /{id}/{media}/{rendition}.m3u8,
// /{id}/{media}/{rendition}/{resource}, /{id}/text/{track}.vtt, /{id}/{image}, where an image is thumbnail, animated or
// storyboard with an extension, /{id}/metadata.json, /{id}/{file} with files to download, and /master/{asset}.mp4.
type Handler struct {
	opt   Options
	made  made
	clips clips
}

// New returns a Handler.
func New(o Options) *Handler {
	return &Handler{opt: o, clips: newClips()}
}

// forever is how long what never changes may be cached, in seconds.
const forever = 31536000

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	openToAll(w.Header())
	if !respond.CleanPath(r.URL.Path) {
		h.fail(w, r, unknown())
		return
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		preflight(w)
		return
	default:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed", "",
			"playback supports GET, HEAD and OPTIONS only")
		return
	}
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

// Values of header fields that never change, shared by all responses.
//
//nolint:gochecknoglobals // constants
var (
	anyOrigin  = []string{"*"}
	exposed    = []string{"Accept-Ranges, Age, Content-Length, Content-Range, Date, ETag, Retry-After"}
	mpegURL    = []string{"application/vnd.apple.mpegurl"}
	byEncoding = []string{"Accept-Encoding"}
	gzipped    = []string{"gzip"}
	byBytes    = []string{"bytes"}
	noSniff    = []string{"nosniff"}
)

// openToAll opens a response to every page: a playback ID is the permission, cookies are never looked at. No browser
// may take what an owner has uploaded for anything but what it is said to be.
func openToAll(head http.Header) {
	head["Access-Control-Allow-Origin"] = anyOrigin
	head["Access-Control-Expose-Headers"] = exposed
	head["X-Content-Type-Options"] = noSniff
}

// preflight responds to a browser's CORS preflight request, Fetch standard section 3.3.3.
func preflight(w http.ResponseWriter) {
	head := w.Header()
	head.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	head.Set("Access-Control-Allow-Headers", "*")
	head.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	if strings.HasPrefix(r.URL.Path, masterPath) {
		return h.master(w, r)
	}
	id, rest, deep := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !deep {
		id = strings.TrimSuffix(id, ".m3u8")
	}
	if !plausible(id) {
		return unknown()
	}
	ask := Request{
		PlaybackID: id, Tokens: tokensOf(r.URL.RawQuery), Referrers: r.Header["Referer"],
		UserAgents: r.Header["User-Agent"],
	}
	if strings.HasPrefix(rest, pathPrefix) {
		if ask.Path, rest, _ = strings.Cut(rest, "/"); !isBelow(rest) {
			return unknown()
		}
	}
	what := theMultivariant
	if deep {
		what = kindOf(rest)
	}
	if what == nothing {
		return unknown()
	}
	ask.Use = useOf(rest)
	found, permit, err := h.opt.Source.Open(r.Context(), ask)
	p := viewing{found, id, permit, ask.Path != ""}
	if err != nil {
		if what == anImage && fault.Is(err, fault.NotReady) && asksLatest(permit.query(r)) {
			return fault.Wrap(fault.Invalid, err,
				"latest: there is a newest picture only while a live stream is active")
		}
		return err
	}
	if o, ok := w.(Observer); ok {
		o.Playing(!found.Began().IsZero())
	}
	switch what {
	case theMultivariant:
		return h.multivariant(w, r, p)
	case aText:
		return h.sidecar(w, r, p, strings.TrimPrefix(rest, textPrefix))
	case aFile:
		return h.download(w, r, p, rest)
	case theMetadata:
		return h.metadata(w, r, p)
	case anImage:
		return h.image(w, r, p, rest)
	case ofRendition, nothing: // the latter was refused
	}
	return h.rendition(w, r, p, rest)
}

// rendition sends a media playlist, or what it lists, of what is watched now or was under an earlier media's name.
func (h *Handler) rendition(w http.ResponseWriter, r *http.Request, p viewing, path string) error {
	media, rest, _ := strings.Cut(path, "/")
	if media != p.Media() {
		earlier, err := p.Earlier(r.Context(), media)
		if fault.Is(err, fault.NotFound) {
			return unknown()
		}
		if err != nil {
			return err
		}
		p.Presentation = earlier
	}
	if rendition, ok := strings.CutSuffix(rest, ".m3u8"); ok && !strings.Contains(rendition, "/") {
		return h.playlist(w, r, p, rendition)
	}
	rendition, name, _ := strings.Cut(rest, "/")
	res, ok := hls.ParseResource(name)
	if !ok {
		return unknown()
	}
	return h.chunk(w, r, p, rendition, res)
}

// Owns reports whether a path leads to a playback ID and to nothing else that a server may have at its root: their
// names are shorter. What is downloaded takes longer than other responses may, and is left to net/http, which can be
// told so.
func Owns(path string) bool {
	id, rest, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	id = strings.TrimSuffix(id, ".m3u8")
	return len(id) >= 24 && plausible(id) && kindOf(rest) != aFile
}

// plausible reports whether a path can be a playback ID; others are kept away from the source.
func plausible(id string) bool {
	if len(id) < 8 || len(id) > 255 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

func (h *Handler) multivariant(w http.ResponseWriter, r *http.Request, p viewing) error {
	mod, err := modifiersOf(p.permit.query(r))
	if err != nil {
		return err
	}
	m, err := p.Multivariant(r.Context(), mod.clip)
	if err != nil {
		return err
	}
	var pictures []hls.Picture
	if mod.bounded() {
		if pictures, err = p.Pictures(r.Context()); err != nil {
			return err
		}
	}
	mod.apply(m, pictures)
	if p.permit.Signed {
		mod.passed = "" // the path has them
	}
	base := p.base()
	m.ChaptersURI = chapters(p, base)
	below := base + "/" + p.Media() + "/"
	for i := range m.Renditions {
		m.Renditions[i].URI = below + m.Renditions[i].URI + mod.passed
	}
	for i := range m.Variants {
		m.Variants[i].URI = below + m.Variants[i].URI + mod.passed
	}
	if mod.trick {
		m.Tiles, err = p.Tiles(r.Context(), mod.clip)
		if err != nil && !fault.Is(err, fault.NotFound) { // it plays without them
			h.opt.Logger.WarnContext(r.Context(), "the image playlist is left out", "path", logged(r), "error", err)
			m.Tiles = nil
		}
		m.TilesURI = below + hls.TilesURI + mod.passed
	}
	data, compressed := m.Append(nil), acceptsGzip(r.Header)
	if compressed { // however short it is: Apple's authoring rules want it of each playlist
		data = hls.Gzip(data)
	}
	return h.text(w, r, p, Text{Data: data, MaxAge: 1}, compressed)
}

func (h *Handler) playlist(w http.ResponseWriter, r *http.Request, p viewing, rendition string) error {
	reload, err := reloadOf(r.URL.RawQuery)
	if err != nil {
		return err
	}
	mod, err := modifiersOf(p.permit.query(r))
	if err != nil {
		return err
	}
	if err = p.allows(r.Context(), rendition); err != nil {
		return err
	}
	reload.Clip, reload.TextHoldBack = mod.clip, mod.textHold
	compressed := acceptsGzip(r.Header)
	if rendition+".m3u8" == hls.TilesURI {
		var list *hls.Tiles
		if list, err = p.Tiles(r.Context(), mod.clip); err != nil {
			return err
		}
		data := list.Append(nil)
		if compressed {
			data = hls.Gzip(data)
		}
		return h.text(w, r, p, Text{Data: data, MaxAge: 1}, compressed)
	}
	if mod.passed == "" {
		var t Text
		if t, err = p.Playlist(r.Context(), rendition, reload, compressed); err != nil {
			return err
		}
		return h.text(w, r, p, t, compressed)
	}
	reload.Skip = reload.Skip && !mod.plain
	if p.permit.Signed {
		mod.passed = ""
	}
	t, release, err := h.asked(r, p, rendition, reload, mod, compressed)
	if err != nil {
		return err
	}
	defer release()
	return h.text(w, r, p, t, compressed)
}

func (h *Handler) text(w http.ResponseWriter, r *http.Request, p viewing, t Text, compressed bool) error {
	release, err := h.holdData(r, t.Data)
	if err != nil {
		return err
	}
	defer release()
	head := w.Header()
	head["Content-Type"] = mpegURL
	head["Vary"] = byEncoding
	if compressed {
		head["Content-Encoding"] = gzipped
	}
	head["Cache-Control"] = []string{p.permit.cacheControl(t.MaxAge)}
	head["Content-Length"] = []string{strconv.Itoa(len(t.Data))}
	h.write(w, r, t.Data)
	return nil
}

func (h *Handler) sidecar(w http.ResponseWriter, r *http.Request, p viewing, name string) error {
	track, whole := strings.CutSuffix(name, ".vtt")
	track, transcript := strings.CutSuffix(track, ".txt")
	if !whole && !transcript {
		return unknown()
	}
	if err := p.unclipped(); err != nil {
		return err
	}
	b, err := p.Sidecar(r.Context(), track)
	if err != nil {
		return err
	}
	if !transcript {
		return h.body(w, r, b, "text/vtt; charset=utf-8", p.permit.cacheControl(60))
	}
	data, err := delivered.Bytes(b, nil)
	if err != nil {
		return err
	}
	d, err := captions.Stored(data)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "the text track can't be read")
	}
	return h.body(w, r, Body{Data: d.Transcript()}, "text/plain; charset=utf-8", p.permit.cacheControl(60))
}

func (h *Handler) chunk(w http.ResponseWriter, r *http.Request, p viewing, rendition string, res hls.Resource) error {
	if err := p.allows(r.Context(), rendition); err != nil {
		return err
	}
	b, err := p.chunk(h.withViewer(r), rendition, res)
	if err != nil {
		return err
	}
	if h.opt.Watching != nil && b.Watched.Length > 0 && r.Method == http.MethodGet {
		h.opt.Watching.Saw(p.id, h.watcher(r), b.Watched.Length, time.Now())
	}
	return h.body(w, r, b, mediaType(res.Ext), p.permit.cacheControl(forever))
}

func mediaType(ext string) string {
	switch ext {
	case "vtt":
		return "text/vtt; charset=utf-8"
	case "m4s":
		return "video/iso.segment"
	default:
		return "video/mp4"
	}
}

// asksLatest reports whether a request for an image is for the newest picture of a live stream, which none that is not
// live has: that is no reason to ask again.
func asksLatest(query string) bool {
	return strings.Contains(query, "latest=true") || strings.Contains(query, "latest=1")
}

func (h *Handler) image(w http.ResponseWriter, r *http.Request, p viewing, name string) error {
	i, err := p.Image(h.withViewer(r), name, p.imageQuery(r), h.opt.Base+"/"+p.base())
	if err != nil {
		return err
	}
	return h.body(w, r, i.Body, "", p.permit.cacheControl(i.MaxAge))
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, data []byte) {
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(data); err != nil {
		h.opt.Logger.DebugContext(r.Context(), "viewer went away", "path", logged(r), "error", err)
	}
}

// reloadOf reads the delivery directives, section 6.2.5. Of one that is given twice the first counts.
func reloadOf(query string) (Reload, error) {
	out := Reload{MSN: -1, Part: -1}
	var partGiven bool
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		switch name {
		case "_HLS_msn":
			n, ok := position(value)
			if !ok {
				return out, fault.New(fault.Invalid, "_HLS_msn: must be a media sequence number of 0 or more")
			}
			if out.MSN < 0 {
				out.MSN = n
			}
		case "_HLS_part":
			n, ok := position(value)
			if !ok {
				return out, fault.New(fault.Invalid, "_HLS_part: must be a part index of 0 or more")
			}
			if !partGiven {
				out.Part, partGiven = int(min(n, math.MaxInt32)), true
			}
		case "_HLS_skip":
			out.Skip = out.Skip || value == "YES" || value == "v2"
		}
	}
	if partGiven && out.MSN < 0 {
		return out, fault.New(fault.Invalid, "_HLS_part: needs _HLS_msn beside it")
	}
	return out, nil
}

// acceptsGzip reports whether Accept-Encoding allows gzip, RFC 9110 section 12.5.3.
func acceptsGzip(header http.Header) bool {
	for _, line := range header["Accept-Encoding"] {
		for e := range strings.SplitSeq(line, ",") {
			name, weight, _ := strings.Cut(strings.TrimSpace(e), ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q, isWeight := strings.CutPrefix(strings.TrimSpace(weight), "q=")
				return !isWeight || strings.Trim(q, "0.") != ""
			}
		}
	}
	return false
}

func unknown() error { return fault.New(fault.NotFound, "there is nothing to play under this address") }

// fail writes an error; nothing but a fault's own sentences is shown.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil { // the viewer is gone and reads nothing, or the server stops: never an empty 200
		writeError(w, http.StatusServiceUnavailable, "unavailable", "", "the request was given up")
		return
	}
	status := respond.Playback.Of(err)
	switch status.Code {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		respond.RetryAfter(w, 0)
	case http.StatusInternalServerError:
		h.opt.Logger.ErrorContext(r.Context(), "playback failed", "path", logged(r), "error", err)
	}
	messages := fault.Messages(err)
	if len(messages) == 0 {
		messages = []string{"something went wrong on our side"}
	}
	writeError(w, status.Code, status.Type, fault.CodeOf(err), messages...)
}

// writeError sends an error, with the code that it may have. message is all messages in one string, which some players
// look for.
func writeError(w http.ResponseWriter, status int, typ, code string, messages ...string) {
	w.Header().Set("Cache-Control", "no-store")
	respond.Refuse(w, status, respond.Error{
		Type: typ, Code: code, Message: strings.Join(messages, "; "), Messages: messages,
	})
}
