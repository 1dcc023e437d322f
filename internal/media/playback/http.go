package playback

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"millrace/internal/fault"
	"millrace/internal/media/hls"
)

// Options is what a Handler needs.
type Options struct {
	Source Source
	Logger *slog.Logger
}

// Handler is the HTTP face of playback. Paths: /{id} and /{id}.m3u8, /{id}/{media}/{rendition}.m3u8,
// /{id}/{media}/{rendition}/{resource}, /{id}/text/{track}.vtt.
type Handler struct{ opt Options }

// New returns a Handler.
func New(o Options) *Handler { return &Handler{opt: o} }

const (
	typePlaylist = "application/vnd.apple.mpegurl"
	forever      = "max-age=31536000, immutable"
)

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	allowCORS(w.Header())
	switch r.Method {
	case http.MethodGet, http.MethodHead:
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		writeError(w, http.StatusMethodNotAllowed, "method_not_allowed", "playback answers GET, HEAD and OPTIONS only")
		return
	}
	if err := h.serve(w, r); err != nil {
		h.fail(w, r, err)
	}
}

// allowCORS opens playback to every page: a playback ID is the permission, cookies are never looked at.
func allowCORS(header http.Header) {
	header.Set("Access-Control-Allow-Origin", "*")
	header.Set("Access-Control-Allow-Methods", "GET, HEAD, OPTIONS")
	header.Set("Access-Control-Allow-Headers", "*")
	header.Set("Access-Control-Expose-Headers", "Content-Length, Content-Range, Date")
	header.Set("Access-Control-Max-Age", "86400")
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) error {
	id, rest, deep := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !deep {
		id = strings.TrimSuffix(id, ".m3u8")
	}
	if !plausible(id) {
		return unknown()
	}
	p, err := h.opt.Source.Open(r.Context(), id, tokenOf(r))
	if err != nil {
		return err
	}
	if !deep {
		return h.multivariant(w, r, p, id)
	}
	first, rest, _ := strings.Cut(rest, "/")
	if first == "text" {
		return h.sidecar(w, r, p, rest)
	}
	if first != p.Media() {
		s, ok := p.(Series)
		if !ok {
			return unknown()
		}
		if p, ok = s.Earlier(first); !ok {
			return unknown()
		}
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

func tokenOf(r *http.Request) string {
	if !strings.Contains(r.URL.RawQuery, "token=") {
		return ""
	}
	return r.URL.Query().Get("token")
}

// plausible keeps paths that can not be a playback ID away from the source.
func plausible(id string) bool {
	if len(id) < 8 || len(id) > 255 {
		return false
	}
	for i := range len(id) {
		c := id[i]
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			return false
		}
	}
	return true
}

func (h *Handler) multivariant(w http.ResponseWriter, r *http.Request, p Presentation, id string) error {
	m, err := p.Multivariant(r.Context())
	if err != nil {
		return err
	}
	below := id + "/" + p.Media() + "/"
	for i := range m.Renditions {
		m.Renditions[i].URI = below + m.Renditions[i].URI
	}
	for i := range m.Variants {
		m.Variants[i].URI = below + m.Variants[i].URI
	}
	h.text(w, r, p, Text{Data: m.Append(nil), MaxAge: 1}, false)
	return nil
}

func (h *Handler) playlist(w http.ResponseWriter, r *http.Request, p Presentation, rendition string) error {
	reload, err := reloadOf(r)
	if err != nil {
		return err
	}
	compressed := acceptsGzip(r)
	t, err := p.Playlist(r.Context(), rendition, reload, compressed)
	if err != nil {
		return err
	}
	h.text(w, r, p, t, compressed)
	return nil
}

func (h *Handler) text(w http.ResponseWriter, r *http.Request, p Presentation, t Text, compressed bool) {
	head := w.Header()
	head.Set("Content-Type", typePlaylist)
	head.Set("Vary", "Accept-Encoding")
	if compressed {
		head.Set("Content-Encoding", "gzip")
	}
	head.Set("Cache-Control", cacheControl(p, "max-age="+strconv.Itoa(t.MaxAge)))
	head.Set("Content-Length", strconv.Itoa(len(t.Data)))
	h.write(w, r, t.Data)
}

func cacheControl(p Presentation, lifetime string) string {
	if p.Private() {
		return "private, " + lifetime
	}
	return "public, " + lifetime
}

func (h *Handler) sidecar(w http.ResponseWriter, r *http.Request, p Presentation, name string) error {
	track, ok := strings.CutSuffix(name, ".vtt")
	if !ok {
		return unknown()
	}
	b, err := p.Sidecar(r.Context(), track)
	if err != nil {
		return err
	}
	return h.body(w, r, b, "text/vtt; charset=utf-8", cacheControl(p, "max-age=60"))
}

func (h *Handler) chunk(w http.ResponseWriter, r *http.Request, p Presentation, rendition string, res hls.Resource) error {
	b, err := p.Chunk(r.Context(), rendition, res)
	if err != nil {
		return err
	}
	return h.body(w, r, b, mediaType(res.Ext), cacheControl(p, forever))
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

// body sends media. A single byte range of what is in memory is honoured; a Range on anything else gets the whole, which RFC 9110
// section 14.2 allows.
func (h *Handler) body(w http.ResponseWriter, r *http.Request, b Body, typ, cache string) error {
	head := w.Header()
	if b.Type != "" {
		typ = b.Type
	}
	head.Set("Content-Type", typ)
	head.Set("Cache-Control", cache)
	if b.Reader == nil {
		head.Set("Content-Length", strconv.Itoa(len(b.Data)))
		h.write(w, r, b.Data)
		return nil
	}
	defer func() { _ = b.Reader.Close() }() // it was only read
	head.Set("Content-Length", strconv.FormatInt(b.Size, 10))
	if r.Method == http.MethodHead {
		return nil
	}
	if err := send(w, b); err != nil {
		h.opt.Logger.Debug("viewer or storage went away", "path", r.URL.Path, "error", err)
	}
	return nil
}

// send copies exactly what was announced. A range of a file writes itself, because only then does it go from the disk to the socket
// inside the kernel; io.CopyN would hide the file.
func send(w io.Writer, b Body) error {
	self, ok := b.Reader.(io.WriterTo)
	if !ok {
		_, err := io.CopyN(w, b.Reader, b.Size)
		return err
	}
	n, err := self.WriteTo(w)
	if err == nil && n < b.Size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, data []byte) {
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(data); err != nil {
		h.opt.Logger.Debug("viewer went away", "path", r.URL.Path, "error", err)
	}
}

// reloadOf reads the delivery directives, section 6.2.5.
func reloadOf(r *http.Request) (Reload, error) {
	out := Reload{MSN: -1, Part: -1}
	if !strings.Contains(r.URL.RawQuery, "_HLS_") {
		return out, nil
	}
	q := r.URL.Query()
	if v := q.Get("_HLS_msn"); v != "" {
		n, err := strconv.ParseInt(v, 10, 62)
		if err != nil || n < 0 {
			return out, fault.New(fault.Invalid, "_HLS_msn: must be a media sequence number of 0 or more")
		}
		out.MSN = n
	}
	if v := q.Get("_HLS_part"); v != "" {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n < 0 {
			return out, fault.New(fault.Invalid, "_HLS_part: must be a part index of 0 or more")
		}
		if out.MSN < 0 {
			return out, fault.New(fault.Invalid, "_HLS_part: needs _HLS_msn beside it")
		}
		out.Part = int(n)
	}
	out.Skip = q.Get("_HLS_skip") == "YES" || q.Get("_HLS_skip") == "v2"
	return out, nil
}

func acceptsGzip(r *http.Request) bool {
	for _, line := range r.Header.Values("Accept-Encoding") {
		for e := range strings.SplitSeq(line, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(e), ";")
			if name == "gzip" && strings.TrimSpace(q) != "q=0" {
				return true
			}
		}
	}
	return false
}

func unknown() error { return fault.New(fault.NotFound, "there is nothing to play under this address") }

// fail answers an error; nothing but a fault's own sentences is shown.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // nobody is there to read it
	}
	status, typ := http.StatusInternalServerError, "internal"
	switch fault.KindOf(err) {
	case fault.Invalid, fault.TooLarge, fault.Conflict:
		status, typ = http.StatusBadRequest, "invalid_parameters"
	case fault.NotFound:
		status, typ = http.StatusNotFound, "not_found"
	case fault.Denied, fault.Unauthorized:
		status, typ = http.StatusForbidden, "forbidden"
	case fault.NotReady:
		status, typ = http.StatusPreconditionFailed, "not_ready"
	case fault.Unavailable:
		status, typ = http.StatusServiceUnavailable, "unavailable"
	case fault.Internal:
		h.opt.Logger.Error("playback failed", "path", r.URL.Path, "error", err)
	}
	messages := fault.Messages(err)
	if len(messages) == 0 {
		messages = []string{"something went wrong on our side"}
	}
	writeError(w, status, typ, messages...)
}

func writeError(w http.ResponseWriter, status int, typ string, messages ...string) {
	var body struct {
		Error struct {
			Type     string   `json:"type"`
			Messages []string `json:"messages"`
		} `json:"error"`
	}
	body.Error.Type, body.Error.Messages = typ, messages
	data, err := json.Marshal(body)
	if err != nil {
		data = []byte(`{}`) // strings always marshal
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // the viewer may be gone; there is nothing left to tell
}
